"""Columns of numbers that outgrow memory: appended to files without a name, and written as NumPy's own archive."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import BundleError

Array = npt.NDArray[Any]

_PIECE = 1 << 18
"""Numbers that are copied at once."""


class Column:
    """Numbers on disk, in a file that the system removes when it is closed, or when the process dies."""

    def __init__(self, dtype: npt.DTypeLike, folder: Path) -> None:
        self.dtype = np.dtype(dtype)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open for as long as the column is
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, numbers: Array) -> None:
        """Add numbers at the end."""
        self._file.seek(self._length * self.dtype.itemsize)
        self._file.write(np.ascontiguousarray(numbers, self.dtype).tobytes())
        self._length += len(numbers)

    def read(self, start: int = 0, end: int | None = None) -> Array:
        """Return the numbers from one place to another, in memory."""
        self._file.seek(start * self.dtype.itemsize)
        count = (self._length if end is None else end) - start
        return np.frombuffer(bytearray(self._file.read(count * self.dtype.itemsize)), self.dtype)

    def pieces(self) -> Iterator[Array]:
        """Yield all numbers, some at a time."""
        for start in range(0, self._length, _PIECE):
            yield self.read(start, min(start + _PIECE, self._length))

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def write_archive(path: Path, columns: Mapping[str, Array | Column]) -> None:
    """Write the bytes that `numpy.savez` would, with no column that is on disk read as a whole."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if not isinstance(column, Column):
                    np.lib.format.write_array(member, np.asanyarray(column), allow_pickle=False)
                    continue
                descr = np.lib.format.dtype_to_descr(column.dtype)
                head = {"descr": descr, "fortran_order": False, "shape": (len(column),)}
                np.lib.format.write_array_header_1_0(member, head)
                for piece in column.pieces():
                    member.write(piece.tobytes())


_FAULTS = (OSError, ValueError, LookupError, TypeError, EOFError, MemoryError, RecursionError, zipfile.BadZipFile)
"""What NumPy, and whoever looks into the arrays, raise over a file that somebody else wrote."""


@contextmanager
def opened_archive(path: Path) -> Iterator[Mapping[str, Array]]:
    """Open the arrays of an index; a damaged file is refused, and a packed one, which may unpack to anything."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("packed")
        with np.load(path, allow_pickle=False) as stored:
            yield stored
    except _FAULTS as error:
        raise BundleError(f"{path}: damaged; build the index again (--force-ingestion)") from error
