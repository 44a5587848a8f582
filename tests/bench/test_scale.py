"""The scale benchmark: it measures the real ingestion, extrapolates correctly, and preserves its page's text."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scale import (
    blocks,
    chunks,
    corpus,
    documents,
    draw,
    grown,
    ingesting,
    markdown,
    memory,
    model,
    process,
    routed,
    server,
    workers,
)
from bench.scale.__main__ import APART, DOCS, PARTS, is_same_machine, main
from bench.scale.process import Clock, describe_machine_kind, run_apart
from bench.stores import compute_recall
from exhibit.rag.index import Index
from exhibit.rag.questions import Query
from exhibit.rag.saved_index import open_index
from exhibit.rag.splitters import rcts
from exhibit.schemas.errors import BundleError, ToolkitError

STAGES = dict.fromkeys(ingesting.STAGES, 1.0)


@pytest.fixture(autouse=True)
def a_glance(monkeypatch):
    """Measure the machine's load for a moment instead of two seconds, since no test depends on the load."""
    monkeypatch.setattr(process.measure_busy_share, "__defaults__", (0.01,))


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """Eight contracts, ingested in this process; the first six are originals, the last two renamed copies."""
    folder = tmp_path_factory.mktemp("ingest")
    paths = corpus.repeat(corpus.documents_of(None), 8, folder / "corpus")
    return folder, paths, ingesting.ingest_once(paths, folder)


@pytest.fixture
def results():
    """Invented measurements of every stage: 100 documents take 10 seconds, 1,000 documents take 100."""
    stages = lambda n: {stage: value * n / 100 for stage, value in STAGES.items()}  # noqa: E731
    queries = {"sac": {"first": 9.0, "median": 3.0}}
    ingest = [
        {
            "documents": n, "chunks": 25 * n, "seconds": n / 10, "stages": stages(n), "peak": 1e8, "disk": {"texts": n},
            "queries": queries, "query_peak": 1e8 + 25 * n * (4 * 384 + 8 + 400),
        }
        for n in (100, 1000)
    ]  # fmt: skip
    converted = [
        {"documents": n, "questions": 2 * n, "seconds": n / 50, "clock": n / 90, "peak": 1e8 + 1000 * n}
        for n in (100, 1000)
    ]
    remembered = [
        {"store": store, "times": t, "documents": 100 * t, "chunks": 2500 * t, "peak": 1e8 + more * t}
        for store, more in (("none", 1e6), ("faiss", 4e7))
        for t in (1, 10)
    ]
    searched = [
        {"rows": rows, "store": "faiss", "one ms": rows / 4000, "recall@64": 1.0, "search MB": rows / 500}
        for rows in (10_000, 100_000)
    ]
    run = {"kind": "text", "documents": 100, "chunks": 2500, "seconds": 10.0, "stages": STAGES, "peak": 2e8}
    return {
        "machines": {part: {"cores": 2, "machine": "x", "load": 0.1} for part in (*PARTS, *APART)},
        "documents": {
            "ingest": ingest, "convert": {"text": converted, "pdf": converted}, "exponent": 1.0, "spread": 0.0,
            "default_embedder": {"chunks": 1, "seconds": 0.02, "clock": 0.01}, "pdf": {"pages": 1, "seconds": 0.005},
        },
        "memory": {"once": 100, "jobs": 2, "points": remembered},
        "flat": {
            "jobs": 2,
            "points": [
                {"store": "whole", "documents": 1000 * t, "chunks": 26_000 * t, "seconds": 30.0, "peak": peak}
                for t, peak in ((1, 2e8), (20, 2.38e8))
            ],
        },
        "chunks": {"points": searched, "vectors": "made up"},
        "routed": {
            "from": "made up",
            "points": [
                {"store": "faiss:pq", "chunks": 1000, "documents": 9, "peak": 2e9, "own": 5e8, "recall": 0.999}
                | {kind: {"questions": 5, "clock": 41.0, "clock 90%": 50.0, "processor": 44.0, "compared": 900.0}
                   for kind in ("named", "unnamed")},
            ],
        },
        "workers": {
            "size": 100,
            "points": [
                {**run, "engine": "serial", "jobs": 1, "clock": 10.0, "first": 0.0},
                {**run, "engine": "local", "jobs": 2, "clock": 9.5, "first": 2.0},
            ],
        },
    }  # fmt: skip


