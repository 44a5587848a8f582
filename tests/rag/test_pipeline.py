"""The whole pipeline on the samples: indexed, searched, answered, changed, damaged, stopped and continued."""

from pathlib import Path

import pytest
from PIL import Image

from exhibit.evaluation.targets.builtin import _make_answered_reply
from exhibit.evidence.ocr import TextLine
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import LLM
from exhibit.rag import Config, Pipeline
from exhibit.rag.answerers import reader
from exhibit.rag.index import open_index
from exhibit.rag.pipeline import find_files
from exhibit.rag.summaries.extractive import ExtractiveSummariser
from exhibit.schemas.errors import BundleError
from exhibit.storage.atomic import lock_folder
from tests.evidence import files
from tests.rag.bundles import PARTIES, contract
from tests.rag.test_answers import FakeReader


class CountingEmbedder(Hashing):
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
    for name, (party, law) in PARTIES.items():
        (folder / f"{name}.txt").write_text(contract(party, law), encoding="utf-8")
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
def indexed_pipeline(make, corpus, tmp_path) -> Pipeline:
    pipeline = make("sac-multilayer", chunk_size=120)
    pipeline.index(corpus, tmp_path / "index")
    return pipeline


def test_pipeline_builds_index_that_gives_the_same_results_when_opened_again(make, corpus, tmp_path):
    pipeline = make(chunk_size=120)
    report = pipeline.index(corpus, tmp_path / "index")
    assert (report.documents, report.set_aside) == (3, ()) and report.chunks >= 9
    [found] = pipeline.search(["Which law governs the agreement of Birch Inc.?"])
    assert found.ranked[0].document == "birch.txt"
    again = make(chunk_size=120).open(tmp_path / "index")
    assert again.search(["Which law governs the agreement of Birch Inc.?"]) == [found]


def test_summary_is_embedded_with_its_chunks_but_never_returned(make, corpus, tmp_path):
    embedder = CountingEmbedder()
    pipeline = make("sac", chunk_size=120, embedder=embedder)
    pipeline.index(corpus, tmp_path / "index")
    summary = open_index(tmp_path / "index").entry("alder.txt").summary
    assert "Alder" in summary
    assert sum(text.startswith(f"{summary}\n") for text in embedder.texts) >= 3
    [answered] = pipeline.answer(["What is the term of the Alder agreement?"])
    assert all(not hit.text.startswith(summary) for hit in answered.retrieved.ranked)
    plain = CountingEmbedder()
    make("rcts", chunk_size=120, embedder=plain).index(corpus, tmp_path / "plain")
    assert not any(text.startswith(summary) for text in plain.texts)


def test_index_reads_scan_only_when_ocr_is_enabled(make, tmp_path, monkeypatch):
    Image.new("RGB", (300, 200), "white").save(tmp_path / "scan.pdf")
    with pytest.raises(BundleError, match="--ocr true can read it"):
        make("rcts").index(tmp_path / "scan.pdf", tmp_path / "without")

    line = TextLine(50, 50, 500, 80, "The tenant shall keep the premises in repair.", 0.9)
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: "")
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: lambda picture: [line])
    pipeline = make("rcts", ocr=True, ocr_engine="tesseract", ocr_language="cs-CZ", engine="serial")
    report = pipeline.index(tmp_path / "scan.pdf", tmp_path / "with")
    assert report.notes == ("scan.pdf: page 1 read by OCR with confidence 90%",)
    assert pipeline.search(["premises in repair"])[0].ranked[0].page == 1


def test_selection_has_only_passages_with_nearly_the_best_score(indexed_pipeline):
    [found] = indexed_pipeline.search(["notice of termination Alder Ltd"])
    assert len({hit.document for hit in found.ranked}) == 2
    assert len(found.selected) <= 6 and found.selected == found.ranked[: len(found.selected)]
    best = found.ranked[0].score
    assert all(hit.score >= best - 0.25 for hit in found.selected)


def test_hit_has_section_and_page_and_text_without_repeated_footer(make, samples, tmp_path):
    embedder = CountingEmbedder()
    pipeline = make("rcts", embedder=embedder)
    pipeline.index(next((samples / "cuad").rglob("TESSALINE*.pdf")), tmp_path / "index")
    [found] = pipeline.search(["source code escrow deposit"])
    hit = next(hit for hit in found.ranked if "escrow" in hit.text.lower())
    assert (hit.page == 2 and "Escrow" in hit.section) or "HOSTING" in hit.section
    assert not any("Source: TESSALINE SOFTWARE" in text for text in embedder.texts)


def test_index_refuses_the_second_of_two_concurrent_changes(tmp_path, corpus, make):
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


def test_index_rejects_missing_empty_or_blank_input(make, tmp_path):
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


