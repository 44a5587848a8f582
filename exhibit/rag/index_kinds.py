"""FAISS's index types: how each is built, when it is rebuilt, and how many rows a search compares.

Every type is an IndexIDMap2 around FAISS's own index, whose rows are numbered in the order of adding. The
types flat and fp16 delete a removed row at once. The type `pq` cannot: it gives the row the key -1, so that
no search returns the row. When a `pq` index is saved, it is rebuilt without such rows, which is fast.
"""

import os
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import read_options
from exhibit.schemas.errors import ToolkitError

_OPTIONS = {
    "flat": (),
    "fp16": (),
    "pq": ("refine",),
}
_ENOUGH = 1000
"""The number of rows below which every type stays flat: comparing them all is exact and takes well under a
millisecond.
"""
_PART = 20_000
"""The number of rows for each further thread: comparing them takes two milliseconds, starting a thread a tenth of
one.
"""
_SKETCHED, _ROUNDS = 1024, 5
"""The number of rows that a sketch is trained on, and of training rounds. Four times as many rows and 25 rounds find no
more, and take twenty times as long.
"""
_REFINED, _REFINED_TIMES = 2048, 8
"""The least number of rows whose vectors are compared after their sketches, and the number of such rows for each of the
k results. Of the 64 nearest of 326,000 rows none is missed, of the 256 nearest one in a thousand; with a quarter as
many rows, one in 25.
"""
GONE = -1
"""The key of a row that was removed."""


class IndexType(NamedTuple):
    """The name of a FAISS index type (flat, fp16 or pq), with its options."""

    name: str = "flat"
    options: dict[str, int] = {}  # noqa: RUF012 - never changed

    @classmethod
    def parse(cls, argument: str | None) -> "IndexType":
        """Parse the name and options of a FAISS index type, such as `pq,refine=4096`; None means `flat`.

        Raise an error with the known names or options if a name or an option is unknown.
        """
        name, *settings = (argument or "flat").split(",")
        if name not in _OPTIONS:
            raise ToolkitError(f"--store faiss:{argument}: no index type {name!r}; there are {', '.join(_OPTIONS)}")
        pairs = [(option, value) for option, _, value in (setting.partition("=") for setting in settings)]
        return cls(name, read_options(pairs, _OPTIONS[name], where=f"faiss:{argument}", name=name))

    def choose_type(self, rows: int) -> "IndexType":
        """Return this index type, or flat if the number of rows is small."""
        return self if rows >= _ENOUGH else IndexType()


def make_empty(dimensions: int) -> faiss.IndexIDMap2:
    """Return an exact (flat) index without rows; every index begins as one."""
    return faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))


def unwrap_index(index: faiss.IndexIDMap2) -> Any:
    """Return the FAISS index that is wrapped in the map from rows to keys."""
    return faiss.downcast_index(index.index)


def name_of(index: faiss.IndexIDMap2) -> str:
    """Return the name of an index's current type: flat, fp16 or pq."""
    names = {"IndexScalarQuantizer": "fp16", "IndexRefineFlat": "pq"}
    return names.get(type(unwrap_index(index)).__name__, "flat")


def keys_of(index: faiss.IndexIDMap2) -> Keys:
    """Return the key of each row as a view of the index's memory: writing to the view changes the index."""
    if not index.ntotal:
        return np.zeros(0, dtype=np.int64)
    keys: Keys = faiss.rev_swig_ptr(index.id_map.data(), index.ntotal)
    return keys


