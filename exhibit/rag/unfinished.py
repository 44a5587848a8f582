"""An index that is asked while it is still being built: its words are there from the start, its vectors as they come.

Whoever builds one writes its words, then a record of how far its vectors are, after each batch. Whoever asks reads that
record, and looks at no row beyond it. When the last vector is there the record goes, and the folder becomes the index.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.rag.config import Config
from exhibit.rag.database import MANIFEST, RECORD, check_files, parse_manifest
from exhibit.rag.index import Index, load_index, open_index
from exhibit.rag.protocols import Keys, Layer, VectorStore
from exhibit.rag.stores.faiss import FaissStore
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError
from exhibit.storage.place import unfinished_folder, write_whole


class Building:
    """The record of an index that this process builds."""

    def __init__(self, index: Index) -> None:
        """Write the words of an index to which all documents were added, and a record that it has no vectors yet."""
        index.save_words()
        self._path = index.folder / RECORD
        self._record = index.manifest(dict.fromkeys(index.layers, 0))
        self._write()

    def tell(self, layer: Layer, count: int) -> None:
        """Record how many vectors of a layer are there: those of its first keys."""
        self._record["counts"][f"{layer} vectors"] = count
        self._write()

    def _write(self) -> None:
        write_whole(self._path, json.dumps(self._record))


def open_for_questions(folder: Path, config: Config | None = None, *, own: Mapping[str, Any] | None = None) -> Index:
    """Open an index, or as much as there is of one that is being built; `missing` tells how many vectors it lacks."""
    unfinished = unfinished_folder(folder)
    if unfinished is None or (folder / MANIFEST).is_file() or not (unfinished / RECORD).is_file():
        return open_index(folder, config, own=own)
    try:
        return _open(unfinished, folder, config, own or {})
    except (BundleError, OSError, LookupError, TypeError, ValueError, AttributeError):
        if (folder / MANIFEST).is_file():  # it was finished while it was opened
            return open_index(folder, config, own=own)
        raise


def _open(unfinished: Path, folder: Path, config: Config | None, own: Mapping[str, Any]) -> Index:
    record = parse_manifest(unfinished / RECORD)
    check_files(unfinished, record["sha256"], is_whole=False)
    index = load_index(unfinished, record, config, own)
    index.finished = folder
    counts = {layer: int(record["counts"][f"{layer} vectors"]) for layer in index.layers}
    index.use({layer: _peek(index, layer, index.keys(layer)[:count]) for layer, count in counts.items()})
    # a server may hold rows of a run that was stopped, beyond those that are there of this one
    index.missing = len(index) - min(counts["chunk"], len(index.store("chunk")))
    return index


def _peek(index: Index, layer: Layer, keys: Keys) -> VectorStore:
    """Return the vectors that another process has written under some keys; none where the store cannot be shared."""
    module, argument = load_plugin("exhibit.rag.stores", index.config.store)
    peek: Any = getattr(module, "peek", None)
    if peek is not None and len(keys):
        store: VectorStore | None = peek(index.folder, argument, name=layer, dimensions=index.dimensions, keys=keys)
        if store is not None:
            return store
    return FaissStore.holding(keys[:0], np.zeros((0, index.dimensions), np.float32))
