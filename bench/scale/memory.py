"""Memory from 1 × to 10 × a corpus: what the work takes, and what the index itself does."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.scale.corpus import documents_of, repeat
from bench.scale.ingesting import ingest_once
from bench.scale.process import run_apart
from engine import track

ONCE = 200
TIMES = (1, 10)
FULL = 1000
"""Documents once, in full: 20,000 of them take some six minutes for each store."""
STORES = {
    "none": "the work alone",
    "words": "with words (`lexicon`)",
    "faiss": "with vectors in `faiss`",
    "milvus:lite": "with vectors in `milvus:lite`",
}
"""What an index keeps beside what it knows of its documents: nothing, words, or vectors; by the name in the table."""
JOBS = 2


def measure(source: Path | None, *, quick: bool, full: bool = False) -> dict[str, Any]:
    """Return the peak memory of the process tree by store and by size; in full, a thousand documents and twenty."""
    once, sizes = (FULL, (1, 20)) if full else (30 if quick else ONCE, TIMES)
    stores = [store for store in STORES if store != "milvus:lite" or (find_spec("pymilvus") and not full)]
    wanted = [(store, times) for store in stores for times in sizes]
    points = [point(source, once, times, store) for store, times in track(wanted, total=len(wanted), label="memory")]
    return {"once": once, "jobs": JOBS, "points": points}


def point(source: Path | None, once: int, times: int, store: str) -> dict[str, Any]:
    """Return the peak of one ingest with two workers."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        paths = repeat(documents_of(source), once * times, folder / "corpus")
        kept = "none" if store == "words" else store
        run = run_apart(ingest_once, paths, folder, store=kept, words=store == "words", engine="local", jobs=JOBS)
        figures = {"documents": run.value["documents"], "chunks": run.value["chunks"], "seconds": run.value["clock"]}
        return {"store": store, "times": times, **figures, "peak": run.peak}


def growth(points: Sequence[dict[str, Any]], store: str) -> dict[str, float] | None:
    """Return how a store's peak grows: from first to last as a ratio, and in bytes a document and a chunk."""
    mine = sorted((p for p in points if p["store"] == store), key=lambda p: float(p["documents"]))
    if len(mine) < 2:
        return None
    first, last = mine[0], mine[-1]
    more = last["peak"] - first["peak"]
    return {
        "ratio": last["peak"] / first["peak"],
        "document": more / (last["documents"] - first["documents"]),
        "chunk": more / (last["chunks"] - first["chunks"]),
    }
