"""What benchmarks come as: archives, tables of records, files that are known by their titles, laws."""
