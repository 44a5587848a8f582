"""Tokens: how many a reply took in and gave out, as the system itself counts them in its `usage`."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, per_case

ABOUT = {
    "tokens_in": About(
        "Tokens read",
        "tokens of the prompts behind a reply, as the system counts them",
        "Cost",
        unit="tokens",
        better="less",
        needs=("usage",),
        gate=False,  # fewer is cheaper, and more may be better
    ),
    "tokens_out": About(
        "Tokens written",
        "tokens that the models behind a reply wrote, as the system counts them",
        "Cost",
        unit="tokens",
        better="less",
        needs=("usage",),
        gate=False,
    ),
}
NAMES, measure = per_case(
    tokens_in=lambda case: case.reply.usage.get("tokens_in") or None,
    tokens_out=lambda case: case.reply.usage.get("tokens_out") or None,
)
