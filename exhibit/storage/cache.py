"""The cache between runs: its folder, and a key-value store in one SQLite file that processes share."""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from exhibit.schemas.errors import ToolkitError

_MAX_PARAMETERS = 500  # the most parameters in one statement: every build of SQLite accepts this number
_PAGE_BYTES = 16384  # with SQLite's default, vectors of 1.5 kB leave a quarter of a page empty
_LOCK_SECONDS = 60.0  # timeout in seconds while another process holds the write lock


def find_cache_folder() -> Path:
    chosen = os.environ.get("EXHIBIT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exhibit"


def key_of(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


class Cache:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        wanted = list(dict.fromkeys(keys))
        values: dict[bytes, bytes] = {}
        with self._connect() as database:
            for at in range(0, len(wanted), _MAX_PARAMETERS):
                part = wanted[at : at + _MAX_PARAMETERS]
                marks = ",".join("?" * len(part))
                values |= dict(database.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", part))
        return values

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values in one transaction: if the process is killed, either all of them are stored or none."""
        with self._connect() as database, database:
            database.executemany("INSERT OR REPLACE INTO kept (key, value) VALUES (?, ?)", values.items())

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._opened is None or self._opened[0] != os.getpid():  # SQLite connections do not survive a fork
                    self._opened = os.getpid(), self._open()
                yield self._opened[1]
        except (OSError, sqlite3.OperationalError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ToolkitError(
                f"{self._path}: the cache cannot be used: {reason}; "
                "free disk space, or set EXHIBIT_CACHE to another folder"
            ) from error
        except sqlite3.DatabaseError as error:
            raise ToolkitError(
                f"{self._path}: the cache is damaged ({error}); delete this file: the next run creates it again"
            ) from error

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self._path, timeout=_LOCK_SECONDS, check_same_thread=False)
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        _start_log(database)
        database.execute("PRAGMA wal_autocheckpoint = 250")  # pages of 16 kB: the log stays below 4 MB
        database.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose only the last values
        # the table stores values in order of arrival and keys in an index: random keys would scatter the values over
        # the file
        database.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB)")
        return database


def _start_log(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; retry, because SQLite lets only one process at a time do this for a new file."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
