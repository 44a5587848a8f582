"""A reply as a ranking of units with a grade each, which is what nDCG, MRR and average precision are read from.

Where a case has grades (`Case.grades`) the units are files, each at the rank of its first passage among different
files. Where irrelevant files are graded too (grade 0, as in ACORD), files that nobody judged are left out of the
ranking, since many of them would do as well.

Else the units are gold passages, each at the rank at which it is found. A passage that finds several takes the ranks
after its own for the others, as if it had been several: one unit a rank keeps nDCG within 1. Files and passages are
never units of one figure: gold that is a file without words is for the metrics of documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics._gold_ranks import gold_ranks

GOLD_GRADE = 3
"""From this grade on a graded file is gold; grades are 0 to 4, one to five stars."""


@dataclass(frozen=True)
class Ranking:
    """Units by name, best first, and the grades of those that were judged."""

    order: Sequence[str]
    grades: Mapping[str, int]
    least: int
    """The lowest grade of a gold unit."""

    def gold_ranks(self) -> list[int]:
        """Return the ranks, from 1, of the gold units that were retrieved."""
        return [rank for rank, unit in enumerate(self.order, 1) if self.grades.get(unit, 0) >= self.least]

    def golds(self) -> int:
        """Return how many gold units there are."""
        return sum(grade >= self.least for grade in self.grades.values())

    def ndcg(self, k: int) -> float | None:
        """Return the discounted gain of the first k over that of the best order; None where nothing has a gain."""
        ideal = _gain(sorted(self.grades.values(), reverse=True)[:k])
        return _gain([self.grades.get(unit, 0) for unit in self.order[:k]]) / ideal if ideal else None


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / log2(rank + 1) for rank, grade in enumerate(grades, 1))


def ranking_of(case: Case) -> Ranking | None:
    """Return a case's ranking; None where nothing is judged."""
    if case.grades:
        return Ranking(_judged(ranked_files(case), case.grades), case.grades, GOLD_GRADE)
    ranks = gold_ranks(case)
    if not ranks:
        return None
    return Ranking(_in_order(ranks, len(case.reply.passages)), dict.fromkeys(map(gold_name, range(len(ranks))), 1), 1)


def ranked_files(case: Case) -> list[str]:
    """Return the different files of a reply in order of their first passage; a passage without one is a unit itself."""
    names = [passage.source or f"passage-{rank}" for rank, passage in enumerate(case.reply.passages, 1)]
    return list(dict.fromkeys(names))


def _judged(files: Sequence[str], grades: Mapping[str, int]) -> Sequence[str]:
    """Return the files that were judged, where the irrelevant ones were, too; else all."""
    return [file for file in files if file in grades] if 0 in grades.values() else files


def gold_name(number: int) -> str:
    """Return what a gold passage is called as a unit."""
    return f"gold-{number}"


def _in_order(ranks: Sequence[int | None], passages: int) -> list[str]:
    """Return golds at the ranks at which they are found, or the next free ones, with the other passages between."""
    places: dict[int, str] = {}
    free = 1
    for rank, number in sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None):
        free = max(rank, free)
        places[free] = gold_name(number)
        free += 1
    return [places.get(rank, f"passage-{rank}") for rank in range(1, max(passages + 1, free))]
