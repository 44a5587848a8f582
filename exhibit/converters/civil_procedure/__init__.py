"""Modules of the CPR converter: they read the documents, parse citations and resolve them to sections."""