class StoppingEmbedder(CountingEmbedder):
    """An embedder whose process is stopped after some texts."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def embed(self, texts, *, role):
        if len(self.texts) + len(texts) > self.after:
            raise KeyboardInterrupt
        return super().embed(texts, role=role)


def test_stopped_ingest_continues_with_the_cached_vectors(make, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(40):
        clauses = "".join(f"{n}. Clause {n} of deal {number} binds the parties.\n\n" for n in range(60))
        (tmp_path / "many" / f"{number}.txt").write_text(clauses)
    first = StoppingEmbedder(1100)
    with pytest.raises(KeyboardInterrupt):
        make("rcts", chunk_size=100, embedder=first).index(tmp_path / "many", tmp_path / "index")
    assert not (tmp_path / "index").exists() and len(first.texts) >= 500
    second, fresh = CountingEmbedder(), CountingEmbedder()
    make("rcts", chunk_size=100, embedder=second).index(tmp_path / "many", tmp_path / "index")
    other = Pipeline(Config.preset("rcts", chunk_size=100), cache=tmp_path / "other", jobs=1, embedder=fresh)
    other.index(tmp_path / "many", tmp_path / "whole")
    assert len(first.texts) + len(second.texts) == len(fresh.texts)
    for name in ("index.sqlite", "chunk.faiss"):
        assert (tmp_path / "index" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_answer_cites_the_document_named_in_the_question(indexed_pipeline):
    answered, unknown = indexed_pipeline.answer(
        ["What is the governing law of the Cedar SA agreement?", "Who won the 1998 cup?"]
    )
    assert "Chile" in answered.answer.text and answered.answer.citations
    assert answered.context.sources[answered.answer.citations[0] - 1].document == "cedar.txt"
    assert unknown.answer.refused


def test_sentence_quoted_by_the_reader_becomes_the_first_passage(make, tmp_path, monkeypatch):
    clauses = [f"{n}.1 The Tenant shall keep room {n} of the premises in repair, and pay rent." for n in range(1, 40)]
    clauses[20] = "21.1 The Tenant insures the windows. The deposit is held by Larch Bank. The Tenant keeps a key."
    (tmp_path / "lease.txt").write_text("LEASE\n\n" + "\n\n".join(clauses), encoding="utf-8")
    pipeline = make("routed", k=40)
    pipeline.index(tmp_path / "lease.txt", tmp_path / "index")
    question = "Does the Tenant keep room 3 of the premises in repair, and pay rent?"
    [before] = pipeline.search([question])
    assert "Larch" not in before.ranked[0].text
    monkeypatch.setattr(reader, "shared_reader", lambda: FakeReader("Larch Bank"))
    [answered] = pipeline.answer([question])
    ranked = answered.retrieved.ranked
    first, *others = ranked
    assert first.text == "The deposit is held by Larch Bank." and first.score == before.ranked[0].score
    texts = [hit.text.strip() for hit in others]
    assert "Larch" not in " ".join(texts) and any("insures the windows." in text for text in texts)
    letters, after = (sorted("".join("".join(hit.text for hit in hits).split())) for hits in (before.ranked, ranked))
    assert letters == after, "no word may be lost or repeated"
    reply = _make_answered_reply(answered, 1.0)
    assert "[1]" in reply.answer and reply.passages[0].text == first.text
    assert 1 in reply.context and set(reply.context) <= set(range(1, len(reply.passages) + 1))


def test_answer_quoted_from_the_first_passage_does_not_change_the_ranking(make, corpus, tmp_path, monkeypatch):
    pipeline = make("routed")
    pipeline.index(corpus, tmp_path / "index")
    question = "What is the governing law of the Cedar SA agreement?"
    [before] = pipeline.search([question])
    monkeypatch.setattr(reader, "shared_reader", lambda: FakeReader(before.ranked[0].text.strip()[-20:]))
    [answered] = pipeline.answer([question])
    assert answered.answer.best and answered.retrieved.ranked == before.ranked


def test_index_adds_readable_files_of_a_folder_and_reports_each_unreadable_file(corpus, make, tmp_path):
    (corpus / "film.mp4").write_bytes(b"ftyp")
    (corpus / "sub").mkdir()
    (corpus / "sub" / "x.md").write_text("The **licensee** pays.")
    attached = {"annex.docx": files.docx(files.paragraph("The annex is part of the lease."))}
    (corpus / "sub" / "y.eml").write_bytes(files.eml("See the annex.", attachments=attached))
    names = ["alder.txt", "birch.txt", "cedar.txt", "film.mp4", "x.md", "y.eml", "y.eml - annex.docx"]
    assert [path.name for path in find_files(corpus)] == names
    pipeline = make("rcts")
    report = pipeline.index(corpus, tmp_path / "every")
    assert report.documents + len(report.set_aside) == len(names)
    assert [reason.partition(": ")[2].partition(";")[0] for reason in report.set_aside] == ["no reader for .mp4"]
    [found] = pipeline.search(["What is part of the lease?"])
    assert "y.eml - annex.docx" in [hit.document for hit in found.ranked]


@pytest.mark.parametrize(("setting", "model"), [("openai:small", "openai:small"), ("same", "openai:big")])
def test_summaries_use_model_of_summary_llm_setting(make, corpus, tmp_path, monkeypatch, setting, model):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    used: list[str] = []

    def open_summariser(argument: str | None, *, config: Config, llm: LLM) -> ExtractiveSummariser:
        used.append(llm.name)
        return ExtractiveSummariser(config)

    monkeypatch.setattr("exhibit.rag.summaries.llm.open", open_summariser)
    pipeline = make(llm="openai:big", summaries="llm", summary_llm=setting)
    pipeline.index(corpus, tmp_path / "index")
    assert used == [model] and pipeline.llm.name == "openai:big"


def test_serial_and_local_engines_build_identical_index(corpus, make, tmp_path):
    contents = []
    for engine in ("serial", "local"):
        make("routed", chunk_size=120, engine=engine).index(corpus, tmp_path / engine)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / engine).rglob("*") if path.is_file()})
    assert contents[0] == contents[1] and contents[0].keys() == {"chunk.faiss", "index.sqlite", "manifest.json"}
