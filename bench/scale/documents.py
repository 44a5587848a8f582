"""Measures 10² to 10⁴ documents: conversion and ingestion by stage, and whether time is linear."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.convert import convert
from bench.scale.corpus import CONTRACTS, documents_of, files_of, repeat, repeat_benchmark, repeat_contracts
from bench.scale.ingesting import ingest_once, measure_queries
from bench.scale.process import run_apart
from exhibit.engine import track
from exhibit.evidence import read_document
from exhibit.rag.splitters import rcts
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError

SIZES = (100, 300, 1000, 10_000)
TEXT_SIZES, PDF_SIZES = (100, 1000, 10_000), (100, 300)
"""The numbers of converted documents: texts, and PDFs, which take some ten times as long."""
_SAMPLE = 256
"""The number of chunks for timing the default embedder."""


def measure(source: Path | None, *, limit: int) -> dict[str, Any]:
    """Measure conversion, ingestion and queries at several numbers of documents.

    Returns:
        `ingest` and `convert`: the measurements at each number of documents.
        `exponent`: b in "ingestion seconds = a · documents^b"; 1 means linear.
        `spread`: how much the seconds per document vary; 0.15 means ± 15%.
        `default_embedder` and `pdf`: the time to embed one chunk, and the time to read one PDF page.
    """
    ingests = [
        measure_ingestion(source, size)
        for size in track(_list_sizes(SIZES, limit), total=None, label="sizes", unit="size")
    ]
    text = [measure_conversion("legalbenchrag", repeat_benchmark, size) for size in _list_sizes(TEXT_SIZES, limit)]
    pdf = [measure_conversion("cuad", repeat_contracts, size) for size in _list_sizes(PDF_SIZES, limit)]
    return {
        "ingest": ingests,
        "convert": {"text": text, "pdf": pdf},
        "exponent": fit_exponent([p["documents"] for p in ingests], [p["seconds"] for p in ingests]),
        "spread": spread([p["seconds"] / p["documents"] for p in ingests]),
        "default_embedder": run_apart(measure_embedder, _SAMPLE).value,
        "pdf": run_apart(measure_reading).value,
    }


def _list_sizes(sizes: Sequence[int], limit: int) -> list[int]:
    return [size for size in sizes if size <= limit]


def measure_ingestion(source: Path | None, size: int) -> dict[str, Any]:
    """Ingest `size` documents and query the new index; return the times and the peak memory of both steps."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        paths = repeat(documents_of(source), size, folder / "corpus")
        run = run_apart(ingest_once, paths, folder)
        queries = run_apart(measure_queries, folder)
        return {**run.value, "peak": run.peak, "queries": queries.value, "query_peak": queries.peak}


def measure_conversion(name: str, make: Callable[[int, Path], Path], size: int) -> dict[str, Any]:
    """Return the cost of converting `size` documents.

    It has the processor seconds of all processes, the wall-clock seconds, and the peak memory.
    """
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        source = make(size, Path(folder) / "source")
        before = _measure_children()
        run = convert(name, source, 2)
        if isinstance(run, str):
            raise ToolkitError(f"bench.scale: converting {size} documents: {run}")
        shutil.rmtree(source)
        counts = run.info["counts"]
        figures = {"documents": counts["documents"], "questions": counts["questions"], "peak": run.peak}
        return {**figures, "seconds": _measure_children() - before, "clock": run.seconds}


def _measure_children() -> float:
    """Return the processor seconds of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def fit_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return b of the best fit `seconds = a · sizes^b`: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else 1.0


def spread(values: Sequence[float]) -> float:
    """Return half the range of the values, divided by the middle of the range: 0.15 means ± 15%."""
    return (max(values) - min(values)) / (max(values) + min(values))


def measure_embedder(chunks: int) -> dict[str, float]:
    """Return the default embedder's time for a chunk of 500 characters: processor time and wall-clock time."""
    texts = [path.read_text(encoding="utf-8") for path in documents_of(None)]
    pieces = [text[start:end] for text in texts for start, end in rcts.split(text)]
    wanted = [f"{number} {pieces[number % len(pieces)]}" for number in range(chunks)]
    module, argument = load_plugin("exhibit.models.embedders", "minilm")
    embedder = module.open(argument)
    embedder.embed(wanted[:32], role="passage")  # the first call loads the model
    started, clocked = time.process_time(), time.perf_counter()
    embedder.embed(wanted, role="passage")
    return {
        "chunks": chunks,
        "seconds": (time.process_time() - started) / chunks,
        "clock": (time.perf_counter() - clocked) / chunks,
    }


def measure_reading() -> dict[str, float]:
    """Measure how long reading a PDF takes, on the sample contracts.

    The result has `pages`, the number of pages read, and `seconds`, the mean processor time per page.
    """
    paths = files_of(CONTRACTS / "full_contract_pdf")
    read_document(paths[0])
    started = time.process_time()
    documents = [read_document(path) for path in paths]
    seconds = time.process_time() - started
    pages = sum(len(document.pages) for document in documents)
    return {"pages": pages, "seconds": seconds / pages}
