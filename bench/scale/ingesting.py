"""Measures one ingestion: the processor time of each stage, the size on disk, and the time of a query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar, cast
from unittest.mock import patch

import numpy as np

import exhibit.rag.ingest
from bench.scale.process import Clock
from exhibit.engine import Engine, Outcome, open_engine
from exhibit.models.embedders import CachedEmbedder, VectorCache
from exhibit.models.protocols import Embedder, Role, Vectors
from exhibit.rag.config import Config, list_presets
from exhibit.rag.index import Index
from exhibit.rag.lexicon import Lexicon
from exhibit.rag.pipeline import Pipeline, find_files
from exhibit.rag.protocols import Keys, Layer, VectorStore
from exhibit.rag.saved_index import open_index
from exhibit.rag.summaries import Summariser, open_summariser
from exhibit.runtime.plugins import load_plugin

In = TypeVar("In")
Out = TypeVar("Out")

EMBEDDER = "hashing:384"
"""An embedder without a model, with vectors as long as the default's: the measurement is of all other work."""
STAGES = ("read", "structure", "profile", "split", "checksum", "summarise", "embed", "words", "index", "store", "save")
PARENT = ("embed", "index", "store", "save")
"""The stages of the one process that collects the workers' documents."""
PRESETS = ("sac", "sac-multilayer", "routed")
QUESTIONS = (
    "Which law governs the distributor agreement?",
    "Consider the Software License and Hosting Agreement of Tessaline Software; who may terminate it for convenience?",
    "Is liability capped in the collaboration agreement with Corvane Biologics?",
    "What notice must be given before the master services agreement is not renewed?",
    "May the licensee assign the agreement without consent?",
    "Consider the supply agreement of the glassworks; what is the minimum order?",
    "Who owns the intellectual property that is made under the collaboration?",
    "How long does confidentiality last after the agreement ends?",
    "Is there an exclusive territory, and which?",
    "Which insurance must be kept, and for how much?",
)
_WORKER = {
    "read_document": "read",
    "read_structure": "structure",
    "read_profile": "profile",
    "sha256_of": "checksum",
    "read_words": "words",
}
"""The functions that `rag.ingest` calls for a document, by stage; splitting is the rest, without the summaries."""


class _Engine:
    """An engine that measures the seconds until its first item is done.

    If the items run in this process (`whole`), it also measures their processor time.
    """

    def __init__(self, inner: Engine, clock: Clock, *, whole: bool) -> None:
        self._inner, self._clock, self._whole = inner, clock, whole
        self.first = 0.0

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        started = time.perf_counter()
        work = self._clock.wrap_timed("prepare", function) if self._whole else function
        for outcome in self._inner.map(work, items):
            self.first = self.first or time.perf_counter() - started
            yield outcome


class _Embedder:
    """An embedder that measures its own processor time."""

    def __init__(self, inner: Embedder, clock: Clock) -> None:
        self.name, self.dimensions = inner.name, inner.dimensions
        self._inner, self._clock = inner, clock

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        with self._clock.time_stage("embed"):
            return self._inner.embed(texts, role=role)


class _Summariser:
    """A summariser that measures its own processor time."""

    def __init__(self, inner: Summariser, clock: Clock) -> None:
        self._inner, self._clock = inner, clock
        self.alone = inner.alone

    def __call__(self, *arguments: Any) -> str:
        with self._clock.time_stage("summarise"):
            return self._inner(*arguments)

    def summarise_sections(self, *arguments: Any, **options: Any) -> list[str]:
        with self._clock.time_stage("summarise"):
            return self._inner.summarise_sections(*arguments, **options)


class _Store:
    """A wrapper of a vector store that measures the time of adding vectors.

    If `inner` is None, it discards the vectors, so that the memory of everything else can be measured.
    """

    def __init__(self, inner: VectorStore | None, clock: Clock) -> None:
        self._inner, self._clock, self._rows = inner, clock, 0

    def __len__(self) -> int:
        return self._rows if self._inner is None else len(self._inner)

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        with self._clock.time_stage("store"):
            self._rows += len(keys)
            if self._inner is not None:
                self._inner.add(keys, vectors)

    def save(self) -> None:
        if self._inner is not None:
            self._inner.save()

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def keep(self, keys: Keys) -> None:
        if self._inner is not None:
            self._inner.keep(keys)

    def fence(self, last: int) -> None:
        if self._inner is not None:
            self._inner.fence(last)


class _Index(Index):
    """An index that measures its own processor time, by stage."""

    clock: Clock
    forgets = False

    def store(self, layer: Layer) -> VectorStore:
        if layer not in self._stores:
            inner = None if self.forgets else super().store(layer)
            self._stores[layer] = cast(VectorStore, _Store(inner, self.clock))
        return self._stores[layer]

    @property
    def lexicon(self) -> Lexicon:
        fresh = self._lexicon is None
        lexicon = super().lexicon
        if fresh:
            lexicon.add = self.clock.wrap_timed("index", lexicon.add)  # type: ignore[method-assign]
        return lexicon

    def add(self, *arguments: Any) -> Keys:
        with self.clock.time_stage("index"):
            return super().add(*arguments)

    def save(self) -> None:
        with self.clock.time_stage("save"):
            super().save()


