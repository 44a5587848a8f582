"""An index on disk: documents, chunks, and three layers of vectors, under one manifest.

index/
  manifest.json      the settings, the counts, and the checksum of every other file
  index.sqlite       documents with their texts and chunks; with `lexicon` the words of chunks, headings and names
  chunk.faiss …      vectors, in the store's own files
  store/             NAME.json: the address of the vectors, for a store that keeps them elsewhere
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.evidence import Span
from exhibit.rag.config import Config
from exhibit.rag.database import (
    FILE,
    FORMAT,
    MANIFEST,
    Database,
    Entry,
    compute_checksums,
    digest,
    entry_of,
    let_go,
)
from exhibit.rag.lexicon import Lexicon
from exhibit.rag.protocols import SECTION_BITS, Chunk, Keys, Layer, VectorStore, make_section_keys
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas import __version__
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import lock_folder

__all__ = ["MANIFEST", "Entry", "Index"]

_SPANS = np.dtype("<i4")
"""The numbers on disk for a chunk: start, end, page and section, sixteen bytes."""
_EXTENTS: dict[Layer, str] = {
    "document": "count(*), max(number)",
    "section": f"sum(sections), max(CASE WHEN sections THEN (number << {SECTION_BITS}) + sections - 1 END)",
    "chunk": "sum(length(chunks)) / 16, max(first + length(chunks) / 16 - 1)",
}
"""The query for the number of keys of a layer, and for the greatest key."""
_ENTRIES, _TEXTS = 1024, 64
"""The number of documents whose entries, and whose texts, stay in memory: some megabytes each."""


class Index:
    """Documents and chunks with their vectors; `save` makes changes permanent."""

    def __init__(self, folder: Path, config: Config, *, embedder: str, dimensions: int) -> None:
        self.folder = folder
        self.config = config
        self.embedder = embedder
        self.dimensions = dimensions
        self._database = Database(folder / FILE)
        self.document = lru_cache(_ENTRIES)(self._read_entry)
        """A document's entry by its number."""
        self.text_of = lru_cache(_TEXTS)(self._read_text)
        """A document's whole text by its number; a few stay in memory."""
        self._known_table: Keys | None = None
        self._next_key: int | None = None
        self._stores: dict[Layer, VectorStore] = {}
        self._lexicon: Lexicon | None = None
        self._seal = ""
        """The digest of the manifest that was read or written last."""
        self._is_held = False
        self.finished: Path | None = None
        """The final folder of an index that another process is still building."""
        self.missing = 0
        """The number of chunks that have no vector yet, in an index that is being built."""

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon, opened at its first use."""
        if not self.config.lexicon:
            raise BundleError(f"{self.folder}: built without a lexicon; build the index again with --lexicon true")
        if self._lexicon is None:
            self._lexicon = Lexicon(self._database)
        return self._lexicon

    @property
    def table(self) -> Keys:
        """All chunks in the order of their keys: key, document, start, end, page, section.

        Each column is contiguous in memory, so that a search copies neither keys nor documents.
        """
        if self._known_table is None:
            rows = self._database.read("SELECT number, first, chunks FROM documents ORDER BY first")
            with self._database.report_damage():
                self._known_table = _make_table(rows)
        return self._known_table

    # ---------------------------------------------------------------- the content

    @property
    def numbers(self) -> list[int]:
        """The numbers of all documents in the index, in ascending order."""
        return [number for (number,) in self._database.read("SELECT number FROM documents ORDER BY number")]

    @property
    def documents(self) -> list[Entry]:
        """The documents in the order they were added."""
        return list(map(self.document, self.numbers))

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the documents of a kind, as named in their profiles."""
        return [self.document(*row) for row in self._database.read("SELECT number FROM names WHERE kind = ?", kind)]

    @property
    def amendments(self) -> frozenset[int]:
        """The numbers of the documents that amend other documents."""
        return frozenset(number for (number,) in self._database.read("SELECT number FROM names WHERE amends"))

    def __len__(self) -> int:
        return self._measure_extent("chunk")[0] if self._known_table is None else len(self._known_table)

    def __contains__(self, filename: str) -> bool:
        return self._find_number(filename) is not None

    def _find_number(self, filename: str) -> int | None:
        rows = self._database.read("SELECT number FROM documents WHERE filename = ?", filename)
        return rows[0][0] if rows else None

    def entry(self, filename: str) -> Entry:
        """Return the entry of the document with a given file name; raise an error if the index has none."""
        number = self._find_number(filename)
        if number is None:
            raise BundleError(f"{self.folder}: no document {filename!r} in this index")
        return self.document(number)

    def _read_entry(self, number: int) -> Entry:
        rows = self._database.read("SELECT record FROM documents WHERE number = ?", number)
        with self._database.report_damage():
            [[record]] = rows
            return entry_of(json.loads(record))

    def store(self, layer: Layer) -> VectorStore:
        """Return the vector store of a layer, opened at its first use."""
        if layer not in self._stores:
            module, argument = load_plugin("exhibit.rag.stores", self.config.store)
            store: VectorStore = module.open(self.folder, argument, name=layer, dimensions=self.dimensions)
            self._stores[layer] = store
        return self._stores[layer]

    def use(self, stores: dict[Layer, VectorStore]) -> None:
        """Use vector stores that the caller has opened, one for each layer."""
        self._stores = stores

    def chunk(self, key: int) -> Chunk:
        """Return a chunk by its key."""
        row = self.table[np.searchsorted(self.table[:, 0], key)]
        _, number, start, end, page, section = (int(value) for value in row)
        entry = self.document(number)
        path = entry.sections[section][0] if 0 <= section < len(entry.sections) else ""
        return Chunk(entry.filename, Span(start, end), path, page or None)

    def chunk_keys(self, numbers: Iterable[int]) -> Keys:
        """Return the keys of all chunks of some documents, in order."""
        wanted = np.isin(self.table[:, 1], np.fromiter(numbers, dtype=np.int64))
        keys: Keys = self.table[wanted, 0]
        return keys

    def list_chunk_spans(self, filename: str) -> list[Span]:
        """Return the spans of a document's chunks, in order."""
        rows = self.table[self.table[:, 1] == self.entry(filename).number]
        return [Span(start, end) for start, end in rows[:, 2:4].tolist()]

    def find_document_numbers(self, keys: Sequence[int] | Keys) -> Keys:
        """Return the document number of each chunk key."""
        numbers: Keys = self.table[np.searchsorted(self.table[:, 0], np.asarray(keys, dtype=np.int64)), 1]
        return numbers

    def text(self, chunk: Chunk) -> str:
        """Return the text of a chunk as it is in the document, without the summary that was embedded with it."""
        return self.read_document_text(chunk.document)[slice(*chunk.span)]

    def read_document_text(self, filename: str) -> str:
        """Return a document's whole text by its name."""
        return self.text_of(self.entry(filename).number)

    def _read_text(self, number: int) -> str:
        rows = self._database.read("SELECT text FROM texts WHERE number = ?", number)
        with self._database.report_damage():
            [[text]] = rows
            return str(text, "utf-8", "surrogatepass")

    # ---------------------------------------------------------------- changes

    def add(self, entry: Entry, text: str, chunks: Keys) -> Keys:
        """Add a document and its chunks (start, end, page, section); return the new chunks' keys."""
        if entry.filename in self:
            raise BundleError(f"{self.folder}: {entry.filename!r} is in this index already; remove it first")
        first = self._next_key
        if first is None:
            first = int(self.table[-1, 0]) + 1 if len(self) else 0
        keys = np.arange(first, first + len(chunks), dtype=np.int64)
        self._next_key = first + len(chunks)
        record = json.dumps(asdict(replace(entry, sections=tuple(entry.sections)))).encode()
        spans = np.asarray(chunks, _SPANS).tobytes()
        row = (entry.number, entry.filename, first, len(entry.sections), spans, record)
        self._database.write("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", [row])
        self._database.write("INSERT INTO texts VALUES (?, ?)", [(entry.number, text.encode("utf-8", "surrogatepass"))])
        self._forget()
        return keys

    def _forget(self) -> None:
        self._known_table = None
        self.document.cache_clear()
        self.text_of.cache_clear()

    def find_next_number(self) -> int:
        """Return the number that the next document will have."""
        [[last]] = self._database.read("SELECT max(number) FROM documents")
        return 0 if last is None else int(last) + 1

    def remove(self, filename: str) -> None:
        """Remove a document, its chunks and their vectors without rebuilding the index."""
        entry = self.entry(filename)
        keys = self.chunk_keys([entry.number])
        sections = make_section_keys(entry.number, len(entry.sections))
        self.store("chunk").remove(keys)
        if self.config.layers == "all":
            self.store("document").remove([entry.number])
            self.store("section").remove(sections)
        if self.config.lexicon:
            self.lexicon.remove(entry.number, chunks=keys, sections=sections)
        for table in ("documents", "texts"):
            self._database.write(f"DELETE FROM {table} WHERE number = ?", [(entry.number,)])
        self._forget()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Lock the index for this process, and save it at the end of the block.

        Raise an error before any change if another process has locked the index, or has changed it since it was opened:
        in both cases two processes would give the same keys to different chunks.
        """
        if self.finished is not None:
            raise BundleError(f"{self.finished}: still being built; wait until it is complete, then change it")
        with self._hold_lock():
            if self._seal != digest(self.folder / MANIFEST):
                raise BundleError(f"{self.folder}: another process has changed it since it was opened; open it again")
            try:
                yield
                self.save()
            except BaseException:
                self.close()  # unsaved changes must not be read
                self._forget()
                raise

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Lock the index's folder for the block; do nothing if this process already holds the lock."""
        if self._is_held:
            yield
            return
        with lock_folder(
            self.folder, busy=f"{self.folder}: another process is changing it now; wait until that process ends"
        ):
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def save(self) -> None:
        """Write all files, the manifest last: a folder without a manifest is no index."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        self.save_words()
        let_go(self.folder, self.config.store, but=self.config.store.partition(":")[0])
        for layer in self.layers:
            self.settle(layer)
            self.store(layer).save()
        vectors = {layer: len(self.store(layer)) for layer in self.layers}
        text = json.dumps(self.manifest(vectors), indent=1, ensure_ascii=False) + "\n"
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")
        self.seal()

    def seal(self) -> None:
        """Keep the digest of the manifest, so that `change` detects a change by another process."""
        self._seal = digest(self.folder / MANIFEST)

    def save_words(self) -> None:
        """Write the word counts and the document database of the index, but not its vectors or its manifest."""
        if self._lexicon is not None:
            self._lexicon.save()
        self._database.save()
        self._lexicon = None  # its cache belongs to the previous file

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        while self._stores:
            self._stores.popitem()[1].close()
        self._lexicon = None
        self._database.close()

    def keys(self, layer: Layer) -> Keys:
        """Return the keys that a layer's vectors should have according to the database, in ascending order."""
        if layer == "chunk":
            return self.table[:, 0]
        if layer == "document":
            return np.array(self.numbers, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        rows = self._database.read("SELECT number, sections FROM documents ORDER BY number")
        return np.concatenate([none, *(make_section_keys(number, sections) for number, sections in rows)])

    def settle(self, layer: Layer) -> None:
        """Remove a layer's vectors that belong to no document, and hide vectors that another process is adding.

        An interrupted run may leave vectors without a document in a remote store.
        """
        store = self.store(layer)
        count, last = self._measure_extent(layer)
        if len(store) > count:
            with self._hold_lock():  # without the lock, these may be rows of a run in progress
                store.keep(self.keys(layer))
        store.fence(last)

    def _measure_extent(self, layer: Layer) -> tuple[int, int]:
        """Return the number of a layer's keys and the greatest key (-1 without keys), without loading the keys."""
        [[count, last]] = self._database.read(f"SELECT {_EXTENTS[layer]} FROM documents")
        return count or 0, -1 if last is None else last

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of this index that have vectors.

        They are `document`, `section` and `chunk` with the setting `layers = all`, otherwise only `chunk`.
        """
        return ("document", "section", "chunk") if self.config.layers == "all" else ("chunk",)

    def manifest(self, vectors: dict[Layer, int]) -> dict[str, Any]:
        """Return the content of the manifest, with the number of vectors in each layer."""
        return {
            "format": FORMAT,
            "version": __version__,
            "config_hash": self.config.ingest_hash,
            "config": self.config.model_dump(),
            "embedder": self.embedder,
            "dimensions": self.dimensions,
            "counts": {"documents": self._measure_extent("document")[0], "chunks": self._measure_extent("chunk")[0]}
            | {f"{layer} vectors": count for layer, count in vectors.items()},
            "sha256": compute_checksums(self.folder),
        }


def _make_table(rows: Sequence[tuple[int, int, bytes]]) -> Keys:
    """Return a table with one row for each chunk of all documents.

    Each item of `rows` is a document: its number, the key of its first chunk, and the packed spans of its
    chunks. The columns of the table are key, document number, start, end, page and section.
    """
    spans = np.frombuffer(b"".join(chunks for _, _, chunks in rows), _SPANS).reshape(-1, 4)
    counts = np.array([len(chunks) // 16 for _, _, chunks in rows], np.int64)
    firsts = np.array([first for _, first, _ in rows], np.int64)
    table = np.empty((len(spans), 6), np.int64, order="F")
    table[:, 0] = np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(len(spans))
    table[:, 1] = np.repeat(np.array([number for number, _, _ in rows], np.int64), counts)
    table[:, 2:] = spans
    if not (np.diff(table[:, 0]) > 0).all() or not (np.diff(table[:, 1]) >= 0).all():
        raise ValueError("the chunks are not sorted by document and offset")
    return table
