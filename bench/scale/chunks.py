"""Measures search in 10⁴ to 10⁶ chunks: time and recall of each index type, compared with exact search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.scale.server import Server
from bench.stores import compare, grow, make_mixture, read_vectors
from bench.vectors import read_description
from exhibit.engine import track
from exhibit.models.protocols import Vectors
from exhibit.schemas.errors import ToolkitError

ROWS = (10_000, 100_000, 310_000, 1_000_000)
QUICK = (2_000, 10_000)
STORES = ("faiss", "faiss:fp16", "faiss:pq")
LIMIT_MS = 60
"""The most milliseconds of a query, without its embedding."""
MILVUS = ("milvus", "milvus?index=IVF_FLAT", "milvus?index=HNSW")
"""The index types of a Milvus server that are measured: exact, inverted lists, and a graph."""
_LARGEST = 100_000
"""The most rows for slow stores, unless more are requested."""
_SLOW = MILVUS
"""Slow stores: a server builds its index after the rows are added, which takes minutes for a million rows."""
_QUERIES = 200
_BYTES = ("search MB", "disk MB")
_MIXED = "a mixture of 300 clusters"

Point = dict[str, Any]


def measure(
    vectors: Path | None,
    asked: Path | None = None,
    *,
    rows: Sequence[int] = (),
    stores: Sequence[str] = (),
    server: Server | None = None,
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure each store at each number of rows.

    `points` of the result has one mapping for each store and number of rows; `vectors` describes the vectors.
    Points in `known` that were measured on the same vectors are included, unless they are measured again.
    """
    base = read_vectors(vectors) if vectors else make_mixture(20_000, 384, 1)
    queries = read_vectors(asked)[:_QUERIES] if asked else grow(base, _QUERIES, 2, spread=0.6, keep=False)
    points: list[Point] = []
    for size in track(rows or ROWS, total=len(rows or ROWS), label="chunks", unit="size"):
        wanted = [one for one in stores or (*STORES, *(MILVUS if server else ())) if rows or is_allowed(one, size)]
        here = [one for one in wanted if one not in MILVUS]
        by_store = compare(size, here, base, queries) if here else {}
        for one in (one for one in wanted if one in MILVUS):
            by_store[one] = _measure_server(server, one, size, base, queries)
        points += [{"rows": size, "store": store, **values} for store, values in by_store.items()]
    told = describe_vectors(vectors, len(base))
    before = known["points"] if known and known["vectors"] == told else ()
    return {"points": merge_points(before, points), "vectors": told}


def is_allowed(store: str, rows: int) -> bool:
    """Return whether a store is measured with this many rows by default; slow stores have an upper limit."""
    return rows <= _LARGEST or store not in _SLOW


def describe_vectors(vectors: Path | None, there: int) -> str:
    """Return a description of the vectors.

    If there are fewer vectors than the largest measurement needs, the description also states how many there
    are, and that further vectors are made by shifting these.
    """
    told = read_description(vectors) if vectors else _MIXED
    return told if there >= ROWS[-1] else f"{told}; {there:,}, grown by moving them along the difference of two others"


def _measure_server(server: Server | None, store: str, rows: int, base: Vectors, queries: Vectors) -> dict[str, float]:
    """Return the cost of an index type on a server: the server's memory and disk space, and wall-clock times.

    The time of a batch is left out: it is measured as processor time of this process, but here the server does
    the search.
    """
    if server is None:
        raise ToolkitError(f"{store}: no server is named; give --milvus URI and --milvus-data DIR")
    before = server.disk()
    spec = store.replace("milvus", f"milvus:{server.uri}", 1)

    def measure_memory() -> dict[str, float]:
        return {"search MB": server.memory(), "disk MB": server.disk() - before}

    figures = compare(rows, [spec], base, queries, seen=measure_memory)[spec]
    figures["build s"] = figures["build clock s"]
    del figures["batch ms"]
    return figures


def reckon(points: Iterable[Mapping[str, Any]], store: str, what: str, rows: int) -> float | None:
    """Return a vector store's cost, extrapolated to `rows` rows; None if it was measured for fewer than two sizes.

    `what` names the cost, such as `disk MB`. Bytes are extrapolated by a straight line through the two largest
    sizes, since every row takes the same number of bytes. Times are extrapolated by a power law.
    """
    if what in _BYTES:
        return _predict(points, store, what, rows)
    law = _fit_law(points, store, what)
    return float(np.exp(law[1] + law[0] * np.log(rows))) if law else None


def _predict(points: Iterable[Mapping[str, Any]], store: str, what: str, rows: int) -> float | None:
    mine = _list_points(points, store, what)[-2:]
    if len(mine) < 2:
        return None
    (few, less), (many, more) = mine
    return float(more + (more - less) / (many - few) * (rows - many))


def _list_points(points: Iterable[Mapping[str, Any]], store: str, what: str) -> list[tuple[int, float]]:
    return sorted((point["rows"], point[what]) for point in points if point["store"] == store and what in point)


def _fit_law(points: Iterable[Mapping[str, Any]], store: str, what: str) -> tuple[float, float, int] | None:
    """Fit a power law, cost = factor * rows ** exponent, to the measured costs of a vector store.

    Return the exponent, the logarithm of the factor, and the largest measured number of rows. Only the three
    largest sizes are used; the result is None if there are fewer than two.
    """
    mine = _list_points(points, store, what)[-3:]
    if len(mine) < 2:
        return None
    slope, start = np.polyfit(np.log([rows for rows, _ in mine]), np.log([value for _, value in mine]), 1)
    return float(slope), float(start), mine[-1][0]


def merge_points(old: Iterable[Point], new: Iterable[Point]) -> list[Point]:
    """Return the sorted measurements; a new measurement replaces the old one of the same store and row count."""
    points = {(point["rows"], point["store"]): point for point in [*old, *new]}
    order = {store: number for number, store in enumerate((*STORES, *MILVUS))}
    return [points[key] for key in sorted(points, key=lambda key: (key[0], order.get(key[1], 99)))]


def find_crossing(points: Iterable[Point], store: str, what: str, limit: float) -> float | None:
    """Estimate the number of rows at which a store's measured value `what`, such as `one ms`, reaches a limit.

    The estimate is from a power law through the store's last three measurements. None if there are fewer than
    two, if the value does not grow, or if the estimate is over ten times the measured rows and thus unreliable.
    """
    law = _fit_law(points, store, what)
    if law is None or law[0] <= 0:
        return None
    slope, start, most = law
    rows = float(np.exp(min((np.log(limit) - start) / slope, 100)))
    return rows if rows <= 10 * most else None
