"""Runs over time: the data and settings of each, how every metric changed, which run made it worse, and why."""