# ---------------------------------------------------------------- the corpus


def test_copies_have_new_names_and_no_chunk_of_another(tmp_path):
    originals = corpus.documents_of(None)
    paths = corpus.repeat(originals, 3 * len(originals), tmp_path)
    assert len({path.name for path in paths}) == len(paths)
    texts = [path.read_text(encoding="utf-8") for path in paths]
    pieces = [{text[start:end] for start, end in rcts.split(text)} for text in texts]
    one, two = pieces[0], pieces[len(originals)]
    assert len(one & two) <= 0.1 * len(one)
    assert abs(len(texts[0]) - len(texts[len(originals)])) < 0.01 * len(texts[0])  # the changes are small


@pytest.mark.parametrize(
    ("converter", "make"), [("legalbenchrag", corpus.repeat_benchmark), ("cuad", corpus.repeat_contracts)]
)
def test_a_repeated_benchmark_converts_whole(tmp_path, convert, converter, make):
    bundle = convert(converter, "--source", make(7, tmp_path / "source"))
    counts = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["counts"]
    assert counts["documents"] == 7
    assert counts["located"]["absent"] <= 0.02 * sum(counts["located"].values())


# ---------------------------------------------------------------- what is measured


def test_the_measured_ingest_is_the_real_one(ingested):
    folder, paths, found = ingested
    index = open_index(folder / "index")
    assert found["documents"] == len(index.documents) == len(paths)
    assert found["chunks"] == len(index) == len(index.store("chunk"))
    assert (
        tuple(found["stages"]) == ingesting.STAGES
    )  # none was left out, so every function is still called by its name
    assert all(seconds > 0 for seconds in found["stages"].values())
    assert 0.5 * found["seconds"] <= sum(found["stages"].values()) <= found["seconds"]
    assert found["disk"]["documents and words"] > sum(len(path.read_bytes()) for path in paths)


def test_an_ingest_never_holds_all_its_documents_or_all_its_keys(tmp_path, ingested, monkeypatch):
    held = []
    monkeypatch.setattr(Index, "documents", property(held.append))
    monkeypatch.setattr(Index, "keys", lambda self, layer: held.append((self, layer)))
    found = ingesting.ingest_once(ingested[1], tmp_path)
    assert not held and found["characters"] == ingested[2]["characters"] > 0


def test_queries_are_timed_on_every_preset_there_is(ingested):
    times = ingesting.measure_queries(ingested[0], rounds=1)
    assert {"sac", "sac-multilayer", "routed"} == set(times)
    assert all(preset["median"] > 0 for preset in times.values())


def test_an_index_without_words_is_ingested_and_its_stages_told(tmp_path, ingested):
    found = ingesting.ingest_once(ingested[0] / "corpus", tmp_path, words=False)
    assert found["chunks"] == ingested[2]["chunks"] and found["documents"] == 8
    assert "words" not in found["stages"] and found["stages"]["split"] > 0
    assert found["disk"]["documents and words"] < ingested[2]["disk"]["documents and words"]


def test_a_store_that_forgets_leaves_the_rest_as_it_is(tmp_path, ingested):
    found = ingesting.ingest_once(ingested[1], tmp_path, store="none")
    assert found["chunks"] == ingested[2]["chunks"]
    assert found["disk"]["vectors"] < 0.01 * ingested[2]["disk"]["vectors"]  # the manifest alone
    assert found["disk"]["documents and words"] == pytest.approx(ingested[2]["disk"]["documents and words"], rel=0.01)


@pytest.mark.slow
def test_a_process_of_its_own_tells_its_memory_and_its_errors(tmp_path):
    run = run_apart(median, range(2_000_001))  # two million numbers in a list: over fifty megabytes
    assert run.value == 1_000_000
    assert run.peak > 50e6
    with pytest.raises(BundleError, match="no index here"):
        run_apart(open_index, tmp_path)


def test_a_clock_adds_up_what_has_one_name():
    clock = Clock()
    double = clock.wrap_timed("work", lambda value: sum(range(20_000)) and 2 * value)
    assert [double(2), double(3)] == [4, 6]
    assert set(clock.seconds) == {"work"} and clock.seconds["work"] > 0


