"""An index that can be searched while it is being built: all words first, then the vectors that are ready.

The builder writes the words first, and after each batch of vectors it records how many are written. A
searching process reads this record and uses only the vectors that the record counts. After the last vector
the record is deleted, and the folder becomes the index.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.rag.config import Config
from exhibit.rag.database import MANIFEST, RECORD, check_files, parse_manifest
from exhibit.rag.index import Index
from exhibit.rag.protocols import Keys, Layer, VectorStore
from exhibit.rag.saved_index import load_index, open_index
from exhibit.rag.stores.faiss import FaissStore
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import find_unfinished_folder, write_whole


class Building:
    """The progress record of an index that this process is building."""

    def __init__(self, index: Index) -> None:
        """Save the words of all documents of an index, and write a progress record with 0 finished vectors.

        All documents must already be in the index. Their vectors are added afterwards.
        """
        index.save_words()
        self._path = index.folder / RECORD
        self._record = index.manifest(dict.fromkeys(index.layers, 0))
        self._write()

    def tell(self, layer: Layer, count: int) -> None:
        """Record that the first `count` vectors of a layer are written, in the order of the layer's keys."""
        self._record["counts"][f"{layer} vectors"] = count
        self._write()

    def _write(self) -> None:
        write_whole(self._path, json.dumps(self._record))


def open_for_questions(folder: Path, config: Config | None = None, *, own: Mapping[str, Any] | None = None) -> Index:
    """Open an index, or the finished part of one that is being built.

    The attribute `missing` of the result is the number of chunks that have no vector yet.
    """
    unfinished = find_unfinished_folder(folder)
    if unfinished is None or (folder / MANIFEST).is_file() or not (unfinished / RECORD).is_file():
        return open_index(folder, config, own=own)
    try:
        return _open(unfinished, folder, config, own or {})
    except (BundleError, OSError, LookupError, TypeError, ValueError, AttributeError):
        if (folder / MANIFEST).is_file():  # the builder finished meanwhile
            return open_index(folder, config, own=own)
        raise


def _open(unfinished: Path, folder: Path, config: Config | None, own: Mapping[str, Any]) -> Index:
    record = parse_manifest(unfinished / RECORD)
    check_files(unfinished, record["sha256"], is_whole=False)
    index = load_index(unfinished, record, config, own)
    index.finished = folder
    counts = {layer: int(record["counts"][f"{layer} vectors"]) for layer in index.layers}
    index.use({layer: _peek(index, layer, index.keys(layer)[:count]) for layer, count in counts.items()})
    # a server may have rows of an interrupted run with greater keys
    index.missing = len(index) - min(counts["chunk"], len(index.store("chunk")))
    return index


def _peek(index: Index, layer: Layer, keys: Keys) -> VectorStore:
    """Return a vector store for reading while another process is still adding vectors to the index.

    The store has the vectors of one layer that are already written; `keys` are their keys. It is empty if the
    store's plug-in does not allow a second process to read.
    """
    module, argument = load_plugin("exhibit.rag.stores", index.config.store)
    peek: Any = getattr(module, "peek", None)
    if peek is not None and len(keys):
        store: VectorStore | None = peek(index.folder, argument, name=layer, dimensions=index.dimensions, keys=keys)
        if store is not None:
            return store
    return FaissStore.of_rows(keys[:0], np.zeros((0, index.dimensions), np.float32))
