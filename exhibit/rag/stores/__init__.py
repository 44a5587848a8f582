"""Vector stores: each file is one store, selected by `--store NAME[:ARGUMENT]`."""

from collections.abc import Iterable, Sequence

import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.schemas.errors import ToolkitError


def rank_keys(scores: Vectors, keys: Keys, k: int) -> tuple[Vectors, Keys]:
    """Return the k best scores of each row of `scores` and their keys, best first; ties are in the order of keys.

    If a row has fewer than k keys, the result is filled up with the score -inf and the key -1.
    """
    scores = np.where(keys < 0, np.float32(-np.inf), scores)
    order = np.lexsort((keys, -scores), axis=1)[:, :k]
    best, best_keys = make_empty_hits(len(scores), k)
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    best_keys[:, : order.shape[1]] = np.take_along_axis(keys, order, axis=1)
    return best, best_keys


def make_empty_hits(rows: int, k: int) -> tuple[Vectors, Keys]:
    """Return the result of a search without hits: every score is -inf and every key is -1."""
    return np.full((rows, k), -np.inf, dtype=np.float32), np.full((rows, k), -1, dtype=np.int64)


def check_rows(where: str, keys: Keys, vectors: Vectors, dimensions: int) -> str:
    """Return an error message if rows to be added have a wrong shape or numbers that are not finite, else ""."""
    if vectors.shape != (len(keys), dimensions):
        return f"{where}: vectors of shape {vectors.shape}, expected ({len(keys)}, {dimensions})"
    if not np.isfinite(vectors).all():
        return f"{where}: a vector contains NaN or infinity; the embedder is faulty"
    return ""


def read_options(settings: Iterable[tuple[str, str]], known: Sequence[str], *, where: str, name: str) -> dict[str, int]:
    """Return the options of an index type as numbers, such as `nlist=1024`.

    The error for an unknown or invalid option lists the known ones.
    """
    options: dict[str, int] = {}
    for option, value in settings:
        if option not in known or not value.isdecimal() or int(value) < 1:
            there = ", ".join(f"{each}=NUMBER" for each in known) or "no options"
            written = f"{option}={value}" if value else option
            raise ToolkitError(f"--store {where}: {written!r} is no option; {name} takes {there}")
        options[option] = int(value)
    return options