def vectors_of(index: faiss.IndexIDMap2, rows: Keys) -> Vectors:
    """Return the vectors of some rows; if the rows are adjacent, the result is a view of the index's memory.

    The caller must use a view at once: a later change of the index changes or invalidates it.
    """
    name, core = name_of(index), unwrap_index(index)
    flat: Any = faiss.downcast_index(core.refine_index) if name == "pq" else core
    if name not in ("flat", "pq") or not len(rows):
        vectors: Vectors = core.reconstruct_batch(rows)
        return vectors
    # FAISS would start all its threads for this; the view is of bytes, since the numbers of a mapped file may be
    # unaligned
    stored = faiss.rev_swig_ptr(flat.codes.data(), flat.ntotal * flat.code_size).reshape(flat.ntotal, flat.code_size)
    beside = rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all()
    vectors = (stored[rows[0] : rows[-1] + 1] if beside else np.take(stored, rows, axis=0)).view(np.float32)
    return vectors if vectors.flags.aligned else vectors.copy()


def reshape(index: faiss.IndexIDMap2, kind: IndexType) -> faiss.IndexIDMap2:
    """Return the index, rebuilt if its number of rows requires another type or if rows were removed."""
    keys = keys_of(index)
    rows = np.flatnonzero(keys != GONE)
    wanted = kind.choose_type(len(rows))
    if name_of(index) == wanted.name and len(keys) == len(rows):
        return index
    return build(wanted, keys[rows], vectors_of(index, rows))


def build(kind: IndexType, keys: Keys, vectors: Vectors) -> faiss.IndexIDMap2:
    """Return a new index of a given type with these keys and vectors."""
    width = vectors.shape[1]
    core: Any
    if kind.name == "fp16":
        core = faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        core.train(vectors[:1])  # 16-bit floats need no training, but FAISS requires the call
    elif kind.name == "pq":
        core = _make_sketch_index(vectors)
    else:
        core = faiss.IndexFlatIP(width)
    index = faiss.IndexIDMap2(core)
    add(index, keys, vectors)
    return index


