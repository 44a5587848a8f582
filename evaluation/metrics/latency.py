"""Latency: the seconds that a reply took."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options

NAMES = ("latency",)
ABOUT = {
    "latency": About(
        "Time to reply",
        "seconds from the question to the last word of its reply",
        "Cost",
        unit="seconds",
        better="less",
        needs=("clock",),
        gate=False,  # a busy machine is no fault of the system under test
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the seconds of each reply, None where they are not known."""
    return {"latency": each(cases, lambda case: case.reply.seconds)}
