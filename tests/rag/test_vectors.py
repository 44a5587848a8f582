"""The cache of vectors: a second run embeds nothing, whatever happened to the first."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.models import embedders as module
from exhibit.models.embedders import CachedEmbedder, VectorCache
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.cache import key_of

ROOT = Path(__file__).parent.parent.parent


class Counting:
    """An embedder that records its texts; a text's vector is drawn from its hash."""

    dimensions = 5

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts, *, role):
        self.asked += texts
        return np.array([self.vector(text, role) for text in texts], np.float32).reshape(-1, self.dimensions)

    def vector(self, text, role):
        drawn = np.random.default_rng(zlib.crc32(repr((text, role)).encode())).normal(size=self.dimensions)
        return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def opened(folder: Path, name: str = "counting") -> tuple[Counting, CachedEmbedder]:
    inner = Counting(name)
    return inner, CachedEmbedder(inner, VectorCache(folder, inner))


def test_a_second_run_embeds_nothing_and_gives_the_same_numbers(tmp_path):
    texts = [f"clause {n}" for n in range(50)]
    first, embedder = opened(tmp_path)
    vectors = embedder.embed(texts, role="passage")
    assert first.asked == texts
    second, embedder = opened(tmp_path)
    assert np.array_equal(embedder.embed(texts[::-1], role="passage"), vectors[::-1]) and second.asked == []
    assert embedder.name == "counting" and embedder.dimensions == 5


def test_role_and_model_are_part_of_the_key(tmp_path):
    _, embedder = opened(tmp_path)
    passage = embedder.embed(["termination"], role="passage")
    inner, embedder = opened(tmp_path)
    assert not np.array_equal(embedder.embed(["termination"], role="query"), passage) and inner.asked == ["termination"]
    other, embedder = opened(tmp_path, "counting/2")
    embedder.embed(["termination"], role="passage")
    assert other.asked == ["termination"]


def test_only_what_is_new_is_embedded_and_twins_once(tmp_path):
    inner, embedder = opened(tmp_path)
    embedder.embed(["a", "b", "a"], role="query")
    vectors = embedder.embed(["c", "a", "c", "b", "", "\ud800"], role="query")
    assert inner.asked == ["a", "b", "c", "", "\ud800"]
    assert np.array_equal(vectors[0], vectors[2])
    assert np.array_equal(vectors[1], inner.vector("a", "query"))
    assert embedder.embed([], role="query").shape == (0, 5)


@given(st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=8))
def test_the_cache_changes_nothing(tmp_path_factory, batches):
    inner, embedder = opened(tmp_path_factory.mktemp("cache"))
    for texts in batches:
        expected = np.array([inner.vector(text, "query") for text in texts], np.float32).reshape(-1, 5)
        assert np.allclose(embedder.embed(texts, role="query"), expected, atol=1e-7)
    assert len(inner.asked) == len(set(inner.asked)) == len({text for texts in batches for text in texts})


def test_garbage_in_the_file_is_not_taken_for_a_vector(tmp_path):
    texts = [f"clause {n}" for n in range(9)]
    _, embedder = opened(tmp_path)
    vectors = embedder.embed(texts, role="passage")
    [path] = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE kept SET value = zeroblob(20) WHERE key = ?", [key_of("passage", "clause 4")])
    inner, embedder = opened(tmp_path)
    assert np.array_equal(embedder.embed(texts, role="passage"), vectors) and inner.asked == ["clause 4"]
    inner, embedder = opened(tmp_path)
    assert np.array_equal(embedder.embed(texts, role="passage"), vectors) and inner.asked == []


def test_a_run_that_is_killed_keeps_what_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SLAB", 10)
    inner, embedder = opened(tmp_path)
    usual = inner.embed

    def dying(texts, *, role):
        if len(inner.asked) >= 30:
            raise KeyboardInterrupt
        return usual(texts, role=role)

    monkeypatch.setattr(inner, "embed", dying)
    texts = [f"clause {n}" for n in range(50)]
    with pytest.raises(KeyboardInterrupt):
        embedder.embed(texts, role="passage")
    again, embedder = opened(tmp_path)
    embedder.embed(texts, role="passage")
    assert again.asked == texts[30:]


def test_what_another_run_adds_is_seen(tmp_path):
    one, first = opened(tmp_path)
    two, second = opened(tmp_path)
    first.embed(["a", "b"], role="query")
    second.embed(["b", "c"], role="query")
    first.embed(["c", "d"], role="query")
    assert one.asked == ["a", "b", "d"] and two.asked == ["c"]


def test_two_processes_write_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests.rag.test_vectors import opened\n"
        "inner, embedder = opened(Path(sys.argv[1]))\n"
        "for n in range(60): embedder.embed([f'{sys.argv[2]} {n} {m}' for m in range(3)], role='query')"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), who], cwd=ROOT) for who in ("left", "right")]
    assert [run.wait() for run in runs] == [0, 0]
    inner, embedder = opened(tmp_path)
    texts = [f"{who} {n} {m}" for who in ("right", "left") for n in range(60) for m in range(3)]
    vectors = embedder.embed(texts, role="query")
    assert inner.asked == [] and np.array_equal(vectors[7], inner.vector(texts[7], "query"))
    assert len(VectorCache(tmp_path, inner)) == 360


def test_nonsense_from_an_embedder_is_an_error_and_is_not_kept(tmp_path, monkeypatch):
    inner, embedder = opened(tmp_path)
    monkeypatch.setattr(inner, "embed", lambda texts, role: np.full((len(texts), 5), np.nan, np.float32))
    with pytest.raises(
        ServiceError, match="counting: returned a vector with numbers that are not finite for .*'clause 4'"
    ):
        embedder.embed(["clause 4"], role="passage")
    monkeypatch.setattr(inner, "embed", lambda texts, role: np.ones((1, 5), np.float32))
    with pytest.raises(ServiceError, match="1 x 5 numbers for 2 texts"):
        embedder.embed(["a", "b"], role="passage")
    assert len(VectorCache(tmp_path, inner)) == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    _, embedder = opened(tmp_path / "file" / "vectors")
    with pytest.raises(
        ToolkitError, match=r"file/vectors/.*: the cache cannot be used: .*set EXHIBIT_CACHE to another folder"
    ):
        embedder.embed(["a"], role="query")
