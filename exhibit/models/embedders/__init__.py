"""Embedders, which turn texts into unit vectors: one file each, selected by `--embedder`.

Vectors are cached between runs.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exhibit.models.protocols import Embedder, Role, Vectors
from exhibit.schemas.errors import ServiceError
from exhibit.storage.cache import Cache, key_of

_SLAB = 1024
"""The number of texts between two writes to the cache: a kill loses no more vectors than these."""


def to_unit(vectors: npt.ArrayLike, texts: Sequence[str], *, name: str, dimensions: int | None = None) -> Vectors:
    """Return the vectors scaled to length one.

    If a vector is zero or not finite, raise an error that quotes its text.
    """
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except (OverflowError, TypeError, ValueError) as error:  # a number of a thousand digits, rows of different lengths
        raise ServiceError(f"embedder {name}: returned no table of numbers ({error})") from error
    if rows.ndim != 2 or len(rows) != len(texts) or (dimensions is not None and rows.shape[1] != dimensions):
        wanted = f"{len(texts)} x {dimensions or 'n'}"
        shape = " x ".join(map(str, rows.shape)) or "a number"
        raise ServiceError(f"embedder {name}: returned {shape} numbers for {len(texts)} texts instead of {wanted}")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if bad.size:
        what = "only zeros" if lengths[bad[0]] == 0 else "numbers that are not finite"
        raise ServiceError(f"embedder {name}: returned a vector with {what} for {_quote(texts[bad[0]])}")
    lengths[np.abs(lengths - 1) < 1e-6] = 1  # vectors of length one are not changed
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return f"the text of {len(text)} characters {words[:60]!r}" + (" …" if len(words) > 60 else "")


# ---------------------------------------------------------------- the cache


class VectorCache:
    """A cache of the vectors of one model, at full precision, so that a second run gets the same numbers."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._dimensions = embedder.dimensions
        readable = re.sub(r"[^\w.-]+", "-", embedder.name)[:60]
        stem = f"{readable}-{key_of(embedder.name).hex()[:8]}-{self._dimensions}"
        self._kept = Cache(folder / f"{stem}.sqlite")

    def __len__(self) -> int:
        """Return the number of cached vectors."""
        return len(self._kept)

    def get(self, texts: Sequence[str], *, role: Role) -> tuple[npt.NDArray[np.bool_], Vectors]:
        """Return a flag for each text (whether it is cached), and a row for each text: its vector, or zeros."""
        keys = [key_of(role, text) for text in texts]
        kept = self._kept.get(keys)
        known = np.array([len(kept.get(key, b"")) == 4 * self._dimensions for key in keys], np.bool_)
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for row in np.flatnonzero(known).tolist():
            vectors[row] = np.frombuffer(kept[keys[row]], "<f4")
        return known, vectors

    def put(self, texts: Sequence[str], vectors: Vectors, *, role: Role) -> None:
        """Add the vectors of some texts to the cache."""
        rows = np.ascontiguousarray(vectors, "<f4")
        self._kept.put({key_of(role, text): row.tobytes() for text, row in zip(texts, rows, strict=True)})


class CachedEmbedder:
    """An embedder with a cache: it calls another embedder only for texts that are not cached, once per text."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.many: int = getattr(embedder, "many", 0)
        self.languages: frozenset[str] | None = getattr(embedder, "languages", None)
        self._embedder, self._cache = embedder, cache

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one normalised row per text, in order."""
        known, vectors = self._cache.get(texts, role=role)
        places: dict[str, list[int]] = {}
        for row in map(int, np.flatnonzero(~known)):
            places.setdefault(texts[row], []).append(row)
        missing = list(places)
        slabs = max(_SLAB, self.many)
        for start in range(0, len(missing), slabs):
            slab = missing[start : start + slabs]
            fresh = to_unit(self._embedder.embed(slab, role=role), slab, name=self.name, dimensions=self.dimensions)
            self._cache.put(slab, fresh, role=role)
            for text, vector in zip(slab, fresh, strict=True):
                vectors[places[text]] = vector
        return vectors
