"""Vectors on their way into a FAISS index that is built from none: on disk, so that no more than a batch is in memory.

A flat index needs no work but writing: its file is a header, the vectors as they came, and their keys. It is written
here piece by piece as FAISS itself would, and then opened by FAISS to see that it is what was meant.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import faiss
import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import _faiss_kinds as kinds

_PIECE = 1 << 20
"""Bytes copied at once."""
_SEEN = 8
"""Rows that are looked at when a file is checked: first, last, and some between."""


def rows_path(path: Path) -> Path:
    """Return where the rows of an index are until it is written."""
    return path.with_name(path.name + ".rows")


class Rows:
    """Vectors in a raw file, which is there from the first row until `remove`; their keys are in memory."""

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
        """Add rows; a file that a stopped run has left is begun anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab" if self._count else "wb") as file:
            file.truncate(self._count * 4 * self.dimensions)  # what a full disk cut off in the middle is not counted
            file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self._keys.append(keys)
        self._count += len(keys)

    def vectors(self) -> Vectors:
        """Return the rows, mapped from the file."""
        if not self._count:
            return np.zeros((0, self.dimensions), np.float32)
        return np.memmap(self.path, "<f4", "r", shape=(self._count, self.dimensions))

    def index(self) -> faiss.IndexIDMap2:
        """Return them as a flat index in memory."""
        index = kinds.empty(self.dimensions)
        if self._count:
            kinds.add(index, self.keys, self.vectors())
        return index

    def write(self, path: Path) -> bool:
        """Write them as a flat index without holding it; return whether FAISS reads it as just that."""
        with path.open("wb") as file:
            file.write(b"IxM2" + self._header() + b"IxFI" + self._header())
            file.write(struct.pack("<Q", self._count * self.dimensions))
            if self._count:
                self._copy(file)
            file.write(struct.pack("<Q", self._count))
            file.write(self.keys.astype("<i8").tobytes())
        return self._reads(path)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        self._keys, self._count = [], 0

    def _header(self) -> bytes:
        """Return what FAISS writes of every index: width, rows, two unused numbers, trained, inner product."""
        return struct.pack("<iqqq?i", self.dimensions, self._count, 1 << 20, 1 << 20, True, faiss.METRIC_INNER_PRODUCT)

    def _copy(self, file: BinaryIO) -> None:
        left = self._count * 4 * self.dimensions
        with self.path.open("rb") as rows:
            while left and (piece := rows.read(min(_PIECE, left))):
                file.write(piece)
                left -= len(piece)

    def _reads(self, path: Path) -> bool:
        try:
            index: Any = faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", 0))
        except RuntimeError:
            return False
        if type(index) is not faiss.IndexIDMap2 or (index.d, index.ntotal) != (self.dimensions, self._count):
            return False
        inner = kinds.inner(index)
        if type(inner) is not faiss.IndexFlatIP or inner.ntotal != self._count:
            return False
        if not self._count:
            return True
        some = np.unique(np.linspace(0, self._count - 1, _SEEN).astype(np.int64))
        if not np.array_equal(kinds.vectors_of(index, some), self.vectors()[some]):
            return False
        return np.array_equal(kinds.keys_of(index), self.keys)
