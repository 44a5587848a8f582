"""The documents of a dataset, read when they are needed, and passages found in them by name and by words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import PurePath

from exhibit.engine import Limits
from exhibit.evaluation.cases import Passage
from exhibit.evidence import Document, Match, Span, fold, locate
from exhibit.evidence.guard import boxes_within, read_within
from exhibit.evidence.locate import worthy
from exhibit.schemas.errors import DocumentError
from exhibit.storage.locations import Location

_REMEMBERED = 1 << 16
"""Texts whose place is remembered, by a digest: 15 MB. Systems retrieve the same passages for many questions."""
_PROBE = 32
"""Folded characters of a passage that a document must have somewhere before the passage is looked for in it."""


class Documents:
    """Files by name; each is read once, and one that cannot be read is as good as not there."""

    def __init__(self, files: Mapping[str, Location], *, limits: Limits | None = None) -> None:
        self.files = dict(files)
        self.faults: dict[str, str] = {}
        """Why a document could not be read, by its name."""
        self._limits = limits or Limits()
        self._read: dict[str, Document | None] = {}
        self._located: dict[tuple[bytes, str | None], tuple[str, Span] | None] = {}

    def get(self, filename: str | None) -> Document | None:
        """Return a document, None when there is none of that name or it cannot be read."""
        if filename is None or filename not in self.files:
            return None
        if filename not in self._read:
            try:
                self._read[filename] = read_within(self.files[filename], self._limits)
            except DocumentError as error:
                self._read[filename] = None
                self.faults[filename] = str(error)
        return self._read[filename]

    def all(self) -> Iterator[Document]:
        """Yield every document that can be read, in the order of the names."""
        for name in sorted(self.files):
            document = self.get(name)
            if document is not None:
                yield document

    # ---------------------------------------------------------------- names

    def named(self, name: str) -> str | None:
        """Return the file that a system means: by its name, its path, its stem, or with `#page=…` behind it."""
        for written in (name, name.partition("#")[0]):
            for key in (written, PurePath(written).name, PurePath(written).stem):
                filename = self._names.get(key.strip().casefold())
                if filename:
                    return filename
        return None

    @cached_property
    def _names(self) -> dict[str, str]:
        stems: dict[str, list[str]] = {}
        for name in sorted(self.files):
            stems.setdefault(PurePath(name).stem.casefold(), []).append(name)
        # a stem that two files share names neither
        names = {stem: files[0] for stem, files in stems.items() if len(files) == 1}
        return names | {name.casefold(): name for name in sorted(self.files)}

    # ---------------------------------------------------------------- words

    def place(self, passage: Passage) -> Passage:
        """Return a passage with its file, span and page as far as its name and its words tell them.

        A span is believed when the words stand there: another system may count in a text of its own. A name that no
        file has is no name: the words are looked for in all documents, and where they are nowhere the name stays.
        """
        filename = self.named(passage.filename) if passage.filename else None
        span = passage.span if self._stands(passage, self.get(filename)) else None
        if span is None and passage.text.strip():
            filename, span = self._find(passage.text, filename) or (filename, None)
        document = self.get(filename)
        if document is None or span is None:
            return replace(passage, filename=filename or passage.filename, span=None)
        pages = tuple(document.pages_of(span))
        page = next(iter(pages), passage.page)
        text = passage.text or document.text[span.start : span.end]
        overlap = box_overlap(document, span, passage) if passage.told_box else None
        return replace(passage, text=text, filename=filename, span=span, page=page, pages=pages, box_overlap=overlap)

    def _stands(self, passage: Passage, document: Document | None) -> bool:
        span = passage.span
        if document is None or span is None or span.end > len(document.text):
            return False
        there = document.text[span.start : span.end]
        return not passage.text.strip() or there == passage.text or fold(there) == fold(passage.text)

    def _find(self, words: str, filename: str | None) -> tuple[str, Span] | None:
        key = (blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest(), filename)
        if key not in self._located:
            matches = self.matches(words, filename)
            while len(self._located) >= _REMEMBERED:  # the oldest goes first
                del self._located[next(iter(self._located))]
            self._located[key] = (matches[0][0], matches[0][1].span) if matches else None
        return self._located[key]

    def matches(self, words: str, filename: str | None) -> list[tuple[str, Match]]:
        """Return where words stand: in one file, or in the first file that has them."""
        for document in [self.get(filename)] if filename else self._likely(words):
            places = worthy(locate(words, document)) if document else []
            if document and places:
                return [(document.filename, match) for match in places]
        return []

    def _likely(self, words: str) -> Iterable[Document]:
        """Yield the documents that have a piece of the words, those that have all of them first."""
        needle = fold(words, loose=True)
        if not needle:
            return
        starts = range(0, max(1, len(needle) - _PROBE + 1), max(1, (len(needle) - _PROBE) // 7 or 1))
        probes = [needle[start : start + _PROBE] for start in starts]
        whole, part = [], []
        for document in self.all():
            text = document.loose.text
            if needle in text:
                whole.append(document)
            elif any(probe in text for probe in probes):
                part.append(document)
        yield from whole
        yield from part


def box_overlap(document: Document, span: Span, passage: Passage) -> float | None:
    """Return what the box that a system gives shares with that of the words, over what both cover together.

    0 where the words are not on that page; None where the document has no pages, or no page was given.
    """
    number = passage.told_page
    if number is None or passage.told_box is None or not 1 <= number <= len(document.pages):
        return None
    page = document.pages[number - 1]
    if not page.width or document.path is None or document.path.suffix.lower() != ".pdf":
        return None
    try:
        lines = [box for box in boxes_within(document, [span])[0] if box.page == number]
    except DocumentError:
        return None  # a page that takes too long, or is damaged: where its words stand is not known
    if not lines:
        return 0.0
    wide, high = passage.told_size or (page.width, page.height)
    left, top, right, bottom = passage.told_box
    told = (left * page.width / wide, top * page.height / high, right * page.width / wide, bottom * page.height / high)
    true = (
        min(box.left for box in lines), min(box.top for box in lines),
        max(box.right for box in lines), max(box.bottom for box in lines),
    )  # fmt: skip
    shared = _area((max(told[0], true[0]), max(told[1], true[1]), min(told[2], true[2]), min(told[3], true[3])))
    together = _area(told) + _area(true) - shared
    return shared / together if together else 0.0


def _area(box: tuple[float, float, float, float]) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
