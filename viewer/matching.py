"""The questions of one run, or of several side by side: which rows belong together, and how they differ."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.cases import error_kind, nearest
from exhibit.viewer.listing import Facet
from exhibit.viewer.wording import CHANGES, GOOD_VERDICTS, OUTCOMES, is_right, outcome

Side = RunQuestion | None
"""A question in one of the runs; None where the run did not ask it."""

_WELL = {"same", *(name for name, told in OUTCOMES.items() if told.good)}
_LAST = 1_000_000_000  # more than there are questions
_EQUAL = 1e-9  # what sums of the same numbers in another order differ by is less


def how_changed(sides: Sequence[Side]) -> str:
    """Return how a question changed: the worst of `CHANGES` from the first run to any other."""
    first, *others = sides
    if first is None or None in others:
        return "not asked by all"
    kinds = {_changed(first, other) for other in others if other is not None}
    return next(change for change in CHANGES if change in kinds)


def _changed(one: RunQuestion, other: RunQuestion) -> str:
    if other.reply.error and not one.reply.error:
        return "failed"
    if one.verdict != other.verdict:
        well, now = (row.verdict in GOOD_VERDICTS for row in (one, other))
        if well != now:
            return "won" if now else "lost"
        return "same" if well else "another fault"
    recall, then = (nearest(row.scores, "char_recall") for row in (one, other))
    if other.reply.error or recall is None or then is None or abs(then - recall) < _EQUAL:
        return "same"
    return "better" if then > recall else "worse"


# ---------------------------------------------------------------- what is counted on the way


@dataclass
class Tally:
    """What became of the questions of one run."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    """By dataset."""
    counts: Counter[str] = field(default_factory=Counter)
    seconds: array[float] = field(default_factory=lambda: array("d"))
    worst: dict[str, RunQuestion] = field(default_factory=dict)
    """Of each outcome that is a fault, the question that the system was surest of."""

    def add(self, row: RunQuestion) -> None:
        """Count a question."""
        name = outcome(row)
        self.outcomes.setdefault(row.dataset, Counter())[name] += 1
        if row.reply.seconds is not None:
            self.seconds.append(row.reply.seconds)
        if row.reply.error:
            self.counts["failed"] += 1
            return
        recall, right = nearest(row.scores, "char_recall"), is_right(row)
        self.counts.update(
            asked=1,
            answerable=not row.is_impossible,
            impossible=row.is_impossible,
            judged_found=recall is not None,
            found=bool(recall),
            judged_right=right is not None and not row.is_impossible,
            right=bool(right) and not row.is_impossible,
        )
        if not OUTCOMES[name].good and OUTCOMES[name].judged:
            before = self.worst.get(name)
            if before is None or _sureness(row) > _sureness(before):
                self.worst[name] = row

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(counter.total() for counter in self.outcomes.values())

    def failed(self, dataset: str) -> int:
        """Return how many questions of a dataset have an error for a reply."""
        return self.outcomes.get(dataset, Counter())["failed"]

    def total(self) -> Counter[str]:
        """Return how many questions have each outcome."""
        return sum(self.outcomes.values(), Counter())


def _sureness(row: RunQuestion) -> tuple[float, float]:
    # a mistake made with confidence, or with the answer before its eyes, is worth more of a reader's time
    return row.reply.confidence or 0.0, nearest(row.scores, "char_recall") or 0.0


# ---------------------------------------------------------------- rows that belong together


def dataset_of(sides: Sequence[Side]) -> str:
    """Return the dataset that a question is of."""
    return next(row.dataset for row in sides if row is not None)


class Matching:
    """The questions of runs in the order of the list: faults, or changes for the worse, first."""

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self.runs = list(runs)
        self.several = len(self.runs) > 1
        self.tallies = [Tally() for _ in self.runs]
        self.ranks: list[int] = []
        """In the order of the list: the lower, the sooner a question's pages are drawn."""
        self._places = self._matched()

    def _matched(self) -> list[tuple[int | None, ...]]:
        if not self.several:
            return [(number,) for number in range(len(self.runs[0].rows))]
        places: dict[tuple[str, Id], list[int | None]] = {}
        for at, run in enumerate(self.runs):
            for number, row in enumerate(run.rows):
                places.setdefault(row.key, [None] * len(self.runs))[at] = number
        return [tuple(numbers) for numbers in places.values()]

    def __len__(self) -> int:
        return len(self._places)

    def scan(self) -> Iterator[list[Side]]:
        """Yield every question, count it, and then know the order of the list."""
        order = list(CHANGES if self.several else OUTCOMES)
        seen: Counter[tuple[str, str]] = Counter()
        ranked = []
        every: Iterable[list[Side]] = (
            map(self._sides, self._places) if self.several else ([row] for row in self.runs[0].rows)
        )
        for at, sides in enumerate(every):
            for tally, row in zip(self.tallies, sides, strict=True):
                if row is not None:
                    tally.add(row)
            kind, dataset = self.kind(sides), dataset_of(sides)
            # the first of each kind in each dataset before the second of any; what went well comes last
            ranked.append((order.index(kind), at, seen[dataset, kind] + _LAST * (kind in _WELL)))
            seen[dataset, kind] += 1
            yield sides
        ranked.sort()
        self._places = [self._places[at] for _, at, _ in ranked]
        self.ranks = [rank for _, _, rank in ranked]

    def __iter__(self) -> Iterator[list[Side]]:
        """Yield the questions in order; one at a time is read."""
        return map(self._sides, self._places)

    def _sides(self, places: Sequence[int | None]) -> list[Side]:
        return [None if at is None else run.rows[at] for run, at in zip(self.runs, places, strict=True)]

    def kind(self, sides: Sequence[Side]) -> str:
        """Return what a question is sorted by: how it changed, or what became of it."""
        if self.several:
            return how_changed(sides)
        [row] = sides
        return outcome(row) if row is not None else ""

    def facets(self) -> list[Facet]:
        """Return what the list can be narrowed by."""
        kinds = [Facet("dataset", "Benchmark"), Facet("error", "Error")]
        outcomes = tuple(OUTCOMES)
        if not self.several:
            return [Facet("verdict", "What became of it", outcomes), *kinds]
        sides = [Facet(f"verdict-{n}", run.name, outcomes) for n, run in enumerate(self.runs, 1)]
        return [Facet("change", "Change", tuple(CHANGES)), *kinds, *sides]

    def values(self, sides: Sequence[Side]) -> list[str]:
        """Return a question's value of each facet."""
        others = [dataset_of(sides), error_kind(sides)]
        each = ["" if row is None else outcome(row) for row in sides] if self.several else []
        return [self.kind(sides), *others, *each]

    @property
    def tones(self) -> dict[str, str]:
        """The colour of every outcome and change."""
        known = OUTCOMES | CHANGES if self.several else OUTCOMES
        return {name: told.tone for name, told in known.items() if told.tone}
