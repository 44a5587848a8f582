"""Vector stores: one file each, named by `--store NAME[:ARGUMENT]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.schemas.errors import BundleError, ToolkitError

_MANY = 8
"""With more than eight times k scores, the k best are picked by partition before they are sorted."""


def ranked(scores: Vectors, keys: Keys, k: int) -> tuple[Vectors, Keys]:
    """Return the k best of each row, equals in the order of their keys; -1 and -inf where there are fewer."""
    scores = np.where(keys < 0, np.float32(-np.inf), scores)
    if scores.shape[1] > _MANY * k:  # sorting them all would take longer than comparing them
        rows = [_best(row, row_keys, k) for row, row_keys in zip(scores, keys, strict=True)]
        scores, keys = np.stack([row for row, _ in rows]), np.stack([row for _, row in rows])
    order = np.lexsort((keys, -scores), axis=1)[:, :k]
    best, best_keys = nothing(len(scores), k)
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    best_keys[:, : order.shape[1]] = np.take_along_axis(keys, order, axis=1)
    return best, best_keys


def _best(scores: Vectors, keys: Keys, k: int) -> tuple[Vectors, Keys]:
    least = np.partition(scores, -k)[-k]
    better, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    chosen = np.concatenate([better, equal[np.argsort(keys[equal], kind="stable")][: k - len(better)]])
    return scores[chosen], keys[chosen]


def nothing(rows: int, k: int) -> tuple[Vectors, Keys]:
    """Return what a search gives that finds nothing."""
    return np.full((rows, k), -np.inf, dtype=np.float32), np.full((rows, k), -1, dtype=np.int64)


def check_rows(where: str, keys: Keys, vectors: Vectors, dimensions: int) -> str:
    """Return what is wrong with rows that are to be added, or nothing."""
    if vectors.shape != (len(keys), dimensions):
        return f"{where}: {vectors.shape} vectors for {len(keys)} keys of {dimensions} numbers"
    if not np.isfinite(vectors).all():
        return f"{where}: a vector is not finite; the embedder is broken"
    return ""


def read_options(settings: Iterable[tuple[str, str]], known: Sequence[str], *, where: str, name: str) -> dict[str, int]:
    """Return the options of an index type, `nlist=1024`; what is not known is refused with what there is."""
    options: dict[str, int] = {}
    for option, value in settings:
        if option not in known or not value.isdecimal() or int(value) < 1:
            there = ", ".join(f"{each}=NUMBER" for each in known) or "no options"
            written = f"{option}={value}" if value else option
            raise ToolkitError(f"--store {where}: {written!r} is not understood; {name} takes {there}")
        options[option] = int(value)
    return options


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

    def _refuse(self, *_: object) -> NoReturn:
        """Change nothing: another process is writing them."""
        raise BundleError("these vectors are still being written by another process; they can be changed when it ends")

    add = remove = keep = save = _refuse

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
