"""Memory while an index is written: it does not depend on the number of chunks, except for their keys."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import pytest

from exhibit.engine import Outcome
from exhibit.models.embedders import hashing
from exhibit.rag import ingest as ingest_module
from exhibit.rag.config import Config
from exhibit.rag.database import Database
from exhibit.rag.index import Index
from exhibit.rag.index_kinds import RawVectors
from exhibit.rag.lexicon import bm25, postings
from exhibit.rag.lexicon.bm25 import Counted, Words
from exhibit.rag.summaries import open_summariser

FEW, MANY = 4_000, 64_000
SLACK = 1.2
"""How much more than a few chunks many may take."""
MOST_A_DOCUMENT = 280
"""Bytes that a document may leave in memory once it was read: all that is known of it is on disk."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Make the limits of memory small compared with the data, as they are in a large index."""
    monkeypatch.setattr(postings, "_PENDING", 1 << 8)
    monkeypatch.setattr(postings, "_SEPARATE", 8)
    monkeypatch.setattr(bm25, "_TOGETHER", 8)


def peak(work: Callable[[], object]) -> int:
    """Return the bytes that a function allocates at its peak."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def words_of(folder: Path, chunks: int) -> Words:
    """Return words that are not saved yet: one of ten thousand in each chunk."""
    words = Words(Database(folder / f"{chunks}.sqlite"))
    for start in range(0, chunks, 500):
        rows = np.arange(start, start + 500)
        terms = ((rows * 48271) % 10_007 * 429_000 % (1 << 32)).astype(np.uint32)
        ones = np.ones(500, np.uint8)
        words.add_counted(rows, Counted(ones.astype(np.uint16), ones.astype(np.uint32), terms, ones))
    return words


@pytest.mark.parametrize("most", [MANY // 4, pytest.param(MANY, marks=pytest.mark.slow)])
def test_saving_the_words_of_many_chunks_takes_what_those_of_few_do(tmp_path, most):
    words_of(tmp_path, FEW + 500).save()  # what is imported at the first time is not counted
    few, many = words_of(tmp_path, FEW), words_of(tmp_path, most)
    assert peak(many.save) < SLACK * peak(few.save) + 2 * most
    assert len(many) == most and len(many._postings.find("nowhere")[0]) == 0


def test_writing_many_vectors_takes_what_few_do(tmp_path):
    taken = []
    for count in (FEW, MANY):
        rows = RawVectors(tmp_path / f"{count}.rows", 2)
        for start in range(0, count, 500):
            rows.add(np.arange(start, start + 500) * 3, np.ones((500, 2), np.float32))
        target = tmp_path / f"{count}.faiss"
        taken.append(peak(lambda rows=rows, target=target: rows.write(target)))
        index = faiss.read_index(str(target))
        assert index.ntotal == count and faiss.vector_to_array(index.id_map).tolist() == [*range(0, 3 * count, 3)]
        rows.remove()
    assert taken[1] < SLACK * taken[0] + 24 * MANY  # the keys are in memory


LEASE = """LEASE AGREEMENT

between Alder Holdings Ltd and Bramble Estates LLP.

1. Rent. The tenant pays the rent on the first day of each month.

2. Term. The lease ends on 30 June 2031 and may be renewed once.
"""


class Copies:
    """An engine that prepares one document, yields copies under other names, and reports when all are consumed."""

    def __init__(self, read: Callable[[], object]) -> None:
        self.read = read

    def map(self, function, items):
        sent = b""
        for path in items:
            sent = sent or pickle.dumps(function(path))
            prepared = pickle.loads(sent)
            entry = replace(prepared.entry, filename=f"{path.stem}-{path.parent.name}.txt")
            yield Outcome(replace(prepared, entry=entry))
        self.read()


class EnoughError(Exception):
    """Raised when all documents were read, since the vectors are not needed."""


class Embedder(hashing.Hashing):
    """An embedder that reports its first call."""

    def __init__(self, asked: Callable[[], object]) -> None:
        super().__init__(8)
        self.asked = asked

    def embed(self, texts, *, role):
        self.asked()
        return super().embed(texts, role=role)


def nothing() -> None:
    """Do nothing."""


def ingest_copies(
    folder: Path, count: int, *, read: Callable[[], object] = nothing, asked: Callable[[], object] = nothing
) -> None:
    """Ingest this number of copies of a lease."""
    folder.mkdir()
    lease = folder / "lease.txt"
    lease.write_text(LEASE, encoding="utf-8")
    paths = [lease, *(folder / f"{number:05}" / "lease.txt" for number in range(1, count))]
    config = Config.preset("sac-multilayer", embedder="hashing:8", lexicon=True)
    embedder = Embedder(asked)
    index = Index(folder / "index", config, embedder=embedder.name, dimensions=embedder.dimensions)
    summarise = open_summariser(config)
    report = ingest_module.ingest(paths, index, config, engine=Copies(read), embedder=embedder, summarise=summarise)
    assert report.documents == count and not report.set_aside
    index.close()


def held_when_read(folder: Path, count: int) -> int:
    """Return the bytes that an ingestion holds when all documents have been read."""
    held: list[int] = []

    def look() -> None:
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
        raise EnoughError

    gc.collect()
    tracemalloc.start()
    try:
        with suppress(EnoughError):
            ingest_copies(folder, count, read=look)
    finally:
        tracemalloc.stop()
    return held[0]


def test_a_document_that_was_read_leaves_a_few_bytes_in_memory(tmp_path):
    ingest_copies(tmp_path / "first", 3)  # what is imported and remembered at the first time
    few, many = (held_when_read(tmp_path / str(count), count) for count in (100, 400))
    assert (many - few) / 300 < MOST_A_DOCUMENT


@pytest.mark.parametrize("strings", [9, 10**6], ids=["many to embed", "few"])
def test_idle_workers_are_let_go_before_many_strings_are_embedded(tmp_path, monkeypatch, strings):
    told: list[str] = []
    monkeypatch.setattr(ingest_module, "_MANY", strings)
    monkeypatch.setattr(ingest_module, "shutdown_idle", lambda: told.append("dismissed"))
    ingest_copies(tmp_path / "leases", 5, asked=lambda: told.append("embedded"))
    assert told[:1] == (["dismissed"] if strings == 9 else ["embedded"]) and "embedded" in told
    assert told.count("dismissed") == (strings == 9)
