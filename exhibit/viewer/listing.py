"""Write the questions of one run or several as a list and their details, in small data files that a page loads."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from exhibit.evaluation.metrics import describe_metric
from exhibit.schemas.run import RunGold, RunPassage, RunQuestion
from exhibit.viewer.drawing import (
    PASSAGES,
    PlacedSpans,
    Record,
    Wanted,
    find_best_place,
    find_gold_ranges,
    find_kept_ranges,
    list_piece_spans,
    mark_spans,
    meets,
)
from exhibit.viewer.funnel import describe_case_stages
from exhibit.viewer.matching import Facet, cut, explain_outcome, find_nearest, find_outcome

LINES = 500
"""The number of list lines in a piece: 40 pieces for 20,000 cases, each loaded in some milliseconds."""
CASES = 50
"""The number of cases in a piece: few to open in milliseconds, enough neighbours to share the text of passages."""
_MOST_VALUES = 300
"""A label with more values than this identifies questions and is no filter; the search still finds it."""
_MOST_LABELS = 40  # labels that the list can be filtered by: more do not fit into a menu


class Catalogue:
    """The filters of the question list: facets and labels.

    A facet applies to every question. A label exists only for some questions.
    """

    def __init__(self, facets: Sequence[Facet]) -> None:
        """Store the facets, which are the filters that apply to every question.

        Each line of the question list gives its facet values in the same order.
        """
        self.facets = list(facets)
        self._labels: dict[str, Facet] = {}
        self._crowded: set[str] = set()

    def count(self, values: Sequence[str], labels: Mapping[str, str]) -> None:
        """Count the facet values and the labels of one question, for the filters of the question list.

        A label that gets too many different values is no longer offered as a filter.
        """
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

        The line contains, in this order:

        1. for each facet, the index of the question's value, or -1 without a value;
        2. the given `fields`;
        3. one list with two numbers for each label that is a filter: the index of the label and of its value;
        4. one string with the values of all other labels.
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
        """Add a question to the data files: its row in each run (`rows`), and its line of the question list.

        If `rank` is given, the document pages with the question's gold and passages will be drawn as images. Pages
        with the lowest rank are drawn first.
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
        """Read the data files and images of a report's folder, at most `budget` characters in total.

        The files are read in this order: the list of questions, the cases, the positions of spans, and the images.
        """
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


