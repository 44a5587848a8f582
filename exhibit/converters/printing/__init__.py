"""Documents that a source does not bring as PDFs are printed: by a browser, or in this process."""
