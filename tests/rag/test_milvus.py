"""Milvus behaves like every store, finds the same as FAISS, and loses nothing when a process is killed.

Needs the extra `milvus`; milvus-lite serves from a file, or over loopback like a server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from bench.stores import make_mixture
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.milvus_address import Address, find_named_servers, make_conditions, parse_origin
from exhibit.rag.protocols import VectorStore
from exhibit.rag.saved_index import open_index
from exhibit.rag.stores.faiss import open as open_faiss
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError, ServiceError, ToolkitError
from exhibit.storage.atomic import find_unfinished_folder
from tests.rag.milvus_cases import BUILDER, CONTRACT, collections, corpus, opened, pipeline, run_until

__all__ = ["corpus"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cloud() -> np.ndarray:
    return make_mixture(3000, 32, 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """milvus-lite behind a port, which the code treats as a server."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    running, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("server")))
    yield f"http://127.0.0.1:{port}"
    running.stop(grace=0)
    database.close()


@pytest.fixture
def store(tmp_path) -> Iterator[VectorStore]:
    store = opened(tmp_path)
    yield store
    store.close()


# ---------------------------------------------------------------- addresses and filters, which need no extra


@pytest.mark.parametrize(
    ("argument", "uri", "kind"),
    [
        (None, "/i/own.db", "FLAT"),
        ("lite", "/i/own.db", "FLAT"),
        ("lite?index=hnsw&M=8", "/i/own.db", "HNSW"),
        ("/data/all.db", "/data/all.db", "FLAT"),
        ("https://milvus.example:19530/legal?index=AUTOINDEX", "https://milvus.example:19530/legal", "AUTOINDEX"),
    ],
)
def test_an_address_is_read(argument, uri, kind):
    found = Address.parse(argument, own=Path("/i/own.db"))
    assert (found.uri, found.kind) == (uri, kind)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("/data/all.sqlite", "neither a server nor a .db file"),
        ("http://me:hunter2@milvus.example:19530", "put user:password into MILVUS_TOKEN"),
        ("lite?index=PQ", "there are FLAT, AUTOINDEX, HNSW, IVF_FLAT"),
        ("lite?index=HNSW&nlist=3", "index=HNSW takes M=NUMBER"),
    ],
)
def test_a_wrong_address_is_told_without_its_secrets(argument, words):
    with pytest.raises(ToolkitError, match=words) as caught:
        Address.parse(argument, own=Path("x.db"))
    assert "hunter2" not in str(caught.value)


def test_a_search_is_as_wide_as_its_result_is_long():
    assert Address("x.db", "HNSW", {"ef": 10}).widen(64) == {"ef": 64}
    assert Address("x.db", "IVF_FLAT", {"nlist": 8}).widen(64) == {"nprobe": 8}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--store", "milvus:https://milvus.example:19530/legal?index=HNSW"], ["https://milvus.example:19530/legal"]),
        (["index", "--store=milvus:http://127.0.0.1:1", "--out", "i"], ["http://127.0.0.1:1"]),
        (["search", "index", "milvus:http://evil.example:1"], []),
        (["--store", "milvus:lite", "--store"], []),
        ([], []),
    ],
)
def test_a_command_line_names_servers_with_store_alone(words, named):
    assert list(find_named_servers(words)) == named


def test_a_server_is_known_by_scheme_host_and_port():
    assert parse_origin("https://Milvus.example:19530/legal") == parse_origin("https://milvus.example:19530")
    others = ["http://milvus.example:19530", "https://milvus.example", "https://milvus.example.evil.example:19530"]
    assert parse_origin("https://milvus.example:19530") not in {
        parse_origin(each) for each in [*others, "https://milvus.example:x"]
    }


def test_the_chunks_of_documents_are_ranges():
    wanted = np.array([*range(10, 400), 500, 502, *range(1000, 1200)])
    assert list(make_conditions("key", wanted)) == [
        "((key >= 10 and key <= 399) or (key >= 1000 and key <= 1199)) or key in [500, 502]"
    ]
    assert list(make_conditions("key", wanted[:0])) == []