def as_json(value: Any) -> Markup:
    """Return a value as JSON that is safe inside a script element: it cannot close the element or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


_LONGEST = 20_000
"""A longer text of a reply is cut: a model that repeats itself must not fill the report."""
_LONGEST_PASSAGE = 4000  # characters: two pages; passages are shorter
_QUESTION, _ANSWER, _ERROR = 500, 240, 300
"""The numbers of characters of a question, an answer and an error in a line of the list, which the search reads."""


def number_value(numbers: dict[str, int], value: str) -> int:
    """Return the number of a value; a new value gets the next number."""
    return numbers.setdefault(value, len(numbers))


class Cases:
    """The details of several questions (cases), which a page loads as one data file.

    A text that several cases share is stored once.
    """

    def __init__(self, metrics: dict[str, int], wanted: Wanted) -> None:
        """Start without cases.

        `metrics` maps each metric to its number, and `wanted` gives each document its number; both are shared by
        the whole report.
        """
        self.cases: list[Record] = []
        self._texts: dict[str, int] = {}
        self._files: dict[int, str] = {}
        self._metrics = metrics
        self._wanted = wanted

    def add(self, rows: Sequence[RunQuestion | None], *, rank: int | None) -> None:
        """Add a question with its row in each run; a row is None if the run did not ask the question.

        If `rank` is given, the document pages that the report shows for this question are registered for drawing.
        Pages with the lowest rank are drawn first.
        """
        first = next(row for row in rows if row is not None)
        self.cases.append(
            {
                "dataset": first.dataset,
                "id": first.id,
                "question": cut(first.question, _LONGEST),
                "truth": cut(first.truth, _LONGEST),
                "impossible": first.is_impossible,
                "labels": labels_of(first),
                "gold": [self._make_gold(first.dataset, gold, rows) for gold in first.gold],
                "sides": [None if row is None else self._make_side(row, rank) for row in rows],
            }
        )

    def as_json(self) -> Record:
        """Return the cases, their shared texts and their file names as data for the page's script."""
        return {"texts": list(self._texts), "files": self._files, "cases": self.cases}

    def _make_side(self, row: RunQuestion, rank: int | None) -> Record:
        reply, at = row.reply, mark_spans(row)
        return {
            "verdict": find_outcome(row),
            "why": explain_outcome(row),
            "answer": cut(reply.answer or "", _LONGEST),
            "refused": reply.refused,
            "error": cut(reply.error, _LONGEST),
            "seconds": reply.seconds,
            "confidence": reply.confidence,
            "selected": reply.selected,
            "retrieved": len(reply.passages),
            # a failed question has no score, even where -1 was written for other tools
            "scores": [] if reply.error else self._flatten_scores(row.scores),
            "passages": [self._make_passage(row.dataset, one, at) for one in reply.passages[:PASSAGES]],
            "pages": self._wanted.ask(row, at, rank=rank),
            "stages": describe_case_stages(row.gold_stages),
        }

    def _flatten_scores(self, scores: Mapping[str, float | None]) -> list[Any]:
        """Return the known scores as a flat list: metric number, value, metric number, value …"""
        known = {name: value for name, value in scores.items() if value is not None}
        return [one for name, value in known.items() for one in (number_value(self._metrics, name), round(value, 4))]

    def _make_gold(self, dataset: str, gold: RunGold, rows: Sequence[RunQuestion | None]) -> Record:
        passages = (passage for row in rows if row is not None for passage in row.reply.passages)
        retrieved = [span for one in passages if one.filename == gold.filename for span in list_piece_spans(one)]
        return {
            "file": self._number_file(dataset, gold.filename or ""),
            "pages": gold.pages,
            "how": gold.how or "",
            "text": number_value(self._texts, cut(gold.text or "", _LONGEST)),
            "spans": find_best_place(gold.places, retrieved) if gold.places else [],
        }

    def _make_passage(self, dataset: str, passage: RunPassage, at: Mapping[str, PlacedSpans]) -> Record:
        filename, text = passage.filename or "", passage.text or ""
        spans = list_piece_spans(passage)
        gold = at[filename].gold if filename in at else []
        # the text of the longest piece is that of its span, unless the system gave another text
        kept = find_kept_ranges(passage.added, len(text))
        own = next((start for start, end in kept if spans and end - start == spans[0].end - spans[0].start), None)
        return {
            "file": self._number_file(dataset, filename),
            "page": passage.page,
            "score": None if passage.score is None else round(passage.score, 4),
            "text": number_value(self._texts, cut(text, _LONGEST_PASSAGE)),
            "gold": any(meets(span, gold) for span in spans),
            "ranges": [] if own is None else [(own + a, own + b) for a, b in find_gold_ranges(spans[0], gold)],
            "spans": spans,
            "added": passage.added,
        }

    def _number_file(self, dataset: str, filename: str) -> int:
        """Return the number by which the page refers to a document; -1 if `filename` is empty.

        A document gets its number at the first call.
        """
        if not filename:
            return -1
        number = self._wanted.number(dataset, filename)
        self._files[number] = filename
        return number


def fields_of(runs: Sequence[str]) -> list[str]:
    """Return the names of the fields in a line of the question list, such as `id` and `question`.

    With several runs, `found` and `answer` occur once for each run: `answer: RUN`. The facets and the labels of
    a line are not included.
    """
    names = [""] if len(runs) == 1 else [f": {run}" for run in runs]
    return [
        "id",
        "question",
        "file",
        "error",
        *(f"found{name}" for name in names),
        *(f"answer{name}" for name in names),
    ]


def make_brief(rows: Sequence[RunQuestion | None]) -> list[Any]:
    """Return one line of the question list: the values of the fields that `fields_of` names, in the same order."""
    known = [row for row in rows if row is not None]
    errors = dict.fromkeys(cut(row.reply.error, _ERROR) for row in known if row.reply.error)
    return [
        known[0].id,
        cut(known[0].question, _QUESTION),
        known[0].filename or "",
        " / ".join(errors),
        *(None if row is None else find_gold_recall(row) for row in rows),
        *("" if row is None else cut(row.reply.answer or "", _ANSWER) for row in rows),
    ]


def find_gold_recall(row: RunQuestion) -> float | None:
    """Return the character recall of the gold at the cutoff nearest to 8; None if unknown or if the reply failed."""
    recall = None if row.reply.error else find_nearest(row.scores, "char_recall")
    return None if recall is None else round(recall, 3)


def labels_of(row: RunQuestion) -> dict[str, str]:
    """Return a question's labels whose value is a text or a number; a text is cut to 200 characters."""
    return {key: cut(str(value), 200) for key, value in row.labels.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""
