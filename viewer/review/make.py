"""A sample of a run as one page that an expert opens by double click, judges, and saves a file from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import track
from exhibit.evidence import Document, Span
from exhibit.evidence.document import Page
from exhibit.evidence.guard import words_within
from exhibit.evidence.show import page_uri
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.review import REVIEW, gold_digest
from exhibit.schemas.run import RunPassage, RunQuestion
from exhibit.storage.locations import keeping
from exhibit.storage.place import write_whole
from exhibit.viewer.cases import cut
from exhibit.viewer.drawing import WIDTH, Record
from exhibit.viewer.page import as_json, page, render
from exhibit.viewer.review.drafts import DraftedBundle, Reviewed
from exhibit.viewer.review.source import Key, draw_sample

NAME = "review.html"
_SCRIPTS = ("build.js", "marking.js", "judging.js", "review.js")
_PASSAGES = 8
"""Passages that are given in words."""
_LONGEST = 20_000
"""A text of a reply beyond this is cut: a model that repeats itself must not fill the page."""


class Made(NamedTuple):
    """A page that was written."""

    path: Path
    cases: int
    of: int
    sheets: int
    left_out: int
    """Pages that could not be drawn or did not fit."""


def make_review(run: Reviewed, path: Path, *, by: Sequence[str], size: int, seed: int, language: str = "en") -> Made:
    """Write the page of a sample."""
    drafted = isinstance(run, DraftedBundle)
    if isinstance(run, DraftedBundle):
        keys = run.worth_judging(size)
    else:
        keys = draw_sample(run.questions, by=by, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: no question to review")
    with keeping():  # remote documents: a page is drawn in several steps, and questions share documents
        cases, album = _cases(keys, run)
    sample = {"size": len(keys), "of": len(run.questions), "seed": seed, "by": list(by)}
    told = {"format": REVIEW, "review": _identity(run, keys), "run": run.name, "sample": sample, "drafted": drafted}
    text = page(
        f"Review of {run.name} – Exhibit",
        render("review.html.j2", language=language, drafted=drafted),
        styles=["review.css"],
        language=language,
        scripts=_SCRIPTS,
        data={"data": as_json({"about": told, "cases": cases, "sheets": album.sheets})},
    )
    write_whole(path, text)
    return Made(path, len(cases), len(run.questions), len(album.sheets), album.left_out)


def _cases(keys: Sequence[Key], run: Reviewed) -> tuple[list[Record], Album]:
    album, rows = Album(run), [run.questions[key] for key in keys]
    wanted = [sheets_of(row, run) for row in rows]
    chosen: list[list[str]] = [[] for _ in keys]
    # the best page of every question before the second of any: gold is not crowded out
    turns = [list(enumerate(turn)) for turn in zip_longest(*wanted)]
    steps = [(at, sheet) for turn in turns for at, sheet in turn if sheet is not None]
    for at, (filename, number, around) in track(steps, total=len(steps), label="pages", unit="page"):
        made = album.add(keys[at][0], filename, number, around=around)
        if made is not None:
            chosen[at].append(made)
    cases = [_case(row) | {"sheets": sheets} for row, sheets in zip(rows, chosen, strict=True)]
    return cases, album


def _case(row: RunQuestion) -> Record:
    """Return what a reviewer is shown; not the verdict, which the review is compared with."""
    reply = row.reply
    return {
        "dataset": row.dataset,
        "id": row.id,
        "question": row.question,
        "truth": cut(row.truth, _LONGEST),
        "impossible": row.is_impossible,
        "was": gold_digest((gold.filename, gold.text) for gold in row.gold),
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
            _passage(passage, number in reply.citations) for number, passage in enumerate(reply.passages[:_PASSAGES], 1)
        ],
    }


def _passage(passage: RunPassage, cited: bool) -> Record:
    return {
        "filename": passage.filename or "",
        "page": passage.page,
        "span": passage.span,
        "text": cut(passage.text or "", _LONGEST),
        "cited": cited,
    }


def _identity(run: Reviewed, keys: Sequence[Key]) -> str:
    """Return what tells this page's answers from another's in a browser's store, and reviews that belong together."""
    told: list[Any] = [run.name, *([*key, run.questions[key].question] for key in keys)]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()[:16]


BUDGET = 24_000_000
"""Characters that all pictures may take: a page that a browser still opens at once, and that can be mailed."""
PAGES = 8
"""Pages that a question shows at most: its gold, what was retrieved, the pages beside the gold, and then others."""
_TOP = 3
"""Passages whose pages are shown whether they are cited or not."""
_AROUND = 1500
"""Characters shown on either side, where a document has no pages."""

