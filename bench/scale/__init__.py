"""Measures how time and memory grow with documents, chunks and workers."""
