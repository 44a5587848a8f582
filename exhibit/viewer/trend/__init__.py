"""Runs over time: how each metric changed, which run made it worse, and what else changed in that run."""
