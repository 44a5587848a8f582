"""Time to the first token: the seconds until the first words of a streamed answer could be read."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, per_case

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
NAMES, measure = per_case(first_token=lambda case: case.reply.first_token)
