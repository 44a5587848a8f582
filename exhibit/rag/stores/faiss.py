"""FAISS in this process. The store `faiss` compares every vector, so its results are exact.

For larger collections, `faiss:pq[,refine=N]` first compares compressed vectors (product quantisation) and
then the full vectors of the nearest rows. `faiss:fp16` takes half the memory of `faiss`. Both are built
when the index is saved; docs/stores.md has the cost of each.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag import index_kinds as kinds
from exhibit.rag.index_kinds import RawVectors, name_rows_file
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import check_rows, make_empty_hits, rank_keys
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import replace_file

_FEW = 16384
"""The most keys for which a filtered search compares the rows directly; for more keys FAISS uses a selector."""
_FEW_QUERIES = 4
"""The most queries that are compared without threads: a question is one query, and its top chunks are three queries."""
_LARGE = 64 << 20
"""The size in bytes from which a file is mapped into memory: it opens at once, and processes share its pages."""


LOCAL = True


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> "FaissStore":
    """Open the store of a layer's vectors in a folder; a new store is empty."""
    return FaissStore(folder / f"{name}.faiss", dimensions, kinds.IndexType.parse(argument))


def peek(folder: Path, argument: str | None, *, name: str, dimensions: int, keys: Keys) -> "FaissStore":
    """Open a layer of vectors (such as those of all chunks) while another process is still writing the index.

    `keys` are the keys of the vectors that are already written.
    """
    path = folder / f"{name}.faiss"
    if path.is_file():  # the other process has finished
        return FaissStore(path, dimensions, kinds.IndexType.parse(argument))
    return FaissStore.of_rows(keys, np.memmap(name_rows_file(path), "<f4", "r", shape=(len(keys), dimensions)))


