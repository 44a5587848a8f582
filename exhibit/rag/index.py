"""An index on disk: documents, chunks, and one to three layers of vectors, under one manifest.

index/
  manifest.json      the settings, the counts, and the checksum of every other file
  index.sqlite       documents with their texts and chunks; with `lexicon` the words of chunks, headings and names
  chunk.faiss …      vectors, in the store's own files
  store/             NAME.json: the address of the vectors, for a store outside the folder
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from exhibit.law.profile import Profile
from exhibit.rag.config import Config
from exhibit.rag.documents import DocumentNames
from exhibit.rag.lexicon import Database, DocumentWords, Words, report_damage
from exhibit.rag.protocols import SECTION_BITS, Keys, Layer, VectorStore, make_section_keys
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas import __version__
from exhibit.schemas.errors import BundleError
from exhibit.schemas.validate import sha256_of
from exhibit.storage.atomic import FolderKind, lock_folder

FORMAT = "exhibit-index/9"
MANIFEST = "manifest.json"
KEY, DOCUMENT, START, END, PAGE, SECTION = range(6)  # the columns of a table of chunks
_STORE = "store"
_SPAN = np.dtype("<i4")
_CHUNK_BYTES = 4 * _SPAN.itemsize  # bytes of a chunk on disk: start, end, page and section
_MAX_ENTRIES, _MAX_TEXTS = 1024, 64  # documents whose entries, and whose texts, stay in memory


@dataclass(frozen=True)
class Entry:
    number: int
    filename: str
    sha256: str
    characters: int
    pages: int | None
    profile: Profile
    summary: str
    # the headings, start and end of each section; a chunk's section is an index into this tuple
    sections: tuple[tuple[str, int, int], ...] = ()


_ENTRY = TypeAdapter(Entry)


class Index:
    """Documents and chunks with their vectors; `save` makes changes permanent."""

    def __init__(self, folder: Path, config: Config, *, embedder: str, dimensions: int) -> None:
        self.folder, self.config = folder, config
        self.embedder, self.dimensions = embedder, dimensions
        self._database = Database(folder / "index.sqlite")
        self._stores: dict[Layer, VectorStore] = {}
        self.manifest_sha256 = ""
        self._read_again()

    def _read_again(self) -> None:
        """Discard all data that was read from the database, because the database has changed."""
        self._table: Keys | None = None
        self.document = lru_cache(_MAX_ENTRIES)(self._read_entry)
        self.text_of = lru_cache(_MAX_TEXTS)(self._read_text)
        self.changes = lru_cache(_MAX_ENTRIES)(self._list_changes)
        self.cache: dict[Any, Any] = {}  # data that retrieval derives from the content, such as the sentences of chunks
        self.chunks = Words(self._database, "words")
        self.headings = Words(self._database, "headings")  # the headings above each section, by the section's key
        self.names = DocumentNames(self._database)

    @property
    def table(self) -> Keys:
        """All chunks, sorted by key.

        Columns are contiguous in memory, so that a search copies neither keys nor documents.
        """
        if self._table is None:
            rows = self._database.read("SELECT number, first, chunks FROM documents ORDER BY first")
            with report_damage(self._database.path):
                self._table = _make_table(rows)
        return self._table

    @property
    def layers(self) -> tuple[Layer, ...]:
        return ("document", "section", "chunk") if self.config.layers == "all" else ("chunk",)

    def store(self, layer: Layer) -> VectorStore:
        if layer not in self._stores:
            module, argument = load_plugin("exhibit.rag.stores", self.config.store)
            store: VectorStore = module.open(self.folder, argument, name=layer, dimensions=self.dimensions)
            self._stores[layer] = store
        return self._stores[layer]

    def keys(self, layer: Layer) -> Keys:
        if layer == "chunk":
            return self.table[:, KEY]
        if layer == "document":
            return np.array(self.numbers, dtype=np.int64)
        rows = self._database.read("SELECT number, sections FROM documents ORDER BY number")
        return np.concatenate([np.zeros(0, np.int64), *(make_section_keys(*row) for row in rows)])

    @property
    def numbers(self) -> list[int]:
        return [number for (number,) in self._database.read("SELECT number FROM documents ORDER BY number")]

    @property
    def documents(self) -> list[Entry]:
        return list(map(self.document, self.numbers))

    def of_kind(self, kind: str) -> list[Entry]:
        return [self.document(*row) for row in self._database.read("SELECT number FROM names WHERE kind = ?", kind)]

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, filename: str) -> bool:
        return bool(self._database.read("SELECT 1 FROM documents WHERE filename = ?", filename))

    def entry(self, filename: str) -> Entry:
        rows = self._database.read("SELECT number FROM documents WHERE filename = ?", filename)
        if not rows:
            raise BundleError(f"{self.folder}: no document {filename!r} in this index")
        return self.document(rows[0][0])

    def _read_entry(self, number: int) -> Entry:
        rows = self._database.read("SELECT record FROM documents WHERE number = ?", number)
        with report_damage(self._database.path):
            return _ENTRY.validate_python(json.loads(rows[0][0]))

    def _read_text(self, number: int) -> str:
        rows = self._database.read("SELECT text FROM texts WHERE number = ?", number)
        with report_damage(self._database.path):
            return str(rows[0][0], "utf-8", "surrogatepass")

    def _list_changes(self, number: int) -> list[tuple[int, str, int | None]]:
        """Return the offsets in a document at which a section or a chunk begins, each with its section and page."""
        low, high = np.searchsorted(self.table[:, DOCUMENT], [number, number + 1])
        pages = dict(self.table[low:high, [START, PAGE]].tolist())
        headings = {start: path for path, start, _ in self.document(number).sections}
        path, page = "", 0
        changes: list[tuple[int, str, int | None]] = [(0, path, None)]
        for start in sorted(headings.keys() | pages.keys()):
            path, page = headings.get(start, path), pages.get(start, page)
            changes.append((start, path, page or None))
        return changes

    def chunk_keys(self, numbers: Iterable[int]) -> Keys:
        wanted = np.isin(self.table[:, DOCUMENT], np.fromiter(numbers, dtype=np.int64))
        keys: Keys = self.table[wanted, KEY]
        return keys

    def find_rows(self, keys: Keys) -> Keys:
        return np.searchsorted(self.table[:, KEY], keys)

    def add(self, entry: Entry, text: str, chunks: Keys, words: DocumentWords | None) -> Keys:
        """Add a document and its chunks (start, end, page, section); return the new chunks' keys."""
        if entry.filename in self:
            raise BundleError(f"{self.folder}: {entry.filename!r} is in this index already; remove it first")
        last = self._database.read("SELECT first, length(chunks) FROM documents ORDER BY number DESC LIMIT 1")
        first = last[0][0] + last[0][1] // _CHUNK_BYTES if last else 0
        keys = np.arange(first, first + len(chunks), dtype=np.int64)
        record = json.dumps(asdict(entry)).encode()
        row = (entry.number, entry.filename, first, len(entry.sections), np.asarray(chunks, _SPAN).tobytes(), record)
        self._database.write("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", [row])
        self._database.write("INSERT INTO texts VALUES (?, ?)", [(entry.number, text.encode("utf-8", "surrogatepass"))])
        if words is not None:
            self.names.add(entry.number, words.names)
            self.chunks.add(keys, words.chunks)
            self.headings.add(make_section_keys(entry.number, len(entry.sections)), words.headings)
        self._table = None
        return keys

    def find_next_number(self) -> int:
        [[last]] = self._database.read("SELECT max(number) FROM documents")
        return 0 if last is None else int(last) + 1

    def remove(self, filename: str) -> None:
        entry = self.entry(filename)
        chunks, sections = self.chunk_keys([entry.number]), make_section_keys(entry.number, len(entry.sections))
        keys: dict[Layer, Keys] = {"chunk": chunks, "section": sections, "document": np.array([entry.number])}
        for layer in self.layers:
            self.store(layer).remove(keys[layer])
        if self.config.lexicon:
            self.names.remove(entry.number)
            self.chunks.remove(chunks)
            self.headings.remove(sections)
        for table in ("documents", "texts"):
            self._database.write(f"DELETE FROM {table} WHERE number = ?", [(entry.number,)])
        self._read_again()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Lock the index and save it at the end; without the lock, two processes could give one key to two chunks."""
        busy = f"{self.folder}: another process is changing it now; wait until that process ends"
        with lock_folder(self.folder, busy=busy):
            if self.manifest_sha256 != sha256_of(self.folder / MANIFEST):
                raise BundleError(f"{self.folder}: another process has changed it since it was opened; open it again")
            try:
                yield
                self.save()
            except BaseException:
                self.close()  # unsaved changes must not be read
                self._read_again()
                raise

    def save(self) -> None:
        """Write all files, the manifest last: a folder without a manifest is not an index."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for words in (self.chunks, self.headings, self.names):
            words.save()
        self._database.save()
        self._read_again()
        drop_vectors(self.folder, self.config.store, but=self.config.store.partition(":")[0])
        for layer in self.layers:
            self.store(layer).save(self.keys(layer))
        counts = {"documents": len(self.numbers), "chunks": len(self)}
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "config_hash": self.config.ingest_hash,
            "config": self.config.model_dump(),
            "embedder": self.embedder,
            "dimensions": self.dimensions,
            "counts": counts | {f"{layer} vectors": len(self.store(layer)) for layer in self.layers},
            "sha256": {name: sha256_of(path) for name, path in _list_files(self.folder).items()},
        }
        (self.folder / MANIFEST).write_text(f"{json.dumps(manifest, indent=1)}\n", encoding="utf-8")
        self.manifest_sha256 = sha256_of(self.folder / MANIFEST)

    def close(self) -> None:
        while self._stores:
            self._stores.popitem()[1].close()
        self._database.close()


