"""Writes a sample of a run's questions as one HTML file, in which an expert judges them and saves a review."""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import track
from exhibit.evidence import Document, Span
from exhibit.evidence.read import read_words
from exhibit.evidence.show import draw_page_uri
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.review import REVIEW, digest_gold
from exhibit.schemas.run import RunQuestion
from exhibit.storage.atomic import write_whole
from exhibit.storage.locations import keep_recent_files
from exhibit.viewer import drawing
from exhibit.viewer.drawing import FileSpans
from exhibit.viewer.page import Record, as_json, cut, format_page, render
from exhibit.viewer.review.drafts import DraftedBundle
from exhibit.viewer.review.runs import BY, Key, ReviewedRun, draw_sample

NAME = "review.html"
# most characters of all pictures: a browser opens such a page at once, and it is small enough to mail
MAX_PICTURE_CHARS = 24_000_000
MAX_PAGES = 8  # most pages of a question: first gold, then retrieved passages, pages beside the gold, and other pages
_SCRIPTS = ("build.js", "marking.js", "judging.js", "review.js")
_PASSAGES = 8  # most passages that are quoted
_MAX_TEXT_CHARS = 20_000  # most characters of a reply: a model that repeats itself must not fill the page
_AROUND_CHARS = 1500  # characters that are shown on each side of a span if the document has no pages
Reviewed = ReviewedRun | DraftedBundle


class ReviewPage(NamedTuple):
    path: Path
    cases: int  # the number of questions on the page
    of: int
    sheets: int  # the number of pictures and texts
    left_out: int  # the number of pages that could not be drawn or did not fit


def make_review(run: Reviewed, path: Path, *, size: int, seed: int, save: str = "") -> ReviewPage:
    """Write the review page of a sample of questions; it sends each judgment to the address `save` immediately."""
    if drafted := isinstance(run, DraftedBundle):
        keys = run.choose_worth_judging(size)
    else:
        keys = draw_sample(run.questions, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: has no question to review")
    with keep_recent_files():  # download remote documents only once
        cases, sheets, left_out = _make_cases(keys, run)
    # the browser stores judgments under this id, and reviews with the same id belong to the same page
    parts: list[Any] = [run.name, *([*key, run.questions[key].question] for key in keys)]
    digest = hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:16]
    sample = {"size": len(keys), "of": len(run.questions), "seed": seed, "by": list(BY)}
    about: Record = {"format": REVIEW, "review": digest, "of": "bundle" if drafted else "run", "run": run.name}
    about |= {"sample": sample, "drafted": drafted, **({"save": save} if save else {})}
    data = {"data": as_json({"about": about, "cases": cases, "sheets": sheets})}
    title, body = f"Review of {run.name} – Exhibit", render("review.html.j2", drafted=drafted, save=save)
    page = format_page(title, body, styles=["review.css"], scripts=_SCRIPTS, served=bool(save), data=data)
    write_whole(path, page)
    return ReviewPage(path, len(cases), len(run.questions), len(sheets), left_out)


def _make_cases(keys: Sequence[Key], run: Reviewed) -> tuple[list[Record], dict[str, Record], int]:
    """Return the questions of the page, the pages that they show by key, and how many pages are left out."""
    rows = [run.questions[key] for key in keys]
    files = [drawing.group_spans(row) for row in rows]
    wanted = [_list_sheets(row, spans, run) for row, spans in zip(rows, files, strict=True)]
    drawn: dict[Any, Record | None] = {}
    shown: list[list[Any]] = [[] for _ in keys]
    left = MAX_PICTURE_CHARS
    # draw the first page of every question before any second page, so that the limit does not exclude gold
    steps = [(at, sheet) for turn in zip_longest(*wanted) for at, sheet in enumerate(turn) if sheet is not None]
    for at, (filename, number) in track(steps, total=len(steps), label="pages", unit="page"):
        marked, dataset = files[at].get(filename), rows[at].dataset
        spans = [*marked.gold, *chain(*marked.passages.values())][:MAX_PAGES] if marked and not number else []
        page = (dataset, filename, number, *spans)
        if page not in drawn:
            drawn[page] = sheet = _draw_sheet(run.document(dataset, filename), number, spans, left)
            left -= len(sheet.get("src", "")) if sheet else 0
        shown[at].append(page)
    names = {page: f"s{n}" for n, page in enumerate((page for page, sheet in drawn.items() if sheet), 1)}
    sheets = {names[page]: sheet for page, sheet in drawn.items() if sheet}
    cases = [
        _make_case(row) | {"sheets": [names[page] for page in pages if page in names]}
        for row, pages in zip(rows, shown, strict=True)
    ]
    return cases, sheets, len(drawn) - len(sheets)


