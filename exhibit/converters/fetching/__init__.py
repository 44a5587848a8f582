"""Web pages as a source: checks their addresses, downloads them, prints them to PDF and caches the PDFs."""
