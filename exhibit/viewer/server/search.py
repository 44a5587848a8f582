"""Search the texts of a bundle's documents for words.

Each document is read once, in the background, and its text is stored compressed in the server's cache. Only
one text is decompressed at a time: 500 contracts have 30 MB of text.
"""

import json
import re
import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from exhibit.engine import Engine, open_engine
from exhibit.evidence import Span, read_document
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.locations import Location
from exhibit.viewer.drawing import cut_windows

PATIENCE = 2.0  # seconds that a search waits for texts; then it shows the results so far
_AT_ONCE = 8  # texts that are read from disk together
_AROUND = 90  # characters that a passage shows on each side of a word
_NEAR = 300  # words within this many characters form one passage: two or three sentences
_PASSAGES = 3  # passages of one document
_HITS = 2000  # occurrences in one document that are examined: further ones add no better passage
_DOCUMENTS = 50  # documents with passages on one page
_TERM = re.compile(r'"([^"]+)"|(\S+)')


class Marked(NamedTuple):
    """A part of a found passage's text, and whether it is a hit to highlight."""

    text: str
    is_hit: bool


class FoundPassage(NamedTuple):
    """A passage that contains at least one of the searched words."""

    page: int
    start: int
    end: int
    """The span of the passage in the document's text."""
    pieces: list[Marked]


class FoundDocument(NamedTuple):
    """A document that contains all the searched words, with its best passages."""

    name: str
    places: int
    together: int
    """The number of different words in its best passage."""
    passages: list[FoundPassage]


class SearchResult(NamedTuple):
    """The result of a search: the documents that contain all the searched words, among those read so far."""

    documents: list[FoundDocument]
    total: int
    """The number of documents with all the words; at most 50 are listed."""
    read: int
    of: int
    unread: dict[str, str]
    """The documents that cannot be read, with the reason."""


class TextSearch:
    """A word search in the texts of bundles, which are read at the first search."""

    def __init__(self, path: Path, *, engine: Engine | None = None) -> None:
        """Store the file that caches the texts, and the engine whose workers read documents."""
        self._cache, self._engine = Cache(path), engine or open_engine("local")
        self._lock = threading.Lock()
        self._reading: dict[frozenset[bytes], threading.Thread] = {}
        self._faults: dict[bytes, str] = {}

    def find(self, files: Mapping[str, Location], words: str, *, patience: float | None = None) -> SearchResult:
        """Return the documents that contain all words, among those that were read within `patience` seconds.

        The other documents are read in the background, for later searches.
        """
        keys = {name: _make_key(path) for name, path in files.items()}
        self._read(files, keys).join(PATIENCE if patience is None else patience)
        terms = [_make_pattern(phrase or word) for phrase, word in _TERM.findall(words)]
        found, read = [], 0
        ordered = sorted(files)
        for names in (ordered[at : at + _AT_ONCE] for at in range(0, len(ordered), _AT_ONCE)):
            kept = self._cache.get(keys[name] for name in names)
            for name in names:
                if keys[name] in kept:
                    read += 1
                    text, pages = json.loads(zlib.decompress(kept[keys[name]]))
                    document = _look(name, text, pages, terms)
                    found += [document] if document else []
        found.sort(key=lambda one: (-one.together, -one.places, one.name))
        unread = {name: self._faults[key] for name, key in keys.items() if key in self._faults}
        return SearchResult(found[:_DOCUMENTS], len(found), read + len(unread), len(files), unread)

    def _read(self, files: Mapping[str, Location], keys: Mapping[str, bytes]) -> threading.Thread:
        """Return the thread that reads the texts not yet cached; searches of the same documents share one thread."""
        every = frozenset(keys.values())
        with self._lock:
            thread = self._reading.get(every)
            if thread is None:
                work = partial(self._keep, dict(files), dict(keys))
                thread = self._reading[every] = threading.Thread(target=work, name="texts", daemon=True)
                thread.start()
        return thread

    def _keep(self, files: Mapping[str, Location], keys: Mapping[str, bytes]) -> None:
        missing = [name for name in files if keys[name] not in self._cache.get([keys[name]])]
        if not missing:
            return
        outcomes = self._engine.map(_pack_text, [files[name] for name in missing])
        for name, outcome in zip(missing, outcomes, strict=True):
            try:
                self._cache.put({keys[name]: outcome.unwrap()})
            except (ToolkitError, OSError) as error:
                self._faults[keys[name]] = str(error).splitlines()[0]


def _make_key(path: Location) -> bytes:
    """Return the cache key of a document's text: its path and, for a local file, its size and modification time."""
    stamp = ""
    if isinstance(path, Path):
        with suppress(OSError):
            stat = path.stat()
            stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    return key_of("text 1", str(path), stamp)


def _pack_text(path: Location) -> bytes:
    """Return a document's text and the start of each page, compressed; called in a worker."""
    document = read_document(path)
    starts = [page.span.start for page in document.pages]
    return zlib.compress(json.dumps([document.text, starts]).encode(), 1)


def _make_pattern(words: str) -> re.Pattern[str]:
    """Return the pattern that finds a word or a phrase in lower-case text.

    It starts with literal characters, so that the search is fast; the caller checks that a match begins a word.
    """
    return re.compile(r"\s+".join(map(re.escape, lower(words).split())))


def lower(text: str) -> str:
    """Return a text in lower case; a letter that would become two characters is kept, so that offsets stay valid."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def _look(name: str, text: str, pages: Sequence[int], terms: Sequence[re.Pattern[str]]) -> FoundDocument | None:
    low = lower(text)
    hits: list[tuple[Span, int]] = []
    for number, term in enumerate(terms):
        spans = (Span(*match.span()) for match in term.finditer(low))
        mine = [(span, number) for span in spans if not low[span.start - 1 : span.start].isalnum()]
        if not mine:
            return None
        hits += mine
    hits.sort()
    passages = _group_hits(hits[:_HITS])
    shown = [_make_passage(text, pages, [span for span, _ in passage]) for passage in passages[:_PASSAGES]]
    together = max((_count_different(passage) for passage in passages), default=0)
    return FoundDocument(name, len(hits), together, shown)


def _count_different(hits: Sequence[tuple[Span, int]]) -> int:
    return len({term for _, term in hits})


def _group_hits(hits: Sequence[tuple[Span, int]]) -> list[list[tuple[Span, int]]]:
    """Return the hits grouped by proximity; groups with the most different search words come first."""
    groups: list[list[tuple[Span, int]]] = []
    for hit in hits:
        if groups and hit[0].end - groups[-1][0][0].start <= _NEAR:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return sorted(groups, key=_count_different, reverse=True)


def _make_passage(text: str, pages: Sequence[int], spans: Sequence[Span]) -> FoundPassage:
    first, last = spans[0].start, max(span.end for span in spans)
    [[start, window]] = cut_windows(text, [Span(first, last)], around=_AROUND)
    pieces, at = [], start
    for span in spans:
        if span.start >= at:  # one word may be the beginning of another
            pieces += [Marked(text[at : span.start], False), Marked(text[span.start : span.end], True)]
            at = span.end
    pieces.append(Marked(text[at : start + len(window)], False))
    page = sum(begin <= first for begin in pages)
    return FoundPassage(page, first, last, [piece for piece in pieces if piece.text])
