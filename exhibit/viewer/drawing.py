"""Selects the document pages to show with each question, and draws each page once, up to a limit of pages."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import Limits, open_engine, run_in_worker, track
from exhibit.evidence import Span, read_document
from exhibit.evidence.document import Page, unite_spans
from exhibit.evidence.readers.pdf import find_boxes, render
from exhibit.evidence.show import compress_image
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.run import RunPassage, RunQuestion
from exhibit.storage.bundle import list_corpus_files
from exhibit.storage.locations import Location, Remote, fetch_file
from exhibit.viewer.page import Record

PASSAGES = 10  # first passages that are shown even if no answer cites them; a run stores the text of this many
MAX_PAGES = 2000  # default limit: a page of CUAD takes 53 ms and 36 kB, so this takes one minute on two cores
WIDTH = 830  # width of a page picture in pixels: two pages side by side fit a wide screen
_TOP_PASSAGES = 3  # first passages whose pages are shown even if no answer cites them
_GOLD_PAGES = 2  # least pages with gold to show: a quote may continue on the next page
_CASE_PAGES = 4  # most pages of one question
_FURTHER_PAGES = 12  # most additional pages for long passages: a passage may be a whole document
PageKey = tuple[str, int]  # a filename and a page number; 0 for a document without pages


class FileSpans(NamedTuple):
    gold: list[Span]
    passages: dict[int, list[Span]]  # the spans of each retrieved passage, by its number


def list_passage_spans(passage: RunPassage) -> list[Span]:
    """Return the spans of a retrieved passage in its document, the longest first; empty if they are unknown."""
    return [Span(*span) for span in (passage.span, *passage.more)] if passage.span else []


def group_spans(row: RunQuestion) -> dict[str, FileSpans]:
    """Return the spans to mark for a question, by document.

    If a gold passage occurs several times, only the occurrence with the most retrieved characters is marked.
    """
    files: dict[str, FileSpans] = defaultdict(lambda: FileSpans([], {}))
    for number, passage in enumerate(row.reply.passages, 1):
        if passage.span and passage.filename:
            files[passage.filename].passages[number] = list_passage_spans(passage)
    for gold in row.gold:
        if gold.places and gold.filename:
            spans = files[gold.filename]
            spans.gold.extend(find_best_place(gold.places, chain(*spans.passages.values())))
    return dict(files)


def find_best_place(places: Sequence[Sequence[Sequence[int]]], retrieved: Iterable[Span]) -> list[Span]:
    """Return the occurrence of a gold passage with the most retrieved characters; of several such, the first."""
    passages = list(retrieved)
    candidates = [[Span(start, end) for start, end in place] for place in places]

    def count_retrieved(place: list[Span]) -> int:
        pairs = ((part, span) for part in place for span in passages)
        return sum(max(0, min(part.end, span.end) - max(part.start, span.start)) for part, span in pairs)

    return max(candidates, key=count_retrieved)


def overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(span.overlaps(other) for other in others)


def cut_windows(text: str, wanted: Iterable[Span], *, around: int = 280) -> list[list[Any]]:
    """Return the text around spans as `[start, text]`, cut at whole words; overlapping windows are joined."""
    windows = []
    for start, end in wanted:
        stop = text.find(" ", min(len(text), end + around))
        windows.append(Span(text.rfind(" ", 0, max(0, start - around)) + 1, len(text) if stop < 0 else stop))
    return [[start, text[start:end]] for start, end in unite_spans(windows)]


def choose_pages(row: RunQuestion, files: Mapping[str, FileSpans], *, most: int = _CASE_PAGES) -> list[PageKey]:
    """Return the pages to show for a question: first pages with gold, then pages of cited or top-ranked passages.

    At most `most` of these pages are returned; gold pages after the second are dropped first. The pages on which long
    passages continue are added at the end.
    """
    gold, passages = dict.fromkeys(_list_gold_pages(row, files)), row.reply.passages
    others, further = dict[PageKey, None](), dict[PageKey, None]()
    for number in dict.fromkeys([*row.reply.citations, *range(1, _TOP_PASSAGES + 1)]):
        passage = passages[number - 1] if 0 < number <= len(passages) else None
        if passage and passage.filename and passage.span:
            others.setdefault((passage.filename, passage.page or 0))
            further |= {(passage.filename, page): None for page in passage.pages}
    others = {page: None for page in others if page not in gold}
    shown = [*list(gold)[: max(_GOLD_PAGES, most - len(others))], *others][:most]
    return [*shown, *[page for page in further if page not in shown][:_FURTHER_PAGES]]


def _list_gold_pages(row: RunQuestion, files: Mapping[str, FileSpans]) -> Iterator[PageKey]:
    for gold in row.gold:
        if not gold.filename or not gold.places:
            continue
        retrieved = files[gold.filename].passages
        best, pages = find_best_place(gold.places, chain(*retrieved.values())), gold.pages or [0]
        if best != [Span(*span) for span in gold.places[0]]:
            # a row has the pages of the first occurrence only: use the pages of passages that overlap the best one
            met = [number for number, spans in retrieved.items() if any(overlaps(span, best) for span in spans)]
            pages = [row.reply.passages[number - 1].page or 0 for number in met] or pages
        yield from ((gold.filename, page) for page in pages)


class Wanted:
    """The pages to draw, in the order of the questions, and the spans to mark; each document has a number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}
        self.pages: dict[tuple[int, int], None] = {}
        self.spans: defaultdict[int, set[Span]] = defaultdict(set)

    def number(self, dataset: str, filename: str) -> int:
        return self.numbers.setdefault((dataset, filename), len(self.numbers))

    def ask(self, row: RunQuestion, files: Mapping[str, FileSpans], *, draw: bool) -> list[tuple[int, str, int]]:
        """Return a question's pages as (document number, file name, page); `draw` adds them to the pages to draw."""
        shown = [(self.number(row.dataset, filename), filename, page) for filename, page in choose_pages(row, files)]
        if draw:
            self.pages |= dict.fromkeys((number, page) for number, _, page in shown)
            for filename, document in files.items():
                cited = row.reply.citations
                marked = (spans for n, spans in document.passages.items() if n <= PASSAGES or n in cited)
                self.spans[self.number(row.dataset, filename)].update(document.gold, *marked)
        return shown


