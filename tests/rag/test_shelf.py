"""What an index knows of its documents while it is built: on disk, and the same as if it had been in memory."""

from __future__ import annotations

import numpy as np
import pytest

from exhibit.law.structure.profile import Profile
from exhibit.rag.index_files import DOCUMENTS, Entry, read_entries
from exhibit.rag.lexicon import bm25 as words_module
from exhibit.rag.lexicon import runs
from exhibit.rag.lexicon.bm25 import Words
from exhibit.rag.lexicon.postings import Postings
from exhibit.rag.shelf import Chunks, Entries


def entry(number: int) -> Entry:
    profile = Profile(title=f"Lease\u2028{number}", parties=("Alder Ltd", "Bärenwald GmbH"), kind="contract")
    return Entry(number, f"{number}.txt", "00", 9, None, profile, "A lease.", (("1 Rent", 0, 9),), {"court": "UK"})


def test_entries_put_aside_are_those_that_were_added(tmp_path):
    entries = Entries(tmp_path / "index")
    entries[3] = entry(3)
    for number in (1, 2, 0):
        entries.put_aside(entry(number))
    assert list(entries) == [0, 1, 2, 3] and len(entries) == 4 and 2 in entries and 7 not in entries
    assert [entries[number] for number in entries] == [entry(number) for number in range(4)]
    assert entries.keys() >= {0, 3} and entries._held.keys() == {3}, "what is put aside is not held"
    del entries[1], entries[3]
    with pytest.raises(KeyError):
        entries[1]
    entries.write(tmp_path)
    assert list(read_entries(tmp_path)) == [entry(0), entry(2)]
    assert (tmp_path / DOCUMENTS).read_bytes().count(b"\n") == 2
    assert [path.name for path in tmp_path.iterdir()] == [DOCUMENTS], "the file has no name"


@pytest.mark.parametrize("looked", [False, True])
def test_chunks_are_written_as_numpy_writes_them(tmp_path, looked):
    first, second = np.arange(12).reshape(2, 6), np.arange(100, 124).reshape(4, 6)
    chunks = Chunks(tmp_path / "index")
    assert (len(chunks), chunks.last) == (0, -1)
    chunks.table = np.asfortranarray(first)
    chunks.add(second[:0])
    chunks.add(second[:3])
    chunks.add(second[3:])
    assert (len(chunks), chunks.last) == (6, 118)
    if looked:
        assert chunks.table.flags.f_contiguous and (len(chunks), chunks.last) == (6, 118)
    chunks.write(tmp_path / "ours.npz")
    np.savez(tmp_path / "numpy.npz", table=np.concatenate([first, second]))
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "numpy.npz").read_bytes()
    assert chunks.table.tolist() == [*first.tolist(), *second.tolist()]
    chunks.table = first
    assert (len(chunks), chunks.last) == (2, 6)


def test_many_small_additions_wait_in_few_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_JOINED", 4)
    monkeypatch.setattr(words_module, "_JOINED", 4)
    table, words = Postings(tmp_path), Words(tmp_path / "words.npz")
    for number in range(11):
        table.add(number, {"lease": 1 + number})
        words.add([number], ["The lease ends"])
    assert len(table._runs._new) == 2 + 3, "two of four each, and three that wait for a fourth"
    assert len(words._new) == 3 and len(words._aside[0]) == 8, "the same, the two of four on disk"
    assert [column.tolist() for column in table.find("lease")] == [[*range(11)], [*range(1, 12)]]
    assert words.frequencies(["leas"], np.arange(11)).ravel().tolist() == [1.0] * 11
    assert words.lengths(np.arange(12)).tolist() == [2.0] * 11 + [0.0]