# ---------------------------------------------------------------- an index that was grown


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return routed.make_small_index(tmp_path_factory.mktemp("small") / "index")


def test_a_grown_index_holds_copies_that_can_be_named_apart(tmp_path, small):
    before = open_index(small)
    folder = grown.grow_index(small, tmp_path / "grown", chunks=3 * len(before) - 5, store="faiss")
    index = open_index(folder)
    assert len(index) == 3 * len(before) == len(index.store("chunk")) == len(index.lexicon.chunks)
    original, copy = index.document(0), index.document(len(before.documents))
    assert copy.sha256 == original.sha256 and copy.filename != original.filename
    texts = [index.read_document_text(entry.filename) for entry in (original, copy)]
    assert len(texts[0]) == len(texts[1]) and texts[0] != texts[1]
    name = max((word for word in grown.names_of(original) if word in texts[0]), key=len)
    other = grown.rename_word(name, 1)
    assert name in texts[0] and other in texts[1] and other not in texts[0]
    for word, entry in ((name, original), (other, copy)):
        query = Query(question=word, names=word, asks="term", apart=True)
        assert index.lexicon.documents.score(query).choose_best(1) == [entry.number]


def test_a_question_for_a_copy_has_the_copys_name(small):
    entries = {entry.number: entry for entry in open_index(small).documents}
    twice = {**entries, 99: replace(entries[0], number=99, filename="001/copy.txt")}
    word = grown.names_of(entries[0])[0]
    asked = [routed.rename_question(twice, f"Who may end {word}?", entries[0].filename, turn=turn) for turn in range(3)]
    assert asked == [f"Who may end {word}?", f"Who may end {grown.rename_word(word, 1)}?", f"Who may end {word}?"]
    assert routed.rename_question(twice, "Who may end it?", "elsewhere.txt", turn=1) == "Who may end it?"


@pytest.mark.parametrize("store", ["faiss", "faiss:pq"])
def test_a_grown_index_is_asked_named_and_unnamed(tmp_path, small, store):
    folder = grown.grow_index(small, tmp_path / "grown", chunks=1200, store=store)
    found = routed.ask(folder, routed.read_questions(None), tmp_path / "cache", most=4)
    assert found["chunks"] >= 1200 and found["recall"] > 0.95
    for kind in ("named", "unnamed"):
        assert found[kind]["questions"] == 4 and found[kind]["compared"] > 0
        assert 0 < found[kind]["clock"] <= found[kind]["clock 90%"]


# ---------------------------------------------------------------- a machine that is busy


def test_what_others_use_is_read_off_the_idle_ticks(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    looks = iter(["cpu  100 0 50 800 50 0 0 0 0 0\n", "cpu  160 0 70 900 70 0 0 0 0 0\n"])
    monkeypatch.setattr(process.time, "sleep", lambda _: stat.write_text(next(looks), encoding="utf-8"))
    process.time.sleep(0)
    assert process.measure_busy_share(stat=stat) == pytest.approx(80 / 200)  # 80 of 200 ticks were work


def test_nothing_is_measured_on_a_busy_machine_unless_that_is_wanted(tmp_path, monkeypatch, results, capsys):
    monkeypatch.setattr(process, "measure_busy_share", lambda: 0.4)
    monkeypatch.setattr(routed, "measure", lambda *_, **__: results["routed"])
    assert main(["--part", "routed", "--out", str(tmp_path)]) == 1
    assert "other programs use 40% of this machine" in capsys.readouterr().err
    assert not (tmp_path / "scale.md").exists() and not (tmp_path / "scale.json").exists()
    assert main(["--part", "routed", "--out", str(tmp_path), "--busy"]) == 0
    page = (tmp_path / "scale.md").read_text(encoding="utf-8")
    assert "40% used by others before: doing other work, too" in page
    assert "| 1,000 | `faiss:pq` | unnamed | 41.0 | 50.0 | 44.0 | 0.9990 |" in page


# ---------------------------------------------------------------- what is reckoned


@given(st.floats(0.5, 2), st.floats(1e-6, 1e3))
def test_the_exponent_of_a_power_is_that_power(power, factor):
    sizes = [100, 1000, 10_000]
    assert documents.fit_exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power)