@dataclass(frozen=True)
class Sheets:
    number: int  # the number of the document
    path: Location
    pages: tuple[int, ...]  # the pages to draw; empty if the document has no pages
    spans: tuple[Span, ...]  # the spans to mark
    folder: Path

    def __str__(self) -> str:
        return self.path.name


def draw(
    wanted: Wanted, datasets: Mapping[str, Path], folder: Path, put: Callable[[int, Record], None], *,
    most: int, jobs: int | None = None, limits: Limits | None = None,
) -> tuple[list[int], list[str]]:  # fmt: skip
    """Draw at most `most` pages, and pass each document's number and drawing to `put`.

    Return the numbers of the drawn documents, and notes on pages that are not drawn.
    """
    items, notes = _make_sheets(wanted, most, datasets, folder)
    documents, pages = list[int](), 0
    outcomes = _draw_items(items, jobs=jobs, limits=limits or Limits())
    for sheets, outcome in track(outcomes, total=len(items), label="report: pages", unit="document"):
        if isinstance(outcome, ToolkitError):
            notes.append(str(outcome))
        elif outcome.get("pages") or outcome.get("text"):
            put(sheets.number, outcome)
            documents.append(sheets.number)
            pages += len(outcome.get("pages") or [None])
    if pages < len(wanted.pages):
        drawn = f"{pages:,} of the {len(wanted.pages):,} pages that questions show are drawn, failures first"
        notes.append(f"{drawn}; the others are shown as text (--pages draws more)")
    return documents, notes


def _make_sheets(
    wanted: Wanted, most: int, datasets: Mapping[str, Path], folder: Path
) -> tuple[list[Sheets], list[str]]:
    chosen: defaultdict[int, list[int]] = defaultdict(list)
    for number, page in list(wanted.pages)[:most]:
        chosen[number].append(page)
    files: dict[str, Mapping[str, Location]] = {}
    notes, items = [], []
    for (dataset, filename), number in wanted.numbers.items():
        if chosen and dataset in datasets and dataset not in files:
            try:
                files[dataset] = list_corpus_files(datasets[dataset])
            except ToolkitError as error:
                files[dataset] = {}
                notes.append(str(error))
        path = files.get(dataset, {}).get(filename)
        if number in chosen and path is not None:
            pages = tuple(sorted(page for page in chosen[number] if page))
            items.append(Sheets(number, path, pages, tuple(sorted(wanted.spans[number])), folder))
    return items, notes


def _draw_items(
    items: list[Sheets], *, jobs: int | None, limits: Limits
) -> Iterator[tuple[Sheets, Record | ToolkitError]]:
    local_items = [item for item in items if not isinstance(item.path, Remote)]
    if local_items:
        engine = open_engine("local", jobs=jobs, items=len(local_items), limits=limits)
        for item, outcome in zip(local_items, engine.map(draw_sheets, local_items), strict=True):
            yield item, outcome.error or outcome.unwrap()
    for item in items:
        if isinstance(item.path, Remote):  # download it here, because a worker has no credentials
            try:
                with fetch_file(item.path) as path:
                    yield item, run_in_worker(draw_sheets, replace(item, path=path), limits=limits)
            except ToolkitError as error:
                yield item, error


def draw_sheets(sheets: Sheets) -> Record:
    """Draw the pages of a document, and return the rectangles of the spans; for one without pages, return its text."""
    document = read_document(sheets.path)
    drawn = {}
    for number in sheets.pages:
        page = document.pages[number - 1] if number <= len(document.pages) else None
        if page and page.width and (name := _draw_picture(sheets, page)):
            spans = [span for span in sheets.spans if span.overlaps(page.span)]
            found = zip(spans, find_boxes(document, spans, [number]), strict=True)
            boxes = {f"{span.start}-{span.end}": [measure_box(box) for box in lines] for span, lines in found if lines}
            drawn[number] = [name, round(page.width, 1), round(page.height, 1), boxes]
    if drawn or document.pages:
        return {"pages": drawn}
    return {"text": cut_windows(document.text, [span for span in sheets.spans if span.end <= len(document.text)])}


def _draw_picture(sheets: Sheets, page: Page) -> str | None:
    """Write the picture of a page and return its name; None if the page cannot be drawn and is shown as text."""
    try:
        data, kind = compress_image(render(sheets.path, page.number, scale=WIDTH / page.width))
    except DocumentError:
        return None
    sheets.folder.mkdir(parents=True, exist_ok=True)
    name = f"{sheets.number}-{page.number}.{kind}"
    (sheets.folder / name).write_bytes(data)
    return name


def measure_box(box: Any) -> list[float]:
    return [round(value, 1) for value in (box.left, box.top, box.right - box.left, box.bottom - box.top)]
