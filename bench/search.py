"""Compares batch search through the store `faiss` with direct calls of FAISS, on the same vectors in one run.

python -m bench.search [--rows 100000] [--queries 256]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

from bench._table import print_table
from exhibit.models.protocols import Vectors
from exhibit.rag.stores.faiss import open as open_store
from exhibit.runtime.command import guarded

_REPEATS = 5


def best_of(*works: Callable[[], object]) -> list[float]:
    """Return the shortest time of each function in seconds, over a few runs.

    The functions alternate, so that other programs disturb all of them alike.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(_REPEATS):
        for kept, work in zip(times, works, strict=True):
            started = time.perf_counter()
            work()
            kept.append(time.perf_counter() - started)
    return [min(kept) for kept in times]


def make_unit_vectors(rows: int, width: int, seed: int) -> Vectors:
    """Return random vectors of length one, one per row."""
    vectors = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Run the benchmark: compare the times of the store `faiss` and of FAISS itself, and print a table.

    It measures a search in all vectors at k = 64, and a search restricted to 1,200 vectors.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, metavar="N")
    parser.add_argument("--queries", type=int, default=256, metavar="N")
    parser.add_argument("--width", type=int, default=384, metavar="N")
    options = parser.parse_args(argv)
    vectors, queries = (
        make_unit_vectors(options.rows, options.width, 1),
        make_unit_vectors(options.queries, options.width, 2),
    )
    raw = faiss.IndexFlatIP(options.width)
    raw.add(vectors)
    within = np.arange(1000, 2200)
    selector, chosen = faiss.SearchParameters(), faiss.IDSelectorBatch(within)
    selector.sel = chosen
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), None, name="chunk", dimensions=options.width)
        store.add(np.arange(options.rows), vectors)
        same = (store.search(queries, 64)[1] == raw.search(queries, 64)[1]).mean()
        ours, theirs = best_of(lambda: store.search(queries, 64), lambda: raw.search(queries, 64))
        ours_in, theirs_in = best_of(
            lambda: store.search(queries[:32], 64, within=within),
            lambda: raw.search(queries[:32], 64, params=selector),
        )
    print_table(
        f"{options.rows} vectors of {options.width}, k = 64; same results: {100 * same:.2f}%",
        ["", "raw FAISS, s", "our store, s", "ours / raw"],
        [
            [f"{options.queries} queries at once", f"{theirs:.3f}", f"{ours:.3f}", f"{ours / theirs:.2f}"],
            [
                f"32 queries within {len(within)} chunks",
                f"{theirs_in:.3f}",
                f"{ours_in:.3f}",
                f"{ours_in / theirs_in:.2f}",
            ],
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
