"""Texts to unit vectors: one file per embedder, named by `--embedder`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from exhibit.models.protocols import Vectors
from exhibit.schemas.errors import ServiceError


def to_unit(vectors: npt.ArrayLike, texts: Sequence[str], *, name: str, dimensions: int | None = None) -> Vectors:
    """Return the vectors at length one; those that cannot be are an error that names the text."""
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except (OverflowError, TypeError, ValueError) as error:  # a number of a thousand digits, rows of different lengths
        raise ServiceError(f"embedder {name}: gave what is no table of numbers ({error})") from error
    if rows.ndim != 2 or len(rows) != len(texts) or (dimensions is not None and rows.shape[1] != dimensions):
        wanted = f"{len(texts)} x {dimensions or 'n'}"
        shape = " x ".join(map(str, rows.shape)) or "a number"
        raise ServiceError(f"embedder {name}: gave {shape} numbers for {len(texts)} texts, expected {wanted}")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if bad.size:
        what = "zeros" if lengths[bad[0]] == 0 else "no finite numbers"
        raise ServiceError(f"embedder {name}: a vector of {what} for {_quote(texts[bad[0]])}")
    lengths[np.abs(lengths - 1) < 1e-6] = 1  # what has been through here stays as it is
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return f"the text of {len(text)} characters {words[:60]!r}" + (" …" if len(words) > 60 else "")
