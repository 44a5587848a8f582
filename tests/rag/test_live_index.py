"""An index that is searched while it is built: before its first vector, halfway, after a kill, and complete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.__main__ import main
from exhibit.rag.config import Weights
from exhibit.rag.database import RECORD, Waiting
from exhibit.rag.lexicon.bm25 import Words
from exhibit.rag.live_index import open_for_questions
from exhibit.rag.retrieval.passages import Library, score_rows, standardise
from exhibit.rag.saved_index import open_index
from exhibit.rag.stores.faiss import FaissStore
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import find_unfinished_folder

ROOT = Path(__file__).parents[2]
QUESTION = "Which law governs the agreement of Birch?"
LAWS = {"alder": "Norway", "birch": "Ohio", "cedar": "Chile", "dogwood": "Kenya"}


class Telling(Hashing):
    """An embedder that calls a function before each batch."""

    def __init__(self, ask):
        super().__init__(256)
        self.ask = ask

    def embed(self, texts, *, role):
        if role == "passage":
            self.ask()
        return super().embed(texts, role=role)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("exhibit.rag.ingest._BATCH", 4)
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, law in LAWS.items():
        party = f"{name.title()} Ltd"
        clauses = [
            f"This Supply Agreement is made between {party} and Dune plc.",
            "1. Term. The term of this Agreement is five years from the Effective Date.",
            f"2. Governing Law. This Agreement is governed by the law of {law}.",
            f"3. Notice. {party} shall give ninety days' notice of termination in writing.",
        ]
        (folder / f"{name}.txt").write_text("SUPPLY AGREEMENT\n\n" + "\n\n".join(clauses), encoding="utf-8")
    return folder


def build(corpus, out, ask=lambda: None, **settings):
    """Build an index, with a function that is called before each batch of vectors."""
    config = Config.preset(settings.pop("preset", "routed"), embedder="hashing", chunk_size=80, **settings)
    pipeline = Pipeline(config, cache=out.with_name(f"cache of {out.name}"), jobs=1, embedder=Telling(ask))
    pipeline.index(corpus, out)
    return pipeline


def notes(told):
    """Return the lines for the user, without the lines of progress."""
    return [line for line in told.splitlines() if line.startswith("note: ")]


def counts(folder):
    record = json.loads((find_unfinished_folder(folder) / RECORD).read_text(encoding="utf-8"))
    return record["counts"]["chunk vectors"], record["counts"]["chunks"]


def test_it_is_asked_before_the_first_vector_halfway_and_when_it_is_whole(corpus, tmp_path, capsys):
    out, told = tmp_path / "index", {}

    def ask():
        have, total = counts(out)
        assert main(["search", str(out), QUESTION, "--json"]) == 0
        shown = capsys.readouterr()
        told[have] = json.loads(shown.out)[0]["passages"][0]["text"], notes(shown.err), total

    build(corpus, out, ask)
    [total] = {total for _, _, total in told.values()}
    assert list(told) == list(range(0, total, 4)) and total > 8
    for have, (best, [note], _) in told.items():
        assert "law of Ohio" in best  # by its words alone at first
        assert f"its build was stopped): {have} of {total} chunks have vectors" in note
    assert main(["search", str(out), QUESTION]) == 0
    assert not notes(capsys.readouterr().err) and find_unfinished_folder(out) is None and not (out / RECORD).exists()


def test_at_the_end_it_is_what_it_would_be_in_one_go(corpus, tmp_path, monkeypatch):
    asked = tmp_path / "asked"

    def ask():
        Pipeline(Config.preset("routed", embedder="hashing", chunk_size=80)).open(asked, unfinished=True).search(
            [QUESTION]
        )

    build(corpus, asked, ask)
    monkeypatch.setattr("exhibit.rag.ingest._BATCH", 512)
    build(corpus, tmp_path / "one go")
    files = sorted(path.relative_to(asked) for path in asked.rglob("*") if path.is_file())
    assert {str(path) for path in files} == {"manifest.json", "index.sqlite", "chunk.faiss"}
    assert [(asked / path).read_bytes() for path in files] == [
        (tmp_path / "one go" / path).read_bytes() for path in files
    ]


@pytest.mark.parametrize("settings", [{"layers": "all"}, {"lexicon": False, "routing": False}, {"store": "faiss:pq"}])
def test_other_layers_and_stores_are_asked_alike(corpus, tmp_path, settings):
    out, seen = tmp_path / "index", []

    def ask():
        index = open_for_questions(out)
        found = Pipeline(index.config).open(out, unfinished=True).search([QUESTION])[0].ranked
        seen.append((len(index.store("chunk")), len(found)))

    build(corpus, out, ask, **settings)
    worded = settings.get("lexicon", True)
    vectors = [have for have, _ in seen]
    assert vectors == sorted(vectors) and vectors[0] == 0 and vectors[-1] == 4 * (len(set(vectors)) - 1)
    assert all(bool(found) == bool(worded or have) for have, found in seen)  # without words, vectors alone are found


def test_words_stand_in_for_a_vector_that_is_not_there_yet():
    table = np.array([(key, 0, 10 * key, 10 * key + 10, 0, 0) for key in range(4)], np.int64)
    rows = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
    words = Words()
    words.add(range(4), ["the law", "the term", "the law", "a notice"])
    vector, zero = np.array([1.0, 0.0], np.float32), np.zeros(1, np.int64)
    for is_whole, far in ((False, 0.8), (True, 0.6)):
        library = Library(table, FaissStore.of_rows(np.arange(2), rows), words, lambda number: "", is_whole=is_whole)
        found = score_rows(["law"], vector, np.arange(4), zero, library, Weights())
        np.testing.assert_allclose(found["dense"], [1.0, 0.6, far, far], rtol=1e-6)
        worded = standardise(found["lexical"], zero)
        by_words = np.isclose(found["own"], (1 + Weights().lexical) * worded, rtol=1e-5)
        assert by_words.tolist() == [False, False, not is_whole, not is_whole]
    none = Library(table, FaissStore.of_rows(np.arange(0), rows[:0]), words, lambda number: "", is_whole=False)
    own = score_rows(["law"], vector, np.arange(4), zero, none, Weights())["own"]
    assert own.argsort()[::-1][:2].tolist() in ([0, 2], [2, 0])  # by its words alone


def test_a_document_that_is_named_is_found_though_only_another_has_vectors(corpus, tmp_path):
    for name in ("cedar", "dogwood"):
        (corpus / f"{name}.txt").unlink()
    out, seen = tmp_path / "index", {}

    def ask():
        pipeline = Pipeline(Config.preset("routed", embedder="hashing", chunk_size=80)).open(out, unfinished=True)
        seen[counts(out)[0]] = pipeline.search([QUESTION])[0].ranked[0].chunk.document

    build(corpus, out, ask)
    assert set(seen) >= {0, 4} and set(seen.values()) == {"birch.txt"}


def test_it_can_be_asked_after_its_builder_was_killed_and_the_next_one_goes_on(corpus, tmp_path, capsys):
    out, cache = tmp_path / "index", tmp_path / "cache of index"
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "import exhibit.rag.ingest as ingest\nfrom exhibit.rag import Config, Pipeline\n"
        "from exhibit.models.embedders.hashing import Hashing\ningest._BATCH = 4\n"
        "class Killed(Hashing):\n    left = 3\n    def embed(self, texts, *, role):\n        self.left -= 1\n"
        "        return super().embed(texts, role=role) if self.left else os._exit(9)\n"
        "if __name__ == '__main__':\n"
        "    config = Config.preset('routed', embedder='hashing', chunk_size=80)\n"
        "    pipeline = Pipeline(config, cache=Path(sys.argv[3]), engine='serial', embedder=Killed(256))\n"
        "    pipeline.index(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    run = [sys.executable, "-c", code, str(corpus), str(out), str(cache)]
    assert subprocess.run(run, cwd=ROOT, timeout=120).returncode == 9
    assert counts(out)[0] == 8
    assert main(["answer", str(out), QUESTION]) == 0
    shown = capsys.readouterr()
    assert "Ohio" in shown.out and "8 of" in shown.err
    batches = []
    build(corpus, out, lambda: batches.append(counts(out)[0]))
    assert batches and min(batches) >= 8 and len(open_index(out)) == len(open_index(out).store("chunk"))


def test_what_becomes_whole_while_it_is_open_is_answered_to_the_end(corpus, tmp_path):
    out, opened = tmp_path / "index", []

    def ask():
        if not opened:
            opened.append(
                Pipeline(Config.preset("routed", embedder="hashing", chunk_size=80)).open(out, unfinished=True)
            )

    build(corpus, out, ask)
    [early] = opened
    assert "Ohio" in early.search([QUESTION])[0].ranked[0].text and early.text("birch.txt").startswith("SUPPLY")
    with pytest.raises(BundleError, match="still being built"):
        early.remove("birch.txt")


def test_an_old_index_is_asked_until_the_new_one_is_whole_and_others_see_no_unfinished_one(corpus, tmp_path, capsys):
    out = tmp_path / "index"

    def ask():
        with pytest.raises(BundleError, match="no index here"):
            open_index(out)  # an evaluation, say, must not run on half of one

    build(corpus, out, ask)
    seen = []
    pipeline = Pipeline(
        Config.preset("routed", embedder="hashing", chunk_size=60),
        cache=tmp_path / "other",
        jobs=1,
        embedder=Telling(lambda: seen.append(open_for_questions(out))),
    )
    pipeline.index(corpus, out, force=True)
    assert seen and all(index.finished is None and index.config.chunk_size == 80 for index in seen)


def test_nothing_is_there_to_ask_and_what_is_damaged_says_so(corpus, tmp_path, capsys):
    assert main(["search", str(tmp_path / "nowhere"), "x"]) == 1
    assert "no index here" in capsys.readouterr().err
    out, told = tmp_path / "index", []

    def ask():
        (find_unfinished_folder(out) / "index.sqlite").write_bytes(b"")
        told.append(main(["search", str(out), QUESTION]))

    build(corpus, out, ask)
    assert set(told) == {1} and "missing or damaged" in capsys.readouterr().err
    with pytest.raises(BundleError, match="damaged .*build the index again"):
        open_index(out)


# ---------------------------------------------------------------- parts


def test_rows_that_are_there_are_searched():
    rows = np.random.default_rng(7).normal(size=(10, 4)).astype(np.float32)
    keys = np.arange(0, 20, 2)
    store = FaissStore.of_rows(keys, rows)
    queries = rows[[4, 9]]
    scores, found = store.search(queries, 3)
    expected = np.argsort(-(queries @ rows.T), axis=1)[:, :3]
    assert found.tolist() == keys[expected].tolist()
    np.testing.assert_allclose(scores, np.take_along_axis(queries @ rows.T, expected, axis=1), rtol=1e-5)
    _, [within] = store.search(rows[:1], 4, within=[3, 4, 8, 99])
    assert sorted(within[:2].tolist()) == [4, 8] and within[2:].tolist() == [-1, -1]
    np.testing.assert_array_equal(store.vectors([8, 3, 0]), rows[[4, 0]])


def test_texts_wait_on_disk_in_their_order(tmp_path):
    waiting = Waiting(tmp_path / "new")
    waiting.add([5, 7], ["one", "half a pair \ud835"])
    waiting.add(np.array([], np.int64), [])
    waiting.add([9], [""])
    assert len(waiting) == 3
    found = [(keys.tolist(), texts) for keys, texts in waiting.batches(2)]
    assert found == [([5, 7], ["one", "half a pair \ud835"]), ([9], [""])]
    waiting.close()
    assert not list((tmp_path / "new").iterdir())
