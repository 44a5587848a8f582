"""FAISS in this process: a flat index with keys, whose search compares every vector and is exact."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import find_rows, rank_keys
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.storage.atomic import replace_file

LOCAL = True
# a search of at most this many queries uses one thread: a question is one query, its top chunks are three
_MAX_QUERIES = 4


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> "FaissStore":
    if argument not in (None, "flat"):
        raise ToolkitError(f"--store faiss:{argument}: the store faiss takes no argument; use --store faiss")
    return FaissStore(folder / f"{name}.faiss", dimensions)


class FaissStore:
    """The vectors of one layer of an index (documents, sections or chunks); each new key exceeds all earlier keys."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path, self.dimensions = path, dimensions
        empty: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))
        self._index = _load(path, dimensions) if path.is_file() else empty

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def _keys(self) -> Keys:
        """The key of each row, ascending: a view of the index's memory."""
        if not len(self):
            return np.zeros(0, np.int64)
        keys: Keys = faiss.rev_swig_ptr(self._index.id_map.data(), len(self))
        return keys

    def _rows(self) -> Vectors:
        """Return all vectors as a view of the index's memory, which the next change invalidates."""
        core: Any = faiss.downcast_index(self._index.index)
        rows: Vectors = faiss.rev_swig_ptr(core.get_xb(), len(self) * self.dimensions)
        return rows.reshape(len(self), self.dimensions)

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        if len(keys):
            self._index.add_with_ids(np.ascontiguousarray(vectors, np.float32), np.asarray(keys, np.int64))

    def remove(self, keys: Sequence[int] | Keys) -> None:
        self._index.remove_ids(faiss.IDSelectorBatch(np.asarray(keys, np.int64)))

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        queries = np.ascontiguousarray(queries, np.float32)
        if within is None and len(queries) > _MAX_QUERIES and len(self):
            scores, keys = self._index.search(queries, min(k, len(self)))
            return rank_keys(scores, keys, k)
        keys, rows = self._find(self._keys if within is None else np.unique(np.asarray(within, np.int64)))
        # for a few queries, starting several threads takes longer than the work
        few = len(queries) <= _MAX_QUERIES
        cosines: Vectors = np.einsum("ij,kj->ik", queries, rows) if few else queries @ rows.T
        if len(keys) > 2 * k and len(queries) == 1:  # select the best rows first: sorting all keys is slow
            best = cosines[0] >= np.partition(cosines[0], -k)[-k]
            keys, cosines = keys[best], cosines[:, best]
        return rank_keys(cosines, np.broadcast_to(keys, cosines.shape), k)

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        return np.array(self._find(np.asarray(keys, np.int64))[1])

    def _find(self, wanted: Keys) -> tuple[Keys, Vectors]:
        """Return the keys of `wanted` that this store has, and their rows (as a view if they are adjacent)."""
        rows, matched = find_rows(self._keys, wanted)
        rows = rows[matched]
        if not len(rows):
            return wanted[:0], np.zeros((0, self.dimensions), np.float32)
        if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return wanted[matched], self._rows()[rows[0] : rows[-1] + 1]
        return wanted[matched], np.take(self._rows(), rows, axis=0)

    def save(self, keys: Keys) -> None:
        """Write the index atomically, with only the rows of these keys."""
        self.remove(np.setdiff1d(self._keys, keys))
        with replace_file(self.path) as partial:
            faiss.write_index(self._index, str(partial))

    def close(self) -> None:
        """Do nothing: no file stays open."""


def _load(path: Path, dimensions: int) -> Any:
    try:
        index: Any = faiss.read_index(str(path))
        kinds = [type(kind).__name__ for kind in (index, faiss.downcast_index(getattr(index, "index", index)))]
        if kinds != ["IndexIDMap2", "IndexFlatIP"] or index.d != dimensions:
            raise RuntimeError(f"not a flat index of vectors of {dimensions} numbers")
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise BundleError(f"{path}: the file is damaged ({reason}); build the index again (--ingest fresh)") from error
    return index
