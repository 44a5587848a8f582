"""Reads the documents of the Civil Procedure Rules, and resolves citations to the documents and their sections."""
