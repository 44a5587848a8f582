"""Time to the first token: the seconds until the first words of a streamed answer could be read."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options

NAMES = ("first_token",)
ABOUT = {
    "first_token": About(
        "Time to the first words",
        "seconds from the question to the first words of a streamed answer",
        "Cost",
        unit="seconds",
        better="less",
        needs=("clock",),
        gate=False,  # a busy machine is no fault of the system under test
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the seconds of each reply, None where it did not come as a stream."""
    return {"first_token": each(cases, lambda case: case.reply.first_token)}
