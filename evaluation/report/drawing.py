"""A case's evidence: the pages worth seeing with boxes on them, or the text where a document has no pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evaluation.report.pages import Gallery, excerpts, page_marks
from evaluation.report.run import Record
from evaluation.report.spans import Placed, placed
from evidence import Document, Span
from evidence.guard import read_within
from schemas.errors import DocumentError, ToolkitError
from storage.bundle import corpus_files
from storage.locations import Location

PASSAGES = 10
"""Passages that are drawn, and given in words, whether they are cited or not."""
_TOP = 3
"""Passages whose pages are shown even when no answer cites them."""
_GOLD_PAGES = 2
_PAGES = 4
"""Pages that a case shows at most."""


class Library:
    """The documents of the datasets, each read once and when first needed."""

    def __init__(self, datasets: Mapping[str, Path]) -> None:
        """Take the bundles' folders by dataset."""
        self._files = {name: corpus_files(path) for name, path in datasets.items()}
        self._read: dict[Location, Document | None] = {}

    def find(self, dataset: str, filename: str) -> Document | None:
        """Return a document; None where there is none, or it cannot be read."""
        path = self._files.get(dataset, {}).get(filename)
        if path is None:
            return None
        if path not in self._read:
            try:
                self._read[path] = read_within(path)
            except ToolkitError:
                self._read[path] = None
        return self._read[path]


class _Sight(NamedTuple):
    """A span worth seeing."""

    filename: str
    span: Span
    gold: bool


def draw(dataset: str, row: Record, library: Library, gallery: Gallery) -> Record:
    """Return the pages of a case with their boxes, and its excerpts."""
    at = {name: _drawn(row, document) for name, document in placed(row).items()}
    sights = list(_sights(row, at))
    documents = {name: library.find(dataset, name) for name in at}
    pages = []
    for filename, number in _choose_pages(sights, documents):
        document = documents[filename]
        if document is None:
            continue
        page = document.pages[number - 1]
        with suppress(DocumentError):  # a page that cannot be drawn in time: the words are there all the same
            key = gallery.add(document, page)
            if key is not None:
                pages.append({"page": key, "marks": page_marks(document, page, at[filename])})
    return {"pages": pages, "excerpts": list(_excerpts(sights, documents, at))}


def _drawn(row: Record, document: Placed) -> Placed:
    cited = row["reply"].get("citations") or ()
    return Placed(document.gold, {n: span for n, span in document.passages.items() if n <= PASSAGES or n in cited})


def _sights(row: Record, at: Mapping[str, Placed]) -> Iterator[_Sight]:
    """Yield the spans worth seeing: gold, then what is cited, then what ranks first."""
    for name, document in at.items():
        yield from (_Sight(name, span, True) for span in document.gold)
    cited = row["reply"].get("citations") or ()
    for number in dict.fromkeys([*cited, *range(1, _TOP + 1)]):
        for name, document in at.items():
            if number in document.passages:
                yield _Sight(name, document.passages[number], False)


def _choose_pages(sights: list[_Sight], documents: Mapping[str, Document | None]) -> list[tuple[str, int]]:
    """Return the pages to show in order; gold leaves room for what was retrieved instead of it."""
    gold: dict[tuple[str, int], None] = {}
    others: dict[tuple[str, int], None] = {}
    for sight in sights:
        document = documents[sight.filename]
        for number in document.pages_of(sight.span) if document is not None else ():
            (gold if sight.gold else others).setdefault((sight.filename, number))
    others = {page: None for page in others if page not in gold}
    room = max(_GOLD_PAGES, _PAGES - len(others))
    first = list(gold)[:room]
    return [*first, *others][:_PAGES]


def _excerpts(
    sights: list[_Sight], documents: Mapping[str, Document | None], at: Mapping[str, Placed]
) -> Iterator[Record]:
    for name in dict.fromkeys(sight.filename for sight in sights):
        document = documents[name]
        if document is not None and not document.pages:
            wanted = [sight.span for sight in sights if sight.filename == name]
            for runs in excerpts(document, wanted, at[name]):
                yield {"filename": name, "runs": runs}