def test_the_condition_for_many_documents_is_not_deep():
    [condition] = make_conditions("key", np.concatenate([np.arange(at, at + 10) for at in range(0, 20_000, 40)]))
    depths = np.cumsum([{"(": 1, ")": -1}.get(mark, 0) for mark in condition])
    assert condition.count(" or ") == 499 and depths.max() <= 10, "a server takes a chain of 45, and none of 50"


@pytest.mark.parametrize("step", [1, 2, 7])
def test_conditions_hold_for_each_key_once(step):
    wanted = np.concatenate([np.arange(0, 20_000, step), np.arange(30_000, 30_100)])
    held = []
    for condition in make_conditions("key", wanted):
        holds = eval(f"lambda key: {condition.replace('[', '{').replace(']', '}')}")  # the same words in Python
        held.append([key for key in range(31_000) if holds(key)])
    assert sorted(key for keys in held for key in keys) == wanted.tolist()


def test_without_the_extra_it_is_named():
    code = (
        "import sys; sys.modules['pymilvus'] = None\n"
        "from exhibit.runtime.plugins import load_plugin\n"
        "from exhibit.schemas.errors import ToolkitError\n"
        "try: load_plugin('exhibit.rag.stores', 'milvus:lite')\n"
        "except ToolkitError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pip install 'exhibit-rag[milvus]'" in told


# ---------------------------------------------------------------- the laws of a store


@pytest.mark.extra
def test_it_finds_what_faiss_finds(tmp_path, store):
    vectors, queries = make_mixture(5000, 32, 1), make_mixture(200, 32, 2)
    vectors[1000:1010] = vectors[0]  # boilerplate: the same words in several contracts
    faiss = open_faiss(tmp_path, None, name="chunk", dimensions=32)
    keys = np.arange(5000) * 2
    for each in (store, faiss):
        each.add(keys, vectors)
    for within in (None, keys[300:900], keys[::5]):
        scores, found = store.search(queries, 64, within=within)
        expected_scores, expected = faiss.search(queries, 64, within=within)
        assert np.allclose(scores, expected_scores, atol=1e-5)
        differ = found != expected
        assert np.abs(scores - expected_scores)[differ].max(initial=0) < 1e-5, "only equals may change places"
        assert differ.mean() < 0.01


@pytest.mark.extra
def test_fewer_than_asked_are_filled_up(store, cloud):
    store.add([4, 2, 9], np.repeat(cloud[:1], 3, axis=0))
    scores, found = store.search(cloud[:2], 5)
    assert found[0].tolist() == [2, 4, 9, -1, -1] and np.isneginf(scores[:, 3:]).all()
    assert store.search(cloud[:1], 5, within=[])[1].tolist() == [[-1] * 5]
    assert store.search(cloud[:1], 5, within=[77, 9, 9])[1].tolist() == [[9, -1, -1, -1, -1]]
    assert store.search(cloud[:0], 5)[1].shape == (0, 5)


@pytest.mark.extra
def test_rows_are_given_back(store, cloud):
    store.add(range(3000), cloud)
    assert np.allclose(store.vectors([977, 99_999, 3]), cloud[[977, 3]], atol=1e-6)
    assert store.vectors([]).shape == (0, 32)


@pytest.mark.extra
def test_rows_go_stay_and_are_there_tomorrow(tmp_path, store, cloud):
    store.add(range(3000), cloud)
    store.remove([3, 4, 99_999])
    store.keep(np.arange(2000))
    assert len(store) == 1998
    store.save()
    store.close()
    again = opened(tmp_path)
    assert len(again) == 1998 and 3 not in again.search(cloud[3:4], 100)[1]
    assert again.search(cloud[500:501], 1)[1].tolist() == [[500]]
    store.close = again.close  # what the fixture closes


@pytest.mark.extra
def test_long_results_and_many_queries_are_put_together(store, cloud, monkeypatch):
    store.add(range(2000), cloud[:2000])
    whole = store.search(cloud[:10], 1500)
    module = load_plugin("exhibit.rag.stores", "milvus")[0]
    monkeypatch.setattr(module, "_MOST", 700)
    monkeypatch.setattr(module, "_QUERIES", 4)
    for within in (None, range(2000)):
        scores, found = store.search(cloud[:10], 1500, within=within)
        assert np.allclose(scores, whole[0], atol=1e-5) and (found == whole[1]).mean() > 0.99


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["HNSW", "IVF_FLAT&nlist=16&nprobe=8", "AUTOINDEX"])
def test_index_types_find_nearly_all(tmp_path, cloud, kind):
    store = opened(tmp_path, f"lite?index={kind}")
    store.add(range(3000), cloud)
    store.save()
    queries = make_mixture(50, 32, 2)
    exact = np.argsort(-(queries @ cloud.T), axis=1)[:, :10]
    found = store.search(queries, 10)[1]
    store.close()
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]) > 0.9


