"""Measured comparisons, as ratios in one run: these are not tests."""
