"""The web as a source: which addresses are allowed, and how pages are downloaded, printed and cached."""
