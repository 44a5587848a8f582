"""Postings on their way: collected in memory, put aside on disk as sorted runs, merged block by block."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.rag.columns import Array, Column

_BLOCK = 1 << 18
"""Entries that are merged at once: some 10 MB with what sorting them takes."""
_JOINED = 256
"""Additions that are put into one: a document has ten names, and each array takes a hundred bytes by itself."""
_BITS = 16
"""Terms are hashes: blocks are cut by their first bits, so that every run is cut at the same places."""


_TOGETHER = 16
"""Runs from which a frequent term is read at once: it stands in each some 6,000 times at most, once a chunk."""

_Part = tuple[int, int]
"""Where entries stand, from and to."""


class Entries(NamedTuple):
    """Which term stands where, and how often: one row an entry."""

    terms: npt.NDArray[np.uint32]
    owners: Array
    counts: Array

    def sorted(self) -> Entries:
        """Return them by term, then by where it stands."""
        order = np.lexsort((self.counts, self.owners, self.terms))
        return Entries(self.terms[order], self.owners[order], self.counts[order])


class Runs:
    """Entries without an end: no more than `most` are in memory where there is a folder to put the others in.

    Merging holds one block; a word that is longer than one comes in several. At ten bytes an entry and `most` of 2¹⁸,
    collecting, sorting and merging stay below 15 MB each, however many entries there are.
    """

    def __init__(self, owners: npt.DTypeLike, counts: npt.DTypeLike, *, folder: Path | None, most: int) -> None:
        self._dtypes = (np.dtype(np.uint32), np.dtype(owners), np.dtype(counts))
        self._folder, self._most = folder, most
        self._clear()

    def _clear(self) -> None:
        self._new: list[Entries] = []
        self._waiting = self._single = 0
        self._columns: tuple[Column, ...] = ()
        self._ends: list[int] = []
        self._spread = np.zeros(1 << _BITS, np.int64)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._ends)

    @property
    def on_disk(self) -> bool:
        """Whether there were too many for memory."""
        return bool(self._ends)

    def add(self, entries: Entries) -> None:
        """Add entries."""
        self._new.append(entries)
        self._waiting += len(entries.terms)
        self._single += 1
        if self._single == _JOINED:
            self._new[-_JOINED:] = [self._joined(self._new[-_JOINED:])]
            self._single = 0
        if self._folder is not None and self._waiting >= self._most:
            self._put_aside(self._folder)

    def take(self) -> Entries:
        """Return all entries, in no order, and be empty."""
        aside = [Entries(*(column.read() for column in self._columns))] if self._ends else []
        entries = self._joined([*aside, *self._new])
        self.close()
        return entries

    def blocks(self) -> Iterator[Entries]:
        """Yield all entries by term, then by where it stands; only a frequent term is in two blocks. Then be empty."""
        if self._waiting and self._folder is not None:
            self._put_aside(self._folder)
        total = np.cumsum(self._spread)
        heavy = np.flatnonzero(self._spread > _BLOCK)  # by itself: that of a word that most texts have
        even = np.searchsorted(total, np.arange(_BLOCK, total[-1], _BLOCK)) + 1
        cuts = np.setdiff1d(np.concatenate([even, heavy, heavy + 1]), [0, 1 << _BITS])
        first_terms = (cuts.astype(np.uint64) << np.uint64(32 - _BITS)).astype(np.int64)
        runs = list(zip([0, *self._ends], self._ends, strict=False))
        places = [self._cut(start, end, first_terms) for start, end in runs]
        for block in range(len(cuts) + 1):
            slices = [(place[block], place[block + 1]) for place in places if place[block] < place[block + 1]]
            if sum(end - start for start, end in slices) <= 2 * _BLOCK:
                yield self._read(slices).sorted()
            else:
                yield from self._split(slices)
        self.close()

    def _split(self, slices: list[_Part]) -> Iterator[Entries]:
        """Yield the entries of a few terms, some at a time where each run stands before the next."""
        terms, owners, _ = self._columns
        places: dict[int, list[_Part]] = {}
        for start, end in slices:
            some, firsts = np.unique(terms.read(start, end), return_index=True)
            bounds = [*(start + firsts).tolist(), end]
            for term, part in zip(some.tolist(), pairwise(bounds), strict=True):
                places.setdefault(term, []).append(part)
        for _, parts in sorted(places.items()):
            ends = [(owners.read(start, start + 1)[0], owners.read(end - 1, end)[0]) for start, end in parts]
            if any(last >= first for (_, last), (first, _) in pairwise(ends)):
                yield self._read(parts).sorted()  # they came in another order than their numbers
                continue
            for first in range(0, len(parts), _TOGETHER):
                yield self._read(parts[first : first + _TOGETHER])

    def _read(self, parts: list[_Part]) -> Entries:
        return self._joined([Entries(*(column.read(*part) for column in self._columns)) for part in parts])

    def close(self) -> None:
        """Be empty, and let the files go."""
        for column in self._columns:
            column.close()
        self._clear()

    def _put_aside(self, folder: Path) -> None:
        run = self._joined(self._new).sorted()
        if not self._columns:
            folder.mkdir(parents=True, exist_ok=True)
            self._columns = tuple(Column(dtype, folder) for dtype in self._dtypes)
        for column, numbers in zip(self._columns, run, strict=True):
            column.append(numbers)
        self._spread += np.bincount(run.terms >> np.uint32(32 - _BITS), minlength=1 << _BITS)
        terms, *_ = self._columns
        self._ends.append(len(terms))
        self._new, self._waiting, self._single = [], 0, 0

    def _cut(self, start: int, end: int, first_terms: npt.NDArray[np.int64]) -> list[int]:
        """Return where in a run each block begins, and where the last one ends."""
        terms, *_ = self._columns
        inner = np.searchsorted(terms.read(start, end).astype(np.int64), first_terms)
        return [start, *(start + inner).tolist(), end]

    def _joined(self, parts: list[Entries]) -> Entries:
        empty = Entries(*(np.zeros(0, dtype) for dtype in self._dtypes))
        return Entries(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))
