"""Latency: the seconds that a reply took."""

from exhibit.evaluation.metrics import per_case

NAMES, measure = per_case(latency=lambda case: case.reply.seconds)
