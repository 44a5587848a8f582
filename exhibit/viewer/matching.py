"""The question list of a report on one or more runs: outcomes, changes between the runs, and the order."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from exhibit.evaluation.answer_words import compare_words
from exhibit.evaluation.judgement import ANSWERED_RIGHTLY, GOOD_MARK, MARK
from exhibit.evaluation.metrics import K
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stage_losses import KEPT, StageCounts, find_loss
from exhibit.evaluation.stages import GOLD_STAGES
from exhibit.evaluation.statistics import summarise
from exhibit.schemas.parsing import read_beside
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.drawing import Record

GOOD_VERDICTS = ("answered", "expected answer given")
ANOTHER = "right answer, another passage"
_DOUBTFUL = ("failed", "invented figures")
"""Outcomes that count as faults even where the answer is right."""


class OutcomeLook(NamedTuple):
    """The presentation, in the report, of a question's outcome or of the change of its outcome between runs.

    `meaning` is the explanation as text, and `tone` is the colour.
    """

    meaning: str
    tone: str = ""
    good: bool = False
    judged: bool = True
    """Whether the outcome is a judgement of the system."""


_WORDS = read_beside(__file__, "static/outcomes.toml")
OUTCOMES: dict[str, OutcomeLook] = {name: OutcomeLook(**fields) for name, fields in _WORDS["outcomes"].items()}
"""The outcomes of a question, the most serious first."""
CHANGES: dict[str, OutcomeLook] = {name: OutcomeLook(**fields) for name, fields in _WORDS["changes"].items()}
"""The ways in which a question changed from the first run to the others, the worst first."""


def is_right(row: RunQuestion) -> bool | None:
    """Return whether the answer is right; None if this is unknown.

    It is unknown for an answer that was not judged, for a failed reply, and for a question that the documents
    do not answer.
    """
    if row.is_impossible or row.reply.error:
        return None
    if ANSWERED_RIGHTLY in row.scores:  # absent where the run measured only some metrics
        value = row.scores[ANSWERED_RIGHTLY]
        return None if value is None else value == 1
    if row.reply.refused or row.verdict == "expected answer given":
        return not row.reply.refused
    mark, label = row.scores.get(MARK), row.scores.get("label_accuracy")
    if mark is not None:
        return mark >= GOOD_MARK
    return None if label is None else bool(label)


def find_outcome(row: RunQuestion) -> str:
    """Return the outcome of a question: one of `OUTCOMES`.

    A right answer that was found in a passage other than the gold is not a fault, unless it contains invented
    figures. If the system refuses a question that the documents answer, the outcome is `wrongly refused`,
    whatever was retrieved.
    """
    right = is_right(row)
    if row.scores.get("false_refusal_rate") and not row.reply.error:
        return "wrongly refused"
    if row.verdict not in GOOD_VERDICTS:
        name = _WORDS["verdicts"].get(row.verdict, row.verdict)
        name = name if name in OUTCOMES else "cannot be judged"
        return ANOTHER if right and name not in _DOUBTFUL else name
    if row.is_impossible:
        return "rightly refused"
    if right is None:
        return "right passage used"
    return "answered rightly" if right else "right passage, another answer"


def explain_outcome(row: RunQuestion) -> list[str]:
    """Return sentences that explain a question's outcome.

    The last sentence states the facts on which the verdict is based or, for a failed reply, the error message.
    """
    name = find_outcome(row)
    if name == "failed":
        return [OUTCOMES[name].meaning, "The error:", row.reply.error or "unknown"]
    return [*filter(None, (_WORDS["stages"].get(row.stage or ""), OUTCOMES[name].meaning, row.evidence))]


def find_error_kind(rows: Sequence[RunQuestion | None]) -> str:
    """Return a failed reply's error, shortened and with digits masked, to group errors; empty if no reply failed."""
    error = next((row.reply.error for row in reversed(rows) if row is not None and row.reply.error), "")
    return cut(re.sub(r"\d+", "…", " ".join(error.split())[:200]), 90)


def find_nearest(scores: Mapping[str, float | None], family: str, depth: int = 8) -> float | None:
    """Return the score of a metric family at the cutoff nearest to `depth`; None if there is no such score."""
    depths = [int(name.partition("@")[2]) for name in scores if name.startswith(f"{family}@")]
    return scores[f"{family}@{min(depths, key=lambda k: abs(k - depth))}"] if depths else None


