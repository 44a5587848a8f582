"""How far reviewers agree with each other, and with what the run says of itself: Cohen's kappa with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from exhibit.evaluation.statistics import RESAMPLES, SEED, Interval
from exhibit.evaluation.verdicts import STAGES
from exhibit.schemas.review import Review
from exhibit.viewer.review.source import Key, Questions, weights
from exhibit.viewer.wording import GOOD_MARK

ASPECTS = ("gold", "answer")
_MARK = "answer_correctness"


@dataclass(frozen=True)
class Agreement:
    """How often two raters say the same, and how much of that is more than chance."""

    first: str
    second: str
    aspect: str
    n: int
    """Questions that both judged."""
    same: int
    kappa: float | None
    """None where chance alone would make them agree always: each gives one judgment throughout."""
    ci95: Interval | None


@dataclass(frozen=True)
class Share:
    """What share of the sample is judged right, and what that says of the run it was drawn from."""

    reviewer: str
    aspect: str
    right: int
    judged: int
    unclear: int
    estimate: float | None
    """Of the whole run: each question counts for those that it was drawn from."""
    ci95: Interval | None


Judged = dict[Key, str]


def judgments(review: Review, aspect: str) -> Judged:
    """Return what a reviewer said of the gold, or of the answers, as far as they said something."""
    told = {(case.dataset, case.id): case.gold if aspect == "gold" else case.answer for case in review.cases}
    return {key: value for key, value in told.items() if value}


def agreements(reviews: Sequence[Review], rows: Questions) -> list[Agreement]:
    """Return the agreement of every two reviewers, and of each with the run's verdicts and the judge's marks."""
    documents = {key: f"{key[0]}/{row.document}" for key, row in rows.items()}
    pairs = [
        agree(one.reviewer, judgments(one, aspect), other.reviewer, judgments(other, aspect), aspect, documents)
        for aspect in ASPECTS
        for one, other in combinations(reviews, 2)
    ]
    machines = {"the run's verdict": verdicts(rows), "the judge": marks(rows)}
    for review in reviews:
        clear = {key: said for key, said in judgments(review, "answer").items() if said != "unclear"}
        for name, told in machines.items():
            pairs.append(agree(review.reviewer, clear, name, told, "answer", documents))
    return [one for one in pairs if one.n]


def verdicts(rows: Questions) -> Judged:
    """Return what the run's verdicts say of the answers; nothing of those that say nothing for or against."""
    told = {}
    for key, row in rows.items():
        if row.verdict in ("answered", "expected answer given"):
            told[key] = "right"
        elif row.verdict == "failed" or row.verdict in STAGES:
            told[key] = "wrong"
    return told


def marks(rows: Questions) -> Judged:
    """Return what the judge's marks of correctness say, where there was a judge."""
    marked = {key: row.scores.get(_MARK) for key, row in rows.items()}
    return {key: "right" if mark >= GOOD_MARK else "wrong" for key, mark in marked.items() if mark is not None}


def agree(first: str, one: Judged, second: str, other: Judged, aspect: str, documents: Mapping[Key, str]) -> Agreement:
    """Return the agreement of two raters over what both judged; the interval is from drawing documents anew."""
    keys = sorted((key for key in one if key in other), key=str)
    pairs = [(one[key], other[key]) for key in keys]
    owners = [documents.get(key, str(key)) for key in keys]
    return Agreement(
        first,
        second,
        aspect,
        len(pairs),
        sum(a == b for a, b in pairs),
        kappa(pairs),
        _bootstrap(owners, lambda drawn: kappa([pairs[at] for at in drawn])),
    )


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa; None where there is nothing to compare, or chance would always agree."""
    n = len(pairs)
    if not n:
        return None
    seen = sum(a == b for a, b in pairs) / n
    firsts, seconds = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / n**2
    return None if chance == 1 else (seen - chance) / (1 - chance)


def shares(reviews: Sequence[Review], rows: Questions) -> list[Share]:
    """Return what share each reviewer calls right, in the sample and, by how it was drawn, in the run."""
    parts = []
    for review in reviews:
        for aspect in ASPECTS:
            told = {key: said for key, said in judgments(review, aspect).items() if key in rows}
            clear = {key: said for key, said in told.items() if said != "unclear"}
            if not told:
                continue
            weight = weights(rows, list(clear), review.sample.by)
            keys = sorted(clear, key=str)
            heavy = np.array([weight[key] for key in keys])
            right = np.array([clear[key] == "right" for key in keys], dtype=float)
            owners = [f"{key[0]}/{rows[key].document}" for key in keys]
            parts.append(
                Share(
                    review.reviewer,
                    aspect,
                    int(right.sum()),
                    len(keys),
                    len(told) - len(clear),
                    float((heavy * right).sum() / heavy.sum()) if keys else None,
                    _bootstrap(owners, lambda drawn, h=heavy, r=right: float((h * r)[drawn].sum() / h[drawn].sum())),
                )
            )
    return parts


def _bootstrap(owners: Sequence[str], measure: Any) -> Interval | None:
    """Return the middle 95% of a figure when documents are drawn anew; None where one document is all there is."""
    names = sorted(set(owners))
    if len(names) < 2:
        return None
    places = {name: [at for at, owner in enumerate(owners) if owner == name] for name in names}
    chance = np.random.default_rng(SEED)
    drawn = (chance.integers(len(names), size=len(names)) for _ in range(RESAMPLES))
    values = [measure([at for number in numbers for at in places[names[number]]]) for numbers in drawn]
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
