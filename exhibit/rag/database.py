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
    """An SQLite file; changes go to a copy, which replaces the file at `save`: other processes read the old content."""

    def __init__(self, path: Path) -> None:
        self.path, self._partial = path, path.with_name(f".{path.name}.partial")
        self._connection: sqlite3.Connection | None = None
        self._changed = False

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.report_damage():
            if self._connection is None:
                self._connection = self._open() if self.path.is_file() else self._begin()
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row; `save` makes the change permanent."""
        if self._connection is None or not self._changed:
            self.close()
            self._connection = self._begin()
        self._connection.executemany(sql, rows)

    def save(self) -> None:
        if self._connection is not None and self._changed:
            self._connection.commit()
            self._connection.close()
            self._connection, self._changed = None, False
            self._partial.replace(self.path)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._changed:
            self._partial.unlink(missing_ok=True)
        self._connection, self._changed = None, False

    @contextmanager
    def report_damage(self) -> Iterator[None]:
        """Turn every exception that a damaged file causes into one `BundleError` that advises a rebuild."""
        try:
            yield
        except (sqlite3.Error, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise BundleError(f"{self.path}: damaged ({error}); build the index again (--ingest fresh)") from error

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema = OFF")
        tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != set(TABLES):  # the file may come from a stranger
            raise ValueError("its tables are not those of an index")
        return connection

    def _begin(self) -> sqlite3.Connection:
        """Open a copy of the file for changes, or a new file; the copy needs no journal, because the original stays."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._partial.unlink(missing_ok=True)
        if self.path.is_file():
            shutil.copyfile(self.path, self._partial)
        connection, self._changed = sqlite3.connect(str(self._partial), check_same_thread=False), True
        for setting in (f"page_size = {_PAGE_BYTES}", "cache_size = -512", "journal_mode = OFF", "synchronous = OFF"):
            connection.execute(f"PRAGMA {setting}")
        if not self.path.is_file():
            for statement in TABLES:
                connection.execute(statement)
        return connection
