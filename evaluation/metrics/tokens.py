"""Tokens: how many a reply took in and gave out, as the system itself counts them in its `usage`."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options

NAMES = ("tokens_in", "tokens_out")
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


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the tokens of each reply, None where the system does not tell, or no model was asked."""
    return {name: each(cases, lambda case, name=name: case.reply.usage.get(name) or None) for name in NAMES}  # type: ignore[misc]
