"""An index on disk: documents, chunks, and three layers of vectors, under one manifest.

index/
  manifest.json      what it was made with, and how much is in it
  documents.jsonl    one document a line: profile, summary, sections
  chunks.npz         one row a chunk: key, document, span, page, section
  texts/             each document's text, so that an index can be searched without its corpus
  chunk.faiss …      vectors, by the store's own files
  words.npz …        with `lexicon`: the words of chunks, of headings, and those that name documents
  store/             NAME.json: where a store has them that keeps them elsewhere
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.evidence import Span
from exhibit.rag.columns import opened_archive
from exhibit.rag.config import Config
from exhibit.rag.index_files import (
    FORMAT,
    MANIFEST,
    Entry,
    check_files,
    checksums,
    digest,
    let_go,
    read_entries,
    read_manifest,
    read_text,
    text_path,
)
from exhibit.rag.lexicon import Lexicon
from exhibit.rag.packed import Names
from exhibit.rag.protocols import Chunk, Keys, Layer, VectorStore, section_key, section_keys
from exhibit.rag.shelf import Chunks, Entries
from exhibit.schemas import __version__
from exhibit.schemas.errors import BundleError
from exhibit.schemas.plugins import load_plugin
from exhibit.storage.place import locked

__all__ = ["MANIFEST", "Entry", "Index", "open_index"]


class Index:
    """Documents and chunks with their vectors; changes are in memory until `save`."""

    def __init__(self, folder: Path, config: Config, *, embedder: str, dimensions: int) -> None:
        self.folder = folder
        self.config = config
        self.embedder = embedder
        self.dimensions = dimensions
        self.entries = Entries(folder)
        self._numbers = Names(self.entries.filename)
        self._next = 0
        self._next_key = 0
        self._chunks = Chunks(folder)
        self._stores: dict[Layer, VectorStore] = {}
        self._lexicon: Lexicon | None = None
        self._seal = ""
        """The digest of the manifest that was read or written last."""
        self._is_held = False
        self._has_saved_words = False
        self.finished: Path | None = None
        """Where it will be when it is whole, while another process is still building it."""
        self.missing = 0
        """How many chunks have no vector yet then."""

    @property
    def lexicon(self) -> Lexicon:
        """The words, opened when first asked for."""
        if not self.config.lexicon:
            raise BundleError(f"{self.folder}: made without words; build the index again with --lexicon true")
        if self._lexicon is None:
            self._lexicon = Lexicon(self.folder)
        return self._lexicon

    @property
    def table(self) -> Keys:
        """All chunks in the order of their keys: key, document, start, end, page, section."""
        return self._table

    @property
    def _table(self) -> Keys:
        return self._chunks.table

    # ---------------------------------------------------------------- what is in it

    @property
    def documents(self) -> list[Entry]:
        """The documents in the order they were added."""
        return [self.entries[number] for number in self.entries]

    def __len__(self) -> int:
        return len(self._chunks)

    def __contains__(self, filename: str) -> bool:
        return filename in self._numbers

    def entry(self, filename: str) -> Entry:
        """Return a document's entry."""
        number = self._numbers.get(filename)
        if number is None:
            raise BundleError(f"{self.folder}: no document {filename!r} in this index")
        return self.entries[number]

    def store(self, layer: Layer) -> VectorStore:
        """Return a layer's vectors, opened when first asked for."""
        if layer not in self._stores:
            module, argument = load_plugin("exhibit.rag.stores", self.config.store)
            store: VectorStore = module.open(self.folder, argument, name=layer, dimensions=self.dimensions)
            self._stores[layer] = store
        return self._stores[layer]

    def use(self, stores: dict[Layer, VectorStore]) -> None:
        """Take the layers' vectors from stores that were opened elsewhere, and open the words: the folder may move."""
        self._stores = stores
        if self.config.lexicon:
            self._lexicon = Lexicon(self.folder)

    def chunk(self, key: int) -> Chunk:
        """Return a chunk by its key."""
        row = self._table[np.searchsorted(self._table[:, 0], key)]
        _, number, start, end, page, section = (int(value) for value in row)
        entry = self.entries[number]
        path = entry.sections[section][0] if 0 <= section < len(entry.sections) else ""
        return Chunk(entry.filename, Span(start, end), path, page or None)

    def chunk_keys(self, numbers: Iterable[int]) -> Keys:
        """Return the keys of all chunks of some documents, in order."""
        wanted = np.isin(self._table[:, 1], np.fromiter(numbers, dtype=np.int64))
        keys: Keys = self._table[wanted, 0]
        return keys

    def document_numbers(self, keys: Sequence[int] | Keys) -> Keys:
        """Return the document number of each chunk key."""
        numbers: Keys = self._table[np.searchsorted(self._table[:, 0], np.asarray(keys, dtype=np.int64)), 1]
        return numbers

    def text(self, chunk: Chunk) -> str:
        """Return a chunk's words, and nothing in front of them."""
        return self.document_text(chunk.document)[slice(*chunk.span)]

    def document_text(self, filename: str) -> str:
        """Return a document's whole text."""
        number = self._numbers[filename]
        try:
            return read_text(text_path(self.folder, number))
        except FileNotFoundError:
            if self.finished is None:
                raise
            return read_text(text_path(self.finished, number))  # it has become whole since it was opened

    # ---------------------------------------------------------------- changing it

    def add(self, entry: Entry, text: str, chunks: Keys) -> Keys:
        """Add a document and its chunks (start, end, page, section); return the new chunks' keys."""
        if entry.filename in self._numbers:
            raise BundleError(f"{self.folder}: {entry.filename!r} is in this index already; remove it first")
        self._has_saved_words = False
        place = text_path(self.folder, entry.number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogatepass"))
        keys = np.arange(self._next_key, self._next_key + len(chunks), dtype=np.int64)
        self._next_key += len(chunks)
        self._chunks.add(np.column_stack([keys, np.full_like(keys, entry.number), chunks]))
        self.entries.put_aside(entry)
        self._numbers.add(entry.filename, entry.number)
        self._next = max(self._next, entry.number + 1)
        return keys

    def _register(self, entry: Entry) -> None:
        self.entries[entry.number] = entry
        self._numbers.hold(entry.filename, entry.number)
        self._next = max(self._next, entry.number + 1)

    def next_number(self) -> int:
        """Return the number that the next document will have."""
        return self._next

    def remove(self, filename: str) -> None:
        """Remove a document, its chunks and their vectors, without building anything anew."""
        self._has_saved_words = False
        entry = self.entry(filename)
        keys = self.chunk_keys([entry.number])
        sections = section_keys(entry.number, len(entry.sections))
        self.store("chunk").remove(keys)
        if self.config.layers == "all":
            self.store("document").remove([entry.number])
            self.store("section").remove(sections)
        if self.config.lexicon:
            self.lexicon.remove(entry.number, chunks=keys, sections=sections)
        self._chunks.table = self._table[self._table[:, 1] != entry.number]
        del self._numbers[filename], self.entries[entry.number]  # a name may be looked up in the entry
        text_path(self.folder, entry.number).unlink(missing_ok=True)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the index for one process, and save it at the end of the block.

        Raise before anything is changed when another process has it, or changed it since it was opened: both would
        give the same keys to different chunks.
        """
        if self.finished is not None:
            raise BundleError(f"{self.finished}: still being built; it can be changed when it is whole")
        with self._held():
            if self._seal != digest(self.folder / MANIFEST):
                raise BundleError(f"{self.folder}: changed by another process since it was opened; open it again")
            yield
            self.save()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the folder; a block within another has it already."""
        if self._is_held:
            yield
            return
        with locked(self.folder, busy=f"{self.folder}: another process is changing it now; wait for it to end"):
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def save(self) -> None:
        """Write everything; the manifest last, so that an index without one is no index."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MANIFEST).unlink(missing_ok=True)
        self.save_words()
        let_go(self.folder, self.config.store, but=self.config.store.partition(":")[0])
        for layer in self.layers:
            self._settle(layer)
            self.store(layer).save()
        vectors = {layer: len(self.store(layer)) for layer in self.layers}
        text = json.dumps(self.manifest(vectors), indent=1, ensure_ascii=False) + "\n"
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")
        self._seal = digest(self.folder / MANIFEST)

    def save_words(self) -> None:
        """Write all but the vectors and the manifest; what was written already is not written again."""
        if self._has_saved_words:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.entries.write(self.folder)
        self._chunks.write(self.folder / "chunks.npz")
        if self.config.lexicon:
            self.lexicon.save()
            self._lexicon = (
                None  # it is opened again when it is asked for: what sorted it is not needed beside the file
            )
        self._has_saved_words = True

    def close(self) -> None:
        """Let go of the files and connections of the stores; they are opened again when next asked for."""
        while self._stores:
            self._stores.popitem()[1].close()

    def keys(self, layer: Layer) -> Keys:
        """Return the keys that a layer has vectors under."""
        if layer == "chunk":
            return self._table[:, 0]
        if layer == "document":
            return np.array(sorted(self.entries), dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        each = (section_keys(number, len(self.entries[number].sections)) for number in self.entries)
        return np.concatenate([none, *each])

    def _settle(self, layer: Layer) -> None:
        """Remove rows that no document has: a store that keeps them elsewhere has those of runs that were stopped."""
        store = self.store(layer)
        count, last = self._extent(layer)
        if len(store) > count:
            with self._held():  # or they are those of a run that goes on
                store.keep(self.keys(layer))
        store.fence(last)

    def _extent(self, layer: Layer) -> tuple[int, int]:
        """Return how many keys a layer has, and the greatest, -1 where there is none: keys are many, and on disk."""
        if layer == "chunk":
            return len(self), self._chunks.last
        if layer == "document":
            return len(self.entries), max(self.entries, default=-1)
        count, last = 0, -1
        for number, entry in self.entries.items():  # one at a time
            if sections := len(entry.sections):
                count, last = count + sections, section_key(number, sections - 1)
        return count, last

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that have vectors."""
        return ("document", "section", "chunk") if self.config.layers == "all" else ("chunk",)

    def manifest(self, vectors: dict[Layer, int]) -> dict[str, Any]:
        """Return what it says of itself, with so many vectors in each layer."""
        return {
            "format": FORMAT,
            "version": __version__,
            "config_hash": self.config.ingest_hash,
            "config": self.config.model_dump(),
            "embedder": self.embedder,
            "dimensions": self.dimensions,
            "counts": {"documents": len(self.entries), "chunks": len(self)}
            | {f"{layer} vectors": count for layer, count in vectors.items()},
            "sha256": checksums(self.folder),
        }


def open_index(
    folder: Path, config: Config | None = None, *, own: Mapping[str, Any] | None = None, seal: str = ""
) -> Index:
    """Open an index; one that is damaged, or made with other settings, is refused with what to do.

    Without a config its own settings count, with those of the user (`own`) in their place. `seal` is the digest of a
    manifest whose files were checked before, by the process that this one works for.
    """
    try:
        return _open(folder, config, own or {}, seal)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        # checksums tell of damage; whoever writes an index by hand writes checksums, too
        raise BundleError(f"{folder}: damaged ({error}); build the index again (--force-ingestion)") from error


def _open(folder: Path, config: Config | None, own: Mapping[str, Any], seal: str) -> Index:
    manifest = read_manifest(folder)
    current = digest(folder / MANIFEST)
    if seal != current:
        check_files(folder, manifest["sha256"], is_whole=True)
    index = load_index(folder, manifest, config, own)
    index._seal = current
    for layer in index.layers:
        index._settle(layer)
        held, told = len(index.store(layer)), manifest["counts"][f"{layer} vectors"]
        if held != told:
            raise BundleError(f"{folder}: {held} {layer} vectors, the manifest says {told}; build the index again")
    return index


def load_index(folder: Path, manifest: dict[str, Any], config: Config | None, own: Mapping[str, Any]) -> Index:
    """Return all of an index but its vectors, once it is seen to be made with the settings that are wanted."""
    # a setting that is gone since does not make an index useless: how it was ingested is what the hash compares
    known = {name: value for name, value in manifest["config"].items() if name in Config.model_fields}
    made_with = Config.parse(known, where=str(folder / MANIFEST))
    if config is not None and config.ingest_hash != manifest["config_hash"]:
        settings = ", ".join(name for name, value in config.ingest.items() if value != made_with.ingest[name])
        raise BundleError(f"{folder}: made with other settings ({settings}); build it again (--force-ingestion)")
    config = config or made_with.with_own(own, where=str(folder))
    index = Index(folder, config, embedder=manifest["embedder"], dimensions=manifest["dimensions"])
    for entry in read_entries(folder):
        index._register(entry)
    with opened_archive(folder / "chunks.npz") as stored:
        table = np.asfortranarray(stored["table"])
        if table.dtype != np.int64 or table.ndim != 2:
            raise ValueError("chunks that are no table")
        # a document's chunks stand together: where the number changes is enough to look at
        owners = table[np.flatnonzero(np.diff(table[:, 1], prepend=-1)), 1]
        if not index.entries.keys() >= set(owners.tolist()) or (len(table) and table[0, 1] < 0):
            raise ValueError("chunks of no document")
        index._chunks.table = table
    index._next_key = int(index._table[-1, 0]) + 1 if len(index) else 0
    return index