def _make_sketch_index(vectors: Vectors) -> Any:
    """Return an empty `pq` index, which stores each vector in full and as a sketch: 4 bits for each 2 dimensions.

    A search compares all sketches in the processor's registers (André et al. 2015, "Cache locality is not
    enough"), then the full vectors of the nearest rows. Only these vectors are read, so a memory-mapped index
    takes little memory.
    """
    width = vectors.shape[1]
    sketch: Any = faiss.IndexPQFastScan(width, width // 2 if width % 2 == 0 else width, 4, faiss.METRIC_INNER_PRODUCT)
    sketch.pq.cp.niter = _ROUNDS
    sketch.train(np.ascontiguousarray(vectors[:: max(1, len(vectors) // _SKETCHED)], np.float32))
    return faiss.IndexRefineFlat(sketch)


def search_rows(index: faiss.IndexIDMap2, queries: Vectors, k: int, rows: Keys) -> tuple[Vectors, Keys]:
    """Return, for each query, the scores and keys of the k best among the given rows of a `pq` index.

    A `pq` index stores each vector in full and in compressed form. The full vectors are compared here, because
    FAISS cannot limit a search of the compressed vectors to some rows.
    """
    return _search_selected(index, unwrap_index(index).refine_index, queries, k, faiss.IDSelectorBatch(rows))


def search_parts(index: faiss.IndexIDMap2, query: Vectors, k: int) -> tuple[Vectors, Keys]:
    """Compare a query with all rows of an exact index on several threads; return the best k of each thread's rows.

    FAISS divides queries among its threads, but not rows, so each thread gets a selector for its own rows. With
    a selector, FAISS compares four rows at a time and takes half as long as without one (FAISS 1.15, 326,000
    rows: 45 to 58 ms against 100 ms of processor time). A plain range selector is not faster, because FAISS
    treats it as a special case.
    """
    parts = max(1, min(os.cpu_count() or 1, index.ntotal // _PART))
    cuts = np.linspace(0, index.ntotal, parts + 1).astype(int).tolist()
    every = faiss.IDSelectorAll()
    ranges = [faiss.IDSelectorAnd(faiss.IDSelectorRange(low, high), every) for low, high in pairwise(cuts)]
    if parts == 1:
        return _search_selected(index, unwrap_index(index), query, k, ranges[0])
    with ThreadPoolExecutor(parts) as pool:
        pieces = list(pool.map(partial(_search_selected, index, unwrap_index(index), query, k), ranges))
    return np.concatenate([scores for scores, _ in pieces], axis=1), np.concatenate(
        [keys for _, keys in pieces], axis=1
    )


def _search_selected(
    index: faiss.IndexIDMap2, core: Any, queries: Vectors, k: int, selector: Any
) -> tuple[Vectors, Keys]:
    made: Any = faiss  # FAISS's type stubs lack these arguments
    scores, rows = core.search(queries, k, params=made.SearchParameters(sel=selector))
    return scores, np.where(rows >= 0, keys_of(index)[rows], GONE)


def add(index: faiss.IndexIDMap2, keys: Keys, vectors: Vectors) -> None:
    """Add vectors to a FAISS index, each under its key."""
    index.add_with_ids(np.ascontiguousarray(vectors, dtype=np.float32), keys)


def make_parameters(index: faiss.IndexIDMap2, kind: IndexType, k: int, selector: Any) -> Any:
    """Return the FAISS search parameters for an index; None if none are needed.

    For `pq`, the parameters set how many rows are compared again by their full vectors. For other types, they
    hold the selector, which limits the search to certain rows; without a selector the result is None.
    """
    made: Any = faiss  # FAISS's type stubs lack these arguments
    if name_of(index) == "pq":
        refined = max(kind.options.get("refine", _REFINED), _REFINED_TIMES * k)
        return made.IndexRefineSearchParameters(k_factor=refined / k)
    return None if selector is None else made.SearchParameters(sel=selector)


def name_rows_file(path: Path) -> Path:
    """Return the path of the temporary file with an index's vectors, used until the index itself is written."""
    return path.with_name(path.name + ".rows")


class RawVectors:
    """Vectors in a raw file, which exists from the first `add` until `remove`; their keys are in memory."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path, self.dimensions = path, dimensions
        self._keys: list[Keys] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Keys:
        """The key of each row, in the order they were added."""
        if len(self._keys) > 1:
            self._keys = [np.concatenate(self._keys)]
        return self._keys[0] if self._keys else np.zeros(0, np.int64)

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Append vectors and their keys.

        The first call replaces a file of the same name, which an interrupted run may have left.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab" if self._count else "wb") as file:
            file.truncate(self._count * 4 * self.dimensions)  # discard a row that a full disk has truncated
            file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self._keys.append(keys)
        self._count += len(keys)

    def vectors(self) -> Vectors:
        """Return all vectors, one per row, memory-mapped from the file."""
        if not self._count:
            return np.zeros((0, self.dimensions), np.float32)
        return np.memmap(self.path, "<f4", "r", shape=(self._count, self.dimensions))

    def index(self) -> faiss.IndexIDMap2:
        """Return a flat FAISS index in memory with all vectors."""
        index = make_empty(self.dimensions)
        if self._count:
            add(index, self.keys, self.vectors())
        return index

    def write(self, path: Path) -> None:
        """Write a flat index to a file, in FAISS's own format, without building the index in memory."""
        with path.open("wb") as file:
            file.write(b"IxM2" + self._make_header() + b"IxFI" + self._make_header())
            file.write(struct.pack("<Q", self._count * self.dimensions))
            if self._count:
                os.truncate(self.path, self._count * 4 * self.dimensions)
                with self.path.open("rb") as rows:
                    shutil.copyfileobj(rows, file)
            file.write(struct.pack("<Q", self._count))
            file.write(self.keys.astype("<i8").tobytes())

    def remove(self) -> None:
        """Delete the file of vectors, and forget the keys of the vectors."""
        self.path.unlink(missing_ok=True)
        self._keys, self._count = [], 0

    def _make_header(self) -> bytes:
        """Return the header of a FAISS index: dimensions, rows, two unused numbers, the trained flag, the metric."""
        return struct.pack("<iqqq?i", self.dimensions, self._count, 1 << 20, 1 << 20, True, faiss.METRIC_INNER_PRODUCT)
