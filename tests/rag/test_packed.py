"""What an index packs of each document is what was given, in whatever order, and after whatever was removed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.law.structure.profile import Profile
from exhibit.rag import packed as packed_module
from exhibit.rag.config import Config
from exhibit.rag.index import Entry, Index
from exhibit.rag.lexicon.labels import Labels
from exhibit.rag.packed import Names, Paths, Places, Strings, packed
from exhibit.schemas.errors import BundleError
from exhibit.storage.locations import Remote

CHANGES = st.lists(st.tuples(st.booleans(), st.integers(-3, 12), st.integers(0, 1 << 40)))


@given(st.lists(st.binary(max_size=5)), st.data())
def test_strings_are_a_list_of_them(strings, data):
    ours = Strings(strings)
    while strings:
        assert list(ours) == strings == [ours[place] for place in range(len(ours))]
        place = data.draw(st.integers(0, len(strings) - 1))
        del strings[place]
        ours.remove_at(place)
    assert list(ours) == []
    with pytest.raises(IndexError):
        ours[0]


@given(CHANGES)
def test_places_are_a_dictionary_in_order(changes):
    ours, theirs = Places(), {}
    for adds, key, value in changes:
        if adds:
            ours[key] = theirs[key] = value
        else:
            assert ours.pop(key, None) == theirs.pop(key, None)
        assert list(ours.items()) == sorted(theirs.items()) and len(ours) == len(theirs)
        assert ours.get(key) == theirs.get(key)


def test_keys_may_be_removed_while_they_are_gone_through():
    places = Places()
    places.update(dict.fromkeys(range(5), 7))
    for number in places:
        del places[number]
    assert not places
    with pytest.raises(KeyError):
        del places[1]


@pytest.mark.parametrize("bits", [64, 1], ids=["digests", "digests that many share"])
@given(changes=CHANGES)
def test_names_are_a_dictionary(bits, changes):
    told, theirs = {}, {}
    ours = Names(told.__getitem__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_module, "_RECENT", 2)
        whole = packed_module._digest
        patch.setattr(packed_module, "_digest", lambda name: whole(name) % (1 << bits))
        ours.hold("opened", 99)
        for number, (adds, key, _) in enumerate(changes):
            name = f"lease {key}.pdf"
            assert (name in ours) == (name in theirs) and ours.get(name) == theirs.get(name)
            if adds and name not in theirs:
                told[number], theirs[name] = name, number
                ours.add(name, number)
            elif not adds and name in theirs:
                del ours[name], theirs[name]
        assert {name: ours[name] for name in theirs} == theirs and ours["opened"] == 99
        del ours["opened"]
        for name in ("opened", "never there"):
            with pytest.raises(KeyError):
                ours[name]
            with pytest.raises(KeyError):
                del ours[name]


@given(st.dictionaries(st.integers(0, 50), st.tuples(st.sampled_from("ab"), st.text(max_size=4))), st.data())
def test_labels_come_in_the_order_of_the_numbers(documents, data):
    labels = Labels()
    for number, (kind, run) in documents.items():
        labels.add(number, kind, run)
    for number in data.draw(st.sets(st.sampled_from(sorted(documents)))) if documents else ():
        labels.remove(number)
        del documents[number]
        with pytest.raises(KeyError):
            labels.remove(number)
    order = sorted(documents)
    assert labels.numbers.tolist() == order and len(labels) == len(order)
    assert list(zip(labels.kinds(), labels.runs(), strict=True)) == [documents[number] for number in order]


def test_paths_are_made_when_they_are_asked_for():
    given_paths = [Path("a/b.txt"), Path("/c/d\udcff.pdf"), Path("é")]
    paths = packed(given_paths)
    assert isinstance(paths, Paths) and list(paths) == given_paths == list(paths) and len(paths) == 3
    assert given_paths[1] in paths and Path("a") not in paths
    mixed = [Path("a"), Remote("s3://bucket/b")]
    assert packed(iter(mixed)) == mixed and len(packed([])) == 0


def test_a_path_takes_little_more_than_its_letters():
    tracemalloc.start()
    try:
        paths = packed(Path("corpus") / f"{number:05}.txt" for number in range(2000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(paths) == 2000 and held < 60 * 2000  # 16 letters, 8 bytes where they end, and what grows ahead


def test_an_index_knows_documents_whose_names_it_no_longer_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_module, "_RECENT", 2)
    config = Config.preset("sac", embedder="hashing:8", lexicon=False)
    index = Index(tmp_path / "index", config, embedder="hashing-8", dimensions=8)
    entries = [Entry(n, f"lease {n}.txt", "00", 4, None, Profile(title="Lease"), "A lease.") for n in range(5)]
    for entry in entries:
        keys = index.add(entry, "Rent", np.array([[0, 4, 1, 0]]))
        index.store("chunk").add(keys, np.ones((1, 8), np.float32))
    assert [index.entry(entry.filename) for entry in entries] == entries and "lease 5.txt" not in index
    with pytest.raises(BundleError, match="in this index already"):
        index.add(entries[1], "Rent", np.array([[0, 4, 1, 0]]))
    index.remove("lease 1.txt")
    assert "lease 1.txt" not in index and [entry.number for entry in index.documents] == [0, 2, 3, 4]
    index.add(Entry(5, "lease 1.txt", "00", 4, None, Profile(title="Lease"), ""), "Rent", np.array([[0, 4, 1, 0]]))
    assert index.entry("lease 1.txt").number == 5 and index.document_text("lease 3.txt") == "Rent"
    index.close()
