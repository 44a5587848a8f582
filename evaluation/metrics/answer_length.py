"""Answer length, in characters."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, per_case

ABOUT = {
    "answer_length": About(
        "Answer length",
        "characters of an answer",
        "Cost",
        unit="characters",
        better="neither",
        needs=("answer",),
        short=False,
    )
}
NAMES, measure = per_case(answer_length=lambda case: float(len(case.reply.answer or "")))
