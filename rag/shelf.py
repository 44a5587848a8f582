"""What an index knows of its documents while it is built: on disk, in files without a name, so that memory stays flat.

An index that was opened has the same in memory, where questions look it up.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator, MutableMapping
from dataclasses import asdict, replace
from heapq import merge
from pathlib import Path
from typing import IO

import numpy as np

from exhibit.rag.columns import Column
from exhibit.rag.index_files import DOCUMENTS, Entry, entry_of
from exhibit.rag.packed import Places
from exhibit.rag.protocols import Keys

KEY, WIDTH = 0, 6
"""The column of keys, and how many columns there are: key, document, start, end, page, section."""


class Entries(MutableMapping[int, Entry]):
    """Documents by number: those that were read are in memory, those that are added wait in a file, as their lines."""

    def __init__(self, folder: Path) -> None:
        """Have none; the file is made beside the folder, which may be moved while the file is open."""
        self._folder = folder.parent
        self._held: dict[int, Entry] = {}
        self._places = Places()
        self._file: IO[bytes] | None = None
        self._end = 0

    def put_aside(self, entry: Entry) -> None:
        """Add a document whose entry nobody looks at before the index is saved."""
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - open for as long as the index is
        line = _line(entry)
        self._file.seek(self._end)
        self._file.write(line)
        self._places[entry.number], self._end = self._end, self._end + len(line)

    def __setitem__(self, number: int, entry: Entry) -> None:
        self._places.pop(number, None)
        self._held[number] = entry

    def __getitem__(self, number: int) -> Entry:
        entry = self._held.get(number)
        return entry if entry is not None else entry_of(json.loads(self._read(self._places[number])))

    def filename(self, number: int) -> str:
        """Return what a document is called."""
        return self[number].filename

    def __delitem__(self, number: int) -> None:
        if self._held.pop(number, None) is None:
            del self._places[number]

    def __iter__(self) -> Iterator[int]:
        return merge(sorted(self._held), self._places) if self._held else iter(self._places)

    def __len__(self) -> int:
        return len(self._held) + len(self._places)

    def write(self, folder: Path) -> None:
        """Write a line for each document, in the order of their numbers."""
        with (folder / DOCUMENTS).open("wb") as file:
            for number in self:
                at = self._places.get(number)
                file.write(_line(self._held[number]) if at is None else self._read(at))

    def _read(self, at: int) -> bytes:
        if self._file is None:
            raise KeyError(at)
        self._file.seek(at)
        return self._file.readline()


def _line(entry: Entry) -> bytes:
    record = asdict(replace(entry, sections=tuple(entry.sections)))
    return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8")


class Chunks:
    """The table of chunks: in memory once it is looked at; new ones wait in a file until then, or are saved from it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.parent
        self._table: Keys = np.zeros((0, WIDTH), np.int64)
        self._new: Column | None = None
        self._last = -1

    def __len__(self) -> int:
        return len(self._table) + (len(self._new) // WIDTH if self._new is not None else 0)

    @property
    def last(self) -> int:
        """The greatest key, -1 where there is none."""
        if self._new is not None:
            return self._last
        return int(self._table[-1, KEY]) if len(self._table) else -1

    def add(self, rows: Keys) -> None:
        """Add rows, whose keys are above all there are."""
        if not len(rows):
            return
        if self._new is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._new = Column(np.int64, self._folder)
        self._new.append(rows.ravel())
        self._last = int(rows[-1, KEY])

    @property
    def table(self) -> Keys:
        """All rows in the order of their keys.

        Each column lies in one piece: keys and documents are searched as they are, not copied for each question.
        """
        if self._new is not None:
            added = self._new.read().reshape(-1, WIDTH)
            self._table = np.asfortranarray(np.concatenate([self._table, added]))
            self._new.close()
            self._new = None
        return self._table

    @table.setter
    def table(self, rows: Keys) -> None:
        if self._new is not None:
            self._new.close()
        self._table, self._new = rows, None

    def write(self, path: Path) -> None:
        """Write the table as `numpy.savez` would, byte for byte, with no copy of what is on disk in memory."""
        head = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int64)), "fortran_order": False}
        with zipfile.ZipFile(path, "w") as archive, archive.open("table.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, {**head, "shape": (len(self), WIDTH)})
            member.write(np.ascontiguousarray(self._table).tobytes())
            for piece in self._new.pieces() if self._new is not None else ():
                member.write(piece.tobytes())
