"""Embedders, which turn texts into unit vectors: one file each, selected by `--embedder`. Vectors are cached."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exhibit.models.protocols import Embedder, Role, Vectors
from exhibit.schemas.errors import ServiceError
from exhibit.storage.cache import Cache, key_of

_SLAB_TEXTS = 1024  # texts between two writes to the cache: if the process is killed, at most their vectors are lost


def to_unit(vectors: npt.ArrayLike, texts: Sequence[str], *, name: str, dimensions: int | None = None) -> Vectors:
    """Return the vectors scaled to length one; raise if the shape is wrong, or if a vector is zero or infinite."""
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except (OverflowError, TypeError, ValueError) as error:  # for example rows of different lengths
        raise ServiceError(f"embedder {name}: must return one list of numbers for each text, but: {error}") from error
    if rows.ndim != 2 or len(rows) != len(texts) or (dimensions is not None and rows.shape[1] != dimensions):
        wanted = f"{len(texts)} x {dimensions or 'n'}"
        shape = " x ".join(map(str, rows.shape)) or "a number"
        raise ServiceError(f"embedder {name}: returned {shape} numbers for {len(texts)} texts instead of {wanted}")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    for length, text in zip(lengths, texts, strict=True):
        if not np.isfinite(length) or not length:
            what = "numbers that are not finite" if length else "only zeros"
            words = " ".join(text.split())[:60]
            raise ServiceError(f"embedder {name}: returned a vector with {what} for {len(text)} characters {words!r}")
    lengths[np.abs(lengths - 1) < 1e-6] = 1  # vectors of length one are not changed
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


class CachedEmbedder:
    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.languages: frozenset[str] | None = getattr(embedder, "languages", None)
        self._embedder = embedder
        readable = re.sub(r"[^\w.-]+", "-", self.name)[:60]
        self._cache = Cache(folder / f"{readable}-{key_of(self.name).hex()[:8]}-{self.dimensions}.sqlite")

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        keys = [key_of(role, text) for text in texts]
        stored, size = self._cache.get(keys), 4 * self.dimensions
        missing = {key: text for key, text in zip(keys, texts, strict=True) if len(stored.get(key, b"")) != size}
        for start in range(0, len(missing), _SLAB_TEXTS):
            slab = dict(islice(missing.items(), start, start + _SLAB_TEXTS))
            wanted = list(slab.values())
            rows = to_unit(self._embedder.embed(wanted, role=role), wanted, name=self.name, dimensions=self.dimensions)
            fresh = {key: row.tobytes() for key, row in zip(slab, rows.astype("<f4"), strict=True)}
            self._cache.put(fresh)
            stored |= fresh
        data = b"".join(stored[key] for key in keys)
        return np.frombuffer(data, "<f4").reshape(len(texts), self.dimensions).astype(np.float32)
