"""Time to the first token: the seconds until the first words of a streamed answer arrive."""

from exhibit.evaluation.metrics import score_per_case

NAMES, measure = score_per_case(first_token=lambda case: case.reply.first_token)
