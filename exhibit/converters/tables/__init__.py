"""Reads tables of questions: records, columns, cells, documents and gold."""
