"""Time to the first token: the seconds until the first words of a streamed answer arrive."""

from exhibit.evaluation.metrics import per_case

NAMES, measure = per_case(first_token=lambda case: case.reply.first_token)
