"""Prints documents to PDF if the source has no PDF.

HTML, office files and images are printed with a browser, and plain text with ReportLab. A browser also
prints plain text in Chinese, Japanese or Korean.
"""