@pytest.mark.extra
def test_what_cannot_be_stored_is_refused(tmp_path, store, cloud):
    with pytest.raises(BundleError, match=r"expected \(2, 32\)"):
        store.add([1, 2], cloud[:2, :16])
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BundleError, match="built for vectors of 32 numbers"):
        opened(tmp_path, dimensions=64)


# ---------------------------------------------------------------- servers


@pytest.mark.extra
def test_no_server_is_told_without_the_token(tmp_path, monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", "me:hunter2")
    with pytest.raises(ServiceError, match="is the server running") as caught:
        opened(tmp_path, "http://127.0.0.1:1")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in (tmp_path / "store" / "milvus.json").read_text()


@pytest.fixture
def listener() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server that only records the metadata of its calls, which would contain a token."""
    import grpc

    heard: list[tuple[str, str]] = []

    class Listening(grpc.GenericRpcHandler):
        def service(self, details):
            heard.extend((pair.key, str(pair.value)) for pair in details.invocation_metadata)

    running = grpc.server(ThreadPoolExecutor(1), handlers=[Listening()])
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    yield f"http://127.0.0.1:{port}", heard
    running.stop(grace=None)


@pytest.mark.extra
@pytest.mark.parametrize("way", ["not at all", "MILVUS_URI", "--store"])
def test_a_token_is_sent_to_a_server_that_the_user_named_and_no_other(tmp_path, listener, monkeypatch, way):
    address, heard = listener
    monkeypatch.setenv("MILVUS_TOKEN", "me:hunter2")
    monkeypatch.setenv("MILVUS_URI", f"{address}/legal" if way == "MILVUS_URI" else "https://milvus.example:19530")
    monkeypatch.setattr(sys, "argv", ["rag", *(["--store", f"milvus:{address}"] if way == "--store" else [])])
    with pytest.raises(ServiceError) as caught:
        opened(tmp_path, address)
    sent = [value for key, value in heard if key == "authorization"]
    assert heard and bool(sent) == (way != "not at all")
    assert ("MILVUS_TOKEN was not sent" in str(caught.value)) == (way == "not at all")
    heard.clear()
    with (
        nullcontext()
        if way == "not at all"
        else pytest.raises(ServiceError, match="are still there: delete them by hand")
    ):
        load_plugin("exhibit.rag.stores", "milvus")[0].drop(tmp_path)
    assert bool(heard) == (way != "not at all"), "a server that nobody named is not even asked"
    assert bool([value for key, value in heard if key == "authorization"]) == (way != "not at all")


@pytest.mark.extra
def test_an_index_cannot_have_collections_dropped_that_are_not_its_own(tmp_path, server):
    (tmp_path / "store").mkdir()
    record = {"store": server, "dimensions": 32, "name": "customers"}
    (tmp_path / "store" / "milvus.json").write_text(json.dumps(record))
    with pytest.raises(BundleError, match="damaged"):
        load_plugin("exhibit.rag.stores", "milvus")[0].drop(tmp_path)


@pytest.mark.extra
def test_a_file_that_another_process_has_is_told(tmp_path, store):
    code = (
        "import sys; from pathlib import Path\n"
        "from exhibit.rag.stores.milvus import open\nfrom exhibit.schemas.errors import ServiceError\n"
        "try: open(Path(sys.argv[1]), None, name='chunk', dimensions=32)\n"
        "except ServiceError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "one process at a time" in ran.stdout and "Traceback" not in ran.stderr


@pytest.mark.extra
def test_two_indexes_on_one_server_do_not_meet(tmp_path, server, cloud):
    one, two = opened(tmp_path / "one", server), opened(tmp_path / "two", server)
    sections = opened(tmp_path / "one", server, name="section")
    one.add([1], cloud[:1])
    two.add([1, 2], cloud[1:3])
    sections.add([1, 2, 3], cloud[:3])
    assert (len(one), len(two), len(sections)) == (1, 2, 3)
    (tmp_path / "one").rename(tmp_path / "moved")
    again = opened(tmp_path / "moved", server)
    assert len(again) == 1
    for store in (one, two, sections, again):
        store.close()


# ---------------------------------------------------------------- the whole pipeline


@pytest.mark.extra
def test_the_pipeline_retrieves_the_same_with_either_store(tmp_path, samples):
    found = {}
    for store in ("faiss", "milvus:lite"):
        made = pipeline(tmp_path, store, layer_documents=3)
        made.index(samples / "contractnli", tmp_path / store.replace(":", "-"))
        questions = [f"Clause {n}: may the Receiving Party disclose Confidential Information?" for n in range(5)]
        found[store] = [each.ranked for each in made.search(questions)]
    for one, two in zip(*found.values(), strict=True):
        assert len(one) == len(two) > 10
        assert np.allclose([hit.score for hit in one], [hit.score for hit in two], atol=1e-5)
        ahead = one[-1].score + 1e-5  # of those that share the last place either may be named
        assert {h.chunk for h in one if h.score > ahead} == {h.chunk for h in two if h.score > ahead}


@pytest.mark.extra
@pytest.mark.parametrize("where", ["lite", "server"])
def test_an_index_is_built_changed_replaced_and_leaves_nothing(tmp_path, corpus, server, where, monkeypatch):
    before = collections(server)
    made = pipeline(tmp_path, f"milvus:{server if where == 'server' else ''}")
    made.index(corpus, tmp_path / "index")
    first = set(collections(server)) - set(before)
    assert len(first) == (3 if where == "server" else 0)
    (corpus / "cedar.txt").write_text(CONTRACT.format(party="Cedar SA", law="Chile"), encoding="utf-8")
    made.add(corpus / "cedar.txt")
    made.remove("alder.txt")
    again = pipeline(tmp_path, f"milvus:{server if where == 'server' else ''}").open(tmp_path / "index")
    [found] = again.search(["notice to be given by Alder Ltd"])
    assert {hit.chunk.document for hit in found.ranked} == {"birch.txt", "cedar.txt"}
    made.index(corpus, tmp_path / "index", force=True)
    assert len({hit.chunk.document for hit in made.search(["notice of termination"])[0].ranked}) == 3
    assert not first & set(collections(server)), "the old index's collections are gone"
    monkeypatch.setenv("MILVUS_URI", server)  # else an index of unknown origin would say which server is asked
    pipeline(tmp_path, "faiss").index(corpus, tmp_path / "index", force=True)
    assert collections(server) == before and not (tmp_path / "index" / "store").exists()


@pytest.mark.extra
def test_an_index_that_fails_leaves_nothing_on_the_server(tmp_path, corpus, server):
    class Broken(Hashing):
        def embed(self, texts, *, role):
            if any("Birch" in text for text in texts):
                raise ServiceError("no more")
            return super().embed(texts, role=role)

    before = collections(server)
    config = Config.preset("sac", store=f"milvus:{server}", chunk_size=120)
    with pytest.raises(ServiceError, match="no more"):
        Pipeline(config, cache=tmp_path / "c", jobs=1, embedder=Broken(64)).index(corpus, tmp_path / "index")
    assert collections(server) == before and find_unfinished_folder(tmp_path / "index") is None


@pytest.mark.extra
def test_rows_that_others_add_are_not_seen_before_the_index_is_opened_again(tmp_path, corpus, server):
    made = pipeline(tmp_path, f"milvus:{server}", layers="chunk")
    made.index(corpus, tmp_path / "index")
    reader = pipeline(tmp_path, f"milvus:{server}", layers="chunk").open(tmp_path / "index")
    (corpus / "cedar.txt").write_text(CONTRACT.format(party="Cedar SA", law="Chile"), encoding="utf-8")
    made.add(corpus / "cedar.txt")
    asked = ["notice to be given by Cedar SA"]
    assert "cedar.txt" in {hit.chunk.document for hit in made.search(asked)[0].ranked}
    ranked = reader.search(asked)[0].ranked
    assert {hit.chunk.document for hit in ranked} == {"alder.txt", "birch.txt"} and len(ranked) > 10


@pytest.mark.extra
def test_rows_of_a_stopped_addition_are_not_seen(tmp_path, corpus, server):
    made = pipeline(tmp_path, f"milvus:{server}")
    made.index(corpus, tmp_path / "index")
    own = {"store": f"milvus:{server}"}
    chunks = open_index(tmp_path / "index", own=own).store("chunk")
    rows = len(chunks)
    chunks.add([70_000, 70_001], make_mixture(2, 64, 1))  # as if killed before the manifest was written
    assert len(open_index(tmp_path / "index", own=own).store("chunk")) == rows
    chunks.remove([0])
    with pytest.raises(
        BundleError, match=f"{rows - 1} chunk vectors, but {rows} in the manifest; build the index again"
    ):
        open_index(tmp_path / "index", own=own)


# ---------------------------------------------------------------- killed


@pytest.mark.extra
@pytest.mark.parametrize("where", ["lite", "server"])
def test_killed_during_upsert_no_duplicates_and_no_holes(tmp_path, server, where, monkeypatch):
    argument = server if where == "server" else "lite"
    for stops in (1000, 3000):
        run_until(stops, tmp_path, argument)
    store = opened(tmp_path, argument)
    had = len(store)
    assert 1000 <= had < 6000
    sent = []
    upsert = store._client.upsert

    def noted(name, data):
        sent.extend(data)
        return upsert(name, data)

    monkeypatch.setattr(store._client, "upsert", noted)
    vectors = make_mixture(6000, 32, 1)
    store.add(range(6000), vectors)
    store.save()
    assert len(store) == 6000 and store.keys().tolist() == list(range(6000))
    assert len(sent) == 6000 - had, "what was there is not sent again"
    assert store.search(vectors[::500], 1)[1][:, 0].tolist() == list(range(0, 6000, 500))
    store.close()


@pytest.mark.extra
@pytest.mark.parametrize("where", ["lite", "server"])
def test_a_build_that_is_killed_goes_on_in_its_own_collections(tmp_path, corpus, server, where):
    before = set(collections(server))
    argument = server if where == "server" else "lite"
    (tmp_path / "builder.py").write_text(BUILDER)
    for n in range(8):
        text = CONTRACT.format(party=f"Party {n}", law="Ohio")
        (corpus / f"more-{n}.txt").write_text(text, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "builder.py"), str(tmp_path), "index", argument]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as builder:
        for count, _ in enumerate(builder.stdout):
            if count == 2:
                os.kill(builder.pid, signal.SIGKILL)
                break
    record = find_unfinished_folder(tmp_path / "index") / "store" / "milvus.json"
    left = json.loads(record.read_text())["name"]
    made = Pipeline(
        Config.preset("sac", store=f"milvus:{argument}", chunk_size=120),
        cache=tmp_path / "c", jobs=1, embedder=Hashing(64),
    )  # fmt: skip
    report = made.index(corpus, tmp_path / "index")
    index = open_index(tmp_path / "index", own={"store": f"milvus:{argument}"})
    assert report.documents == 10 and index.store("chunk").keys().tolist() == index.keys("chunk").tolist()
    assert json.loads((tmp_path / "index" / "store" / "milvus.json").read_text())["name"] == left
    assert {name.rpartition("_")[0] for name in set(collections(server)) - before} <= {left}


@pytest.mark.extra
@pytest.mark.slow
def test_a_hundred_thousand_chunks(tmp_path):
    vectors, queries = make_mixture(100_000, 384, 1), make_mixture(200, 384, 2)
    store = opened(tmp_path, dimensions=384)
    faiss = open_faiss(tmp_path, None, name="chunk", dimensions=384)
    for at in range(0, len(vectors), 2000):
        for each in (store, faiss):
            each.add(range(at, at + 2000), vectors[at : at + 2000])
    store.save()
    assert len(store) == 100_000
    scores, found = store.search(queries, 64)
    expected_scores, expected = faiss.search(queries, 64)
    store.close()
    assert np.allclose(scores, expected_scores, atol=1e-5)
    assert (found == expected).mean() > 0.99
