"""Select the document pages that a report shows with its questions, and draw each page once.

The number of drawn pages is limited, by default to `PAGES`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import Limits, open_engine, run_in_worker, track
from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.document import Box, Page
from exhibit.evidence.readers.pdf import find_page_boxes, render
from exhibit.evidence.show import compress_image
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.run import RunPassage, RunQuestion
from exhibit.storage.bundle import list_corpus_files
from exhibit.storage.locations import Location, Remote, fetch_file

PASSAGES = 10
"""The number of passages that are drawn and quoted even if no answer cites them; rows have the text of as many."""
PAGES = 2000
"""The default limit of drawn pages, one minute on two cores: 53 ms and 36 kB each on contracts of CUAD."""
_TOP = 3
"""The number of passages whose pages are shown even if no answer cites them."""
_GOLD_PAGES = 2  # pages of gold that are drawn at least: a quote may continue on the next page
_PAGES = 4
"""Pages that a case shows at most, those aside on which only a further piece of a passage is."""
_PIECES = 12
"""Further pages that a case shows for the pieces of its passages: a passage may be a whole document."""

DocumentKey = tuple[str, str]
"""A dataset and a filename."""


@dataclass
class Wanted:
    """The pages to draw for a report, and the spans to mark on them.

    Each document has a number. Each page has a rank: pages with the lowest rank are drawn first.
    """

    numbers: dict[DocumentKey, int] = field(default_factory=dict)
    _ranks: dict[tuple[int, int], int] = field(default_factory=dict)
    _spans: defaultdict[int, set[Span]] = field(default_factory=lambda: defaultdict(set))

    def number(self, dataset: str, filename: str) -> int:
        """Return the number of a document; a document without a number gets the next one."""
        return self.numbers.setdefault((dataset, filename), len(self.numbers))

    def ask(self, row: RunQuestion, at: Mapping[str, PlacedSpans], *, rank: int | None) -> list[list[int]]:
        """Return the pages that the report shows for a question, each as `[document number, page number]`.

        If `rank` is given, also register these pages for drawing, and the spans to mark on them. Pages with the
        lowest rank are drawn first.
        """
        shown = []
        for filename, page in choose_pages(row, at):
            number = self.number(row.dataset, filename)
            shown.append([number, page])
            if rank is not None:
                self._ranks[number, page] = min(rank, self._ranks.get((number, page), rank))
        if rank is not None:
            for filename, document in at.items():
                spans = self._spans[self.number(row.dataset, filename)]
                spans.update(document.gold)
                cited = row.reply.citations
                shown_passages = [own for n, own in document.passages.items() if n <= PASSAGES or n in cited]
                spans.update(*shown_passages)
        return shown

    @property
    def pages(self) -> int:
        """The number of distinct pages that are registered for drawing."""
        return len(self._ranks)

    def choose_pages(self, most: int | None) -> dict[int, list[int]]:
        """Return the page numbers to draw, by document number: at most `most` pages, those with the lowest ranks."""
        ranked = sorted(self._ranks, key=lambda page: (self._ranks[page], page))
        chosen: defaultdict[int, list[int]] = defaultdict(list)
        for number, page in sorted(ranked[: most if most is not None else len(ranked)]):
            chosen[number].append(page)
        return chosen

    def spans(self, number: int) -> tuple[Span, ...]:
        """Return the spans to mark in the document with this number: gold, and passages that the report shows."""
        return tuple(sorted(self._spans[number]))


def choose_pages(row: RunQuestion, at: Mapping[str, PlacedSpans], *, most: int = _PAGES) -> list[tuple[str, int]]:
    """Return the pages to show for a question as `(filename, page)`; the page is 0 if the document has no pages.

    Pages with gold come first. Then comes the page of each retrieved passage that is cited or is among the top
    results. If these are more than `most` pages together, gold pages are left out first, except for the first
    two gold pages. At the end come the further pages of long passages, which do not count towards `most`.
    """
    gold = dict.fromkeys(_list_gold_pages(row, at))
    passages = row.reply.passages
    others: dict[tuple[str, int], None] = {}
    further: dict[tuple[str, int], None] = {}
    for number in dict.fromkeys([*row.reply.citations, *range(1, _TOP + 1)]):
        passage = passages[number - 1] if 0 < number <= len(passages) else None
        if passage and passage.filename and passage.span:
            others.setdefault((passage.filename, passage.page or 0))
            further |= {(passage.filename, page): None for page in passage.pages}
    others = {page: None for page in others if page not in gold}
    room = max(_GOLD_PAGES, most - len(others))
    shown = [*list(gold)[:room], *others][:most]
    return [*shown, *[page for page in further if page not in shown][:_PIECES]]


def _list_gold_pages(row: RunQuestion, at: Mapping[str, PlacedSpans]) -> Iterator[tuple[str, int]]:
    for gold in row.gold:
        if not gold.filename or not gold.places:
            continue
        retrieved = at[gold.filename].passages
        best = find_best_place(gold.places, chain(*retrieved.values()))
        pages = gold.pages or [0]
        if best != [Span(*span) for span in gold.places[0]]:
            # rows have the pages of the first place only; the best place is the one that a passage overlaps
            met = [number for number, spans in retrieved.items() if any(meets(span, best) for span in spans)]
            pages = [row.reply.passages[number - 1].page or 0 for number in met] or pages
        yield from ((gold.filename, page) for page in pages)


@dataclass(frozen=True)
class Drawings:
    """The result of drawing: the drawn documents, the numbers of drawn and of wanted pages, and the errors."""

    documents: list[int]
    pages: int
    wanted: int
    faults: list[str]


def draw(
    wanted: Wanted,
    datasets: Mapping[str, Path],
    folder: Path,
    put: Callable[[int, Record], None],
    *,
    most: int | None,
    jobs: int | None = None,
    limits: Limits | None = None,
) -> Drawings:
    """Draw the document pages in `wanted` as images in `folder`, at most `most` pages; None means all.

    For each drawn document, call `put` with the document's number and its data for the report's script.
    """
    chosen = wanted.choose_pages(most) if most != 0 else {}
    items, faults = _make_sheets(wanted, chosen, datasets, folder)
    documents: list[int] = []
    pages = 0
    outcomes = _draw_items(items, jobs=jobs, limits=limits or Limits())
    for sheets, outcome in track(outcomes, total=len(items), label="report: pages", unit="document"):
        if isinstance(outcome, ToolkitError):
            faults.append(str(outcome))
            continue
        if outcome.get("pages") or outcome.get("text"):
            put(sheets.number, outcome)
            documents.append(sheets.number)
            pages += len(outcome.get("pages") or [None])
    return Drawings(documents, pages, wanted.pages, faults)


def _make_sheets(
    wanted: Wanted, chosen: Mapping[int, list[int]], datasets: Mapping[str, Path], folder: Path
) -> tuple[list[Sheets], list[str]]:
    """Return the work items, one for each document, and the reasons why a dataset's documents are unavailable."""
    files: dict[str, dict[str, Location]] = {}
    faults = []
    for name in dict.fromkeys(dataset for dataset, _ in wanted.numbers):
        files[name] = {}
        if chosen and name in datasets:
            try:
                files[name] = list_corpus_files(datasets[name])
            except ToolkitError as error:
                faults.append(str(error))
    items = []
    for (dataset, filename), number in wanted.numbers.items():
        path = files[dataset].get(filename)
        if number in chosen and path is not None:
            pages = tuple(page for page in chosen[number] if page)
            items.append(Sheets(number, filename, path, pages, wanted.spans(number), folder))
    return items, faults


