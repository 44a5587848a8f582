"""Modules of the converter for the Civil Procedure Rules: documents, their sections, and citations of either."""