def test_the_spread_is_half_the_width():
    assert documents.spread([1.15, 0.85]) == pytest.approx(0.15)


@given(st.floats(0, 1), st.integers(2, 64))
def test_the_serial_share_is_amdahls(share, jobs):
    faster = 1 / (share + (1 - share) / jobs)
    assert workers.compute_serial_share(faster, jobs) == pytest.approx(share, abs=1e-9)


@pytest.mark.slow
def test_the_flatness_of_memory_is_measured(monkeypatch):
    monkeypatch.setattr(memory, "FLAT_TIMES", (1,))
    found = memory.measure_flatness(None, quick=True)
    assert [(p["store"], p["documents"]) for p in found["points"]] == [("whole", 15)]
    assert all(p["chunks"] > p["documents"] and p["peak"] > 1e7 for p in found["points"])


def test_the_flatness_of_memory_is_that_of_an_index_with_words_and_vectors(monkeypatch):
    kept = []
    monkeypatch.setattr(memory, "run_apart", lambda *given, **options: kept.append(options))
    with pytest.raises(AttributeError):  # nothing was measured
        memory.measure_point(None, 1, 1, "whole")
    assert kept[0] == {"store": "faiss", "words": True, "engine": "local", "jobs": 2}


def test_growth_is_told_by_document_and_by_chunk(results):
    grown = memory.compute_growth(results["memory"]["points"], "faiss")
    assert grown == pytest.approx({"ratio": 5e8 / 1.4e8, "document": 3.6e8 / 900, "chunk": 3.6e8 / 22_500})
    assert memory.compute_growth(results["memory"]["points"], "milvus:lite") is None


def test_the_flat_index_is_left_where_its_line_crosses(results):
    points = results["chunks"]["points"]
    assert chunks.find_crossing(points, "faiss", "one ms", 60) == pytest.approx(240_000)
    assert chunks.find_crossing(points, "faiss", "one ms", 60_000) is None  # far beyond what was measured
    assert chunks.find_crossing(points, "faiss:fp16", "one ms", 60) is None
    assert chunks.reckon(points, "faiss", "one ms", 10_000_000) == pytest.approx(2500)
    assert chunks.reckon(points, "faiss:fp16", "one ms", 10_000_000) is None
    held = [{"rows": rows, "store": "faiss", "search MB": 80 + rows / 500} for rows in (10_000, 100_000, 1_000_000)]
    assert chunks.reckon(held, "faiss", "search MB", 10_000_000) == pytest.approx(20_080), "what is there at any size"
    assert chunks.reckon(held[:1], "faiss", "search MB", 10_000_000) is None


def test_a_line_of_a_picture_has_a_name_that_there_is_room_for(results):
    results["chunks"]["points"] += [{"rows": 10_000, "store": store, "one ms": 1.0} for store in chunks.MILVUS]
    names = [line.name for line in blocks.draw_chunks(results)["query"].series]
    assert names == ["faiss", "milvus", "milvus IVF", "milvus HNSW"]


def test_new_points_take_the_place_of_old_ones():
    old = [{"rows": 10, "store": "faiss:pq", "one ms": 1.0}, {"rows": 10, "store": "faiss", "one ms": 1.0}]
    new = chunks.merge_points(old, [{"rows": 10, "store": "faiss", "one ms": 2.0}])
    assert [(point["store"], point["one ms"]) for point in new] == [("faiss", 2.0), ("faiss:pq", 1.0)]


def test_any_of_the_chunks_with_one_vector_is_found():
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], np.float32)
    keys = np.array([[1, 3], [2, -1]])  # 0 and 1 are alike; nothing but one row was found for the second query
    assert compute_recall(vectors, np.eye(2, dtype=np.float32), keys, np.array([1.0, 0.8], np.float32)) == 0.5


