"""Measure how reliable the confidence of a system's replies is.

The measure is the AUROC. Means weighted by the confidence of each reply are also computed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.statistics import Values
from exhibit.schemas.run import Confidence

_WEIGHTED = ("answered_rightly", "recall@10")
"""The metrics whose weighted means are printed; confidence.json has all of them."""


def describe(cases: Sequence[Case], sure: Sequence[float | None], values: Mapping[str, Values]) -> dict[str, Any]:
    """Return statistics on the confidences of the replies to cases; empty if no reply has a confidence.

    `weighted` has the mean of each metric in `values`, each question weighted by the confidence of its reply.
    """
    pairs = [(weight, not case.is_impossible) for weight, case in zip(sure, cases, strict=True) if weight is not None]
    if not pairs:
        return {}
    weighted = {}
    for name, column in values.items():
        known = [(a, b) for a, b in zip(column, sure, strict=True) if a is not None and b is not None]
        if total := math.fsum(weight for _, weight in known):
            weighted[name] = math.fsum(value * weight for value, weight in known) / total
    answerable = sum(exists for _, exists in pairs)
    return {"questions": len(pairs), "answerable": answerable, "auroc": compute_auroc(pairs), "weighted": weighted}


def describe_confidence(name: str, sure: Confidence) -> str:
    worth = "every question has an answer, or none has" if sure.auroc is None else f"AUROC {sure.auroc:.2f}"
    weighted = {name: sure.weighted[name] for name in _WEIGHTED if name in sure.weighted}
    shown = [f"{name} {describe_metric(name).figure(mean)}" for name, mean in weighted.items()]
    means = f"; means weighted by it: {', '.join(shown)}" if shown else ""
    return f"{name}: confidence of {sure.questions} replies, {sure.answerable} to answerable questions: {worth}{means}"


def compute_auroc(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Return the AUROC: how often an answerable question has a higher confidence than an unanswerable one.

    Each pair is the confidence of a reply and whether its question is answerable.
    """
    yes, no = (np.sort([confidence for confidence, exists in pairs if exists is wanted]) for wanted in (True, False))
    if not len(yes) or not len(no):
        return None
    below, up_to = (int(np.searchsorted(no, yes, side).sum()) for side in ("left", "right"))
    return (below + up_to) / 2 / (len(yes) * len(no))
