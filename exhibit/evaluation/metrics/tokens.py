"""Tokens: the numbers of input and output tokens of a reply, as the system reports them in its `usage`."""

from exhibit.evaluation.metrics import score_per_case

NAMES, measure = score_per_case(
    tokens_in=lambda case: case.reply.usage.get("tokens_in") or None,
    tokens_out=lambda case: case.reply.usage.get("tokens_out") or None,
)