def test_a_server_is_told_by_its_own_processes_and_its_data(tmp_path):
    folder, proc = tmp_path / "milvus", tmp_path / "proc"
    for place, size in (
        ("bin/milvus", 9_000_000),
        ("logs/log", 1_000_000),
        ("data/a/rows", 1_500_000),
        ("wal", 500_000),
    ):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(bytes(size))
    for number, program in (("12", folder / "bin" / "milvus"), ("13", tmp_path / "other")):
        (proc / number).mkdir(parents=True)
        (proc / number / "exe").symlink_to(program)
        (proc / number / "status").write_text("Name:\tx\nVmRSS:\t 2000 kB\n", encoding="utf-8")
    there = server.Server("http://127.0.0.1:1", folder)
    assert there.disk() == 2.0, "not the program, nor what it says"
    assert there.memory(proc=proc) == 2.048
    with pytest.raises(ToolkitError, match="no server runs from this folder"):
        replace(there, folder=tmp_path / "elsewhere").memory(proc=proc)


def test_a_server_alone_is_measured_by_the_clock_and_by_what_it_holds(tmp_path, monkeypatch):
    class Fake(server.Server):
        def memory(self, *, proc=None):
            return 300.0

        def disk(self):
            return next(sizes)

    sizes = iter(range(0, 100, 10))
    asked = []

    def compare(rows, specs, base, queries, *, seen=dict):
        asked.append((rows, *specs))
        return {spec: {"build s": 1.0, "build clock s": 9.0, "batch ms": 2.0, **seen()} for spec in specs}

    monkeypatch.setattr(chunks, "compare", compare)
    monkeypatch.setattr(chunks, "ROWS", (1000, 1_000_000))
    known = [{"rows": 1000, "store": "faiss", "one ms": 1.0}]
    before = {
        "points": known,
        "vectors": "a mixture of 300 clusters; 20,000, grown by moving them along the difference of two others",
    }
    there = Fake("URI", tmp_path)
    told = chunks.measure(None, stores=chunks.MILVUS, server=there, known=before)
    assert asked == [(1000, "milvus:URI"), (1000, "milvus:URI?index=IVF_FLAT"), (1000, "milvus:URI?index=HNSW")]
    first, *served = told["points"]
    assert first == known[0] and [point["store"] for point in served] == list(chunks.MILVUS)
    own = {"build s": 9.0, "build clock s": 9.0, "search MB": 300.0, "disk MB": 10}
    assert all(point == {"rows": 1000, "store": point["store"], **own} for point in served)


def test_points_of_other_vectors_do_not_stand_beside_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "compare", lambda rows, specs, base, queries: {spec: {"one ms": 2.0} for spec in specs})
    real = tmp_path / "real.npy"
    np.save(real, np.eye(4, dtype=np.float16))
    known = {
        "points": [{"rows": 10, "store": "faiss", "one ms": 1.0}],
        "vectors": chunks.describe_vectors(None, 20_000),
    }
    found = chunks.measure(real, real, rows=[1000], stores=["faiss:pq"], known=known)
    assert found["points"] == [{"rows": 1000, "store": "faiss:pq", "one ms": 2.0}]
    assert found["vectors"] == "real.npy; 4, grown by moving them along the difference of two others"
    again = chunks.measure(real, real, rows=[1_000_000], stores=["faiss:fp16"], known=found)
    assert [point["store"] for point in again["points"]] == ["faiss:pq", "faiss:fp16"]
    with pytest.raises(ToolkitError, match="no server is named; give --milvus URI and --milvus-data DIR"):
        chunks.measure(real, real, rows=[1000], stores=["milvus"])


def test_what_takes_long_is_measured_with_very_many_rows_only_when_they_are_named():
    assert chunks.is_allowed("milvus", 100_000) and chunks.is_allowed("faiss:pq", 1_000_000)
    assert not chunks.is_allowed("milvus", 310_000)


@pytest.mark.parametrize("flags", [["--milvus", "URI"], ["--milvus-data", "folder"]])
def test_a_server_needs_its_address_and_its_folder(flags, tmp_path, capsys):
    assert main(["--part", "chunks", "--busy", "--out", str(tmp_path), *flags]) == 1
    assert "go together" in capsys.readouterr().err