def _draw_items(
    items: list[Sheets], *, jobs: int | None, limits: Limits
) -> Iterator[tuple[Sheets, Record | ToolkitError]]:
    here = [item for item in items if not isinstance(item.path, Remote)]
    if here:
        engine = open_engine("local", jobs=jobs, items=len(here), limits=limits)
        for item, outcome in zip(here, engine.map(draw_sheets, here), strict=True):
            yield item, outcome.error or outcome.unwrap()
    for item in items:
        if isinstance(item.path, Remote):  # downloaded here, one at a time: a worker has no credentials
            yield item, _draw_remote(item, limits)


def _draw_remote(item: Sheets, limits: Limits) -> Record | ToolkitError:
    try:
        with fetch_file(item.path) as path:
            return run_in_worker(draw_sheets, replace(item, path=path), limits=limits)
    except ToolkitError as error:
        return error


Record = dict[str, Any]
"""The data that the scripts of a page read."""

WIDTH = 830
"""The width of a page in pixels: that of two pages side by side on a wide screen."""


@dataclass(frozen=True)
class Sheets:
    """A work item: a document, the numbers of its pages to draw (none if it has no pages), and the spans to mark."""

    number: int
    filename: str
    path: Location
    pages: tuple[int, ...]
    spans: tuple[Span, ...]
    folder: Path
    """The folder of the pictures."""

    def __str__(self) -> str:
        """Return the document's name for error messages."""
        return self.filename


def draw_sheets(sheets: Sheets) -> Record:
    """Write the images of a document's pages; return, for each page, the rectangles of the spans to mark.

    For a document without pages, return the text around the spans instead.
    """
    document = read_document(sheets.path)
    wanted = [document.pages[number - 1] for number in sheets.pages if 0 < number <= len(document.pages)]
    drawn = {}
    for page in wanted:
        name = _draw_picture(sheets, page)
        if name is not None:
            drawn[page.number] = [
                name,
                round(page.width, 1),
                round(page.height, 1),
                _find_boxes(document, page, sheets),
            ]
    if drawn or document.pages:
        return {"pages": drawn}
    return {"text": cut_windows(document.text, [span for span in sheets.spans if span.end <= len(document.text)])}


