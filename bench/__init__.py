"""Benchmarks of speed, memory and quality; they print measurements, and are not tests."""
