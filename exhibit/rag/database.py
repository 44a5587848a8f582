"""The SQLite database of an index: documents, their texts and chunks, and their words."""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exhibit.schemas.errors import BundleError

TABLES = (
    "CREATE TABLE documents (number INTEGER PRIMARY KEY, filename TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, "
    "sections INTEGER NOT NULL, chunks BLOB NOT NULL, record BLOB NOT NULL)",
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, text BLOB NOT NULL)",
    "CREATE TABLE names (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, run TEXT NOT NULL)",
    "CREATE TABLE lengths (field INTEGER PRIMARY KEY, keys BLOB NOT NULL, lengths BLOB NOT NULL)",
    "CREATE TABLE postings (field INTEGER PRIMARY KEY, terms BLOB NOT NULL, owners BLOB NOT NULL, "
    "counts BLOB NOT NULL)",
)
_PAGE_BYTES = 16384  # most rows are some thousand numbers


class Database:
    """An SQLite file; changes go to a copy, and `save` replaces the file with this copy.

    Other processes that have the file open continue to read the old content. Without a path the database is in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._reading: sqlite3.Connection | None = None
        self._writing: sqlite3.Connection | None = None

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.report_damage():
            return self._connect().execute(sql, values).fetchall()

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row; `save` makes the change permanent."""
        if self._writing is None:
            self._writing = self._begin()
        self._writing.executemany(sql, rows)

    def save(self) -> None:
        """Save the changes: replace the database file by the copy to which they were written."""
        if self._writing is None:
            return
        self._writing.commit()
        if self.path is not None:
            self._writing.close()
            self._writing = None
            self.close()
            self._partial.replace(self.path)

    def close(self) -> None:
        """Close the file and discard changes that are not saved; the next read opens it again."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        if self._writing is not None and self.path is not None:
            self._writing.close()
            self._writing = None
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def report_damage(self) -> Iterator[None]:
        """Turn every exception that a damaged file causes into one `BundleError` that advises a rebuild."""
        try:
            yield
        except (sqlite3.Error, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise BundleError(f"{self.path}: damaged ({error}); build the index again (--ingest fresh)") from error

    @property
    def _partial(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f".{self.path.name}.partial")

    def _connect(self) -> sqlite3.Connection:
        opened = self._writing or self._reading
        if opened is not None:  # the folder may have been moved since
            return opened
        if self.path is None or not self.path.is_file():
            self._writing = self._begin()
            return self._writing
        address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        self._reading = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._reading.execute("PRAGMA trusted_schema = OFF")
        tables = {sql for (sql,) in self._reading.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != set(TABLES):  # the file may come from a stranger
            raise ValueError("its tables are not those of an index")
        return self._reading

    def _begin(self) -> sqlite3.Connection:
        """Open a copy of the file for changes, or a new file; it needs no journal, since the original stays."""
        new = self.path is None or not self.path.is_file()
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._partial.unlink(missing_ok=True)
            if not new:
                shutil.copyfile(self.path, self._partial)
        database = sqlite3.connect(str(self._partial) if self.path else ":memory:", check_same_thread=False)
        settings = (f"page_size = {_PAGE_BYTES}", "cache_size = -512", "journal_mode = OFF", "synchronous = OFF")
        for statement in (*(f"PRAGMA {setting}" for setting in settings), *(TABLES if new else ())):
            database.execute(statement)
        return database