def list_section_keys(table: Keys) -> Keys:
    """Return, for each chunk in a table, the key of its section."""
    return table[:, DOCUMENT] << SECTION_BITS | np.maximum(table[:, SECTION], 0)


def _make_table(rows: Sequence[tuple[int, int, bytes]]) -> Keys:
    spans = np.frombuffer(b"".join(chunks for _, _, chunks in rows), _SPAN).reshape(-1, 4)
    counts = np.array([len(chunks) // _CHUNK_BYTES for _, _, chunks in rows], np.int64)
    firsts = np.array([first for _, first, _ in rows], np.int64)
    table = np.empty((len(spans), 6), np.int64, order="F")
    table[:, KEY] = np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(len(spans))
    table[:, DOCUMENT] = np.repeat(np.array([number for number, _, _ in rows], np.int64), counts)
    table[:, START:] = spans
    if not (np.diff(table[:, KEY]) > 0).all() or not (np.diff(table[:, DOCUMENT]) >= 0).all():
        raise ValueError("the chunks are not sorted by document and offset")
    return table


def open_index(folder: Path, config: Config | None = None, *, overrides: Mapping[str, Any] | None = None) -> Index:
    """Open an index with `config`, or with its stored settings changed by the user's settings (`overrides`)."""
    if not (folder / MANIFEST).is_file():
        raise BundleError(f"{folder}: no index here (no {MANIFEST}); build one: exhibit index DOCUMENTS --out {folder}")
    with report_damage(folder):  # checksums detect damage, not manipulation: a forged index has valid checksums
        return _open(folder, config, overrides or {})


def _open(folder: Path, config: Config | None, overrides: Mapping[str, Any]) -> Index:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{folder}: not an index of this version ({FORMAT}); build the index again (--ingest fresh)")
    files = _list_files(folder)
    for name in sorted({*manifest["sha256"], *files}):
        if name not in files or sha256_of(files[name]) != manifest["sha256"].get(name):
            raise BundleError(f"{folder}: {name} is missing or damaged; build the index again (--ingest fresh)")
    # compare only the hash of the ingestion settings, so that an index stays usable if another setting is removed
    known = {name: value for name, value in manifest["config"].items() if name in Config.model_fields}
    stored = Config.parse(known, where=str(folder / MANIFEST))
    if config is not None and config.ingest_hash != manifest["config_hash"]:
        settings = ", ".join(name for name, value in config.ingest.items() if value != stored.ingest[name])
        raise BundleError(f"{folder}: built with other settings ({settings}); build the index again (--ingest fresh)")
    config = config or stored.with_overrides(overrides, where=str(folder))
    index = Index(folder, config, embedder=manifest["embedder"], dimensions=manifest["dimensions"])
    index.manifest_sha256 = sha256_of(folder / MANIFEST)
    for layer in index.layers:
        vectors, counted = len(index.store(layer)), manifest["counts"][f"{layer} vectors"]
        if vectors != counted or counted != len(index.keys(layer)):
            raise BundleError(
                f"{folder}: has {vectors} {layer} vectors, but its manifest {counted}; build the index again"
            )
    return index


def _list_files(folder: Path) -> dict[str, Path]:
    """Return the files of an index that get a checksum; raise an error for a link, which could lead to any file."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BundleError(f"{path}: a link or a special file, which an index never contains; build the index again")
        parts = path.relative_to(folder).parts
        if path.is_file() and parts[0] not in (MANIFEST, _STORE) and not path.name.startswith("."):
            files["/".join(parts)] = path
    return files


def drop_vectors(folder: Path, store: str, *, but: str = "") -> None:
    """Delete an index's vectors outside its folder, except those in the store `but`.

    Data on a server is deleted only if the user named that server's address in `store` (`milvus:URI`), because an
    index folder from a stranger could name any server.
    """
    named, _, argument = store.partition(":")
    for name in list_plugins("exhibit.rag.stores"):
        if name != but and (folder / _STORE / f"{name}.json").is_file():
            load_plugin("exhibit.rag.stores", name)[0].drop(folder, argument if name == named else None)


def index_kind(store: str) -> FolderKind:
    """Return the FolderKind of indexes: if an index is replaced, its vectors outside the folder are deleted, too."""
    return FolderKind(
        "an index", lambda folder: (folder / MANIFEST).is_file(), let_go=lambda folder: drop_vectors(folder, store)
    )
