"""FAISS, exact inner product: every vector is compared, so what is nearest is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from rag.seams import Keys, Vectors
from schemas.errors import BundleError

_FEW = 4096
"""Up to so many keys a filtered search compares just those rows by hand; more go through FAISS with a selector."""


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> Store:
    """Open a layer's vectors in a folder, or begin with none."""
    path = folder / f"{name}.faiss"
    if argument:
        raise BundleError(f"--store faiss takes no argument, not {argument!r}")
    return Store(path, dimensions)


class Store:
    """One layer's vectors under integer keys."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path = path
        self.dimensions = dimensions
        self._index = _load(path, dimensions) if path.is_file() else _empty(dimensions)
        self._order: tuple[Keys, Keys] | None = None

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add rows; they must be finite and of this store's width."""
        if not len(keys):
            return
        if vectors.shape != (len(keys), self.dimensions):
            raise BundleError(f"{self.path}: {vectors.shape} vectors for {len(keys)} keys of {self.dimensions} numbers")
        if not np.isfinite(vectors).all():
            raise BundleError(f"{self.path}: a vector is not finite; the embedder is broken")
        self._index.add_with_ids(np.ascontiguousarray(vectors, dtype=np.float32), np.asarray(keys, dtype=np.int64))
        self._order = None

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; keys that are not there are no error."""
        if len(keys):
            self._index.remove_ids(faiss.IDSelectorBatch(np.asarray(keys, dtype=np.int64)))
            self._order = None

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the k nearest rows of each query, best first; -1 where there are fewer."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if within is None:
            return self._padded(queries, k, None)
        wanted = np.asarray(within, dtype=np.int64)
        if len(wanted) <= _FEW:
            return self._among(queries, k, wanted)
        parameters = faiss.SearchParameters()
        selector = faiss.IDSelectorBatch(wanted)  # named, so that it lives as long as the search
        parameters.sel = selector
        return self._padded(queries, k, parameters)

    def save(self) -> None:
        """Write the rows to disk, by rename."""
        partial = self.path.with_name(self.path.name + ".partial")
        faiss.write_index(self._index, str(partial))
        partial.replace(self.path)

    def _padded(self, queries: Vectors, k: int, parameters: faiss.SearchParameters | None) -> tuple[Vectors, Keys]:
        depth = min(k, len(self))
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        keys = np.full((len(queries), k), -1, dtype=np.int64)
        if depth and len(queries):
            scores[:, :depth], keys[:, :depth] = self._index.search(queries, depth, params=parameters)
        return scores, keys

    def _rows_of(self, wanted: Keys) -> tuple[Keys, Keys]:
        """Return those of the keys that are here, in order, and their rows."""
        if not len(self):
            return wanted[:0], wanted[:0]
        if self._order is None:
            keys = faiss.vector_to_array(self._index.id_map)
            rows = np.argsort(keys, kind="stable")
            self._order = keys[rows], rows
        keys, rows = self._order
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = keys[places] == wanted
        return wanted[here], rows[places[here]]

    def _among(self, queries: Vectors, k: int, wanted: Keys) -> tuple[Vectors, Keys]:
        """Compare a few rows by hand: faster than a selector, which walks over all of them."""
        present, rows = self._rows_of(wanted)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        keys = np.full((len(queries), k), -1, dtype=np.int64)
        if not len(present):
            return scores, keys
        flat: Any = faiss.downcast_index(self._index.index)
        matrix = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * self.dimensions).reshape(-1, self.dimensions)
        found = queries @ matrix[rows].T
        # stable: rows that are equally near come in the order of their keys, as in an unfiltered search
        order = np.argsort(-found, axis=1, kind="stable")[:, :k]
        depth = order.shape[1]
        scores[:, :depth] = np.take_along_axis(found, order, axis=1)
        keys[:, :depth] = present[order]
        return scores, keys


def _empty(dimensions: int) -> faiss.IndexIDMap2:
    return faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))


def _load(path: Path, dimensions: int) -> faiss.IndexIDMap2:
    try:
        index: Any = faiss.read_index(str(path))
    except RuntimeError as error:
        raise BundleError(f"{path}: damaged; delete the index and build it again") from error
    if index.d != dimensions:
        raise BundleError(f"{path}: made for {index.d} numbers a vector, not {dimensions}; build the index again")
    return index  # type: ignore[no-any-return]
