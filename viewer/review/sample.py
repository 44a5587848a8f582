"""Which questions an expert sees: every kind in turn, each kind's at random, the same for the same seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.review.source import Key, Questions

Stratum = tuple[str, ...]

BY = ("confidence", "verdict", "dataset")


def _confidence(row: RunQuestion) -> str:
    told = row.reply.confidence
    if told is None:
        return "no confidence"
    return "unsure" if told < 1 / 3 else "middling" if told < 2 / 3 else "sure"


_KINDS: dict[str, Callable[[RunQuestion], str]] = {
    "confidence": _confidence,
    "verdict": lambda row: row.verdict,
    "dataset": lambda row: row.dataset,
    "document": lambda row: row.filename or "",
    "impossible": lambda row: "impossible" if row.is_impossible else "answerable",
}


def stratify(rows: Questions, by: Sequence[str]) -> dict[Stratum, list[Key]]:
    """Return the questions by kind; what is no property of every question is the name of a label."""
    labels: set[str] = set()
    strata: dict[Stratum, list[Key]] = defaultdict(list)
    for key, row in rows.items():
        labels |= row.labels.keys()
        strata[tuple(_kind(name, row) for name in by)].append(key)
    unknown = [name for name in by if name not in _KINDS and name not in labels]
    if unknown:
        there = ", ".join([*_KINDS, *sorted(labels)])
        raise ToolkitError(f"--by {', '.join(unknown)}: no question has that; there are {there}")
    return dict(sorted(strata.items()))


def draw_sample(rows: Questions, *, by: Sequence[str], size: int, seed: int) -> list[Key]:
    """Return so many questions: the kinds take turns, so that rare ones are seen too."""
    chance = random.Random(seed)
    waiting = []
    for keys in stratify(rows, by).values():
        shuffled = list(keys)
        chance.shuffle(shuffled)
        waiting.append(shuffled)
    drawn: list[Key] = []
    while len(drawn) < size and any(waiting):
        for keys in waiting:
            if keys and len(drawn) < size:
                drawn.append(keys.pop())
    chance.shuffle(drawn)  # kinds in turn would tell the reviewer what the next one is
    return drawn


def weights(rows: Questions, sample: Sequence[Key], by: Sequence[str]) -> dict[Key, float]:
    """Return how many questions of the run each of the sample stands for."""
    chosen = set(sample)
    by_key: dict[Key, float] = {}
    for keys in stratify(rows, by).values():
        mine = [key for key in keys if key in chosen]
        by_key |= {key: len(keys) / len(mine) for key in mine}
    return by_key


def _kind(name: str, row: RunQuestion) -> str:
    if name in _KINDS:
        return _KINDS[name](row)
    value = row.labels.get(name)
    return "" if value is None else str(value)
