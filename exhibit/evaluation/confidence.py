"""Measure how reliable the confidence of a system's replies is.

The measure is the AUROC; means are also given with each question weighted by the confidence of its reply.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import describe_metric
from exhibit.schemas.run import Confidence

_WEIGHTED = ("answered_rightly", "recall@10")
"""The metrics whose weighted means are printed; confidence.json has all of them."""

ConfidencePair = tuple[float, bool]
"""The confidence of a reply, and whether the question has an answer."""


def confidence_of(case: Case) -> float | None:
    """Return the confidence of a reply; None where the reply has none or is an error."""
    return None if case.reply.error else case.reply.confidence


def describe(pairs: Sequence[ConfidencePair], weighted: Mapping[str, float] | None = None) -> dict[str, Any] | None:
    """Return statistics on the confidence of replies; None if no reply has a confidence."""
    if not pairs:
        return None
    return {
        "questions": len(pairs),
        "answerable": sum(exists for _, exists in pairs),
        "auroc": compute_auroc(pairs),
        "weighted": dict(weighted or {}),
    }


def compute_weighted_means(
    values: Mapping[str, Sequence[float | None]], sure: Sequence[float | None]
) -> dict[str, float]:
    """Return the mean of each metric, each question weighted by the confidence of its reply."""
    means = {}
    for name, column in values.items():
        pairs = [(value, weight) for value, weight in zip(column, sure, strict=True) if None not in (value, weight)]
        total = math.fsum(weight for _, weight in pairs if weight)
        if total:
            means[name] = math.fsum((value or 0.0) * (weight or 0.0) for value, weight in pairs) / total
    return means


def describe_confidence(name: str, sure: Confidence) -> str:
    """Return one line that says how reliable the confidence of a dataset's replies is."""
    worth = "every question has an answer, or none has" if sure.auroc is None else f"AUROC {sure.auroc:.2f}"
    weighted = {name: sure.weighted[name] for name in _WEIGHTED if name in sure.weighted}
    shown = [f"{name} {describe_metric(name).figure(mean)}" for name, mean in weighted.items()]
    means = f"; means weighted by it: {', '.join(shown)}" if shown else ""
    return f"{name}: confidence of {sure.questions} replies, {sure.answerable} to answerable questions: {worth}{means}"


def compute_auroc(pairs: Sequence[ConfidencePair]) -> float | None:
    """Return the AUROC: how often an answerable question has a higher confidence than an unanswerable one."""
    yes, no = (np.sort([confidence for confidence, exists in pairs if exists is wanted]) for wanted in (True, False))
    if not len(yes) or not len(no):
        return None
    below, up_to = (int(np.searchsorted(no, yes, side).sum()) for side in ("left", "right"))
    return (below + up_to) / 2 / (len(yes) * len(no))
