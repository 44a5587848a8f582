"""10⁴ to 10⁶ chunks: what a search takes and finds in each kind of index, beside comparing them all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.scale.server import Server
from bench.stores import compare, grow, mixture, read_vectors
from engine import track
from rag.seams import Vectors

ROWS = (10_000, 100_000, 310_000, 1_000_000)
STORES = ("faiss", "faiss:fp16", "faiss:pq", "faiss:ivf", "faiss:hnsw")
LIMIT_MS = 60
"""What a query may take beside its embedding."""
_HNSW_ROWS = 100_000
"""A graph is built by one thread, ten minutes for a million rows: larger ones only when asked for in full."""
_QUERIES = 200
MILVUS = ("", "?index=IVF_FLAT", "?index=HNSW")
"""What a server is measured with: all vectors compared, lists of them, and a graph."""
_MILVUS_ROWS = 100_000
"""A server takes rows in by a few hundred a time: a million take a quarter of an hour."""

Point = dict[str, Any]


def measure(
    vectors: Path | None,
    *,
    quick: bool,
    full: bool,
    server: Server | None = None,
    alone: bool = False,
    known: Sequence[Point] = (),
) -> dict[str, Any]:
    """Return points by rows and store; those that are not measured now are kept from before.

    `alone` measures nothing but the server.
    """
    base = read_vectors(vectors) if vectors else mixture(20_000, 384, 1)
    queries = grow(base, _QUERIES, 2, spread=0.6, keep=False)
    sizes = (2_000, 10_000) if quick else ROWS
    points: list[Point] = []
    for rows in track(sizes, total=len(sizes), label="chunks", unit="size"):
        stores = [store for store in STORES if full or store != "faiss:hnsw" or rows <= _HNSW_ROWS]
        by_store = {} if alone else compare(rows, stores, base, queries)
        if server and (full or rows <= _MILVUS_ROWS):
            by_store |= {f"milvus{kind}": _served(server, kind, rows, base, queries) for kind in MILVUS}
        points += [{"rows": rows, "store": store, **values} for store, values in by_store.items()]
    return {"points": merged(known, points), "vectors": vectors.name if vectors else "a mixture of 300 clusters"}


def _served(server: Server, kind: str, rows: int, base: Vectors, queries: Vectors) -> dict[str, float]:
    """Return what a kind of index takes of a server: its own memory and disk, and the clock's time, not this process's.

    A batch has no time: the processor's, which other stores are told by, is the server's.
    """
    before = server.disk()
    spec = f"milvus:{server.uri}{kind}"

    def seen() -> dict[str, float]:
        return {"search MB": server.memory(), "disk MB": server.disk() - before}

    figures = compare(rows, [spec], base, queries, seen=seen)[spec]
    figures["build s"] = figures["build clock s"]
    del figures["batch ms"]
    return figures


def reckon(points: Iterable[Mapping[str, Any]], store: str, what: str, rows: int) -> float | None:
    """Return what a store would take with so many rows, by a power law through its last points; None without two."""
    law = _law(points, store, what)
    return float(np.exp(law[1] + law[0] * np.log(rows))) if law else None


def _law(points: Iterable[Mapping[str, Any]], store: str, what: str) -> tuple[float, float, int] | None:
    """Return exponent, factor (as a logarithm) and the most rows of the last three points."""
    mine = sorted((point["rows"], point[what]) for point in points if point["store"] == store and what in point)[-3:]
    if len(mine) < 2:
        return None
    slope, start = np.polyfit(np.log([rows for rows, _ in mine]), np.log([value for _, value in mine]), 1)
    return float(slope), float(start), mine[-1][0]


def read_points(path: Path) -> list[Point]:
    """Return the points of a file that `bench.stores --csv` wrote; of those measured twice, the later ones."""
    by_key: dict[tuple[int, str], Point] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for rows, store, what, value in csv.reader(file):
            if not rows.isdigit():  # the head, where there is one
                continue
            key = int(rows), store
            if what == "build s":  # the first that is told of a point
                by_key[key] = {"rows": key[0], "store": store}
            by_key[key][what] = float(value)
    return [point for point in by_key.values() if "one ms" in point]


def merged(old: Iterable[Point], new: Iterable[Point]) -> list[Point]:
    """Return all points in order; a new one takes the place of an old one."""
    points = {(point["rows"], point["store"]): point for point in [*old, *new]}
    order = {store: number for number, store in enumerate((*STORES, *(f"milvus{kind}" for kind in MILVUS)))}
    return [points[key] for key in sorted(points, key=lambda key: (key[0], order.get(key[1], 99)))]


def crossing(points: Iterable[Point], store: str, what: str, limit: float) -> float | None:
    """Return how many rows a store can have before it takes more than so much, by a power law through its last points.

    None where that is beyond ten times what was measured: nobody knows what happens there.
    """
    law = _law(points, store, what)
    if law is None or law[0] <= 0:
        return None
    slope, start, most = law
    rows = float(np.exp(min((np.log(limit) - start) / slope, 100)))
    return rows if rows <= 10 * most else None
