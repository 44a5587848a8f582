"""The whole pipeline on the samples: indexed, searched, answered, changed, damaged, stopped and continued."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from exhibit.evidence import fold
from exhibit.evidence.ocr import TextLine
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Prompt
from exhibit.rag import Config, Pipeline
from exhibit.rag import pipeline as module
from exhibit.rag.pipeline import find_files
from exhibit.rag.saved_index import open_index
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.storage.atomic import lock_folder
from tests.evidence import files

ROOT = Path(__file__).parents[2]


class Counting(Hashing):
    """An embedder that counts its texts."""

    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    def embed(self, texts, *, role):
        self.texts += texts
        return super().embed(texts, role=role)


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    clause = "1.{n} {title}. {body}\n\n"
    for name, party, law in (
        ("alder", "Alder Ltd", "Norway"),
        ("birch", "Birch Inc.", "Ohio"),
        ("cedar", "Cedar SA", "Chile"),
    ):
        text = f"SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} and Dune plc.\n\n"
        bodies = [
            ("Term", "The term of this Agreement is five years from the Effective Date."),
            ("Governing Law", f"This Agreement is governed by the law of {law}."),
            ("Notice", f"{party} shall give ninety days' notice of termination in writing."),
        ]
        text += "".join(clause.format(n=n, title=t, body=b) for n, (t, b) in enumerate(bodies, 1))
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def make(tmp_path):
    def run(preset: str = "sac", **settings) -> Pipeline:
        embedder = settings.pop("embedder", None) or Hashing(256)
        engine = settings.pop("engine", "local")
        config = Config.preset(preset, **settings)
        return Pipeline(config, cache=tmp_path / "cache", engine=engine, jobs=1, embedder=embedder)

    return run


@pytest.fixture
def ready(make, corpus, tmp_path) -> Pipeline:
    pipeline = make("sac-multilayer", chunk_size=120)
    pipeline.index(corpus, tmp_path / "index")
    return pipeline


def test_files_that_are_called_alike_are_told_apart_by_their_folders(make, tmp_path):
    for folder in ("north/2019", "south/2019", "south/2020"):
        (tmp_path / "leases" / folder).mkdir(parents=True)
        (tmp_path / "leases" / folder / "lease.txt").write_text(f"The rent of {folder} is due.", encoding="utf-8")
    (tmp_path / "leases" / "deed.txt").write_text("The deed of all.", encoding="utf-8")
    paths = sorted((tmp_path / "leases").rglob("*.txt"))
    pipeline = make("rcts", engine="serial")
    pipeline.index(paths, tmp_path / "index")
    names = {hit.chunk.document for hit in pipeline.search(["rent lease deed"])[0].ranked}
    assert names == {"deed.txt", "2019/lease.txt", "south/2019/lease.txt", "2020/lease.txt"}


def test_a_few_lines_do_it(make, corpus, tmp_path):
    pipeline = make(chunk_size=120)
    report = pipeline.index(corpus, tmp_path / "index")
    assert (report.documents, report.set_aside) == (3, ()) and report.chunks >= 9
    [found] = pipeline.search(["Which law governs the agreement of Birch Inc.?"])
    assert found.ranked[0].chunk.document == "birch.txt"
    again = make(chunk_size=120).open(tmp_path / "index")
    assert again.search(["Which law governs the agreement of Birch Inc.?"]) == [found]


def test_an_index_that_nobody_asks_is_built_and_not_open_built(make, corpus, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(module, "open_index", lambda *given: opened.append(given) or open_index(*given))
    pipeline = make()
    pipeline.index(corpus, tmp_path / "index")
    assert not opened, "it would take memory for every document, and who only builds it has no use for it"
    assert pipeline.search(["Who pays the rent?"])[0].ranked and pipeline.search(["When is it due?"])
    assert [folder for folder, _ in opened] == [tmp_path / "index"]


@pytest.mark.parametrize("preset", ["naive", "rcts", "sac", "sac-multilayer", "routed"])
def test_chunks_tile_every_document_and_hold_its_own_words(make, corpus, tmp_path, preset):
    pipeline = make(preset, chunk_size=80)
    pipeline.index(corpus, tmp_path / "index")
    index = open_index(tmp_path / "index")
    for entry in index.documents:
        text = (corpus / entry.filename).read_text(encoding="utf-8")
        chunks = [index.chunk(int(key)) for key in index.chunk_keys([entry.number])]
        assert fold("".join(index.text(chunk) for chunk in chunks)) == fold(text)
        assert all(chunk.document == entry.filename and len(index.text(chunk)) <= 80 for chunk in chunks)


def test_the_summary_is_embedded_and_never_returned(make, corpus, tmp_path):
    embedder = Counting()
    pipeline = make("sac", chunk_size=120, embedder=embedder)
    pipeline.index(corpus, tmp_path / "index")
    summary = open_index(tmp_path / "index").entry("alder.txt").summary
    assert "Alder" in summary
    assert sum(text.startswith(f"{summary}\n") for text in embedder.texts) >= 3
    [answered] = pipeline.answer(["What is the term of the Alder agreement?"])
    assert all(not hit.text.startswith(summary) for hit in answered.retrieved.ranked)
    plain = Counting()
    make("rcts", chunk_size=120, embedder=plain).index(corpus, tmp_path / "plain")
    assert not any(text.startswith(summary) for text in plain.texts)


def test_a_second_run_embeds_nothing(make, corpus, tmp_path):
    first, second = Counting(), Counting()
    make("sac-multilayer", embedder=first).index(corpus, tmp_path / "one")
    make("sac-multilayer", embedder=second).index(corpus, tmp_path / "two")
    assert first.texts and second.texts == []


def test_a_scan_is_read_when_ocr_is_asked_for(make, tmp_path, monkeypatch):
    Image.new("RGB", (300, 200), "white").save(tmp_path / "scan.pdf")
    with pytest.raises(BundleError, match="--ocr true can read it"):
        make("rcts").index(tmp_path / "scan.pdf", tmp_path / "without")

    line = TextLine(50, 50, 500, 80, "The tenant shall keep the premises in repair.", 0.9)
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: "")
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: lambda picture: [line])
    pipeline = make("rcts", ocr=True, ocr_engine="tesseract", ocr_language="cs-CZ", engine="serial")
    report = pipeline.index(tmp_path / "scan.pdf", tmp_path / "with")
    assert report.notes == ("scan.pdf: page 1 read by OCR, sure to 90%",)
    assert pipeline.search(["premises in repair"])[0].ranked[0].chunk.page == 1


def test_three_layers(ready):
    index = ready._open_built
    assert len(index.store("document")) == 3
    assert len(index.store("section")) == sum(len(entry.sections) for entry in index.documents) >= 9
    assert len(index.store("chunk")) == len(index)


def test_stages_are_recorded_and_passages_come_from_two_documents(ready):
    [found] = ready.search(["notice of termination Alder Ltd"])
    assert len(found.trace["documents"]) == 2 and found.trace["search"]["layer"] == "chunk"
    assert {hit.chunk.document for hit in found.ranked} == set(found.trace["documents"])
    assert len(found.selected) <= 6 and found.selected == found.ranked[: len(found.selected)]
    best = found.ranked[0].score
    assert all(hit.score >= best - 0.25 for hit in found.selected)


def test_one_search_serves_metrics_and_answers(make, corpus, tmp_path):
    pipeline = make("sac", chunk_size=60)
    pipeline.index(corpus, tmp_path / "index")
    [found] = pipeline.search(["term"])
    assert len(found.ranked) > len(found.selected) == 6


def test_sections_and_pages_are_known(make, samples, tmp_path):
    pipeline = make("rcts")
    pdf = next((samples / "cuad").rglob("TESSALINE*.pdf"))
    pipeline.index(pdf, tmp_path / "index")
    [found] = pipeline.search(["source code escrow deposit"])
    hit = next(hit for hit in found.ranked if "escrow" in hit.text.lower())
    assert (hit.chunk.page == 2 and "Escrow" in hit.chunk.section) or "HOSTING" in hit.chunk.section


def test_page_furniture_is_not_embedded(make, samples, tmp_path):
    embedder = Counting()
    pipeline = make("rcts", embedder=embedder)
    pipeline.index(next((samples / "cuad").rglob("TESSALINE*.pdf")), tmp_path / "index")
    assert not any("Source: TESSALINE SOFTWARE" in text for text in embedder.texts)


def test_documents_come_and_go_without_a_rebuild(make, corpus, tmp_path):
    embedder = Counting()
    pipeline = make("sac-multilayer", chunk_size=120, embedder=embedder)
    pipeline.index(corpus, tmp_path / "index")
    (tmp_path / "elm.txt").write_text("LEASE\n\nThis Lease is governed by the law of Peru.\n", encoding="utf-8")
    before = len(embedder.texts)
    report = pipeline.add(tmp_path / "elm.txt")
    assert (report.documents, report.pages, report.chunks) == (1, 0, 1), "of what was added"
    assert len(embedder.texts) - before <= 6
    assert pipeline.search(["law of Peru lease"])[0].ranked[0].chunk.document == "elm.txt"
    pipeline.remove("birch.txt")
    reopened = make("sac-multilayer", chunk_size=120, embedder=Counting()).open(tmp_path / "index")
    assert [entry.filename for entry in reopened._open_built.documents] == ["alder.txt", "cedar.txt", "elm.txt"]
    assert all(hit.chunk.document != "birch.txt" for hit in reopened.search(["Birch Inc. Ohio"])[0].ranked)
    with pytest.raises(BundleError, match="already"):
        pipeline.add(tmp_path / "elm.txt")
    with pytest.raises(BundleError, match="no document 'gone.txt'"):
        pipeline.remove("gone.txt")


def test_of_two_that_change_one_index_the_second_is_refused(tmp_path, corpus, make):
    first, second = make(), make()
    first.index(corpus, tmp_path / "index")
    second.open(tmp_path / "index")
    first.remove("alder.txt")
    for change in (lambda: second.remove("birch.txt"), lambda: second.add(corpus / "alder.txt")):
        with pytest.raises(BundleError, match="another process has changed it since it was opened; open it again"):
            change()
    with (
        lock_folder(tmp_path / "index", busy="busy"),
        pytest.raises(BundleError, match="another process is changing it"),
    ):
        first.remove("birch.txt")
    first.remove("birch.txt")
    assert [entry.filename for entry in open_index(tmp_path / "index").documents] == ["cedar.txt"]


@pytest.mark.parametrize("name", ["index.sqlite", "chunk.faiss", "manifest.json"])
def test_a_damaged_index_is_refused_with_what_to_do(ready, make, tmp_path, name):
    path = tmp_path / "index" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ToolkitError, match="again"):
        make("sac-multilayer", chunk_size=120).open(tmp_path / "index")


def test_an_index_made_otherwise_is_refused(ready, make, tmp_path):
    with pytest.raises(BundleError, match=r"built with other settings \(chunk_size\); build the index again"):
        make("sac-multilayer", chunk_size=300).open(tmp_path / "index")
    with pytest.raises(BundleError, match="built with the embedder hashing-256, but the embedder is now hashing-64"):
        make("sac-multilayer", chunk_size=120, embedder=Hashing(64)).open(tmp_path / "index")
    with pytest.raises(BundleError, match="no index here"):
        make().open(tmp_path / "nowhere")
    # settings that only matter when a question comes do not matter here
    make("sac-multilayer", chunk_size=120, k=3, threshold=None).open(tmp_path / "index")


def test_an_index_is_not_overwritten_without_force(ready, make, corpus, tmp_path):
    with pytest.raises(BundleError, match="--force"):
        make().index(corpus, tmp_path / "index")
    make().index(corpus, tmp_path / "index", force=True)


def test_odd_corpora(make, tmp_path):
    pipeline = make()
    (tmp_path / "empty").mkdir()
    with pytest.raises(BundleError, match="the folder has no files"):
        pipeline.index(tmp_path / "empty", tmp_path / "i1")
    with pytest.raises(BundleError, match="no such file or folder"):
        pipeline.index(tmp_path / "nowhere", tmp_path / "i2")
    (tmp_path / "blank.txt").write_text("   \n")
    with pytest.raises(BundleError, match="no document could be indexed: .*no words in it"):
        pipeline.index(tmp_path / "blank.txt", tmp_path / "i3")
    (tmp_path / "one.txt").write_text("The only clause.")
    report = pipeline.index([tmp_path / "blank.txt", tmp_path / "one.txt"], tmp_path / "i4")
    assert report.documents == 1 and "blank.txt" in report.set_aside[0]


def test_odd_questions(ready):
    blank, long, plain = ready.search(["  ", "termination " * 10_000, "term"])
    assert blank.ranked == () and long.ranked and plain.ranked
    assert len(plain.ranked) <= len(ready._open_built)  # depth 64 is more than there is


@pytest.mark.slow
def test_a_large_text_and_many_small_ones(make, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(2000):
        (tmp_path / "many" / f"{number}.txt").write_text(f"Clause {number} binds party {number}.")
    pipeline = make("rcts")
    assert pipeline.index(tmp_path / "many", tmp_path / "i1").documents == 2000
    assert pipeline.search(["party 1234"])[0].ranked
    (tmp_path / "big.txt").write_text("Every clause binds the parties and their successors. " * 20_000)
    report = pipeline.index(tmp_path / "big.txt", tmp_path / "i2")
    assert report.documents == 1 and report.chunks > 2000


class Stopping(Counting):
    """An embedder whose process is stopped after some texts."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def embed(self, texts, *, role):
        if len(self.texts) + len(texts) > self.after:
            raise KeyboardInterrupt
        return super().embed(texts, role=role)


