"""What a system's confidence is worth: does it tell questions that have an answer from those that have none?

A question counts as sure or unsure by the confidence that came with its reply; whether an answer exists is the
dataset's own word (`is_impossible`). Replies without a confidence, and failed ones, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from exhibit.evaluation.cases import Case
from exhibit.schemas.run import Confidence

_BINS = 10  # of the calibration curve, as usual
_COVERAGES = tuple(share / 10 for share in range(1, 11))

Told = tuple[float, bool]
"""A confidence, and whether an answer exists."""


def confidences(cases: Iterable[Case]) -> list[Told]:
    """Return the confidence of each reply that has one, and whether an answer exists."""
    return [
        (case.reply.confidence, not case.is_impossible)
        for case in cases
        if case.reply.confidence is not None and not case.reply.error
    ]


def describe(told: Sequence[Told]) -> dict[str, Any] | None:
    """Return AUROC, calibration and risk against coverage; None where no reply has a confidence."""
    if not told:
        return None
    return {
        "questions": len(told),
        "answerable": sum(exists for _, exists in told),
        "auroc": auroc(told),
        "calibration": calibration(told),
        "risk_at_coverage": risk_at_coverage(told),
    }


def in_words(name: str, told: Confidence) -> str:
    """Return what the confidence of a dataset's replies is worth, in a line."""
    worth = "every question has an answer, or none has" if told.auroc is None else f"AUROC {told.auroc:.2f}"
    return f"{name}: confidence beside {told.questions} answers, {told.answerable} of them answerable: {worth}"


def auroc(told: Sequence[Told]) -> float | None:
    """Return how likely a question with an answer has more confidence than one without; equals count half."""
    yes = sorted(confidence for confidence, exists in told if exists)
    no = sorted(confidence for confidence, exists in told if not exists)
    if not yes or not no:
        return None
    below = same = at = end = 0
    for confidence in yes:
        while at < len(no) and no[at] < confidence:
            at += 1
        end = max(end, at)
        while end < len(no) and no[end] == confidence:
            end += 1
        below, same = below + at, same + end - at
    return (below + same / 2) / (len(yes) * len(no))


def calibration(told: Sequence[Told]) -> list[dict[str, float]]:
    """Return, for each tenth of the scale that has questions, the mean confidence and the share that is answerable."""
    bins: dict[int, list[Told]] = {}
    for confidence, exists in told:
        bins.setdefault(min(int(confidence * _BINS), _BINS - 1), []).append((confidence, exists))
    return [
        {
            "questions": len(rows),
            "confidence": sum(confidence for confidence, _ in rows) / len(rows),
            "answerable": sum(exists for _, exists in rows) / len(rows),
        }
        for _, rows in sorted(bins.items())
    ]


def risk_at_coverage(told: Sequence[Told]) -> list[dict[str, float]]:
    """Return the share without an answer among the surest tenth of the questions, the surest two tenths, and so on."""
    ranked = sorted(told, key=lambda row: -row[0])
    curve = []
    for coverage in _COVERAGES:
        kept = ranked[: max(1, round(coverage * len(ranked)))]
        curve.append({"coverage": coverage, "risk": sum(not exists for _, exists in kept) / len(kept)})
    return curve
