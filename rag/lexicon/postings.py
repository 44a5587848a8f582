"""Which documents hold a word, and how often: a table that documents can be added to and taken from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from exhibit.rag.columns import Array, Column
from exhibit.rag.lexicon.runs import Entries, Runs

Numbers = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
_MOST = 65535  # the largest count that two bytes hold
_WAITING = 1 << 16
"""Entries in memory before they are put aside on disk: 0.6 MB, the first pages of some 300 documents."""
_REMEMBERED, _SHORT = 4096, 1000
"""Words whose documents are remembered, and how many documents one may have for that: 16 kB a word, 65 MB at most."""
_DTYPES = {"terms": np.uint32, "numbers": np.int32, "counts": np.uint16}


class Held(NamedTuple):
    """The words of one document, hashed, and how often it has each."""

    terms: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Held:
        """Return them as arrays."""
        hashed = np.fromiter(map(_hash, counts), np.uint32, len(counts))
        return cls(hashed, np.fromiter((min(count, _MOST) for count in counts.values()), np.uint16, len(counts)))


class Postings:
    """Ten bytes for each different word of each document; a word is kept as 32 bits of its hash.

    Two words meet in one hash once in ten thousand lookups over half a million different words: rarer than a name that
    two companies share. New ones wait in memory, and beyond some number on disk where there is a folder for that.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._terms = np.zeros(0, dtype=np.uint32)
        self._numbers = np.zeros(0, dtype=np.int32)
        self._counts = np.zeros(0, dtype=np.uint16)
        self._runs = Runs(np.int32, np.uint16, folder=folder, most=_WAITING)
        self._merged: tuple[Column, ...] | None = None
        """The table, sorted on disk, until somebody looks at it."""
        self._seen: dict[str, tuple[Numbers, Counts]] = {}
        """What was found of late: questions on one document say the same names."""

    def add(self, number: int, counts: Mapping[str, int]) -> None:
        """Add a document's words; they are sorted in when a word is next looked for."""
        self.add_held(number, Held.of(counts))

    def add_held(self, number: int, held: Held) -> None:
        """Add a document's words that were hashed before."""
        if len(held.terms):
            self._runs.add(Entries(held.terms, np.full(len(held.terms), number, dtype=np.int32), held.counts))

    def remove(self, number: int) -> None:
        """Forget a document."""
        self._settle()
        kept = self._numbers != number
        self._seen.clear()
        self._terms, self._numbers, self._counts = self._terms[kept], self._numbers[kept], self._counts[kept]

    def find(self, term: str) -> tuple[Numbers, Counts]:
        """Return the documents that hold a word, in order, and how often each does."""
        self._settle()
        seen = self._seen.get(term)
        if seen is not None:
            return seen
        key = np.uint32(_hash(term))
        start, end = self._terms.searchsorted(key, side="left"), self._terms.searchsorted(key, side="right")
        postings = self._numbers[start:end].astype(np.int64), self._counts[start:end].astype(np.int64)
        if end - start <= _SHORT:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[term] = postings
        return postings

    def holders(self, term: str) -> int:
        """Return how many documents hold a word."""
        numbers, _ = self.find(term)
        return len(numbers)

    def totals(self, numbers: Numbers, weigh: Callable[[float], float]) -> npt.NDArray[np.float64]:
        """Return the weights of each document's words in sum, where a word's is that of how many documents hold it."""
        self._settle()
        _, place, holders = np.unique(self._terms, return_inverse=True, return_counts=True)
        weights = np.array([weigh(float(count)) for count in holders])
        sums = np.zeros(len(numbers))
        if len(place):
            np.add.at(sums, np.searchsorted(numbers, self._numbers), weights[place])
        return sums

    def __len__(self) -> int:
        self._settle()
        return len(self._terms)

    @property
    def nbytes(self) -> int:
        """What the table takes in memory."""
        self._settle()
        return self._terms.nbytes + self._numbers.nbytes + self._counts.nbytes

    def columns(self) -> dict[str, Array | Column]:
        """Return the table to be written: the same documents give the same numbers, in whatever order they came."""
        if self._runs.on_disk and self._merged is None and not len(self._terms) and self._folder is not None:
            self._merged = tuple(Column(dtype, self._folder) for dtype in _DTYPES.values())
            for block in self._runs.blocks():
                for column, numbers in zip(self._merged, block, strict=True):
                    column.append(numbers)
        elif self._runs:
            self._settle()
        return dict(zip(_DTYPES, self._merged or (self._terms, self._numbers, self._counts), strict=True))

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]], folder: Path | None = None) -> Postings:
        """Return a table that was written."""
        table = cls(folder)
        table._terms = arrays["terms"].astype(np.uint32)
        table._numbers = arrays["numbers"].astype(np.int32)
        table._counts = arrays["counts"].astype(np.uint16)
        return table

    def _settle(self) -> None:
        """Have the table in memory, with new documents sorted in, by word and then by document."""
        if self._merged is not None:
            self._terms, self._numbers, self._counts = (column.read() for column in self._merged)
            self._merged = None  # its files are closed, and gone
        if self._runs:
            self._seen.clear()
            self._runs.add(Entries(self._terms, self._numbers, self._counts))
            self._terms, self._numbers, self._counts = self._runs.take().sorted()


def _hash(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))
