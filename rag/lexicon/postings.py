"""Which documents hold a word, and how often: a table that documents can be added to and taken from."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
_MOST = 65535


class Postings:
    """Ten bytes for each different word of each document; a word is kept as 32 bits of its hash.

    Two words meet in one hash once in ten thousand lookups over half a million different words: rarer than a name that
    two companies share.
    """

    def __init__(self) -> None:
        self._terms = np.zeros(0, dtype=np.uint32)
        self._numbers = np.zeros(0, dtype=np.int32)
        self._counts = np.zeros(0, dtype=np.uint16)
        self._new: list[tuple[list[int], int, list[int]]] = []

    def add(self, number: int, counts: Mapping[str, int]) -> None:
        """Add a document's words; they are sorted in when a word is next looked for."""
        if counts:
            hashed = [_hash(term) for term in counts]
            self._new.append((hashed, number, [min(count, _MOST) for count in counts.values()]))

    def remove(self, number: int) -> None:
        """Forget a document."""
        self._settle()
        kept = self._numbers != number
        self._terms, self._numbers, self._counts = self._terms[kept], self._numbers[kept], self._counts[kept]

    def find(self, term: str) -> tuple[Numbers, Counts]:
        """Return the documents that hold a word, in order, and how often each does."""
        self._settle()
        key = np.uint32(_hash(term))
        start, end = np.searchsorted(self._terms, key, side="left"), np.searchsorted(self._terms, key, side="right")
        return self._numbers[start:end].astype(np.int64), self._counts[start:end].astype(np.int64)

    def __len__(self) -> int:
        self._settle()
        return len(self._terms)

    @property
    def nbytes(self) -> int:
        """What the table takes in memory."""
        self._settle()
        return self._terms.nbytes + self._numbers.nbytes + self._counts.nbytes

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the table to be written: the same documents give the same arrays, in whatever order they came."""
        self._settle()
        return {"terms": self._terms, "numbers": self._numbers, "counts": self._counts}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Postings:
        """Return a table that was written."""
        table = cls()
        table._terms = arrays["terms"].astype(np.uint32)
        table._numbers = arrays["numbers"].astype(np.int32)
        table._counts = arrays["counts"].astype(np.uint16)
        return table

    def _settle(self) -> None:
        """Sort new documents in, by word and then by document."""
        if not self._new:
            return
        terms = np.concatenate([self._terms, *(np.array(hashed, dtype=np.uint32) for hashed, _, _ in self._new)])
        numbers = np.concatenate(
            [self._numbers, *(np.full(len(hashed), number, dtype=np.int32) for hashed, number, _ in self._new)]
        )
        counts = np.concatenate([self._counts, *(np.array(many, dtype=np.uint16) for _, _, many in self._new)])
        order = np.lexsort((counts, numbers, terms))
        self._terms, self._numbers, self._counts = terms[order], numbers[order], counts[order]
        self._new = []


def _hash(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))
