"""Write a sample of a run's questions as one HTML file, in which an expert judges them and saves a review."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import track
from exhibit.evidence import Document, Span
from exhibit.evidence.document import Page
from exhibit.evidence.read import read_words
from exhibit.evidence.show import draw_page_uri
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.review import REVIEW, digest_gold
from exhibit.schemas.run import RunPassage, RunQuestion
from exhibit.storage.atomic import write_whole
from exhibit.storage.locations import keep_recent_files
from exhibit.viewer.drawing import WIDTH, PlacedSpans, Record, choose_pages, cut_windows, list_piece_spans, mark_spans
from exhibit.viewer.listing import as_json
from exhibit.viewer.matching import cut
from exhibit.viewer.page import format_page, render
from exhibit.viewer.review.drafts import DraftedBundle, Reviewed
from exhibit.viewer.review.source import Key, draw_sample

NAME = "review.html"
_SCRIPTS = ("build.js", "marking.js", "judging.js", "review.js")
_PASSAGES = 8
"""The number of passages that are quoted."""
_LONGEST = 20_000
"""A longer text of a reply is cut: a model that repeats itself must not fill the page."""


class ReviewPage(NamedTuple):
    """A written review page: its path, and the numbers of questions, shown pages and left-out pages."""

    path: Path
    cases: int
    of: int
    sheets: int
    left_out: int
    """The number of pages that could not be drawn or did not fit."""


def make_review(
    run: Reviewed, path: Path, *, by: Sequence[str], size: int, seed: int, language: str = "en", save: str = ""
) -> ReviewPage:
    """Write the review page of a sample of questions.

    `save` is an address of `exhibit view`, to which the page sends each judgment at once.
    """
    drafted = isinstance(run, DraftedBundle)
    if isinstance(run, DraftedBundle):
        keys = run.choose_worth_judging(size)
    else:
        keys = draw_sample(run.questions, by=by, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: has no question to review")
    with keep_recent_files():  # keeps remote documents: a page is drawn in several steps, and questions share documents
        cases, album = _make_cases(keys, run)
    sample = {"size": len(keys), "of": len(run.questions), "seed": seed, "by": list(by)}
    about: Record = {
        "format": REVIEW,
        "review": _make_identity(run, keys),
        "of": "bundle" if drafted else "run",
        "run": run.name,
    }
    about |= {"sample": sample, "drafted": drafted, **({"save": save} if save else {})}
    text = format_page(
        f"Review of {run.name} – Exhibit",
        render("review.html.j2", language=language, drafted=drafted, save=save),
        styles=["review.css"],
        language=language,
        scripts=_SCRIPTS,
        served=bool(save),
        data={"data": as_json({"about": about, "cases": cases, "sheets": album.sheets})},
    )
    write_whole(path, text)
    return ReviewPage(path, len(cases), len(run.questions), len(album.sheets), album.left_out)


def _make_cases(keys: Sequence[Key], run: Reviewed) -> "tuple[list[Record], Album]":
    album, rows = Album(run), [run.questions[key] for key in keys]
    marked = [mark_spans(row) for row in rows]
    wanted = [sheets_of(row, spots, run) for row, spots in zip(rows, marked, strict=True)]
    chosen: list[list[str]] = [[] for _ in keys]
    # the best page of every question comes before the second of any, so that gold is not crowded out
    turns = [list(enumerate(turn)) for turn in zip_longest(*wanted)]
    steps = [(at, sheet) for turn in turns for at, sheet in turn if sheet is not None]
    for at, (filename, number) in track(steps, total=len(steps), label="pages", unit="page"):
        spots = marked[at].get(filename)
        spans = [*spots.gold, *chain(*spots.passages.values())][:PAGES] if spots and not number else ()
        made = album.add(keys[at][0], filename, number, *spans)
        if made is not None:
            chosen[at].append(made)
    cases = [_make_case(row) | {"sheets": sheets} for row, sheets in zip(rows, chosen, strict=True)]
    return cases, album


def _make_case(row: RunQuestion) -> Record:
    """Return the question, gold, answer and passages that a reviewer sees; the run's own verdict is hidden."""
    reply = row.reply
    return {
        "dataset": row.dataset,
        "id": row.id,
        "question": row.question,
        "truth": cut(row.truth, _LONGEST),
        "impossible": row.is_impossible,
        "was": digest_gold((gold.filename, gold.text) for gold in row.gold),
        "gold": [
            {
                "filename": gold.filename or "",
                "pages": gold.pages,
                "text": cut(gold.text or "", _LONGEST),
                "spans": gold.places[0] if gold.places else [],
            }
            for gold in row.gold
        ],
        "answer": None if reply.answer is None else cut(reply.answer, _LONGEST),
        "error": reply.error,
        "passages": [
            _make_passage(passage, number in reply.citations)
            for number, passage in enumerate(reply.passages[:_PASSAGES], 1)
        ],
    }


def _make_passage(passage: RunPassage, cited: bool) -> Record:
    return {
        "filename": passage.filename or "",
        "page": passage.page,
        "spans": list_piece_spans(passage),
        "text": cut(passage.text or "", _LONGEST),
        "cited": cited,
    }