def test_points_of_another_machine_do_not_stand_beside_new_ones():
    assert not is_same_machine(
        {"machines": {"chunks": {"system": "Linux", "machine": "abacus", "cores": 10}}}, "chunks"
    )
    assert not is_same_machine({}, "chunks")
    assert is_same_machine({"machines": {"chunks": {**describe_machine_kind(), "load": 3.0}}}, "chunks")


def test_the_model_is_linear_and_an_accelerator_or_more_machines_never_slow_it(results):
    table = model.list_constants(results)
    for setting in model.SETTINGS:
        one, ten = model.compute_cost(10_000, setting, table), model.compute_cost(100_000, setting, table)
        assert {name: ten[name] / one[name] for name in one} == pytest.approx(dict.fromkeys(one, 10))
    hours = [model.compute_cost(10**6, setting, table)["hours"] for setting in model.SETTINGS]
    assert hours == sorted(hours, reverse=True)


def test_the_model_adds_up_by_hand(results):
    table = model.list_constants(results)
    found = model.compute_cost(1000, model.SETTINGS[0], table)
    assert found["chunks"] == 195_000
    assert found["embed h"] == pytest.approx(195_000 * 0.02 / 2 / 3600)
    # eleven stages took a second in a hundred documents of 25 chunks: seven in workers, three alone, one the cache
    assert found["workers h"] == pytest.approx((18_000 * 0.005 + 195_000 * 7 / 2500) / 2 / 3600)
    assert found["one process h"] == pytest.approx(195_000 * (3 + 1) / 2500 / 3600)
    assert found["hours"] == pytest.approx(max(found["workers h"], found["one process h"] + found["embed h"]))
    assert found["ram GB"] == pytest.approx(195_000 * (4 * 384 + 8 + 400) / 1e9)


def test_what_breaks_is_told_first_things_first(results):
    broken = model.find_breaks(results, model.list_constants(results))
    assert [item.documents for item in broken] == sorted(item.documents for item in broken)
    assert next(item for item in broken if "a query" in item.what).documents == pytest.approx(240_000 / 195)
    assert all(item.mend for item in broken)


# ---------------------------------------------------------------- the page


def test_a_block_is_put_between_its_markers_and_nowhere_else():
    page = "words\n<!-- scale:a -->\nold\n<!-- /scale:a -->\nmore\n"
    assert markdown.fill(page, "a", r"new \1") == page.replace("old", r"new \1")
    with pytest.raises(ToolkitError, match="scale:b"):
        markdown.fill(page, "b", "new")


def test_a_picture_has_every_line_by_name_and_every_point():
    lines = [
        draw.Series("flat & exact", [(10, 1), (1000, 100)]),
        draw.Series("graph", [(10, 0), (1000, 2)], dashed=True),
    ]
    picture = ElementTree.fromstring(draw.draw(draw.Chart("Time", "chunks", "ms", lines, (60.0, "limit"))))
    words = [element.text for element in picture.iter() if element.text]
    assert {"flat & exact", "graph", "Time", "limit"} <= set(words)
    told = [word for word in words if " at " in word]
    assert told == ["flat & exact: 1 at 10", "flat & exact: 100 at 1k", "graph: 2 at 1k"]  # zero has no logarithm
    places = [float(element.get(name, 0)) for element in picture.iter() for name in ("cx", "cy") if element.get(name)]
    assert all(math.isfinite(place) and 0 <= place <= draw.WIDTH for place in places)


def test_the_page_is_written_from_points_alone(tmp_path, capsys, results):
    (tmp_path / "scale.json").write_text(json.dumps(results), encoding="utf-8")
    assert main(["--part", "model", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "scale.md").read_text(encoding="utf-8")
    for told in (
        "exponent **1.000**",
        "`faiss` at 240,000 chunks",
        "| 100,000,000 | a cluster |",
        "+257%",
        "| 1.33 | 50% |",
        "| 20,000 | 520,000 | 238 | 30 |",
        "+19%, 2.0 kB a document",
    ):
        assert told in page
    pictures = set(capsys.readouterr().out.split()) - {str(tmp_path / "scale.md")}
    assert all(picture.partition("/images/")[2] in page for picture in pictures) and len(pictures) == 6
    before = (DOCS / "scale.md").read_text(encoding="utf-8")
    assert page.partition("<!--")[0] == before.partition("<!--")[0]  # the words stay
