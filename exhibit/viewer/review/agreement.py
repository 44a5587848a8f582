"""How far reviewers agree with each other, with the run's outcomes and with the judge: Cohen's kappa."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exhibit.evaluation.outcomes import BAD, GOOD, GOOD_MARK, MARK
from exhibit.evaluation.statistics import RESAMPLES, SEED, Interval
from exhibit.schemas.review import Review
from exhibit.viewer.page import Record
from exhibit.viewer.review.source import Key, Questions

ASPECTS = {"gold": "on the gold", "answer": "on the answers"}
Judgments = Mapping[Key, str]


@dataclass(frozen=True)
class Agreement:
    """The agreement of two raters: the counts, and Cohen's kappa, which corrects for chance, with its interval."""

    first: str
    second: str
    aspect: str
    n: int
    """The number of questions that both judged."""
    same: int
    kappa: float | None
    """None where chance alone would always make them agree, because each gives one judgment throughout."""
    ci95: Interval | None

    def __str__(self) -> str:
        ends = f" [{self.ci95[0]:.2f}, {self.ci95[1]:.2f}]" if self.ci95 else ""
        kappa = "kappa is undefined" if self.kappa is None else f"kappa {self.kappa:.2f}{ends}"
        return f"{self.first} and {self.second} {ASPECTS[self.aspect]}: {kappa}, they agree in {self.same} of {self.n}"


def collect_judgments(review: Review, aspect: str) -> dict[Key, str]:
    """Return a reviewer's judgments by question: on the gold if `aspect` is `gold`, otherwise on the answers."""
    pairs = {(case.dataset, case.id): case.gold if aspect == "gold" else case.answer for case in review.cases}
    return {key: value for key, value in pairs.items() if value}


def count_right(reviews: Sequence[Review]) -> list[Record]:
    """Return how many of the judged gold passages and of the judged answers each reviewer calls right."""
    shares = []
    for review in reviews:
        for aspect in ASPECTS:
            counts = Counter(collect_judgments(review, aspect).values())
            right, judged = counts["right"], counts["right"] + counts["wrong"]
            share = {"right": right, "judged": judged, "unclear": counts["unclear"]}
            shares += [{"reviewer": review.reviewer, "aspect": aspect, **share}] if counts else []
    return shares


def compute_agreements(reviews: Sequence[Review], rows: Questions) -> list[Agreement]:
    """Return the agreement of each pair of reviewers, and of each reviewer with the run's outcomes and the judge."""
    documents = {key: f"{key[0]}/{row.document}" for key, row in rows.items()}
    outcomes = {key: "right" for key, row in rows.items() if row.outcome in GOOD}
    outcomes |= {key: "wrong" for key, row in rows.items() if row.outcome in BAD}
    marks = {key: mark for key, row in rows.items() if (mark := row.scores.get(MARK)) is not None}
    judge = {key: "right" if mark >= GOOD_MARK else "wrong" for key, mark in marks.items()}
    pairs = []
    for aspect in ASPECTS:
        for one, other in combinations(reviews, 2):
            first, second = collect_judgments(one, aspect), collect_judgments(other, aspect)
            pairs.append(agree(one.reviewer, first, other.reviewer, second, aspect, documents))
    for review in reviews:
        clear = {key: value for key, value in collect_judgments(review, "answer").items() if value != "unclear"}
        for name, judgments in (("the run's outcome", outcomes), ("the judge", judge)):
            pairs.append(agree(review.reviewer, clear, name, judgments, "answer", documents))
    return [one for one in pairs if one.n]


def agree(
    first: str, judged: Judgments, second: str, others: Judgments, aspect: str, documents: Mapping[Key, str]
) -> Agreement:
    """Return how far two raters agree on the questions that both judged; the interval is resampled by document."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for key in sorted((key for key in judged if key in others), key=str):
        groups.setdefault(documents.get(key, str(key)), []).append((judged[key], others[key]))
    pairs = [pair for group in groups.values() for pair in group]
    same = sum(a == b for a, b in pairs)
    return Agreement(first, second, aspect, len(pairs), same, compute_kappa(pairs), _compute_interval(groups))


def compute_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa; None without pairs, or if both raters give one and the same judgment throughout."""
    n = len(pairs)
    if not n:
        return None
    seen = sum(a == b for a, b in pairs) / n
    firsts, seconds = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / n**2
    return None if chance == 1 else (seen - chance) / (1 - chance)


def _compute_interval(groups: Mapping[str, Sequence[tuple[str, str]]]) -> Interval | None:
    """Return the 95% interval of kappa by a bootstrap over documents; None with a single document."""
    names = sorted(groups)
    if len(names) < 2:
        return None
    chance = np.random.default_rng(SEED)
    draws = (chance.integers(len(names), size=len(names)) for _ in range(RESAMPLES))
    values = (compute_kappa([pair for at in numbers for pair in groups[names[at]]]) for numbers in draws)
    known = [value for value in values if value is not None]
    low, high = np.percentile(known, [2.5, 97.5]) if known else (np.nan, np.nan)
    return (float(low), float(high)) if known else None
