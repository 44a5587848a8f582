"""Latency: the seconds that a reply took."""

from exhibit.evaluation.metrics import score_per_case

NAMES, measure = score_per_case(latency=lambda case: case.reply.seconds)
