"""Match the questions of one run or several, and write them as a list in small data files that a page loads."""

from __future__ import annotations

import base64
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from exhibit.evaluation.answer_words import compare_words
from exhibit.evaluation.judgement import ANSWERED_RIGHTLY
from exhibit.evaluation.metrics import K, describe_metric
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stage_losses import KEPT, StageCounts, find_loss
from exhibit.evaluation.stages import GOLD_STAGES
from exhibit.evaluation.statistics import summarise
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.drawing import Record, Wanted
from exhibit.viewer.page import (
    CHANGES,
    GOOD_VERDICTS,
    OUTCOMES,
    Cases,
    as_json,
    find_error_kind,
    find_nearest,
    find_outcome,
    is_right,
)

LINES = 500
"""The number of list lines in a piece: 40 pieces for 20,000 cases, each loaded in some milliseconds."""
CASES = 50
"""The number of cases in a piece: few to open in milliseconds, enough neighbours to share the text of passages."""
_MOST_VALUES = 300
"""A label with more values than this identifies questions and is no filter; the search still finds it."""
_MOST_LABELS = 40  # labels that the list can be filtered by: more do not fit into a menu


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
        """The index of each value in `values()`; valid only after all lines of the question list have been counted."""
        return {value: number for number, value in enumerate(self.values())}

    def as_json(self) -> Record:
        """Return the filter as data for the page's script."""
        counts = [self.counts[value] for value in self.values()]
        return {"name": self.name, "title": self.title, "values": self.values(), "counts": counts}


class Catalogue:
    """The filters of the question list: facets and labels.

    A facet applies to every question. A label exists only for some questions.
    """

    def __init__(self, facets: Sequence[Facet]) -> None:
        """Store the facets in the order in which a line lists their values."""
        self.facets = list(facets)
        self._labels: dict[str, Facet] = {}
        self._crowded: set[str] = set()

    def count(self, values: Sequence[str], labels: Mapping[str, str]) -> None:
        """Count a line's facet values and labels; a label with too many different values is dropped as a filter."""
        for facet, value in zip(self.facets, values, strict=True):
            facet.counts[value] += 1
        for name, value in labels.items():
            if name in self._crowded or (name not in self._labels and len(self._labels) >= _MOST_LABELS):
                continue
            label = self._labels.setdefault(name, Facet(name, name.replace("_", " ")))
            label.counts[value] += 1
            if len(label.counts) > _MOST_VALUES:
                self._crowded.add(name)
                del self._labels[name]

    def make_line(self, values: Sequence[str], fields: Sequence[Any], labels: Mapping[str, str]) -> list[Any]:
        """Return a line of the question list as data for the page's script.

        The line contains the index of its value for each facet (-1: no value), then `fields`, then a flat list with
        the label's index and the value's index for each label that is a filter. Last comes one string with the
        values of all other labels.
        """
        numbers = [facet.numbers.get(value, -1) for facet, value in zip(self.facets, values, strict=True)]
        known = [
            (at, label.numbers[labels[name]]) for at, (name, label) in enumerate(self._labels.items()) if name in labels
        ]
        words = [value for name, value in labels.items() if name not in self._labels]
        return [*numbers, *fields, [number for pair in known for number in pair], " ".join(words)]

    def as_json(self) -> Record:
        """Return all filters as data for the page's script."""
        return {"facets": [f.as_json() for f in self.facets], "labels": [f.as_json() for f in self._labels.values()]}


class PieceWriter:
    """A writer of the data files that a page loads for its question list.

    The questions are added in the order of the list. For each question, the writer stores a line of the list,
    and a case: the details that the page shows when the question is opened.
    """

    def __init__(self, folder: Path, catalogue: Catalogue, wanted: Wanted) -> None:
        """Store the output folder, the filters, and the register of pages to draw."""
        self.metrics: dict[str, int] = {}
        """The numbers of the metrics."""
        self.total = 0
        self._folder = folder
        self._catalogue = catalogue
        self._wanted = wanted
        self._lines: list[list[Any]] = []
        self._block = Cases(self.metrics, wanted)

    def add(self, rows: Sequence[RunQuestion | None], line: list[Any], *, rank: int | None = None) -> None:
        """Add a question: its row in each run, and its line of the list.

        If `rank` is given, the question's pages are registered for drawing; those with the lowest rank are drawn
        first.
        """
        self._block.add(rows, rank=rank)
        self._lines.append(line)
        self.total += 1
        if self.total % CASES == 0:
            self._put_cases()
        if self.total % LINES == 0:
            self._put_lines()

    def close(self) -> Record:
        """Write the remaining cases and lines, and return the list's metadata for the page's script."""
        if self._block.cases:
            self._put_cases()
        if self._lines or not self.total:
            self._put_lines()
        sizes = {"total": self.total, "lines": LINES, "cases": CASES}
        return {**sizes, **self._catalogue.as_json(), "metrics": [_describe_metric(name) for name in self.metrics]}

    def _put_lines(self) -> None:
        write_piece(self._folder, f"i{max(0, self.total - 1) // LINES}", self._lines)
        self._lines = []

    def _put_cases(self) -> None:
        write_piece(self._folder, f"c{(self.total - 1) // CASES}", self._block.as_json())
        self._block = Cases(self.metrics, self._wanted)


