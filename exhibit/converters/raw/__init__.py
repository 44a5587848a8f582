"""Readers of raw benchmark data: archives, tables of records, files that are known by their titles, laws."""