def make_config(store: str, *, words: bool = True) -> Config:
    """Return the settings to measure: vectors of documents, sections and chunks; with `words`, also a word index."""
    return Config.preset("sac-multilayer", embedder=EMBEDDER, store=store, lexicon=words)


def ingest_once(
    documents: Sequence[Path] | Path,
    folder: Path,
    *,
    store: str = "faiss",
    words: bool = True,
    engine: str = "serial",
    jobs: int = 1,
) -> dict[str, Any]:
    """Build an index below `folder`, and return its costs: times, disk space, and numbers of documents and chunks.

    `documents` is a list of files, or a folder that is searched for documents as `exhibit index` does. The
    store `none` discards every vector. With `words`, the index also has the lexicon for word search. The
    stages that run in worker processes are timed only with the engine `serial`, which runs them in this
    process.
    """
    clock = Clock()
    paths = find_files(documents) if isinstance(documents, Path) else list(documents)
    config = make_config("faiss" if store == "none" else store, words=words)
    module, argument = load_plugin("exhibit.models.embedders", config.embedder)
    inner: Embedder = module.open(argument)
    embedder = _Embedder(CachedEmbedder(inner, VectorCache(folder / "cache" / "vectors", inner)), clock)
    index = _Index(folder / "index", config, embedder=embedder.name, dimensions=embedder.dimensions)
    index.clock, index.forgets = clock, store == "none"
    runner = _Engine(open_engine(engine, jobs=jobs), clock, whole=engine == "serial")
    summarise = cast(Summariser, _Summariser(open_summariser(config), clock))
    started, clocked = time.process_time(), time.perf_counter()
    with ExitStack() as patched:
        for name, stage in _WORKER.items() if engine == "serial" else ():
            timed = clock.wrap_timed(stage, getattr(exhibit.rag.ingest, name))
            patched.enter_context(patch.object(exhibit.rag.ingest, name, timed))
        report = exhibit.rag.ingest.ingest(paths, index, config, engine=runner, embedder=embedder, summarise=summarise)
    index.save()
    took = {"seconds": time.process_time() - started, "clock": time.perf_counter() - clocked, "first": runner.first}
    index.close()
    return {
        **took,
        "documents": report.documents,
        "chunks": report.chunks,
        "characters": sum(index.document(number).characters for number in index.numbers),  # one at a time
        "set_aside": len(report.set_aside),
        "stages": _list_stages(clock),
        "disk": measure_sizes(folder / "index"),
    }


def _list_stages(clock: Clock) -> dict[str, float]:
    seconds = dict(clock.seconds)
    if "prepare" in seconds:
        apart = (*_WORKER.values(), "summarise")  # an index without words lacks that stage
        seconds["split"] = seconds.pop("prepare") - sum(seconds.get(stage, 0.0) for stage in apart)
    return {stage: seconds[stage] for stage in STAGES if stage in seconds}


def measure_sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of an index under two keys: `documents and words` (.sqlite, .json) and `vectors`."""
    bytes_of = {"documents and words": 0, "vectors": 0}
    for path in folder.rglob("*"):
        if path.is_file():
            kind = "documents and words" if path.suffix in (".sqlite", ".json") else "vectors"
            bytes_of[kind] += path.stat().st_size
    return bytes_of


def measure_queries(folder: Path, *, rounds: int = 2) -> dict[str, Any]:
    """Return query times in milliseconds by preset, without the time of the embedding.

    For each preset, `first` is the time of the first query, and `median` the median of the later ones.
    """
    times_of: dict[str, Any] = {}
    made_with = open_index(folder / "index").config
    for preset in (name for name in PRESETS if name in list_presets()):
        clock = Clock()
        module, argument = load_plugin("exhibit.models.embedders", made_with.embedder)
        config = Config.preset(
            preset, **{"routing": False, **made_with.ingest} if not made_with.lexicon else made_with.ingest
        )
        embedder = _Embedder(module.open(argument), clock)
        pipeline = Pipeline(config, cache=folder / "cache", embedder=embedder).open(folder / "index")
        times = [_time_query(pipeline, question, clock) for _ in range(rounds) for question in QUESTIONS]
        times_of[preset] = {"first": 1000 * times[0], "median": 1000 * float(np.median(times[1:]))}
    return times_of


def _time_query(pipeline: Pipeline, question: str, clock: Clock) -> float:
    before, started = clock.seconds.get("embed", 0.0), time.process_time()
    pipeline.search([question])
    return time.process_time() - started - (clock.seconds.get("embed", 0.0) - before)