def _describe_metric(metric: str) -> list[str]:
    """Return a metric's name, title, unit and meaning, and whether more or less is better."""
    described = describe_metric(metric)
    return [metric, described.title, described.unit_behind.strip(), described.meaning, described.better]


IMAGES = "pages"
"""The folder of the page pictures, beside the pieces."""
_KINDS = {".png": "png", ".webp": "webp"}


def pack(value: Any) -> str:
    """Return a value as compressed JSON in base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(as_json(value).encode("utf-8")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def write_piece(folder: Path, name: str, value: Any) -> None:
    """Write a value as a compressed script file that the page loads by name."""
    (folder / f"{name}.js").write_text(f'exhibitPiece("{name}","{pack(value)}")\n', encoding="ascii")


class Inlined:
    """The data files and images of a folder as blocks of a single HTML file, as many as the size budget allows."""

    def __init__(self, folder: Path, *, budget: int) -> None:
        """Include the list first, then the cases, then the span positions, then the images, up to the budget."""
        self.blocks: dict[str, str] = {}
        self.cases = 0
        """The number of pieces of cases that are included, from the first on."""
        self.pages_left_out = 0
        self._left = budget
        for path in _sort_pieces(folder, "i"):
            self._put(f"piece-{path.stem}", _read_content(path))
        for path in _sort_pieces(folder, "c"):
            if not self._put(f"piece-{path.stem}", _read_content(path)):
                break
            self.cases += 1
        for path in _sort_pieces(folder, "d"):
            self._put(f"piece-{path.stem}", _read_content(path))
        for path in sorted(folder.glob(f"{IMAGES}/*"), key=lambda path: [int(n) for n in path.stem.split("-")]):
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            if not self._put(f"image-{path.name}", f"data:image/{_KINDS[path.suffix]};base64,{data}"):
                self.pages_left_out += 1

    def _put(self, name: str, text: str) -> bool:
        if len(text) > self._left:
            return False
        self._left -= len(text)
        self.blocks[name] = text
        return True


def _sort_pieces(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}[0-9]*.js"), key=lambda path: int(path.stem[1:]))


def _read_content(path: Path) -> str:
    """Return the compressed data from a file that `write_piece` wrote."""
    return path.read_text(encoding="ascii").rpartition('","')[2].removesuffix('")\n')


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
        """Count a question by its metric scores, so that the report's tiles agree with its metrics."""
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
    """The questions of one or more runs; with several runs, equal questions are matched by their content.

    After `scan`, the worst come first: with one run, faults; with several runs, changes for the worse.
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
        """Yield every question once, as its row in each run, and count its outcome in the run's tally.

        After the last question, the questions are sorted for the list.
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
        """Yield each question as a list of its rows, one for each run (None if the run did not ask the question).

        The order is that of the list, if `scan` has finished. Rows are read from disk one question at a time.
        """
        return map(self._read_sides, self._places)

    def _read_sides(self, places: Sequence[int | None]) -> list[Side]:
        return [None if at is None else run.rows[at] for run, at in zip(self.runs, places, strict=True)]

    def kind(self, sides: Sequence[Side]) -> str:
        """Return the category by which a question is sorted: with several runs its change, otherwise its outcome."""
        if self.several:
            return find_change(sides)
        [row] = sides
        return find_outcome(row) if row is not None else ""

    def make_facets(self) -> list[Facet]:
        """Return the filters of the list."""
        kinds = [Facet("dataset", "Benchmark"), Facet("error", "Error")]
        outcomes = tuple(OUTCOMES)
        if not self.several:
            lost = Facet("lost", "Gold lost", (*GOLD_STAGES, KEPT))
            return [Facet("verdict", "What became of it", outcomes), *kinds, lost]
        sides = [Facet(f"verdict-{n}", run.name, outcomes) for n, run in enumerate(self.runs, 1)]
        return [Facet("change", "Change", tuple(CHANGES)), *kinds, *sides]

    def values(self, sides: Sequence[Side]) -> list[str]:
        """Return the value of a question for each facet."""
        known = (("" if row is None else find_outcome(row) if self.several else find_loss(row)) for row in sides)
        return [self.kind(sides), dataset_of(sides), find_error_kind(sides), *known]

    @property
    def tones(self) -> dict[str, str]:
        """The colour of every outcome and change."""
        known = OUTCOMES | CHANGES if self.several else OUTCOMES
        return {name: change.tone for name, change in known.items() if change.tone}
