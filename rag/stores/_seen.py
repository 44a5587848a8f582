"""Vectors that another process is still writing, as far as they are there: they can be searched, not changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.rag.ranking import nothing, ranked
from exhibit.schemas.errors import BundleError

_ROWS = 1 << 16
"""Rows that are compared at once: 100 MB of vectors of 384 numbers."""


class Seen:
    """Rows in the order of their keys, in memory or mapped from a file; every one is compared."""

    def __init__(self, keys: Keys, rows: Vectors) -> None:
        self._keys, self._rows = keys, rows

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the k nearest rows of each query, best first; -1 where there are fewer."""
        queries = np.asarray(queries, np.float32)
        if within is not None:
            wanted, rows = self._places(np.unique(np.asarray(within, np.int64)))
            return self._ranked(queries, k, wanted, self._rows[rows])
        best = nothing(len(queries), 0)
        for at in range(0, len(self), _ROWS):
            scores, keys = self._ranked(queries, k, self._keys[at : at + _ROWS], self._rows[at : at + _ROWS])
            best = ranked(np.concatenate([best[0], scores], axis=1), np.concatenate([best[1], keys], axis=1), k)
        return best if len(self) else nothing(len(queries), k)

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the rows under these keys, in their order; keys that are not there are left out."""
        _, rows = self._places(np.asarray(keys, np.int64))
        return np.asarray(self._rows[rows], np.float32)

    def fence(self, last: int) -> None:
        """Do nothing: no row is seen but those that were there when it was opened."""

    def close(self) -> None:
        """Let go of the file."""
        self._keys, self._rows = self._keys[:0], np.zeros((0, self._rows.shape[1]), np.float32)

    def add(self, keys: object, vectors: object) -> NoReturn:  # noqa: ARG002
        """Refuse: another process is writing them; so with whatever else would change them."""
        raise BundleError("these vectors are still being written by another process; they can be changed when it ends")

    def remove(self, keys: object) -> NoReturn:
        """Refuse."""
        self.add(keys, None)

    def keep(self, keys: object) -> NoReturn:
        """Refuse."""
        self.add(keys, None)

    def save(self) -> NoReturn:
        """Refuse."""
        self.add(None, None)

    def _places(self, wanted: Keys) -> tuple[Keys, Keys]:
        """Return those of the keys that are here, in order, and their rows."""
        if not len(self):
            return wanted[:0], wanted[:0]
        rows = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        here = self._keys[rows] == wanted
        return wanted[here], rows[here]

    def _ranked(self, queries: Vectors, k: int, keys: Keys, rows: Vectors) -> tuple[Vectors, Keys]:
        if not len(keys):
            return nothing(len(queries), k)
        scores = queries @ np.asarray(rows, np.float32).T
        return ranked(scores, np.broadcast_to(keys, scores.shape), k)
