"""Measures the peak memory of ingesting a corpus, and of ingesting ten times as many documents.

It is measured for an ingestion that stores neither words nor vectors, for an index with words only, and
for indexes with vectors in several stores. The differences are the memory that words and vectors need.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.scale.corpus import documents_of, repeat
from bench.scale.ingesting import ingest_once
from bench.scale.process import run_apart
from exhibit.engine import track

ONCE = 200
TIMES = (1, 10)
STORES = {
    "none": "the work alone",
    "words": "with words (`lexicon`)",
    "faiss": "with vectors in `faiss`",
    "milvus:lite": "with vectors in `milvus:lite`",
}
"""The content of an index beside its documents' entries: nothing, words, or vectors; by the name in the table."""
JOBS = 2
WHOLE = "whole"
"""An index with the settings of `routed`: words, and vectors in `faiss`."""
FLAT_ONCE, FLAT_TIMES = 1000, (1, 20)
"""The number of documents, and the factors for which the peak memory must stay nearly the same."""


def measure(source: Path | None, *, quick: bool) -> dict[str, Any]:
    """Return the peak memory of ingesting documents: one point per kind of index and number of documents.

    The memory is that of the process and its workers together. The result has the keys `once` (the smaller
    number of documents), `jobs` (workers) and `points`.
    """
    once = 30 if quick else ONCE
    stores = [store for store in STORES if store != "milvus:lite" or find_spec("pymilvus")]
    wanted = [(store, times) for store in stores for times in TIMES]
    points = [
        measure_point(source, once, times, store) for store, times in track(wanted, total=len(wanted), label="memory")
    ]
    return {"once": once, "jobs": JOBS, "points": points}


def measure_flatness(source: Path | None, *, quick: bool) -> dict[str, Any]:
    """Measure the peak memory of building an index of 1,000 documents and an index of 20,000 documents.

    With `quick`, the indexes have 15 and 300 documents. The key `points` of the result has both measurements.
    """
    once = 15 if quick else FLAT_ONCE
    points = [
        measure_point(source, once, times, WHOLE) for times in track(FLAT_TIMES, total=None, label="flat", unit="size")
    ]
    return {"jobs": JOBS, "points": points}


def measure_point(source: Path | None, once: int, times: int, store: str) -> dict[str, Any]:
    """Return the peak memory of ingesting `once` × `times` documents into a store with two workers."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        repeat(documents_of(source), once * times, folder / "corpus")
        kept = {"words": "none", WHOLE: "faiss"}.get(store, store)
        words = store in ("words", WHOLE)
        run = run_apart(ingest_once, folder / "corpus", folder, store=kept, words=words, engine="local", jobs=JOBS)
        figures = {"documents": run.value["documents"], "chunks": run.value["chunks"], "seconds": run.value["clock"]}
        return {"store": store, "times": times, **figures, "peak": run.peak}


def compute_growth(points: Sequence[dict[str, Any]], store: str) -> dict[str, float] | None:
    """Return how the peak memory with a store grows from the smallest to the largest corpus.

    `ratio` is the peak with the most documents divided by the peak with the fewest; `document` and `chunk`
    are bytes per added document and per added chunk. None if there are fewer than two measurements.
    """
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