def _make_identity(run: Reviewed, keys: Sequence[Key]) -> str:
    """Return the id of a review page, a digest of the run's name and its sampled questions.

    The browser stores judgments under this id, and reviews with the same id belong to the same page.
    """
    parts: list[Any] = [run.name, *([*key, run.questions[key].question] for key in keys)]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:16]


BUDGET = 24_000_000
"""The size limit of all pictures in characters: a browser still opens such a page at once, and it can be mailed."""
PAGES = 8
"""The most pages of a question: its gold, the retrieved passages, the pages beside the gold, and then others."""
_AROUND = 1500
"""Characters that are shown on each side of a span, where a document has no pages."""


class Album:
    """Page images and text excerpts by key, each stored once, within a size budget."""

    def __init__(self, run: Reviewed, *, budget: int = BUDGET) -> None:
        """Start without page images; `budget` limits the total size of the images, in characters."""
        self.sheets: dict[str, Record] = {}
        self.left_out = 0
        self._run = run
        self._left = budget
        self._keys: dict[tuple[Any, ...], str | None] = {}

    def add(self, dataset: str, filename: str, number: int, *spans: Span) -> str | None:
        """Add a document page to the review and return its key; for page number 0, add the text around the spans.

        Return None if the page cannot be drawn, or if its image exceeds the remaining size budget.
        """
        place = (dataset, filename, number, spans)
        if place not in self._keys:
            self._keys[place] = self._make(dataset, filename, number, spans)
        return self._keys[place]

    def _make(self, dataset: str, filename: str, number: int, spans: Sequence[Span]) -> str | None:
        document = self._run.document(dataset, filename)
        if document is None or number > len(document.pages):
            return None
        sheet: Record | None = None
        with suppress(DocumentError):  # a page that cannot be drawn in time is shown as text
            sheet = _draw_page(document, document.pages[number - 1]) if number else _cut_text(document, spans)
        size = len((sheet or {}).get("src") or "")
        if sheet is None or size > self._left:
            self.left_out += 1
            return None
        self._left -= size
        key = f"s{len(self.sheets) + 1}"
        self.sheets[key] = sheet
        return key


def sheets_of(row: RunQuestion, spots: Mapping[str, PlacedSpans], run: Reviewed) -> list[tuple[str, int]]:
    """Return the pages to show for a question as `(filename, page)`, the most important first.

    The page is 0 for a document without pages.
    """
    gold = [(one.filename or "", page) for one in row.gold for page in one.pages]
    beside = [(name, page + way) for name, page in gold for way in (-1, 1) if page + way > 0]
    # only the whole document shows that it has no answer
    document = run.document(row.dataset, row.filename) if row.filename else None
    rest = (
        [(row.filename or "", page.number) for page in document.pages] or [(row.filename or "", 0)] if document else []
    )
    return list(dict.fromkeys([*choose_pages(row, spots, most=PAGES), *beside, *rest]))[:PAGES]


def _draw_page(document: Document, page: Page) -> Record | None:
    if document.path is None or not page.width:
        return None
    return {
        "filename": document.filename,
        "number": page.number,
        "width": page.width,
        "height": page.height,
        "src": draw_page_uri(document.path, page, width=WIDTH),
        "words": [_format_word(document, span, boxes) for span, boxes in read_words(document, page.number) if boxes],
    }


def sheet_of(document: Document, number: int, gold: Sequence[tuple[int, int]], address: str) -> Record:
    """Return the data of a document page for the script that shows it: its size, words and image address.

    For a document without pages, return the text around the gold spans instead.
    """
    if number and number <= len(document.pages):
        page = document.pages[number - 1]
        words = [_format_word(document, span, boxes) for span, boxes in read_words(document, number) if boxes]
        size = {"width": page.width, "height": page.height, "src": address}
        return {"filename": document.filename, "number": number, **size, "words": words}
    return _cut_text(document, [Span(*span) for span in gold])


def _format_word(document: Document, span: Span, boxes: Sequence[Any]) -> list[Any]:
    """Return a word as its offsets, its letters and its rectangles: x, y, width and height from the top left."""
    sides = [(box.left, box.top, box.right - box.left, box.bottom - box.top) for box in boxes]
    return [*span, document.text[span.start : span.end], *([round(side, 1) for side in box] for box in sides)]


def _cut_text(document: Document, spans: Sequence[Span]) -> Record:
    """Return the text around some spans as data for the review page; without spans, the start of the document.

    `words` has the start, the end and the text of each word. `breaks` has the indexes of words that begin a
    line.
    """
    words: list[list[Any]] = []
    breaks = []
    for start, text in cut_windows(document.text, spans or [Span(0, 0)], around=_AROUND):
        for word in re.finditer(r"\S+", text):
            first, last = start + word.start(), start + word.end()
            if words and (not word.start() or "\n" in document.text[words[-1][1] : first]):
                breaks.append(len(words))
            words.append([first, last, word[0]])
    return {"filename": document.filename, "number": 0, "words": words, "breaks": breaks}
