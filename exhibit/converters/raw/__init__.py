"""Reads raw benchmark data: archives, tables of records, laws, and files that rows refer to by name."""
