"""Latency: the seconds that a reply took."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, per_case

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
NAMES, measure = per_case(latency=lambda case: case.reply.seconds)
