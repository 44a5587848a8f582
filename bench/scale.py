"""Measures how time and memory grow with documents, workers and chunks.

    python -m bench.scale [--documents 100 1000] [--jobs 1 2] [--engines local ray] [--rows 10000 100000]
                          [--stores faiss milvus:lite] [--source FOLDER] [--page FILE]

Documents are copies of a folder's files (the samples' contracts by default), each with its number in the text, so
that no two chunks are equal. Vectors are drawn from a mixture of clusters, like those of real chunks.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import faiss
import numpy as np

from bench.table import ROOT, Table, publish, time_work, watch_memory
from exhibit.evidence import is_readable
from exhibit.models.protocols import Vectors
from exhibit.rag import Config, Pipeline
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError

CONTRACTS = ROOT / "samples" / "cuad" / "CUAD_v1" / "full_contract_txt"
K = 64
WITHIN_KEYS = 5000
QUERIES = ("Who may terminate?", "Which law governs?", "What is the fee?", "When does the term end?")
SENTENCE = re.compile(r"(.{240,}?[.;,:])(?=\s)", re.DOTALL)
"""Matches texts shorter than a chunk: a number after each match makes every chunk of a copy different."""


def repeat_documents(source: Path, count: int, folder: Path) -> list[Path]:
    """Write `count` documents into a folder, as numbered copies of the files below `source`; return their paths."""
    files = sorted(path for path in source.rglob("*") if path.is_file() and is_readable(path))
    written = []
    for position in range(count):
        turn, which = divmod(position, len(files))
        path = folder / f"{position // 1000:04}" / f"{files[which].stem}-{turn:05}{files[which].suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".txt":
            text = SENTENCE.sub(rf"\1 (No. {turn})", files[which].read_text(encoding="utf-8"))
            path.write_text(text, encoding="utf-8")
        else:
            path.write_bytes(files[which].read_bytes() + f"\n%% {turn}\n".encode())
        written.append(path)
    return written


def measure_index(source: Path, documents: int, *, engine: str, jobs: int, embedder: str) -> list[object]:
    """Index copies of documents in a separate process, and search the index; return the row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repeat_documents(source, documents, folder / "corpus")
        command = [sys.executable, "-m", "exhibit", "index", str(folder / "corpus"), "--out", str(folder / "index")]
        command += ["--embedder", embedder, "--engine", engine, "--jobs", str(jobs)]
        environment = {**os.environ, "EXHIBIT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        before = os.times()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with watch_memory(process.pid) as peak:
            (_, error), seconds = time_work(process.communicate)
        if process.returncode:
            raise ToolkitError(f"exhibit index: {error.decode().strip()[-300:]}")
        after = os.times()
        processor = sum(after[2:4]) - sum(before[2:4])
        disk = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
        with pin_cache(folder / "cache"):
            query = measure_queries(folder / "index", embedder)
    return [
        documents, engine, jobs, f"{seconds:.1f}", f"{1000 * processor / documents:.0f}", peak() >> 20,
        f"{disk / 1e6:.0f}", f"{query:.0f}",
    ]  # fmt: skip


@contextmanager
def pin_cache(folder: Path) -> Iterator[None]:
    """Use another cache folder while the block runs."""
    before = os.environ.get("EXHIBIT_CACHE")
    os.environ["EXHIBIT_CACHE"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("EXHIBIT_CACHE")
        if before is not None:
            os.environ["EXHIBIT_CACHE"] = before


def measure_queries(index: Path, embedder: str) -> float:
    """Return the median milliseconds of a search, after a first search has opened the index and the models."""
    pipeline = Pipeline(Config.preset("routed", embedder=embedder)).open(index)
    pipeline.search([QUERIES[0]])
    searches = [partial(pipeline.search, [query]) for query in QUERIES]
    return 1000 * float(np.median([time_work(search)[1] for search in searches]))


# ---------------------------------------------------------------- vectors


def make_mixture(rows: int, width: int, seed: int) -> Vectors:
    """Return random unit vectors in clusters, with most of the variance in few dimensions, like text embeddings."""
    draw = np.random.default_rng(seed)
    scales = 1 / np.sqrt(np.arange(1, width + 1, dtype=np.float32))
    centres = draw.standard_normal((300, width), dtype=np.float32) * scales
    vectors: Vectors = draw.standard_normal((rows, width), dtype=np.float32)
    vectors *= 0.7 * scales
    vectors += centres[draw.integers(0, len(centres), rows)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def measure_store(spec: str, rows: int, folder: Path) -> list[object]:
    """Fill a store in batches, as ingestion does, and search it; return the row of the table."""
    vectors, queries = make_mixture(rows, 384, 1), make_mixture(100, 384, 2)
    module, argument = load_plugin("exhibit.rag.stores", spec)
    store = module.open(folder, argument, name="chunk", dimensions=384)
    step = max(512, rows // 250)

    def build() -> None:
        for start in range(0, rows, step):
            store.add(np.arange(start, min(start + step, rows)), vectors[start : start + step])
        store.save(np.arange(rows))

    _, seconds = time_work(build)
    exact = faiss.knn(queries, vectors, K, metric=faiss.METRIC_INNER_PRODUCT)[1]
    keys = store.search(queries, K)[1]
    recall = np.mean([len(set(a) & set(b)) / K for a, b in zip(keys, exact, strict=True)])
    within = np.unique(np.linspace(0, rows - 1, min(WITHIN_KEYS, rows)).astype(np.int64))
    median = time_queries(lambda query: store.search(query, K), queries)
    limited = time_queries(lambda query: store.search(query, K, within=within), queries)
    store.close()
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    return [spec, f"{rows:,}", f"{seconds:.1f}", f"{disk:.0f}", f"{median:.2f}", f"{limited:.2f}", f"{recall:.3f}"]


def time_queries(search: Callable[[Vectors], object], queries: Vectors) -> float:
    """Return the median milliseconds of single queries."""
    times = []
    for number in range(40):
        started = time.perf_counter()
        search(queries[number : number + 1])
        times.append(1000 * (time.perf_counter() - started))
    return float(np.median(times))


def measure_store_in_process(spec: str, rows: int) -> list[object]:
    """Measure a store in a separate process, so that one store's memory does not slow the next."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_store, spec, rows, Path(folder)).result()


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of ingestion by documents and workers, and a table of stores by vectors."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, nargs="*", default=[100, 1000, 10_000], metavar="N")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--engines", nargs="+", default=["local"], metavar="NAME", help="local, ray, ray:ADDRESS")
    parser.add_argument("--embedder", default="hashing", help="hashing shows the cost of everything else (default)")
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], metavar="N")
    parser.add_argument("--stores", nargs="+", default=["faiss"], metavar="STORE", help="faiss, milvus:lite, …")
    parser.add_argument("--source", type=Path, default=CONTRACTS, metavar="FOLDER", help="documents to repeat")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    options = parser.parse_args(argv)
    indexes = [
        measure_index(options.source, documents, engine=engine, jobs=jobs, embedder=options.embedder)
        for documents in options.documents
        for engine in options.engines
        for jobs in options.jobs
    ]
    stores = [measure_store_in_process(spec, rows) for rows in options.rows for spec in options.stores]
    head = ["documents", "engine", "workers", "seconds", "processor ms each", "peak MB", "disk MB", "ms a question"]
    store_head = ["store", "vectors", "seconds to build", "disk MB", "ms a query", "ms within 5,000", f"recall@{K}"]
    tables = [Table("Indexing, then asking", head, indexes), Table("Vector stores", store_head, stores)]
    publish(options.page, "Cost as work grows", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
