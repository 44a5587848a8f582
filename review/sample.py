"""Which questions an expert sees: every kind in turn, each kind's at random, the same for the same seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from exhibit.review.source import Key, Record
from exhibit.schemas.errors import ToolkitError

Stratum = tuple[str, ...]

BY = ("confidence", "verdict", "dataset")


def _confidence(_: str, row: Record) -> str:
    told = (row.get("reply") or {}).get("confidence")
    if told is None:
        return "no confidence"
    return "unsure" if told < 1 / 3 else "middling" if told < 2 / 3 else "sure"


_KINDS: dict[str, Callable[[str, Record], str]] = {
    "confidence": _confidence,
    "verdict": lambda _, row: str(row.get("verdict") or ""),
    "dataset": lambda dataset, _: dataset,
    "document": lambda _, row: str(row.get("filename") or ""),
    "impossible": lambda _, row: "impossible" if row.get("is_impossible") else "answerable",
}


def stratify(rows: Mapping[Key, Record], by: Sequence[str]) -> dict[Stratum, list[Key]]:
    """Return the questions by kind; what is no property of every question is the name of a label."""
    labels = {name for row in rows.values() for name in row.get("labels") or {}}
    unknown = [name for name in by if name not in _KINDS and name not in labels]
    if unknown:
        there = ", ".join([*_KINDS, *sorted(labels)])
        raise ToolkitError(f"--by {', '.join(unknown)}: no question has that; there are {there}")
    strata: dict[Stratum, list[Key]] = defaultdict(list)
    for key, row in rows.items():
        strata[tuple(_kind(name, key[0], row) for name in by)].append(key)
    return dict(sorted(strata.items()))


def draw_sample(rows: Mapping[Key, Record], *, by: Sequence[str], size: int, seed: int) -> list[Key]:
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


def weights(rows: Mapping[Key, Record], sample: Sequence[Key], by: Sequence[str]) -> dict[Key, float]:
    """Return how many questions of the run each of the sample stands for."""
    chosen = set(sample)
    by_key: dict[Key, float] = {}
    for keys in stratify(rows, by).values():
        mine = [key for key in keys if key in chosen]
        by_key |= {key: len(keys) / len(mine) for key in mine}
    return by_key


def _kind(name: str, dataset: str, row: Record) -> str:
    if name in _KINDS:
        return _KINDS[name](dataset, row)
    value = (row.get("labels") or {}).get(name)
    return "" if value is None else str(value)