Sheet = tuple[str, int]
"""A file and a page of it, from 1; 0 for the text of a document without pages."""


class Album:
    """Sheets by key, each kept once however many questions show it; none beyond the budget."""

    def __init__(self, run: Reviewed, *, budget: int = BUDGET) -> None:
        """Start empty."""
        self.sheets: dict[str, Record] = {}
        self.left_out = 0
        self._run = run
        self._left = budget
        self._keys: dict[tuple[str, str, int, int], str | None] = {}

    def add(self, dataset: str, filename: str, number: int, *, around: int = 0) -> str | None:
        """Return the key of a page, or of the text around a place; None where it cannot be drawn or does not fit."""
        place = (dataset, filename, number, around)
        if place not in self._keys:
            self._keys[place] = self._make(*place)
        return self._keys[place]

    def _make(self, dataset: str, filename: str, number: int, around: int) -> str | None:
        document = self._run.document(dataset, filename)
        if document is None:
            return None
        sheet: Record | None = None
        with suppress(DocumentError):  # a page that cannot be drawn in time: the words are there all the same
            if number:
                sheet = _page(document, document.pages[number - 1])
            else:
                sheet = _text(document, around)
        size = len((sheet or {}).get("src") or "")
        if sheet is None or size > self._left:
            self.left_out += 1
            return None
        self._left -= size
        key = f"s{len(self.sheets) + 1}"
        self.sheets[key] = sheet
        return key


def sheets_of(row: RunQuestion, run: Reviewed) -> list[tuple[str, int, int]]:
    """Return what is worth seeing of a question, best first: a file, a page, or 0 and a place in the text."""
    sheets: dict[tuple[str, int, int], None] = {}
    beside: dict[tuple[str, int, int], None] = {}
    for filename, span, is_gold in _sights(row):
        document = run.document(row.dataset, filename)
        if document is None:
            continue
        if not document.pages:
            sheets.setdefault((filename, 0, span.start // _AROUND * _AROUND))
            continue
        pages = document.pages_of(span)
        for number in pages:
            sheets.setdefault((filename, number, 0))
        for number in (pages[0] - 1, pages[-1] + 1) if is_gold and pages else ():
            if 1 <= number <= len(document.pages):
                beside.setdefault((filename, number, 0))
    # that a document has no answer can only be seen in all of it
    name = row.filename or ""
    document = run.document(row.dataset, name) if name else None
    rest = [(name, page.number, 0) for page in (document.pages if document else ())]
    if document is not None and not document.pages and not sheets:
        rest = [(name, 0, 0)]
    return list(dict.fromkeys([*sheets, *beside, *rest]))[:PAGES]


def _sights(row: RunQuestion) -> Iterator[tuple[str, Span, bool]]:
    for gold in row.gold:
        for place in gold.places[:1]:
            yield from ((gold.filename, Span(*span), True) for span in place if gold.filename)
    passages = row.reply.passages
    for number in dict.fromkeys([*row.reply.citations, *range(1, _TOP + 1)]):
        passage = passages[number - 1] if 0 < number <= len(passages) else None
        if passage and passage.span and passage.filename:
            yield passage.filename, Span(*passage.span), False


def _page(document: Document, page: Page) -> Record | None:
    if document.path is None or not page.width:
        return None
    return {
        "filename": document.filename,
        "number": page.number,
        "width": page.width,
        "height": page.height,
        "src": page_uri(document.path, page, width=WIDTH),
        "words": [_word(document, span, boxes) for span, boxes in words_within(document, page.number) if boxes],
    }


def _word(document: Document, span: Span, boxes: Sequence[Any]) -> list[Any]:
    """Return a word as its offsets, its letters and its rectangles: x, y, width and height from the top left."""
    sides = [(box.left, box.top, box.right - box.left, box.bottom - box.top) for box in boxes]
    return [*span, document.text[span.start : span.end], *([round(side, 1) for side in box] for box in sides)]


def _text(document: Document, around: int) -> Record:
    """Return the text around a place, word by word, with what stands between the words."""
    first = max(0, around - _AROUND)
    first = document.text.rfind("\n", 0, first) + 1 if first else 0
    last = min(len(document.text), around + 2 * _AROUND)
    words: list[list[Any]] = []
    at = first
    for part in document.text[first:last].split():
        start = document.text.index(part, at)
        at = start + len(part)
        words.append([start, at, part])
    breaks = [n for n, word in enumerate(words) if n and "\n" in document.text[words[n - 1][1] : word[0]]]
    return {"filename": document.filename, "number": 0, "words": words, "breaks": breaks}
