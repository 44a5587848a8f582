"""Searches the pages of a bundle's documents for words, with SQLite's full-text index (FTS5).

Each document is read once, in the background, and its pages are stored in the server's cache.
"""

import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from exhibit.engine import Engine, open_engine
from exhibit.evidence import read_document
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.locations import Location

MAX_WAIT_SECONDS = 2.0  # a search waits this long for texts; then it shows the results so far
_MAX_PAGES = 3  # most pages of one document in a result
_MAX_DOCUMENTS = 50
_TERM = re.compile(r'"([^"]+)"|(\S+)')
_MARK = "\ue000"  # a private character that marks both ends of a hit
_EXCERPT = f"snippet(pages, 2, '{_MARK}', '{_MARK}', ' … ', 40)"


class FoundPage(NamedTuple):
    page: int  # 0 for a document without pages
    excerpt: list[str]  # parts of the text; every second part is a hit


class SearchResult(NamedTuple):
    documents: list[tuple[str, list[FoundPage]]]  # each document, best first, with its pages that have all the words
    total: int  # the number of documents with such pages; at most 50 are listed
    read: int
    of: int
    unread: dict[str, str]


class TextSearch:
    """A word search in the texts of bundles; the first search reads the texts."""

    def __init__(self, path: Path, *, engine: Engine | None = None) -> None:
        self._path, self._engine = path, engine or open_engine("local")
        self._lock = threading.Lock()
        self._threads: dict[frozenset[str], threading.Thread] = {}
        self._faults: dict[str, str] = {}

    def find(self, files: Mapping[str, Location], words: str, *, wait: float = MAX_WAIT_SECONDS) -> SearchResult:
        """Return the documents with all words on one page; documents not read within `wait` seconds are left out."""
        keys = {_make_key(path): name for name, path in files.items()}
        every, paths = frozenset(keys), {key: files[name] for key, name in keys.items()}
        with self._lock:  # searches of the same documents share one thread
            if every not in self._threads:
                self._threads[every] = threading.Thread(target=self._store, args=(paths,), daemon=True)
                self._threads[every].start()
        self._threads[every].join(wait)
        query = " AND ".join(_list_terms(words)) or '""'
        found, documents = dict[str, list[int]](), list[tuple[str, list[FoundPage]]]()
        with self._open() as base:
            read = sum(key in keys for (key,) in base.execute("SELECT key FROM documents"))
            for row, key in base.execute("SELECT rowid, key FROM pages WHERE body MATCH ? ORDER BY rank", (query,)):
                if key in keys:
                    found.setdefault(keys[key], []).append(row)
            select = f"SELECT page, {_EXCERPT} FROM pages WHERE body MATCH ? AND rowid = ?"
            for name, rows in list(found.items())[:_MAX_DOCUMENTS]:
                texts = [base.execute(select, (query, row)).fetchone() for row in rows[:_MAX_PAGES]]
                documents.append((name, [FoundPage(page, text.split(_MARK)) for page, text in texts]))
        unread = {name: self._faults[key] for key, name in keys.items() if key in self._faults}
        return SearchResult(documents, len(found), read + len(unread), len(files), unread)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with closing(sqlite3.connect(self._path, timeout=30)) as base:
            base.execute("CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY)")
            base.execute("CREATE VIRTUAL TABLE IF NOT EXISTS pages USING fts5(key UNINDEXED, page UNINDEXED, body)")
            with base:
                yield base

    def _store(self, paths: Mapping[str, Location]) -> None:
        """Read the texts that are not stored yet."""
        with self._open() as base:
            stored = {key for (key,) in base.execute("SELECT key FROM documents")}
        missing = [key for key in paths if key not in stored]
        for key, outcome in zip(missing, self._engine.map(_read_pages, [paths[key] for key in missing]), strict=True):
            try:
                rows = [(key, number, text) for number, text in outcome.unwrap()]
                with self._open() as base:
                    base.execute("INSERT INTO documents VALUES (?)", (key,))
                    base.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)
            except (ToolkitError, OSError, sqlite3.Error) as error:
                self._faults[key] = str(error).splitlines()[0]


def _list_terms(words: str) -> list[str]:
    """Return the terms of a query: a bare word finds words that begin with it, a quoted phrase only itself."""
    parts = [(phrase, word.replace('"', " ")) for phrase, word in _TERM.findall(words)]
    return [f'"{phrase}"' if phrase else f'"{word}"*' for phrase, word in parts if re.search(r"\w", phrase + word)]


def _make_key(path: Location) -> str:
    """Return the key of a document's text: its path and, for a local file, its size and modification time."""
    if isinstance(path, Path) and path.exists():
        return f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}"
    return str(path)


def _read_pages(path: Location) -> list[tuple[int, str]]:
    """Return the number and the text of each page; a document without pages is returned as page 0."""
    document = read_document(path)
    pages = [(page.number, document.text[page.span.start : page.span.end]) for page in document.pages]
    texts = pages or [(0, document.text)]
    return [(number, text.replace(_MARK, " ").encode("utf-8", "replace").decode("utf-8")) for number, text in texts]
