"""Pages: fetched from the web, and printed to PDF by Chromium or ReportLab."""
