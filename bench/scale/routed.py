"""Measures the whole `routed` retrieval at 326,000 and a million chunks.

Each question is asked twice: with the name of its document and without it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.scale.corpus import documents_of
from bench.scale.grown import grow_index, names_of, rename
from bench.scale.ingesting import EMBEDDER, QUESTIONS
from bench.scale.process import measure_resident, run_apart
from exhibit.models.protocols import Embedder
from exhibit.rag.config import Config
from exhibit.rag.index import Entry
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.questions import understand
from exhibit.rag.saved_index import open_index
from exhibit.runtime.plugins import load_plugin

POINTS = ((326_000, "faiss"), (1_000_000, "faiss:pq"))
"""The numbers of chunks with their stores: the most for the flat index, and a size for which `pq` is recommended."""
_QUICK = ((3_000, "faiss"), (3_000, "faiss:pq"))
_ASKED = 100
_POOL = 256

Questions = Sequence[tuple[str, str]]
"""Questions, each with the file that it names; empty if it names none that is known."""


class Asked(NamedTuple):
    """The cost of one query, without the time of its embedding.

    It has the wall-clock and processor time in milliseconds, and the number of passages that were compared.
    """

    clock: float
    processor: float
    compared: int


def measure(index: Path | None, bundle: Path | None, *, quick: bool) -> dict[str, Any]:
    """Return the query times on indexes of several sizes and stores, with the peak memory.

    Each index is made by enlarging the given index or, if none is given, an index of the sample contracts.
    """
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        small = index or make_small_index(folder / "small")
        questions = read_questions(bundle)
        points = []
        for chunks, store in _QUICK if quick else POINTS:
            grown = run_apart(grow_index, small, folder / store.replace(":", "-"), chunks=chunks, store=store)
            asked = run_apart(ask, grown.value, questions, folder / "cache", most=10 if quick else _ASKED)
            points.append({"store": store, "grown s": grown.seconds, **asked.value, "peak": asked.peak})
    return {"points": points, "from": index.name if index else "the samples' contracts"}


def make_small_index(folder: Path) -> Path:
    config = Config.preset("routed", embedder=EMBEDDER)
    Pipeline(config, cache=folder.with_name("small-cache"), engine="serial").index(documents_of(None), folder)
    return folder


def read_questions(bundle: Path | None) -> Questions:
    """Return evenly spaced answerable questions of a bundle, each with the name of its document.

    Without a bundle, return a few fixed questions about the sample documents, each with an empty name.
    """
    if bundle is None:
        return [(question, "") for question in QUESTIONS]
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    told = [(row["question"], row["contexts"][0]["filename"]) for row in rows if row["contexts"]]
    return told[:: max(1, len(told) // _ASKED)]


def ask(folder: Path, questions: Questions, cache: Path, *, most: int) -> dict[str, Any]:
    """Open an index and search it with at most `most` questions, with and without the document's name.

    Return the search times under `named` and `unnamed`, the `recall` of the nearest chunks, and the memory in
    bytes under `own` and `mapped`. A first search, which is not measured, warms up the index.
    """
    index = open_index(folder)
    module, argument = load_plugin("exhibit.models.embedders", index.config.embedder)
    embedder: Embedder = module.open(argument)
    pipeline = Pipeline(index.config, cache=cache, embedder=embedder).open(folder)
    entries = {entry.number: entry for entry in index.documents}
    named = [rename_question(entries, *question, turn=turn) for turn, question in enumerate(questions[:most])]
    unnamed = [understand(question).asks for question, _ in questions[:most]]
    # vectors are cached before the clock starts, and the threads that computed them are idle again
    vectors = pipeline.embedder.embed([*named, *unnamed], role="query")[len(named) :]
    pipeline.search([named[0]])
    figures: dict[str, Any] = {"chunks": len(index), "documents": len(index.documents)}
    for kind, asked in (("named", named), ("unnamed", unnamed)):
        figures[kind] = summarise_asked([_time_question(pipeline, question) for question in asked])
    store, keys = index.store("chunk"), index.keys("chunk")
    nearest, exact = (store.search(vectors, _POOL, within=within)[1] for within in (None, keys))
    figures["recall"] = float(
        np.mean([len(np.intersect1d(*both)) / _POOL for both in zip(nearest, exact, strict=True)])
    )
    return {**figures, "own": measure_resident("RssAnon"), "mapped": measure_resident("RssFile")}


def rename_question(entries: Mapping[int, Entry], question: str, filename: str, *, turn: int) -> str:
    """Return a question with the name of its document replaced by the name of a copy of that document.

    `turn`, modulo the number of copies, is the number of the copy; copy 0 is the original. If no document has
    this file name, the question is returned unchanged.
    """
    original = next((entry for entry in entries.values() if entry.filename == filename), None)
    if original is None:
        return question
    copies = sum(entry.sha256 == original.sha256 for entry in entries.values())
    return rename(question, names_of(original), turn % copies)


def summarise_asked(asked: Sequence[Asked]) -> dict[str, float]:
    """Return the median costs of some queries, and the 90th percentile of their wall-clock time."""
    clock, processor, compared = (np.array(column) for column in zip(*asked, strict=True))
    return {
        "questions": len(asked),
        "clock": float(np.median(clock)),
        "clock 90%": float(np.quantile(clock, 0.9)),
        "processor": float(np.median(processor)),
        "compared": float(np.median(compared)),
    }


def _time_question(pipeline: Pipeline, question: str) -> Asked:
    clock, processor = time.perf_counter(), time.process_time()
    [retrieved] = pipeline.search([question])
    took = 1000 * (time.perf_counter() - clock), 1000 * (time.process_time() - processor)
    return Asked(*took, int(retrieved.trace["passages"].get("compared", 0)))
