"""`exhibit view`: a server on a loopback address that shows bundles and runs, and saves reviews at once."""
