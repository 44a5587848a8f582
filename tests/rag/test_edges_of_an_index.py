"""Edge cases of an index: unsaved changes, foreign rows, tables computed by hand, and its error messages."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from exhibit.evidence import Span
from exhibit.law.profile import Profile
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.index import Entry, Index
from exhibit.rag.protocols import Answer, AnswerContext, QueryVector, make_section_key
from exhibit.rag.saved_index import open_index
from exhibit.rag.stores.faiss import FaissStore
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import lock_folder

LEASE = "LEASE\n\nThis Lease is made between {name} Ltd and Dune plc.\n\n1. Rent\n\nThe rent of {name} is due.\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    """An index of two documents with all layers."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("alder", "birch"):
        (corpus / f"{name}.txt").write_text(LEASE.format(name=name.title()), encoding="utf-8")
    config = Config.preset("routed", embedder="hashing", layers="all", chunk_size=80)
    Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(16)).index(corpus, tmp_path / "index")
    return tmp_path / "index"


def counts(index: Index) -> list[int]:
    return [len(index.store(layer)) for layer in index.layers]


def entry(number: int, name: str, sections: int = 0) -> Entry:
    parts = tuple((f"Part {n}", 10 * n, 10 * n + 10) for n in range(sections))
    return Entry(number, name, "0" * 64, 40, None, Profile(), "", parts)


def chunks(*rows: tuple[int, int, int, int]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 4)


@pytest.fixture
def bare(tmp_path) -> Index:
    """An empty index."""
    return Index(tmp_path / "bare", Config(layers="all"), embedder="größe", dimensions=4)


# ---------------------------------------------------------------- changed and not saved


def test_what_is_changed_in_a_block_that_fails_is_as_it_was(folder):
    index = open_index(folder)
    before, rows = counts(index), len(index)
    with pytest.raises(RuntimeError, match="stop"), index.change():
        index.remove("birch.txt")
        assert "birch.txt" not in index and len(index) < rows
        raise RuntimeError("stop")
    assert "birch.txt" in index and len(index) == rows and counts(index) == before
    assert index.read_document_text("birch.txt").startswith("LEASE") and not list(folder.glob(".*partial"))
    with index.change():  # and it can be changed again
        index.remove("birch.txt")
    assert [entry.filename for entry in open_index(folder).documents] == ["alder.txt"]


def test_rows_go_with_their_document_at_once(folder):
    index = open_index(folder)
    document = index.entry("birch.txt")
    gone = (1, len(document.sections), len(index.chunk_keys([document.number])))
    before = counts(index)
    assert all(gone)
    with index.change():
        index.remove("birch.txt")
        assert counts(index) == [have - less for have, less in zip(before, gone, strict=True)]
    assert open_index(folder).of_kind(document.profile.kind) == [open_index(folder).document(0)]


def test_rows_that_no_document_has_are_removed_while_the_index_is_held(folder):
    index = open_index(folder)
    before = counts(index)
    with index.change():
        index.store("chunk").add([999], np.ones((1, 16), np.float32))
        index.store("section").add([make_section_key(7, 0)], np.ones((1, 16), np.float32))
    assert counts(index) == before == counts(open_index(folder))


def test_an_index_is_opened_while_another_process_holds_it_and_changed_by_one_alone(folder):
    with lock_folder(folder, busy="busy"):
        index = open_index(folder)
        with pytest.raises(BundleError, match="another process is changing it now"), index.change():
            pass
    with index.change(), pytest.raises(BundleError, match="busy"), lock_folder(folder, busy="busy"):
        pass
    with lock_folder(folder, busy="busy"), pytest.raises(BundleError, match="another process"), index.change():
        pass


def test_an_index_that_could_not_be_saved_is_none(folder, monkeypatch):
    index = open_index(folder)

    def full(self: FaissStore) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(FaissStore, "save", full)
    with pytest.raises(OSError, match="no space"), index.change():
        index.remove("birch.txt")
    with pytest.raises(BundleError, match="no index here"):
        open_index(folder)


# ---------------------------------------------------------------- by hand


class Fenced(FaissStore):
    """A store that records the greatest key of `fence`."""

    last: int | None = None

    def fence(self, last: int) -> None:
        self.last = last


def test_keys_go_on_where_they_end_and_stores_are_told_the_greatest(bare, tmp_path):
    assert len(bare) == 0 and bare.find_next_number() == 0 and bare.keys("section").tolist() == []
    stores = {layer: Fenced(tmp_path / "bare" / f"{layer}.faiss", 4) for layer in bare.layers}
    bare.use(dict(stores))
    bare.save()
    assert [store.last for store in stores.values()] == [-1, -1, -1]
    assert bare.add(entry(0, "a.txt", 2), "w" * 40, chunks((0, 10, 1, 0), (10, 40, 2, 1))).tolist() == [0, 1]
    assert bare.find_next_number() == 1
    assert bare.add(entry(1, "b.txt"), "v" * 40, chunks((0, 40, 0, -1))).tolist() == [2]
    assert bare.add(entry(4, "c.txt", 1), "u" * 40, chunks()).tolist() == [] and bare.find_next_number() == 5
    assert len(bare) == len(bare.table) == len(bare) == 3
    assert bare.keys("document").tolist() == [0, 1, 4] and bare.keys("chunk").tolist() == [0, 1, 2]
    assert bare.keys("section").tolist() == [0, 1, make_section_key(4, 0)]
    bare.save()
    assert [store.last for store in stores.values()] == [4, make_section_key(4, 0), 2]
    again = Index(tmp_path / "bare", bare.config, embedder="x", dimensions=4)
    assert len(again) == 3 and again.add(entry(5, "d.txt"), "", chunks((0, 1, 0, 0))).tolist() == [3]
    with pytest.raises(BundleError, match=r"'d.txt' is in this index already; remove it first"):
        again.add(entry(6, "d.txt"), "", chunks())


