"""Memory while an index is written: the same however many chunks there are, as far as it can be on disk."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest

from rag import columns
from rag import vectors as vectors_module
from rag.lexicon import bm25, runs
from rag.lexicon.bm25 import Counted, Words
from rag.stores import _faiss_rows
from rag.stores._faiss_rows import Rows

FEW, MANY = 4_000, 64_000
SLACK = 1.2
"""How much more than a few chunks many may take."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Have what is held at once small against what there is, as it is in a large index."""
    monkeypatch.setattr(columns, "_PIECE", 1 << 10)
    monkeypatch.setattr(runs, "_BLOCK", 1 << 10)
    monkeypatch.setattr(runs, "_TOGETHER", 1)
    monkeypatch.setattr(bm25, "_WAITING", 1 << 12)
    monkeypatch.setattr(_faiss_rows, "_PIECE", 1 << 14)
    monkeypatch.setattr(vectors_module, "_LONGEST", 1 << 10)


def peak(work: Callable[[], object]) -> int:
    """Return the bytes that some work takes beyond what was held before it."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def words_of(folder: Path, chunks: int) -> Words:
    """Return words that wait to be saved: one term that all chunks have, and one of a hundred others."""
    words = Words(folder / f"{chunks}.npz")
    for start in range(0, chunks, 500):
        rows = np.arange(start, start + 500)
        terms = np.column_stack([np.full(500, 7), (1 + rows % 100) << 20]).astype(np.uint32).ravel()
        counted = Counted(np.full(500, 2, np.uint16), np.full(500, 2, np.uint32), terms, np.ones(1000, np.uint8))
        words.add_counted(rows, counted)
    return words


def test_saving_the_words_of_many_chunks_takes_what_those_of_few_do(tmp_path):
    words_of(tmp_path, FEW + 500).save()  # what is imported at the first time is not counted
    few, many = words_of(tmp_path, FEW), words_of(tmp_path, MANY)
    assert few._runs.on_disk and many._runs.on_disk
    assert peak(many.save) < SLACK * peak(few.save) + MANY  # a byte a chunk: where each run is cut
    with columns.opened_archive(tmp_path / f"{MANY}.npz") as stored:
        assert stored["rows"][:MANY].tolist() == list(range(MANY)) and stored["ends"][0] == MANY
        assert stored["keys"].tolist() == list(range(MANY)) and len(stored["terms"]) == 101


def test_writing_many_vectors_takes_what_few_do(tmp_path):
    taken = []
    for count in (FEW, MANY):
        rows = Rows(tmp_path / f"{count}.rows", 2)
        for start in range(0, count, 500):
            rows.add(np.arange(start, start + 500) * 3, np.ones((500, 2), np.float32))
        target = tmp_path / f"{count}.faiss"
        taken.append(peak(lambda rows=rows, target=target: rows.write(target)))
        index = faiss.read_index(str(target))
        assert index.ntotal == count and faiss.vector_to_array(index.id_map).tolist() == [*range(0, 3 * count, 3)]
        rows.remove()
    assert taken[1] < SLACK * taken[0] + MANY


def test_the_cache_knows_a_vector_by_twelve_bytes_and_is_never_sorted_as_a_whole():
    digests = np.random.default_rng(0).permutation(np.arange(MANY, dtype=np.uint64))
    known = vectors_module._Known()

    def fill() -> None:
        for start in range(0, MANY, 500):
            known.add(digests[start : start + 500])

    assert peak(fill) < 13 * MANY + 200_000
    assert known.find(digests).tolist() == list(range(MANY)) and known.find(np.array([MANY], np.uint64)) == [-1]
