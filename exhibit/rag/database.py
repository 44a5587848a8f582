"""The files of an index beside its vectors: a manifest with checksums, and an SQLite database.

The database holds the documents, their texts, their chunks and their words.
"""

import json
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.law.profile import Profile
from exhibit.rag.protocols import Keys
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.validate import sha256_of
from exhibit.storage.atomic import FolderKind
from exhibit.storage.cache import Cache, find_cache_folder, key_of

FORMAT = "exhibit-index/6"
MANIFEST = "manifest.json"
RECORD = "building.json"
_STORE = "store"
_LARGE = 16 << 20
"""Bytes above which a file's checksum is cached: a smaller file is read in a tenth of a second."""
_SETTLED = 2.0
"""Age in seconds above which a file's modification time identifies its content on every file system."""

Place = tuple[str, int, int]
"""A section's path of headings, its start and its end."""
FILE = "index.sqlite"
_PAGE = 16384
"""Bytes of a page: most rows are some thousand numbers."""
_TABLES = tuple(Path(__file__).with_name("index.sql").read_text(encoding="utf-8").rstrip(";\n").split(";\n"))
_ADDED = "CREATE TABLE added (part INTEGER, terms BLOB, owners BLOB, counts BLOB)"


class Database:
    """An SQLite file; changes go to a copy, and `save` replaces the file with this copy.

    Other processes that have the file open continue to read the old content. Without a path the database is in
    memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._reading: sqlite3.Connection | None = None
        self._writing: sqlite3.Connection | None = None
        self._scratch: Scratch | None = None

    @property
    def scratch(self) -> "Scratch":
        """The tables for words that are not yet merged into the index."""
        if self._scratch is None:
            self._scratch = Scratch(self.path.parent if self.path else None, _ADDED)
        return self._scratch

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.report_damage():
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row; `save` makes the change permanent."""
        if self._writing is None:
            self._writing = self._begin()
        self._writing.executemany(sql, rows)

    def save(self) -> None:
        """Save the changes: replace the database file by the copy to which they were written."""
        self._close_scratch()
        if self._writing is None:
            return
        self._writing.commit()
        if self.path is not None:
            self.close_reading()
            self._writing.close()
            self._writing = None
            self._partial.replace(self.path)

    def close(self) -> None:
        """Close the file and discard changes that are not saved."""
        self._close_scratch()
        self.close_reading()
        if self._writing is not None and self.path is not None:
            self._writing.close()
            self._writing = None
            self._partial.unlink(missing_ok=True)

    def _close_scratch(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def close_reading(self) -> None:
        """Close the connection for reading; the next read opens it again."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None

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

    @property
    def _connection(self) -> sqlite3.Connection:
        opened = self._writing or self._reading
        if opened is not None:  # the folder may have been moved since
            return opened
        if self.path is None or not self.path.is_file():
            self._writing = self._begin()
            return self._writing
        self._reading = self._open(self.path)
        return self._reading

    def _open(self, path: Path) -> sqlite3.Connection:
        """Open a file read-only, and raise an error unless its schema is exactly that of an index.

        The check is needed because the file may come from a stranger.
        """
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        database = sqlite3.connect(address, uri=True, check_same_thread=False)
        database.execute("PRAGMA trusted_schema = OFF")
        tables = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != set(_TABLES):
            raise ValueError("its tables are not those of an index")
        return database

    def _begin(self) -> sqlite3.Connection:
        """Open a copy of the file for changes, or a new file if there is none.

        The copy has no journal. It needs none, because the original file is unchanged if the process is killed.
        """
        if self.path is None:
            return _create_tables(":memory:", _TABLES)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._partial.unlink(missing_ok=True)
        if not self.path.is_file():
            return _create_tables(str(self._partial), _TABLES)
        shutil.copyfile(self.path, self._partial)
        return _create_tables(str(self._partial), ())


def _create_tables(place: str, tables: Iterable[str]) -> sqlite3.Connection:
    database = sqlite3.connect(place, check_same_thread=False)
    for setting in (f"page_size = {_PAGE}", "cache_size = -512", "journal_mode = OFF", "synchronous = OFF"):
        database.execute(f"PRAGMA {setting}")
    for table in tables:
        database.execute(table)
    return database


class Scratch:
    """Temporary tables: in a file that is deleted on `close` or when the process ends, or in memory."""

    def __init__(self, folder: Path | None, table: str) -> None:
        path = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f".scratch-{secrets.token_hex(8)}.sqlite"
        self._path = path
        self.database = _create_tables(str(path or ":memory:"), [table])
        if path is not None:
            with suppress(OSError):  # Windows removes no open file
                path.unlink()

    def close(self) -> None:
        """Close the database, and delete its temporary tables with their file."""
        self.database.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class Waiting:
    """A queue of texts that wait to be embedded, each with its key.

    Texts wait because the words of all documents are indexed before the first vector is computed.
    """

    def __init__(self, folder: Path) -> None:
        self._scratch = Scratch(folder, "CREATE TABLE waiting (key INTEGER, text BLOB)")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: Sequence[int] | Keys, texts: Iterable[str]) -> None:
        """Add texts, one for each key; a text may contain a lone surrogate."""
        encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
        rows = zip(np.asarray(keys, np.int64).tolist(), encoded, strict=True)
        self._scratch.database.executemany("INSERT INTO waiting VALUES (?, ?)", rows)
        self._count += len(keys)

    def batches(self, size: int) -> Iterator[tuple[Keys, list[str]]]:
        """Yield keys and texts in the order in which they were added, in batches of `size`."""
        cursor = self._scratch.database.execute("SELECT key, text FROM waiting ORDER BY rowid")
        while rows := cursor.fetchmany(size):
            texts = [text.decode("utf-8", "surrogatepass") for _, text in rows]
            yield np.array([key for key, _ in rows], np.int64), texts

    def close(self) -> None:
        """Delete the temporary database in which the texts wait to be embedded."""
        self._scratch.close()


# ---------------------------------------------------------------- the manifest and the checksums in it


def let_go(folder: Path, store: str, *, but: str = "") -> None:
    """Delete the data that vector stores hold outside the folder of an index, except the data of the store `but`.

    `store` is the store that the user names, such as `milvus:URI`. Data at an address is deleted only if the
    user names this address; an address that only the index contains is not trusted.
    """
    named, _, argument = store.partition(":")
    for name in list_plugins("exhibit.rag.stores"):
        if name != but and (folder / _STORE / f"{name}.json").is_file():
            load_plugin("exhibit.rag.stores", name)[0].drop(folder, argument if name == named else None)


def index_kind(store: str) -> FolderKind:
    """Return the `FolderKind` of an index: how to recognise an index folder, and how to delete its data elsewhere.

    Vectors may be on a server. They are deleted there only if `store`, which the user gives (`milvus:URI`),
    names this server: an index folder from a stranger could name any server.
    """
    return FolderKind(
        "an index",
        lambda folder: (folder / MANIFEST).is_file(),
        let_go=lambda folder: let_go(folder, store),
        kept=frozenset({_STORE}),
    )


@dataclass(frozen=True)
class Entry:
    """One document of an index: its file, profile, summary, sections and labels."""

    number: int
    filename: str
    sha256: str
    characters: int
    pages: int | None
    profile: Profile
    summary: str
    sections: Sequence[Place] = ()
    """The sections: the path of headings, start and end of each; a chunk's section number is the position here."""
    labels: dict[str, Any] = field(default_factory=dict)


def entry_of(record: dict[str, Any]) -> Entry:
    """Return a document's entry from the JSON record that the database stores."""
    profile = Profile(**{**record["profile"], "parties": tuple(record["profile"]["parties"])})
    sections = tuple((path, start, end) for path, start, end in record["sections"])
    return Entry(**{**record, "profile": profile, "sections": sections})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an index; raise an error with advice if the index is missing or damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BundleError(f"{folder}: no index here (no {MANIFEST}); build one first")
    return parse_manifest(path)


def parse_manifest(path: Path) -> dict[str, Any]:
    """Return the content of a manifest, or of the record of an unfinished index.

    Raise an error if the file is damaged or has an unknown format.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged; build the index again (--ingest fresh)") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{path}: not an index of this version ({FORMAT}); build the index again (--ingest fresh)")
    return manifest


def compute_checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of an index, except for manifests and a store's own database."""
    return {path.relative_to(folder).as_posix(): digest(path) for path in _list_files(folder)}


def check_files(folder: Path, sealed: Mapping[str, str], *, is_whole: bool) -> None:
    """Raise an error if a file is missing, differs from its checksum, or has no checksum.

    With `is_whole` false, as for an unfinished index, files without a checksum are ignored.
    """
    names = {path.relative_to(folder).as_posix() for path in _list_files(folder)}
    for name in sorted({*sealed, *names} if is_whole else sealed):
        if name not in names or digest(folder / name) != sealed.get(name):
            raise BundleError(f"{folder}: {name} is missing or damaged; build the index again (--ingest fresh)")


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the files of an index that get a checksum; raise an error on a link, which could lead to any file."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BundleError(f"{path}: a link or a special file, which an index never contains; build the index again")
        own = path.relative_to(folder).parts[0]
        if path.is_file() and own not in (MANIFEST, RECORD, _STORE) and not path.name.startswith("."):
            yield path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; a large file that has not changed since the last call is not read again.

    The user's cache stores the checksum under the file's device, inode, size and times. If the cache cannot be
    used, the file is read.
    """
    stat = path.stat()
    key = key_of(*map(str, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)))
    cache = Cache(find_cache_folder() / "checksums.sqlite") if stat.st_size >= _LARGE else None
    with suppress(ToolkitError):
        if cache is not None and (known := cache.get([key]).get(key)):
            return known.decode()
    result = sha256_of(path)
    with suppress(ToolkitError):
        # a new file may change again within one tick of the clock
        if cache is not None and time.time() - stat.st_ctime > _SETTLED:
            cache.put({key: result.encode()})
    return result
