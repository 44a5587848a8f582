"""Compares index types with exact search on the same vectors: build time, size, search time and recall.

Building and batches are measured in processor time of all threads, which depends less on other programs. A
single query is measured in wall-clock time, which is the time that a user waits: all cores share its work.
The table also has each search time divided by that of the first index type.

python -m bench.stores --rows 10000 100000
python -m bench.stores --rows 20000 --stores faiss milvus:lite "milvus:lite?index=HNSW"     (the extra `milvus`)
python -m bench.stores --rows 1000000 --vectors index/chunk.faiss --csv points.csv

Vectors come from a file: .npy, or the .faiss file of an index. If the file has fewer vectors than --rows,
new vectors are made: a vector of the file + a fraction of (a - b), where a and b are two other vectors.
This keeps the distribution. Without a file, random vectors are drawn from a mixture of clusters.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from bench._table import measure_peak_memory, print_table
from exhibit.models.protocols import Vectors
from exhibit.rag.database import let_go
from exhibit.rag.protocols import Keys, VectorStore
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin

_STORES = ("faiss", "faiss:fp16", "faiss:pq")
_K = 64
_SPREAD = 0.35
"""The distance of a grown vector from its original: about that of chunks of one contract."""
_ROUNDED = 1e-5
"""The greatest difference between two ways to add 384 products; 6e-8 was observed."""
_STEP, _STEPS = 512, 250
"""The least number of rows per addition, and the most additions."""
_WITHIN = (500, 5000)
_SINGLE = 40


def scale_rows(vectors: Vectors) -> Vectors:
    """Return the rows scaled to length one."""
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def read_vectors(path: Path) -> Vectors:
    """Return the vectors of a file; those in half precision are scaled to length one again."""
    if path.suffix == ".npy":
        stored = np.load(path)
        return (
            scale_rows(stored.astype(np.float32))
            if stored.dtype == np.float16
            else stored.astype(np.float32, copy=False)
        )
    index: Any = faiss.read_index(str(path))  # the name keeps the index alive, which owns its parts
    vectors: Vectors = faiss.downcast_index(index.index).reconstruct_n(0, index.ntotal)
    return vectors


def make_mixture(rows: int, width: int, seed: int) -> Vectors:
    """Return random unit vectors in clusters, with most of the variance in few dimensions, like text embeddings."""
    draw = np.random.default_rng(seed)
    scales = 1 / np.sqrt(np.arange(1, width + 1, dtype=np.float32))
    centres = draw.standard_normal((300, width), dtype=np.float32) * scales
    vectors: Vectors = draw.standard_normal((rows, width), dtype=np.float32)
    vectors *= 0.7 * scales
    vectors += centres[draw.integers(0, len(centres), rows)]
    return scale_rows(vectors)


def grow(base: Vectors, rows: int, seed: int, *, spread: float = _SPREAD, keep: bool = True) -> Vectors:
    """Return `rows` vectors: first the vectors of `base`, then new vectors near them.

    If `base` has more than `rows` vectors, a random sample of `base` is returned. Without `keep`, all returned
    vectors are new.
    """
    draw = np.random.default_rng(seed)
    first = base[np.sort(draw.permutation(len(base))[:rows])] if keep else base[:0]
    grown = np.empty((rows, base.shape[1]), dtype=np.float32)
    grown[: len(first)] = first
    for at in range(len(first), rows, 50_000):
        n = min(50_000, rows - at)
        one, two, three = (draw.integers(0, len(base), n) for _ in range(3))
        grown[at : at + n] = scale_rows(base[one] + spread * (base[two] - base[three]))
    return grown


def build(spec: str, folder: Path) -> dict[str, float]:
    """Fill a store in batches, as ingestion does, and save it; return its times, its size and its memory."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    store = _open_store(spec, folder, vectors.shape[1])
    started, clock = time.process_time(), time.perf_counter()
    step = max(_STEP, len(vectors) // _STEPS)
    for at in range(0, len(vectors), step):
        rows = np.asarray(vectors[at : at + step])
        store.add(np.arange(at, at + len(rows)), rows)
    store.save()
    seconds = {"build s": time.process_time() - started, "build clock s": time.perf_counter() - clock}
    store.close()
    size = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    return {**seconds, "disk MB": size / 1e6, "build MB": measure_peak_memory()}


def search(spec: str, folder: Path) -> dict[str, float]:
    """Open a store and search it; return times, memory and recall.

    It is searched with single queries, with a batch of queries, and with queries that are limited to some keys.
    """
    queries, exact = np.load(folder / "queries.npy"), np.load(folder / "exact.npy")
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    rows = len(vectors)
    store = _open_store(spec, folder, queries.shape[1])
    figures: dict[str, float] = {}
    keys = store.search(queries, _K)[1]
    figures["one ms"] = _time_each(partial(store.search, k=_K), queries)
    figures["batch ms"] = min(_time_work(lambda: store.search(queries, _K)) for _ in range(3)) / len(queries)
    for size in _WITHIN:
        if size < rows:
            documents = np.linspace(0, rows - 100, size // 100).astype(np.int64)
            within = np.unique((documents[:, None] + np.arange(100)).ravel())
            figures[f"within {size} ms"] = _time_each(partial(store.search, k=_K, within=within), queries)
    figures["search MB"] = measure_peak_memory()
    store.close()
    for k in (10, _K):  # last, since these rows are not part of the store's memory
        figures[f"recall@{k}"] = compute_recall(vectors, queries, keys[:, :k], exact[:, k - 1])
    return figures


def _open_store(spec: str, folder: Path, width: int) -> VectorStore:
    module, argument = load_plugin("exhibit.rag.stores", spec)
    (folder / "index").mkdir(exist_ok=True)
    store: VectorStore = module.open(folder / "index", argument, name="chunk", dimensions=width)
    return store


def compute_recall(vectors: Vectors, queries: Vectors, keys: Keys, least: Vectors) -> float:
    """Return the recall of a search: the share of its results that score no less than the k-th exact result.

    `least` has, for each query, the score of the k-th exact result. A key below 0 in `keys` means no result.
    Scores are compared instead of keys, since repeated chunks have the same vector, and any of them is right.
    """
    near = [np.asarray(vectors[row]) @ query for row, query in zip(keys, queries, strict=True)]
    return float(np.mean((np.array(near) >= least[:, None] - _ROUNDED) & (keys >= 0)))


def _time_work(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of a function."""
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)


def _time_each(work: Callable[[Vectors], object], queries: Vectors) -> float:
    """Return the median wall-clock milliseconds of single queries, each of which uses all cores."""
    work(queries[:1])
    took = []
    for number in range(min(_SINGLE, len(queries))):
        started = time.perf_counter()
        work(queries[number : number + 1])
        took.append(1000 * (time.perf_counter() - started))
    return float(np.median(took))


def measure(spec: str, folder: Path) -> dict[str, float]:
    """Build and search a store in two processes, so that the memory of each is measured; return all figures."""
    figures: dict[str, float] = {}
    for work in (build, search):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            figures |= pool.submit(work, spec, folder).result()
    return figures


def compare(
    rows: int, specs: list[str], base: Vectors, queries: Vectors, *, seen: Callable[[], dict[str, float]] = dict
) -> dict[str, dict[str, float]]:
    """Measure each store on the same vectors; return its figures by the store's name.

    `seen` is called after each measurement, while the store still exists; the figures it returns are added.
    """
    vectors = grow(base, rows, 1)
    nearest = faiss.knn(queries, vectors, _K, metric=faiss.METRIC_INNER_PRODUCT)[0]
    points: dict[str, dict[str, float]] = {}
    for spec in specs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "vectors.npy", vectors)
            np.save(folder / "queries.npy", queries)
            np.save(folder / "exact.npy", nearest)
            points[spec] = measure(spec, folder) | seen()
            let_go(folder / "index", spec)  # a server would keep it
            print(f"{rows} rows, {spec}: done", file=sys.stderr)
    return points


def show(rows: int, points: dict[str, dict[str, float]]) -> None:
    """Print a table of the measurements of each vector store.

    Two columns give a store's search times divided by those of the first store.
    """
    columns = list(dict.fromkeys(name for figures in points.values() for name in figures))
    first = next(iter(points.values()))
    table = []
    for spec, figures in points.items():
        cells = [f"{figures[name]:.4g}" if name in figures else "" for name in columns]
        ratio = [f"{figures[name] / first[name]:.3f}" for name in ("one ms", "batch ms")]
        table.append([spec, *cells, *ratio])
    print_table(f"{rows} rows, k = {_K}", ["store", *columns, "one / first", "batch / first"], table)


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Measure every vector store with every number of rows, and print a table for each number of rows."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.stores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000], metavar="N")
    parser.add_argument("--stores", nargs="+", default=list(_STORES), metavar="STORE")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=".npy, or the .faiss file of an index")
    parser.add_argument("--queries", type=Path, metavar="FILE", help=".npy (default: made from the vectors)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="append the points to this file")
    options = parser.parse_args(argv)
    base = read_vectors(options.vectors) if options.vectors else make_mixture(20_000, 384, 1)
    queries = read_vectors(options.queries)[:200] if options.queries else grow(base, 200, 2, spread=0.6, keep=False)
    for rows in options.rows:
        points = compare(rows, options.stores, base, queries)
        show(rows, points)
        if options.csv:
            with options.csv.open("a", encoding="utf-8", newline="") as file:
                lines = [(rows, spec, what, f"{value:.6g}") for spec, v in points.items() for what, value in v.items()]
                csv.writer(file).writerows(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