def _draw_picture(sheets: Sheets, page: Page) -> str | None:
    """Write the picture of a page and return its name; None if the page cannot be drawn, and only its text is shown."""
    if not page.width:
        return None
    try:
        data, kind = compress_image(render(sheets.path, page.number, scale=WIDTH / page.width))
    except DocumentError:
        return None
    name = f"{sheets.number}-{page.number}.{kind}"
    sheets.folder.mkdir(parents=True, exist_ok=True)
    (sheets.folder / name).write_bytes(data)
    return name


def _find_boxes(document: Document, page: Page, sheets: Sheets) -> dict[str, list[list[float]]]:
    """Return the rectangles of each marked span on a page, in a dictionary with keys such as `120-180`.

    A key has the start and end of the span. A rectangle is `[x, y, width, height]`, measured from the top
    left of the page. Spans without rectangles are left out.
    """
    spans = [span for span in sheets.spans if max(span.start, page.span.start) < min(span.end, page.span.end)]
    boxes = zip(spans, find_page_boxes(document, page.number, spans), strict=True)
    return {f"{span.start}-{span.end}": [_measure_box(box) for box in lines] for span, lines in boxes if lines}


def _measure_box(box: Box) -> list[float]:
    return [round(value, 1) for value in (box.left, box.top, box.right - box.left, box.bottom - box.top)]


class PlacedSpans(NamedTuple):
    """The spans to mark in one document: the gold spans, and the spans of the retrieved passages.

    `passages` maps the number of each passage to its spans.
    """

    gold: list[Span]
    passages: dict[int, list[Span]]


def list_piece_spans(passage: RunPassage) -> list[Span]:
    """Return the spans of a retrieved passage in its document, the longest first; empty if they are unknown."""
    return [Span(*span) for span in (passage.span, *passage.more)] if passage.span else []


def mark_spans(row: RunQuestion) -> dict[str, PlacedSpans]:
    """Return the gold spans and the passage spans to mark, by document.

    If a gold passage occurs several times in a document, only the occurrence with the most retrieved characters
    is marked.
    """
    by_file: dict[str, PlacedSpans] = {}
    for number, passage in enumerate(row.reply.passages, 1):
        if passage.span and passage.filename:
            by_file.setdefault(passage.filename, PlacedSpans([], {})).passages[number] = list_piece_spans(passage)
    for gold in row.gold:
        if gold.places and gold.filename:
            document = by_file.setdefault(gold.filename, PlacedSpans([], {}))
            document.gold.extend(find_best_place(gold.places, chain(*document.passages.values())))
    return by_file


def find_best_place(places: Sequence[Sequence[Sequence[int]]], retrieved: Iterable[Span]) -> list[Span]:
    """Return the occurrence of a gold passage with the most retrieved characters; of equal ones, the first."""
    passages = list(retrieved)
    candidates = [[Span(start, end) for start, end in place] for place in places]
    return max(candidates, key=lambda place: sum(_count_shared(part, span) for part in place for span in passages))


def meets(span: Span, others: Iterable[Span]) -> bool:
    """Return whether a span overlaps at least one of the other spans."""
    return any(_count_shared(span, other) for other in others)


def find_gold_ranges(span: Span, gold: Iterable[Span]) -> list[tuple[int, int]]:
    """Return the parts of a passage that are gold as `(start, end)`; adjacent parts are joined.

    `span` is the passage's span in its document. The returned offsets count from the start of the passage.
    """
    parts = [Span(max(span.start, g.start), min(span.end, g.end)) for g in gold if _count_shared(span, g)]
    cuts = sorted({edge for part in parts for edge in part})
    ranges: list[tuple[int, int]] = []
    for start, end in pairwise(cuts):
        if meets(Span(start, end), parts):
            first = ranges.pop()[0] if ranges and ranges[-1][1] == start - span.start else start - span.start
            ranges.append((first, end - span.start))
    return ranges


def find_kept_ranges(added: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the ranges of a passage's text that come from the document.

    `added` are the ranges that the system inserted into the text; `length` is the length of the text.
    """
    edges = [0, *chain(*sorted(added)), length]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def cut_windows(text: str, wanted: Iterable[Span], *, around: int = 280) -> list[list[Any]]:
    """Return the text around spans as `[start, text]`, cut at whole words; overlapping windows are joined."""
    spans: list[Span] = []
    for start, end in sorted(wanted):
        first = text.rfind(" ", 0, max(0, start - around)) + 1
        stop = text.find(" ", min(len(text), end + around))
        last = len(text) if stop < 0 else stop
        if spans and first <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(last, spans[-1].end))
        else:
            spans.append(Span(first, last))
    return [[start, text[start:end]] for start, end in spans]


def _count_shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))