class FaissStore:
    """The vectors of one layer of an index (documents, sections or chunks), under integer keys from 0."""

    def __init__(self, path: Path, dimensions: int, kind: kinds.IndexType | None = None) -> None:
        self.path = path
        self.dimensions = dimensions
        self._kind = kind or kinds.IndexType()
        self._mapped = False
        self._gone = 0
        self._order: tuple[Keys, Keys, bool] | None = None
        """The keys in order, their rows, and whether each key equals its row, as it does if no row was removed."""
        self._opened: faiss.IndexIDMap2 | None = None
        self._written: int | None = None
        """The number of rows of the file that was written from the additions, until the file is opened."""
        self._rows: RawVectors | None = None
        """The additions before there is an index; a save or a search turns them into one."""
        if path.is_file():
            self._opened = self._open()
        else:
            self._rows = RawVectors(name_rows_file(path), dimensions)

    @classmethod
    def of_rows(cls, keys: Keys, vectors: Vectors) -> "FaissStore":
        """Return a store of rows in memory, without a file."""
        store = cls(Path("memory"), vectors.shape[1])
        store._opened, store._rows = kinds.build(kinds.IndexType(), keys, vectors), None
        return store

    @property
    def _index(self) -> faiss.IndexIDMap2:
        if self._rows is not None:
            self._opened = self._rows.index()
            self._rows.remove()
            self._rows = None
        elif self._opened is None:
            self._opened = self._open()
        return self._opened

    @_index.setter
    def _index(self, index: faiss.IndexIDMap2) -> None:
        self._opened = index

    def _open(self) -> faiss.IndexIDMap2:
        self._mapped, self._written = self.path.stat().st_size >= _LARGE, None
        index = _load(self.path, self.dimensions, mapped=self._mapped)
        self._gone = int(np.sum(kinds.keys_of(index) == kinds.GONE))
        return index

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        return int(self._index.ntotal) - self._gone if self._written is None else self._written

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add rows; raise BundleError if a vector has a wrong number of dimensions, or a number that is not finite."""
        if not len(keys):
            return
        keys = np.asarray(keys, dtype=np.int64)
        if fault := check_rows(str(self.path), keys, vectors, self.dimensions):
            raise BundleError(fault)
        if self._rows is not None:
            self._rows.add(keys, vectors)
            return
        self._load_rows()
        kinds.add(self._index, keys, vectors)
        self._order = None

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; unknown keys are no error."""
        if not len(keys):
            return
        self._load_rows()
        if kinds.name_of(self._index) in ("flat", "fp16"):
            self._index.remove_ids(faiss.IDSelectorBatch(np.asarray(keys, dtype=np.int64)))
        else:
            here = kinds.keys_of(self._index)
            here[np.isin(here, keys)] = kinds.GONE
            self._gone = int(np.sum(here == kinds.GONE))
        self._order = None

    def keep(self, keys: Keys) -> None:
        """Remove every row whose key is not in `keys`."""
        here = kinds.keys_of(self._index) if self._rows is None else self._rows.keys
        self.remove(np.setdiff1d(here, keys))

    def fence(self, last: int) -> None:
        """Do nothing: additions of another process become visible only when the file is opened again."""

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the scores and keys of the k nearest rows of each query, best first; missing rows have the key -1."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        kind = kinds.name_of(self._index)
        if within is None and kind in ("flat", "fp16") and len(queries) == 1 and len(self):
            return rank_keys(*kinds.search_parts(self._index, queries, min(k, len(self))), k)
        if within is None and kind == "pq" and self._gone:
            within = kinds.keys_of(self._index)
        if within is None:
            return self._search_index(queries, k, None)
        wanted = np.asarray(within, dtype=np.int64)
        if not (np.diff(wanted) > 0).all():  # keys usually increase, and a check is faster than sorting
            wanted = np.unique(wanted)
        if len(wanted) <= _FEW:
            return self._search_rows(queries, k, wanted)
        if kind == "pq":
            rows = self._rows_of(wanted)[1]
            return rank_keys(*kinds.search_rows(self._index, queries, min(k, len(self)), rows), k)
        return self._search_index(queries, k, faiss.IDSelectorBatch(wanted))

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the stored vectors for these keys, in the order of `keys`; unknown keys are left out."""
        _, rows = self._rows_of(np.asarray(keys, dtype=np.int64))
        return np.array(kinds.vectors_of(self._index, rows))

    def save(self) -> None:
        """Write the index atomically, in the type that was configured, or as flat if it has few rows."""
        with replace_file(self.path) as partial:
            self._write(partial)

    def _write(self, partial: Path) -> None:
        if self._rows is not None:
            self._write_rows(self._rows, partial)
            return
        self._load_rows()
        self._index = kinds.reshape(self._index, self._kind)
        self._gone = int(np.sum(kinds.keys_of(self._index) == kinds.GONE))
        self._order = None
        faiss.write_index(self._index, str(partial))

    def close(self) -> None:
        """Discard unsaved additions; no file stays open."""
        if self._rows is not None:
            self._rows.remove()

    def _write_rows(self, rows: RawVectors, partial: Path) -> None:
        """Write the added rows as an index file; a flat index is written without being built in memory."""
        wanted = self._kind.choose_type(len(rows))
        if wanted.name == "flat":
            rows.write(partial)
        else:
            faiss.write_index(kinds.build(wanted, rows.keys, rows.vectors()), str(partial))
        self._written, self._rows = len(rows), None
        rows.remove()

    def _load_rows(self) -> None:
        """Load the whole index file into memory before it is changed; FAISS crashes if a memory-mapped index grows."""
        if self._opened is None and self._rows is None:
            self._opened = self._open()
        if self._mapped:
            self._index = _load(self.path, self.dimensions, mapped=False)
            self._mapped = False

    def _search_index(self, queries: Vectors, k: int, selector: Any) -> tuple[Vectors, Keys]:
        """Search with FAISS; `selector` is a parameter so that it is not freed before the search ends."""
        depth = min(k, len(self))
        if not depth or not len(queries):
            return make_empty_hits(len(queries), k)
        parameters = kinds.make_parameters(self._index, self._kind, depth, selector)
        scores, keys = self._index.search(queries, depth, params=parameters)
        return rank_keys(scores, keys, k)

    def _rows_of(self, wanted: Keys) -> tuple[Keys, Keys]:
        """Return the keys in `wanted` that this store has, in the order of `wanted`, and the row of each key."""
        if not len(self):
            return wanted[:0], wanted[:0]
        if self._order is None:
            keys = kinds.keys_of(self._index)
            rows = np.argsort(keys, kind="stable")
            self._order = keys[rows], rows, bool((keys == np.arange(len(keys))).all())
        keys, rows, plain = self._order
        if plain and len(wanted) and wanted[0] >= 0 and wanted[-1] < len(keys) and (np.diff(wanted) > 0).all():
            return wanted, wanted
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = (keys[places] == wanted) & (wanted != kinds.GONE)
        return wanted[here], rows[places[here]]

    def _search_rows(self, queries: Vectors, k: int, wanted: Keys) -> tuple[Vectors, Keys]:
        """Compare the queries directly with the rows of `wanted`, which are few; return the k best scores and keys.

        The result is exact, and faster than a FAISS search with a selector over all rows.
        """
        present, rows = self._rows_of(wanted)
        if not len(present):
            return make_empty_hits(len(queries), k)
        cosines = _multiply(queries, kinds.vectors_of(self._index, rows))
        return rank_keys(cosines, np.broadcast_to(present, cosines.shape), k)


def _multiply(queries: Vectors, vectors: Vectors) -> Vectors:
    # for a few queries, starting several threads takes longer than the work
    few = len(queries) <= _FEW_QUERIES
    cosines: Vectors = np.einsum("ij,kj->ik", queries, vectors) if few else queries @ vectors.T
    return cosines


def _load(path: Path, dimensions: int, *, mapped: bool) -> faiss.IndexIDMap2:
    # older supported versions of FAISS lack this flag; they read the whole file
    flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0) if mapped else 0
    try:
        index: Any = faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise BundleError(f"{path}: the file is damaged; delete the index and build it again") from error
    if index is None:  # FAISS returns None for a file whose header says that it is empty
        raise BundleError(f"{path}: the file is damaged; delete the index and build it again")
    if index.d != dimensions:
        raise BundleError(f"{path}: built for vectors of {index.d} numbers, not {dimensions}; build the index again")
    return index  # type: ignore[no-any-return]
