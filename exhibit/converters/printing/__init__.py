"""Prints documents to PDF if the source has no PDF: HTML with a browser, most plain text with ReportLab."""
