"""Readers of raw benchmark data: archives, tables of records, files paired with rows by their names, laws."""
