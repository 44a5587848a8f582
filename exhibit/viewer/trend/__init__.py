"""Runs over time: what each stood on, how every metric moved, which run made it worse, and why."""