def _draw_sheet(document: Document | None, number: int, spans: Sequence[Span], most: int) -> Record | None:
    """Return a page with a picture of at most `most` characters, or for number 0 the text; None if it is not drawn."""
    if document is None or number > len(document.pages):
        return None
    if not number:
        return make_sheet(document, 0, spans, "")
    page = document.pages[number - 1]
    with suppress(DocumentError):  # the page may exceed the time limit
        picture = draw_page_uri(document.path, page, width=drawing.WIDTH) if document.path and page.width else ""
        if 0 < len(picture) <= most:
            return make_sheet(document, number, (), picture)
    return None


def _make_case(row: RunQuestion) -> Record:
    """Return the question, gold, answer and passages that a reviewer sees; the run's own outcome is hidden."""
    reply = row.reply
    case: Record = {"dataset": row.dataset, "id": row.id, "question": row.question, "impossible": row.is_impossible}
    case |= {"truth": cut(row.truth, _MAX_TEXT_CHARS), "error": reply.error}
    case["answer"] = None if reply.answer is None else cut(reply.answer, _MAX_TEXT_CHARS)
    case["was"] = digest_gold((gold.filename, gold.text) for gold in row.gold)
    case["gold"] = [
        {"filename": gold.filename or "", "pages": gold.pages, "text": cut(gold.text or "", _MAX_TEXT_CHARS),
         "spans": gold.places[0] if gold.places else []}
        for gold in row.gold
    ]  # fmt: skip
    case["passages"] = [
        {"filename": passage.filename or "", "page": passage.page, "spans": drawing.list_passage_spans(passage),
         "text": cut(passage.text or "", _MAX_TEXT_CHARS), "cited": number in reply.citations}
        for number, passage in enumerate(reply.passages[:_PASSAGES], 1)
    ]  # fmt: skip
    return case


def _list_sheets(row: RunQuestion, files: dict[str, FileSpans], run: Reviewed) -> list[tuple[str, int]]:
    """Return the pages to show for a question, the most important first; 0 for a document without pages."""
    gold = [(passage.filename or "", page) for passage in row.gold for page in passage.pages]
    beside = [(name, page + step) for name, page in gold for step in (-1, 1) if page + step > 0]
    # a reviewer must see the whole document to judge that it has no answer
    name = row.filename or ""
    document = run.document(row.dataset, name) if name else None
    rest = [(name, page.number) for page in document.pages] or [(name, 0)] if document else []
    return list(dict.fromkeys([*drawing.choose_pages(row, files, most=MAX_PAGES), *beside, *rest]))[:MAX_PAGES]


def make_sheet(document: Document, number: int, spans: Sequence[tuple[int, int]], address: str) -> Record:
    """Return a page's size, words and image address for the script that marks words; for number 0, the text."""
    if number:
        page = document.pages[number - 1]
        words = [
            [*span, document.text[span.start : span.end], *map(drawing.measure_box, boxes)]
            for span, boxes in read_words(document, number)
            if boxes
        ]
        size = {"width": page.width, "height": page.height, "src": address}
        return {"filename": document.filename, "number": number, **size, "words": words}
    return _cut_text(document, [Span(*span) for span in spans])


def _cut_text(document: Document, spans: Sequence[Span]) -> Record:
    """Return the words around some spans with their offsets; `breaks` has the indexes of words that begin a line."""
    words: list[list[Any]] = []
    breaks = []
    for start, text in drawing.cut_windows(document.text, spans or [Span(0, 0)], around=_AROUND_CHARS):
        for word in re.finditer(r"\S+", text):
            first, last = start + word.start(), start + word.end()
            if words and (not word.start() or "\n" in document.text[words[-1][1] : first]):
                breaks.append(len(words))
            words.append([first, last, word[0]])
    return {"filename": document.filename, "number": 0, "words": words, "breaks": breaks}