def cut(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters; an ellipsis marks the cut."""
    return text if len(text) <= longest else f"{text[:longest]} …"


@dataclass
class Facet:
    """A filter of the question list: its values, and the number of questions with each value."""

    name: str
    title: str
    order: Sequence[str] = ()
    """The order of the values; values that are not named here follow by name."""
    counts: Counter[str] = field(default_factory=Counter)

    def values(self) -> list[str]:
        """Return the values that occur: first those in `order`, then the others by name."""
        known = [value for value in self.order if self.counts[value]]
        return known + sorted(value for value in self.counts if value and value not in set(known))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The position of each filter value in `values()`; valid only after all questions have been counted."""
        return {value: number for number, value in enumerate(self.values())}

    def as_json(self) -> Record:
        """Return the filter as data for the page's script."""
        counts = [self.counts[value] for value in self.values()]
        return {"name": self.name, "title": self.title, "values": self.values(), "counts": counts}


Side = RunQuestion | None
"""A question in one of the runs; None where the run did not ask it."""

_WELL = {"same", *(name for name, outcome in OUTCOMES.items() if outcome.good)}
_LAST = 1_000_000_000  # larger than any number of questions
_EQUAL = 1e-9  # the rounding error of a sum in another order is smaller


def find_change(sides: Sequence[Side]) -> str:
    """Return a question's worst change from the first run to any other run: a name in `CHANGES`."""
    first, *others = sides
    if first is None or None in others:
        return "not asked by all"
    kinds = {_compare_sides(first, other) for other in others if other is not None}
    return next(change for change in CHANGES if change in kinds)


def _compare_sides(one: RunQuestion, other: RunQuestion) -> str:
    if other.reply.error and not one.reply.error:
        return "failed"
    if one.verdict != other.verdict:
        well, now = (row.verdict in GOOD_VERDICTS for row in (one, other))
        if well != now:
            return "won" if now else "lost"
        return "same" if well else "another fault"
    recall, then = (find_nearest(row.scores, "char_recall") for row in (one, other))
    if other.reply.error or recall is None or then is None or abs(then - recall) < _EQUAL:
        return "same"
    return "better" if then > recall else "worse"


# ---------------------------------------------------------------- counts


@dataclass
class Outcomes:
    """Statistics over the questions of one run: outcomes, reply times, and the stages that lose gold.

    For each kind of fault, the question with the most confident wrong answer is stored as well.
    """

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    """The outcomes by dataset."""
    counts: Counter[str] = field(default_factory=Counter)
    seconds: array[float] = field(default_factory=lambda: array("d"))
    right: list[tuple[float, str]] = field(default_factory=list)
    """For each judged answer: 1 if it is right, else 0, and its document."""
    stages: StageCounts = field(default_factory=StageCounts)
    """The questions by the stage that loses their gold."""
    worst: dict[str, RunQuestion] = field(default_factory=dict)
    """For each kind of fault, the question with the highest confidence."""

    def add(self, row: RunQuestion) -> None:
        """Add a question to the statistics: its outcome, its reply time, and the stage that loses its gold.

        The counts are made from the question's metric scores, so that the totals of the report agree with its
        metrics.
        """
        name = find_outcome(row)
        self.outcomes.setdefault(row.dataset, Counter())[name] += 1
        if row.reply.seconds is not None:
            self.seconds.append(row.reply.seconds)
        if row.reply.error:
            self.counts["failed"] += 1
            return
        self.stages.add(row)
        found, right = find_nearest(row.scores, "recall", K), is_right(row)
        refused, abstained = (row.scores.get(name) for name in ("false_refusal_rate", "abstention_accuracy"))
        self.counts.update(
            answerable=not row.is_impossible,
            impossible=row.is_impossible,
            judged_found=found is not None,
            found=bool(found),
            judged_right=right is not None,
            right=bool(right),
            judged_refused=refused is not None,
            refused=bool(refused),
            judged_abstained=abstained is not None,
            abstained=bool(abstained),
        )
        if right is not None:
            self.right.append((float(right), f"{row.dataset}/{row.document}"))
        if not OUTCOMES[name].good and OUTCOMES[name].judged and not right and not _equals_expected(row):
            before = self.worst.get(name)
            if before is None or _rank_confidence(row) > _rank_confidence(before):
                self.worst[name] = row

    def compute_right_interval(self) -> tuple[float, float] | None:
        """Return the 95% interval of the share of right answers, resampled by document; None with too few documents."""
        values, documents = [value for value, _ in self.right], [document for _, document in self.right]
        table = Table("", list(range(len(values))), documents, {ANSWERED_RIGHTLY: values})
        return summarise(table)[ANSWERED_RIGHTLY].ci95

    @property
    def questions(self) -> int:
        """The number of questions."""
        return sum(counter.total() for counter in self.outcomes.values())

    def failed(self, dataset: str) -> int:
        """Return the number of questions of a dataset whose reply is an error."""
        return self.outcomes.get(dataset, Counter())["failed"]

    def count_total(self) -> Counter[str]:
        """Return the number of questions with each outcome."""
        return sum(self.outcomes.values(), Counter())


def _equals_expected(row: RunQuestion) -> bool:
    return bool(compare_words(row.reply.answer or "", row.truth))


def _rank_confidence(row: RunQuestion) -> tuple[float, float]:
    # a mistake made with confidence, or with the answer in the context, is more worth reading
    return row.reply.confidence or 0.0, find_nearest(row.scores, "char_recall") or 0.0


# ---------------------------------------------------------------- rows of the same question


def dataset_of(sides: Sequence[Side]) -> str:
    """Return the dataset of a question, from the first run that asked it."""
    return next(row.dataset for row in sides if row is not None)


class Matching:
    """The questions of one run, or of several runs with equal questions matched by their content.

    After `scan`, the questions are sorted for the report. With one run, questions with a fault come first; with
    several runs, questions that became worse.
    """

    def __init__(self, runs: Sequence[RunResults]) -> None:
        self.runs = list(runs)
        self.several = len(self.runs) > 1
        self.tallies = [Outcomes() for _ in self.runs]
        self.ranks: list[int] = []
        """The rank of each question in the list; the pages of the lowest ranks are drawn first."""
        self._places = self._match_rows()

    def _match_rows(self) -> list[tuple[int | None, ...]]:
        if not self.several:
            return [(number,) for number in range(len(self.runs[0].rows))]
        # the same question in all runs, by content; the second of two equal ones pairs with the second of another run
        places: dict[tuple[str, str, int], list[int | None]] = {}
        for at, run in enumerate(self.runs):
            seen: Counter[tuple[str, str]] = Counter()
            for number, row in enumerate(run.rows):
                content = row.dataset, run.content_of(row)
                seen[content] += 1
                places.setdefault((*content, seen[content]), [None] * len(self.runs))[at] = number
        return [tuple(numbers) for numbers in places.values()]

    def __len__(self) -> int:
        return len(self._places)

    def scan(self) -> Iterator[list[Side]]:
        """Yield the rows of each question, one per run (None if a run lacks it), and count its outcome in each run.

        After the last question, the questions are sorted by their change between runs or, with one
        run, by their outcome.
        """
        order = list(CHANGES if self.several else OUTCOMES)
        seen: Counter[tuple[str, str]] = Counter()
        ranked = []
        every: Iterable[list[Side]] = (
            map(self._read_sides, self._places) if self.several else ([row] for row in self.runs[0].rows)
        )
        for at, sides in enumerate(every):
            for tally, row in zip(self.tallies, sides, strict=True):
                if row is not None:
                    tally.add(row)
            kind, dataset = self.kind(sides), dataset_of(sides)
            # the first of each kind in each dataset comes before the second of any; questions without a fault come last
            ranked.append((order.index(kind), at, seen[dataset, kind] + _LAST * (kind in _WELL)))
            seen[dataset, kind] += 1
            yield sides
        ranked.sort()
        self._places = [self._places[at] for _, at, _ in ranked]
        self.ranks = [rank for _, _, rank in ranked]

    def __iter__(self) -> Iterator[list[Side]]:
        """Yield each question as a list with one row for each run.

        The row of a run that did not ask the question is None. After `scan` has finished, the questions are in the
        order in which the report lists them. Rows are read from disk one question at a time.
        """
        return map(self._read_sides, self._places)

    def _read_sides(self, places: Sequence[int | None]) -> list[Side]:
        return [None if at is None else run.rows[at] for run, at in zip(self.runs, places, strict=True)]

    def kind(self, sides: Sequence[Side]) -> str:
        """Return the category of a question, by which the list is sorted.

        The category is the change between the runs; with one run, it is the outcome of the question.
        """
        if self.several:
            return find_change(sides)
        [row] = sides
        return find_outcome(row) if row is not None else ""

    def make_facets(self) -> list[Facet]:
        """Return the filters that a reader can set on the question list: outcome, benchmark, error and so on."""
        kinds = [Facet("dataset", "Benchmark"), Facet("error", "Error")]
        outcomes = tuple(OUTCOMES)
        if not self.several:
            lost = Facet("lost", "Gold lost", (*GOLD_STAGES, KEPT))
            return [Facet("verdict", "What became of it", outcomes), *kinds, lost]
        sides = [Facet(f"verdict-{n}", run.name, outcomes) for n, run in enumerate(self.runs, 1)]
        return [Facet("change", "Change", tuple(CHANGES)), *kinds, *sides]

    def values(self, sides: Sequence[Side]) -> list[str]:
        """Return the value of a question for each filter (facet) of the list, in the order of `make_facets`.

        The values are the question's category, its dataset, its error, and one value for each run. With several
        runs, the value for a run is the question's outcome; with one run, it is the stage that loses the gold.
        `sides` has the question's row in each run.
        """
        known = (("" if row is None else find_outcome(row) if self.several else find_loss(row)) for row in sides)
        return [self.kind(sides), dataset_of(sides), find_error_kind(sides), *known]

    @property
    def tones(self) -> dict[str, str]:
        """The colour of each outcome, by the outcome's name; with several runs, also the colour of each change."""
        known = OUTCOMES | CHANGES if self.several else OUTCOMES
        return {name: change.tone for name, change in known.items() if change.tone}