def test_a_chunk_has_the_section_and_the_page_that_there_are(bare):
    bare.add(entry(0, "a.txt", 2), "w" * 40, chunks((0, 9, 0, -1), (9, 20, 1, 0), (20, 30, 2, 1), (30, 40, 3, 2)))
    told = [bare.chunk(key) for key in range(4)]
    assert [(chunk.section, chunk.page) for chunk in told] == [("", None), ("Part 0", 1), ("Part 1", 2), ("", 3)]
    assert told[1].span == Span(9, 20) and bare.text(told[1]) == "w" * 11
    bare.add(entry(1, "b.txt"), "v\ud835", chunks((0, 2, 0, 0), (1, 2, 0, 0)))
    assert bare.find_document_numbers([5, 0, 4]).tolist() == [1, 0, 1] and bare.chunk_keys([1]).tolist() == [4, 5]
    assert bare.read_document_text("b.txt") == "v\ud835" and bare.text(bare.chunk(5)) == "\ud835"
    with pytest.raises(BundleError, match="no document 'c.txt' in this index"):
        bare.entry("c.txt")


def test_what_it_says_of_itself_is_for_people_too(bare, tmp_path):
    bare.add(entry(0, "a.txt", 2), "w" * 40, chunks((0, 10, 0, 0), (10, 40, 0, 1)))
    bare.store("chunk").add([0, 1], np.eye(4, dtype=np.float32)[:2])
    bare.save()
    text = (tmp_path / "bare" / "manifest.json").read_text(encoding="utf-8")
    assert text.startswith('{\n "format"') and '"größe"' in text and text.endswith("}\n")
    assert json.loads(text)["counts"] == {
        "documents": 1, "chunks": 2, "document vectors": 0, "section vectors": 0, "chunk vectors": 2
    }  # fmt: skip
    with pytest.raises(BundleError, match="built without a lexicon; build the index again with --lexicon true"):
        Index(tmp_path / "w", Config(lexicon=False, routing=False), embedder="x", dimensions=4).lexicon  # noqa: B018


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ("UPDATE documents SET first = 5 WHERE number = 1", True),
        ("UPDATE documents SET first = 1 WHERE number = 1", False),
        ("UPDATE documents SET first = 0 WHERE number = 1", False),
        ("UPDATE documents SET first = 9 WHERE number = 0", False),
        ("UPDATE documents SET chunks = substr(chunks, 1, 20) WHERE number = 1", False),
    ],
)
def test_chunks_whose_keys_are_out_of_order_are_damage(bare, tmp_path, change, sound):
    bare.add(entry(0, "a.txt"), "w" * 40, chunks((0, 10, 0, 0), (10, 40, 0, 0)))
    bare.add(entry(1, "b.txt"), "v" * 40, chunks((0, 10, 0, 0), (10, 40, 0, 0)))
    bare.save()
    with sqlite3.connect(tmp_path / "bare" / "index.sqlite") as database:
        database.execute(change)
    database.close()
    again = Index(tmp_path / "bare", bare.config, embedder="x", dimensions=4)
    if sound:
        assert again.table[:, 0].tolist() == [0, 1, 5, 6] and again.table[:, 1].tolist() == [0, 0, 1, 1]
    else:
        with pytest.raises(BundleError, match="damaged"):
            again.table  # noqa: B018


def test_an_index_whose_vectors_are_not_as_many_as_it_says_is_refused(folder):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    have = manifest["counts"]["section vectors"]
    manifest["counts"]["section vectors"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match=rf"{have} section vectors, but {have + 1} in the manifest; build the index"):
        open_index(folder)
    manifest["counts"]["section vectors"] = have
    manifest["config"]["gone since"] = 1
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert open_index(folder).config.layers == "all", "a setting that is gone is passed over"
    for damaged in ({**manifest, "dimensions": "many"}, {**manifest, "counts": {}}, {**manifest, "sha256": 3}):
        (folder / "manifest.json").write_text(json.dumps(damaged), encoding="utf-8")
        with pytest.raises(BundleError, match="build the index again"):
            open_index(folder)


# ---------------------------------------------------------------- settings and shapes


def test_settings_are_not_changed_once_they_are_made():
    with pytest.raises(ValidationError, match="frozen"):
        Config().k = 3  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        Config().weights.lexical = 3.0  # type: ignore[misc]


def test_a_context_is_the_same_whoever_made_the_questions_vector():
    bare = AnswerContext("text", (), 3)
    assert bare == AnswerContext("text", (), 3, asked=QueryVector("x", np.ones(2))) != AnswerContext("text", (), 4)
    assert Answer("a") == Answer("a", (), (), False, False, "", {}, None)
