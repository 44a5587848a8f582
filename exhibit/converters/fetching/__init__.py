"""The web as a source: allowed addresses, and how pages are downloaded, printed and cached."""
