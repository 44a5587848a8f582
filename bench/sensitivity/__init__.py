"""Measures the effect of single settings and constants on retrieval."""
