"""Columns of numbers that outgrow memory: appended to files without a name, and written as NumPy's own archive.

An archive that is large is not read: its columns are mapped into memory, so that only what is looked at is there.
"""

from __future__ import annotations

import io
import struct
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.schemas.errors import BundleError
from exhibit.storage.whole import whole

Array = npt.NDArray[Any]

_PIECE = 1 << 18
"""Numbers that are copied at once."""
_LARGE = 32 << 20
"""Bytes from which an archive is mapped: the words of some 300,000 chunks. Less is read sooner than looked up."""
_LOCAL = struct.Struct("<26xHH")
"""What stands before a file in a zip archive: how long its name and its extra field are, at the end of 30 bytes."""
_ZIP64 = 20
"""Bytes of the field that has the sizes of a large file, which is there for all."""
_PADDED, _PADDING = struct.Struct("<HH"), 0xD935
"""An extra field that holds nothing, and the number by which others know it (Android's `zipalign`)."""


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
        numbers = np.empty((self._length if end is None else end) - start, self.dtype)
        if len(numbers):  # into the array itself: no copy beside it
            self._file.seek(start * self.dtype.itemsize)
            self._file.readinto(numbers.data.cast("B"))
        return numbers

    def pieces(self) -> Iterator[Array]:
        """Yield all numbers, some at a time."""
        for start in range(0, self._length, _PIECE):
            yield self.read(start, min(start + _PIECE, self._length))

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def write_archive(path: Path, columns: Mapping[str, Array | Column]) -> None:
    """Write an archive that `numpy.load` reads, with no column that is on disk read as a whole.

    The file appears by rename: whoever has mapped the one before goes on with that.
    """
    with whole(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, column in columns.items():
            with archive.open(_aligned(f"{name}.npy", archive), "w", force_zip64=True) as member:
                if not isinstance(column, Column):
                    np.lib.format.write_array(member, np.asanyarray(column), allow_pickle=False)
                    continue
                descr = np.lib.format.dtype_to_descr(column.dtype)
                head = {"descr": descr, "fortran_order": False, "shape": (len(column),)}
                np.lib.format.write_array_header_1_0(member, head)
                for piece in column.pieces():
                    member.write(piece.tobytes())


def _aligned(name: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return a member whose numbers begin at a multiple of 64 bytes: those that do not are copied before each use."""
    member = zipfile.ZipInfo(name)
    begins = archive.start_dir + _LOCAL.size + len(name) + _ZIP64 + len(_PADDED.pack(0, 0))
    space = -begins % np.lib.format.ARRAY_ALIGN
    member.extra = _PADDED.pack(_PADDING, space) + bytes(space)
    return member


_FAULTS = (OSError, ValueError, LookupError, TypeError, EOFError, MemoryError, RecursionError, zipfile.BadZipFile)
"""What NumPy, and whoever looks into the arrays, raise over a file that somebody else wrote."""


@contextmanager
def opened_archive(path: Path, *, mapped: Collection[str] = ()) -> Iterator[Mapping[str, Array]]:
    """Give the arrays of an index, those that are named mapped into memory where the file is large.

    A damaged file is refused, and a packed one, which may unpack to anything.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("packed")
            apart = mapped if path.stat().st_size >= _LARGE else ()
            columns = {name: _mapped(path, archive.getinfo(f"{name}.npy")) for name in apart}
        with np.load(path, allow_pickle=False) as stored:
            yield columns | {name: stored[name] for name in stored.files if name not in columns}
    except _FAULTS as error:
        raise BundleError(f"{path}: damaged; build the index again (--force-ingestion)") from error


def _mapped(path: Path, member: zipfile.ZipInfo) -> Array:
    """Return a column of an archive, in which nothing is compressed, where it stands in the file."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        named, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        file.seek(named + extra, io.SEEK_CUR)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename}: not an array of the first format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if not shape[0]:
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, "r", file.tell(), shape)
