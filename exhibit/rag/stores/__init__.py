"""Vector stores: each file is one store, selected by `--store NAME[:ARGUMENT]`."""

import numpy as np
import numpy.typing as npt

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys


def rank_keys(scores: Vectors, keys: Keys, k: int) -> tuple[Vectors, Keys]:
    """Return the k best scores of each row and their keys, best first, equal scores by key; pad with -inf and -1."""
    scores = np.where(keys < 0, np.float32(-np.inf), scores)
    order = np.lexsort((keys, -scores), axis=1)[:, :k]
    best, best_keys = make_empty_hits(len(scores), k)
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    best_keys[:, : order.shape[1]] = np.take_along_axis(keys, order, axis=1)
    return best, best_keys


def make_empty_hits(rows: int, k: int) -> tuple[Vectors, Keys]:
    """Return the result of a search without hits: every score is -inf and every key is -1."""
    return np.full((rows, k), -np.inf, dtype=np.float32), np.full((rows, k), -1, dtype=np.int64)


def find_rows(known: Keys, wanted: Keys) -> tuple[Keys, npt.NDArray[np.bool_]]:
    """Return the row of each key among sorted keys, and whether the key exists; ignore the row of a missing key."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    if known[-1] - known[0] == len(known) - 1:  # consecutive keys need no search
        rows = np.clip(wanted - known[0], 0, len(known) - 1)
    else:
        rows = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return rows, known[rows] == wanted