def test_a_stopped_ingest_goes_on_where_it_was(make, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(40):
        clauses = "".join(f"{n}. Clause {n} of deal {number} binds the parties.\n\n" for n in range(60))
        (tmp_path / "many" / f"{number}.txt").write_text(clauses)
    first = Stopping(1100)
    with pytest.raises(KeyboardInterrupt):
        make("rcts", chunk_size=100, embedder=first).index(tmp_path / "many", tmp_path / "index")
    assert not (tmp_path / "index").exists() and len(first.texts) >= 500
    second, fresh = Counting(), Counting()
    make("rcts", chunk_size=100, embedder=second).index(tmp_path / "many", tmp_path / "index")
    other = Pipeline(Config.preset("rcts", chunk_size=100), cache=tmp_path / "other", jobs=1, embedder=fresh)
    other.index(tmp_path / "many", tmp_path / "whole")
    assert len(first.texts) + len(second.texts) == len(fresh.texts)
    for name in ("index.sqlite", "chunk.faiss"):
        assert (tmp_path / "index" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_hundred_thousand_tiny_files(make, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(100_000):
        (tmp_path / "many" / f"{number}.txt").write_text(f"Clause {number} binds party {number}.")
    pipeline = make("rcts", embedder=Hashing(32))
    assert pipeline.index(tmp_path / "many", tmp_path / "index").documents == 100_000
    assert pipeline.search(["party 1234"])[0].ranked


@pytest.mark.slow
def test_a_text_of_fifty_megabytes(make, tmp_path):
    sentence = "Every clause binds the parties, their successors and their permitted assigns, without limit. "
    (tmp_path / "big.txt").write_text("".join(f"{n}. {sentence}\n" for n in range(520_000)))
    assert (tmp_path / "big.txt").stat().st_size > 50_000_000
    report = make("rcts", embedder=Hashing(32)).index(tmp_path / "big.txt", tmp_path / "index")
    assert report.chunks > 100_000


class Broken(Hashing):
    """An embedder that returns vectors of NaN."""

    def embed(self, texts, *, role):
        return np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)


def test_an_embedder_that_gives_nan_is_found_out(make, corpus, tmp_path):
    with pytest.raises(ToolkitError, match="numbers that are not finite for the text"):
        make(embedder=Broken(32)).index(corpus, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_answers_cite_and_refuse(ready):
    told, unknown = ready.answer(
        ["What is the governing law of the Cedar SA agreement?", "Who won the 1998 cup final?"]
    )
    assert "Chile" in told.answer.text and told.answer.citations
    assert told.context.sources[told.answer.citations[0] - 1].document == "cedar.txt"
    assert unknown.answer.refused


def test_presets_are_files_that_can_be_copied_and_edited(tmp_path):
    (tmp_path / "mine.toml").write_text('splitter = "naive"\nchunk_size = 300\n')
    assert Config.preset(str(tmp_path / "mine.toml"), k=3).model_dump()["chunk_size"] == 300
    (tmp_path / "bad.toml").write_text('colour = "red"\nchunk_size = 0\n')
    with pytest.raises(ToolkitError, match="colour: .*; settings are ocr, ocr_language"):
        Config.preset(str(tmp_path / "bad.toml"))
    with pytest.raises(
        ToolkitError, match="there are bm25, careful, naive, rcts, routed, sac, sac-multilayer, seed, tfidf"
    ):
        Config.preset("none-such")


def test_every_file_of_a_folder_is_indexed_or_set_aside_by_name(corpus, make, tmp_path):
    (corpus / "film.mp4").write_bytes(b"ftyp")
    (corpus / "sub").mkdir()
    (corpus / "sub" / "x.md").write_text("The **licensee** pays.")
    attached = {"annex.docx": files.docx(files.paragraph("The annex is part of the lease."))}
    (corpus / "sub" / "y.eml").write_bytes(files.eml("See the annex.", attachments=attached))
    names = ["alder.txt", "birch.txt", "cedar.txt", "film.mp4", "x.md", "y.eml", "y.eml - annex.docx"]
    assert [path.name for path in find_files(corpus)] == names
    assert [path.name for path in find_files(corpus, suffixes=["md"])] == ["x.md"]
    pipeline = make("rcts")
    report = pipeline.index(corpus, tmp_path / "every")
    assert report.documents + len(report.set_aside) == len(names)
    assert [reason.partition(": ")[2].partition(";")[0] for reason in report.set_aside] == ["no reader for .mp4"]
    [found] = pipeline.search(["What is part of the lease?"])
    assert "y.eml - annex.docx" in [hit.chunk.document for hit in found.ranked]


def test_importing_rag_is_light():
    heavy = {"faiss", "onnxruntime", "torch", "numpy", "pypdfium2"}
    code = f"import sys, exhibit.rag; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_two_ingests_at_once_are_refused(make, corpus, tmp_path):
    from exhibit.rag.database import index_kind
    from exhibit.storage.atomic import replace_folder

    with (
        replace_folder(tmp_path / "index", force=False, kind=index_kind("faiss")),
        pytest.raises(BundleError, match="another run"),
    ):
        make().index(corpus, tmp_path / "index")


def test_the_manifest_says_what_it_was_made_with(ready, tmp_path):
    manifest = json.loads((tmp_path / "index" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["chunk_size"] == 120 and manifest["embedder"] == "hashing-256"
    assert manifest["counts"]["documents"] == 3 and manifest["counts"]["document vectors"] == 3


def test_what_a_language_model_may_cost(make, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ToolkitError, match="--max-cost needs --price-in and --price-out"):
        assert make(llm="openai:tiny", max_cost=1.0).llm
    capped = make(llm="openai:tiny", max_cost=0.000001, price_in=1000.0, price_out=1000.0, max_requests=5).llm
    [completion] = capped.complete([Prompt("What is the term of this agreement?")], max_tokens=100, temperature=0)
    assert "cost" in completion.error and not completion.text


def test_workers_and_one_process_build_the_same_index(corpus, tmp_path):
    for engine in ("serial", "local"):
        pipeline = Pipeline(
            Config.preset("routed", chunk_size=120),
            cache=tmp_path / engine,
            engine=engine,
            jobs=2,
            embedder=Hashing(64),
        )
        pipeline.index(corpus, tmp_path / f"index-{engine}")
    one, two = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / f"index-{engine}").rglob("*")) if path.is_file()}
        for engine in ("serial", "local")
    )
    assert one == two and {"chunk.faiss", "index.sqlite", "manifest.json"} == one.keys()
