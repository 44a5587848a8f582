"""Prints documents for which the source has no PDF: with a browser, or in this process."""
