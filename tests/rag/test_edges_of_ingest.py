"""Edge cases of ingestion and of the pipeline: batches, pages, scans, and documents that are set aside."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from exhibit.engine import Limits
from exhibit.evidence import Document, read_document
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.scan import Ocr
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline, ingest, inspect, live_index
from exhibit.rag import pipeline as pipelines
from exhibit.rag.database import RECORD
from exhibit.rag.index import Index
from exhibit.rag.inspect import Inspector, category_of, read_categories
from exhibit.rag.live_index import open_for_questions
from exhibit.rag.milvus_address import Address, make_conditions
from exhibit.rag.pipeline import find_files
from exhibit.rag.saved_index import open_index
from exhibit.rag.summaries import open_summariser
from exhibit.schemas.errors import BundleError, DocumentError, ServiceError
from exhibit.storage.atomic import find_unfinished_folder
from exhibit.storage.locations import Remote
from exhibit.storage.removal import make_folder_beside
from tests.evidence import files
from tests.rag.bundles import document_of, write_bundle
from tests.storage.memory import memory, put

__all__ = ["memory"]


class Batches(Hashing):
    """An embedder that records the size and the texts of its batches."""

    def __init__(self, many: int | None = None) -> None:
        super().__init__(32)
        self.sizes, self.texts = list[int](), list[str]()
        if many is not None:
            self.many = many

    def embed(self, texts, *, role):
        if role == "passage":
            self.sizes.append(len(texts))
            self.texts += texts
        return super().embed(texts, role=role)


def made(tmp_path, embedder=None, preset="rcts", **settings) -> Pipeline:
    config = Config.preset(preset, **{"embedder": "hashing", "answerer": "extractive", **settings})
    return Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=embedder or Hashing(32))


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


# ---------------------------------------------------------------- documents


@pytest.mark.parametrize(("many", "sizes"), [(None, [4, 4, 2]), (3, [4, 4, 2]), (5, [5, 5]), (9, [9, 1])])
def test_an_embedder_that_takes_many_at_once_is_given_as_many(tmp_path, monkeypatch, many, sizes):
    monkeypatch.setattr(ingest, "_BATCH", 4)
    corpus = written(tmp_path / "c", **{f"d{n}": f"The rent of house {n} is due." for n in range(10)})
    embedder = Batches(many)
    report = made(tmp_path, embedder).index(corpus, tmp_path / "index")
    assert embedder.sizes == sizes and (report.documents, report.chunks, report.pages) == (10, 10, 0)


@pytest.mark.parametrize(("many", "dismissed"), [(2, 1), (3, 0)])
def test_idle_workers_are_let_go_where_much_is_to_be_embedded(tmp_path, monkeypatch, many, dismissed):
    told: list[int] = []
    monkeypatch.setattr(ingest, "_MANY", many)
    monkeypatch.setattr(ingest, "shutdown_idle", lambda: told.append(1))
    made(tmp_path).index(written(tmp_path / "c", a="The rent is due.", b="The term is long."), tmp_path / "index")
    assert len(told) == dismissed


def test_pages_and_notes_are_counted_over_all_documents(tmp_path):
    corpus = written(tmp_path / "c", a="The rent is due.")
    for name in ("b.pdf", "c.pdf"):
        (corpus / name).write_bytes(files.pdf("The term is five years."))
    pipeline = made(tmp_path)
    report = pipeline.index(corpus, tmp_path / "index")
    assert (report.documents, report.pages, report.chunks, report.notes) == (3, 2, 3, ())
    index = open_index(tmp_path / "index")
    assert [entry.pages for entry in index.documents] == [None, 1, 1] and report.seconds < 60
    assert [index.chunk(key).page for key in range(3)] == [None, 1, 1]


def test_files_of_one_name_in_two_folders_are_told_apart_by_all_of_their_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [Path(name) / "x.txt" for name in ("a", "b")]
    for path in paths:
        written(path.parent, x=f"The rent of {path.parent} is due.")
    made(tmp_path).index(paths, tmp_path / "index")
    assert [entry.filename for entry in open_index(tmp_path / "index").documents] == ["a/x.txt", "b/x.txt"]
    made(tmp_path).index(paths[:1] * 2, tmp_path / "twice")
    assert [entry.filename for entry in open_index(tmp_path / "twice").documents] == ["a/x.txt", "x.txt"]


def test_a_store_that_is_away_ends_the_ingest(tmp_path, monkeypatch):
    def away(path):
        raise ServiceError(f"{path}: the store does not answer")

    monkeypatch.setattr(ingest, "read_document", away)
    with pytest.raises(ServiceError, match="does not answer"):
        made(tmp_path).index(written(tmp_path / "c", a="The rent is due."), tmp_path / "index")


def test_of_files_that_cannot_be_used_three_are_named_and_the_reason_fits(tmp_path):
    corpus = written(tmp_path / "c", a=" ", b="\n", c="\t", d=" ")
    Image.new("RGB", (30, 20), "white").save(corpus / "0.pdf")
    with pytest.raises(BundleError, match="no document could be indexed: ") as caught:
        made(tmp_path).index(corpus, tmp_path / "index")
    told = str(caught.value)
    assert "only pictures; --ocr true can read it" in told and told.count("no words in it") == 2
    assert "c.txt" not in told and not (tmp_path / "index").exists()


def test_a_link_out_of_a_folder_is_set_aside_by_name(tmp_path):
    corpus = written(tmp_path / "c", a="The rent is due.")
    (corpus / "away.txt").symlink_to(written(tmp_path / "other", b="Elsewhere.") / "b.txt")
    report = made(tmp_path).index(corpus, tmp_path / "index")
    assert report.documents == 1 and [why.partition(": a ")[0] for why in report.set_aside] == [
        str(corpus / "away.txt")
    ]
    assert made(tmp_path).index([corpus / "a.txt"], tmp_path / "other index").set_aside == ()


def test_a_chunk_has_the_section_and_page_that_its_first_word_stands_in(tmp_path):
    text = (
        "1. Rent\n\nThe rent is due.\n\n2. Term\n\nThe term is five years.\n\n" + " " * 300 + "\n\n3. End\n\nIt ends."
    )
    made(tmp_path, splitter="sections", chunk_size=60).index(written(tmp_path / "c", a=text), tmp_path / "index")
    index = open_index(tmp_path / "index")
    told = [(index.text(chunk).split()[0], chunk.section) for chunk in map(index.chunk, range(len(index)))]
    assert told == [("1.", "1. Rent"), ("2.", "2. Term"), ("3.", "3. End")], "white space alone is no chunk"


@pytest.mark.parametrize("size", [30, 60, 500])
def test_a_prepared_document_has_its_chunks_with_pages_and_sections_and_its_words(tmp_path, size):
    text = "Before.\n\n1. Rent\n\nThe rent is due.\n\n2. Term\n\nThe term is five years."
    path = written(tmp_path / "c", a=text) / "a.txt"
    settings = {"splitter": "sections", "chunk_size": size}
    prepared = ingest.Preparation(Config(**settings))(path)
    places = [(start, end) for _, start, end in prepared.entry.sections]
    for (start, end, page, section), words in zip(prepared.chunks.tolist(), prepared.texts, strict=True):
        first = end - len(text[start:end].lstrip())
        assert words == text[start:end] and page == 0
        assert places[section][0] <= first < places[section][1]
    assert len(prepared.chunks) >= 3 and prepared.words is not None and prepared.summary is None
    assert prepared.whole is not None and prepared.whole[0].text == text and prepared.notes == ()
    entry = prepared.entry
    assert (entry.filename, entry.characters, entry.pages, entry.summary) == ("a.txt", len(text), None, "")
    bare = ingest.Preparation(Config(**settings, lexicon=False, routing=False), open_summariser(Config()))(path)
    assert bare.words is None and bare.whole is None
    assert bare.summary is not None and bare.summary.document and bare.summary.sections == ()
    layered = ingest.Preparation(Config(**settings, layers="all"), open_summariser(Config()))(path)
    assert layered.summary is not None and len(layered.summary.sections) == len(entry.sections)


def test_a_page_of_a_prepared_document_is_the_one_its_first_word_is_on(tmp_path, monkeypatch):
    pages = ["One is here.", "\n\nTwo is here.", "\n\nThree is."]
    told = document_of(pages, "a.txt")
    monkeypatch.setattr(ingest, "read_document", lambda path: told)
    path = written(tmp_path / "c", a="x") / "a.txt"
    prepared = ingest.Preparation(Config(chunk_size=14))(path)
    assert prepared.chunks[:, 2].tolist() == [1, 2, 3] and prepared.entry.pages == 3
    empty = Document("a.txt", "", told.pages)
    for document, ocr, words in [
        (Document("a.txt", " "), None, "no words in it; is the file empty\\?$"),
        (empty, None, "only pictures; --ocr true can read it"),
    ]:
        monkeypatch.setattr(ingest, "read_document", lambda path, document=document: document)
        with pytest.raises(DocumentError, match=words):
            ingest.Preparation(Config(), None, ocr)(path)
    with pytest.raises(DocumentError, match="gone.txt: cannot be read: No such file"):
        ingest.Preparation(Config())(tmp_path / "gone.txt")


def test_a_name_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a\udcff.txt"
    with pytest.raises(DocumentError, match="its name is not UTF-8, so that no answer could cite it; rename the file"):
        ingest.Preparation(Config())(path)


def test_layers_are_embedded_by_what_is_said_of_them(tmp_path, monkeypatch):
    embedder = Batches()
    pipeline = made(tmp_path, embedder, layers="all", augment="summary")
    pipeline.index(written(tmp_path / "c", a="1. Rent\n\nThe rent is due at the mill."), tmp_path / "index")
    [entry] = open_index(tmp_path / "index").documents
    assert embedder.texts[0] == entry.summary and embedder.texts[-1].startswith(f"{entry.summary}\n")
    assert len(embedder.texts) == 1 + len(entry.sections) + 1

    class Silent:
        name, alone = "silent", True

        def __call__(self, document, root, profile):
            return ""

        def summarise_sections(self, document, sections, profile, *, characters):
            return ["" for _ in sections]

    monkeypatch.setattr("exhibit.rag.pipeline.open_summariser", lambda config, llm: Silent())
    silent = Batches()
    Pipeline(pipeline.config, cache=tmp_path / "other", engine="serial", embedder=silent).index(
        written(tmp_path / "d", b="1. Rent\n\nThe rent is due at the mill."), tmp_path / "silent"
    )
    [entry] = open_index(tmp_path / "silent").documents
    assert silent.texts[0] == "b.txt" and silent.texts[1:-1] == [path or " " for path, _, _ in entry.sections]
    assert silent.texts[-1].startswith("1. Rent") and entry.summary == ""


def test_feet_are_taken_out_of_chunks_wherever_these_begin():
    body, foot = "The rent of the mill is due. ", "Lease of the Mill, page"
    pages = [f"{body * n}\n{foot} {n}\n" for n in range(1, 6)]
    document = document_of(pages)
    feet = document.furniture
    assert len(feet) == 5 and feet[0].start > 0
    whole = document.text
    edges = [0, 3, feet[0].start, feet[0].end, feet[1].start + 4, feet[2].end, feet[3].start + 4, feet[4].start - 3]
    for start, end in combinations([*edges, len(whole)], 2):
        kept = "".join(
            letter
            for place, letter in enumerate(whole)
            if start <= place < end and not any(foot.start <= place < foot.end for foot in feet)
        )
        told = list(ingest.read_chunk_texts(document, np.array([[start, end, 0, 0]])))
        assert told == [kept if kept.strip() else whole[start:end]]


# ---------------------------------------------------------------- scans


HOW = Ocr("tesseract", "en")
WORDS = "The tenant shall keep the premises in repair."


@pytest.fixture
def ocr(monkeypatch, tmp_path) -> list[str]:
    """An OCR engine that reads the same words on every picture, or those that a test sets."""
    words = [WORDS]
    lines = [lambda word: TextLine(10, 10, 90, 30, word, 0.8)]
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "deep" / "cache"))
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: "")
    monkeypatch.setattr(
        "exhibit.evidence.ocr.tesseract.open", lambda language: lambda picture: [lines[0](word) for word in words]
    )
    return words


def test_every_frame_of_a_picture_is_a_page_of_its_size(tmp_path, ocr):
    frames = [Image.new("RGB", (200, 100), "white") for _ in range(2)]
    frames[0].save(tmp_path / "two.tiff", save_all=True, append_images=frames[1:], dpi=(100, 50))
    frames[0].save(tmp_path / "one.png")
    two, one = (ingest.read_with_ocr(tmp_path / name, HOW) for name in ("two.tiff", "one.png"))
    assert [(page.width, page.height) for page in two.pages] == [(144, 72), (144, 72)]
    assert [(page.width, page.height) for page in one.pages] == [(72, 36)], "200 dots an inch where it does not say"
    assert two.text.count(WORDS) == 2 and one.text == WORDS and len(two.notes) == 2
    assert ingest.read_with_ocr(tmp_path / "two.tiff", HOW) == two


def test_a_scan_without_words_is_set_aside_and_says_that_ocr_found_none(tmp_path, ocr):
    ocr.clear()
    for name in ("scan.png", "scan.pdf"):
        Image.new("RGB", (200, 100), "white").save(tmp_path / name)
    for name in ("scan.png", "scan.pdf"):
        with pytest.raises(BundleError, match="only pictures; OCR found no words in it either"):
            made(tmp_path, ocr=True, ocr_engine="tesseract").index(tmp_path / name, tmp_path / "index")


def test_a_page_without_text_is_read_though_others_have_some(tmp_path, ocr):
    Image.new("RGB", (200, 100), "white").save(tmp_path / "scan.pdf")
    first = ingest.read_with_ocr(tmp_path / "scan.pdf", HOW)
    assert first.notes == ("page 1 read by OCR, sure to 80%",)
    (tmp_path / "copy.pdf").write_bytes((tmp_path / "scan.pdf").read_bytes())
    ocr[0] = "Other words."
    assert ingest.read_with_ocr(tmp_path / "copy.pdf", HOW).text == WORDS, "the same bytes are read once"
    assert ingest.read_with_ocr(tmp_path / "copy.pdf", HOW).filename == "copy.pdf"
    assert ingest.read_with_ocr(tmp_path / "copy.pdf", Ocr("tesseract", "de")).text == "Other words."
    assert not read_document(tmp_path / "scan.pdf").has_text


# ---------------------------------------------------------------- a pipeline


def test_a_pipeline_without_an_index_says_so_and_one_that_is_built_again_is_another(tmp_path, monkeypatch):
    pipeline = made(tmp_path)
    with pytest.raises(BundleError, match=r"no index is open: call index\(\) or open\(\) first"):
        pipeline.search(["rent"])
    pipeline.index(written(tmp_path / "c", a="The rent is due."), tmp_path / "index")
    assert pipeline.text("a.txt") == "The rent is due." and pipeline.text("b.txt") is None
    pipeline.index(written(tmp_path / "d", b="The term is long."), tmp_path / "index", force=True)
    assert pipeline.text("a.txt") is None and pipeline.text("b.txt") == "The term is long."
    closed: list[Path] = []
    usual = Index.close
    monkeypatch.setattr(Index, "close", lambda self: closed.append(self.folder) or usual(self))
    pipeline.add(written(tmp_path / "e", c="The end is near.") / "c.txt")
    assert not (tmp_path / "index" / RECORD).exists() and closed == [] and pipeline.text("c.txt") is not None
    pipeline.index(tmp_path / "d", tmp_path / "index", force=True)
    assert closed[0] == tmp_path / "index", "the one that is replaced"
    assert not (tmp_path / "index" / RECORD).exists() and list((tmp_path / "cache").glob("vectors*"))


def test_documents_are_read_by_the_engine_and_within_the_limits_that_are_given(tmp_path, monkeypatch):
    told, usual = [], pipelines.open_engine
    monkeypatch.setattr(
        pipelines, "open_engine", lambda name, **how: told.append({"name": name, **how}) or usual(name, **how)
    )
    corpus, limits = written(tmp_path / "c", a="The rent is due.", b="The term is long."), Limits(5.0, None)
    for given in ({"limits": limits, "jobs": 3}, {}):
        Pipeline(Config.preset("rcts"), cache=tmp_path, engine="serial", embedder=Hashing(8), **given).index(
            corpus, tmp_path / "index", force=True
        )
    assert told == [
        {"name": "serial", "jobs": 3, "items": 2, "limits": limits},
        {"name": "serial", "jobs": None, "items": 2, "limits": Limits()},
    ]


def test_a_search_goes_as_deep_as_it_is_told_and_into_the_documents_it_is_told(tmp_path):
    pipeline = made(tmp_path)
    texts = {f"d{n}": f"The rent of house {n} is due." for n in range(8)}
    pipeline.index(written(tmp_path / "c", **texts), tmp_path / "index")
    assert [len(pipeline.search(["rent"], depth=depth)[0].ranked) for depth in (None, 1, 3)] == [8, 1, 3]
    [found] = pipeline.search(["rent"], documents=["d3.txt", "d5.txt"])
    assert {hit.chunk.document for hit in found.ranked} == {"d3.txt", "d5.txt"}
    assert set(pipeline.summaries(found)) == {hit.chunk.document for hit in found.selected} and found.selected
    with pytest.raises(BundleError, match="no document 'd9.txt'"):
        pipeline.search(["rent"], documents=["d9.txt"])


@pytest.mark.parametrize("answerer", ["extractive", "reader"])
def test_what_an_answer_is_made_from_says_what_the_best_document_is(tmp_path, answerer):
    text = "SUPPLY AGREEMENT\n\nThis Supply Agreement is made between Alder Ltd and Birch Inc.\n\n1. Rent\n\nIt is due."
    pipeline = made(tmp_path, answerer=answerer)
    pipeline.index(written(tmp_path / "c", a=text), tmp_path / "index")
    blank, asked = pipeline.search(["", "What is due?"])
    assert not pipeline.context(blank).sources and pipeline.context(blank).kind == ""
    context = pipeline.context(asked)
    assert (context.kind, context.characters) == ("contract", len(text))
    assert (context.asked.embedder if context.asked else None) == ("hashing-32" if answerer == "reader" else None)


def test_files_are_found_at_a_url_too(memory, tmp_path):
    for name in ("b.txt", "a.pdf"):
        put(memory / name, b"The rent is due.")
    assert [(file.name, file.bytes) for file in find_files(memory)] == [("a.pdf", 16), ("b.txt", 16)]
    assert [file.name for file in find_files(memory, suffixes=["txt"])] == ["b.txt"]
    assert find_files(memory / "b.txt") == [memory / "b.txt"]
    with pytest.raises(BundleError, match="nowhere: no such file or folder"):
        find_files(Remote("memory://bucket/nowhere"))
    report = made(tmp_path).index(memory / "b.txt", tmp_path / "index")
    assert (report.documents, report.set_aside) == (1, ())


def test_a_model_that_is_not_named_is_the_one_of_the_environment(monkeypatch):
    told = {}
    module = SimpleNamespace(open=lambda argument, options: told.update({"model": argument, **options}))
    monkeypatch.setattr("exhibit.rag.pipeline.load_plugin", lambda _folder, name: (module, None))
    monkeypatch.setenv("OPENAI_MODEL", "usual")
    caps = {"max_cost": 1.0, "price_in": 0.0, "price_out": 2.0}
    Pipeline(Config.parse({"llm": "openai", **caps}), heard=print).llm  # noqa: B018
    assert told["prices"] == {"usual": (0.0, 2.0)} and told["model"] is None and told["heard"] is print
    assert Pipeline(Config()).llm is None and Pipeline(Config()).reranker is None
    given = object()
    assert Pipeline(Config(llm="openai"), llm=given).llm is given  # type: ignore[arg-type]


# ---------------------------------------------------------------- while it is built


def test_an_index_that_became_whole_while_it_was_opened_is_opened(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    made(tmp_path).index(written(tmp_path / "c", a="The rent is due."), folder)
    manifest = (folder / "manifest.json").read_text(encoding="utf-8")
    building = make_folder_beside(folder, ".partial")
    assert find_unfinished_folder(folder) == building
    (building / RECORD).write_text("{}", encoding="utf-8")
    assert open_for_questions(folder).finished is None, "a whole one comes first"
    (folder / "manifest.json").unlink()
    with pytest.raises(BundleError, match="not an index of this version"):
        open_for_questions(folder)
    with pytest.raises(BundleError, match="no index here"):
        made(tmp_path).open(folder)

    def finish(path):
        (folder / "manifest.json").write_text(manifest, encoding="utf-8")
        raise OSError("moved")

    monkeypatch.setattr(live_index, "parse_manifest", finish)
    index = open_for_questions(folder, own={"k": 3})
    assert index.finished is None and index.missing == 0 and "a.txt" in index and index.config.k == 3


# ---------------------------------------------------------------- looking into it


def test_a_category_is_what_most_questions_on_a_file_are_labelled_with(tmp_path):
    bundle = write_bundle(tmp_path / "bundle")
    lines = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = {"alder.txt": ["x", "y", "y"], "birch.txt": ["z", "", "z"], "cedar.txt": ["", "", ""]}
    for line in lines:
        line["labels"] = {"category": labels[line["filename"]].pop()}
    (bundle / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert read_categories(bundle) == {"alder.txt": "y", "birch.txt": "z"}


@pytest.mark.parametrize(
    ("kind", "title", "category"),
    [("court guide", "The Chancery Guide", "Chancery"), ("court guide", "Handbook", "court guide"),
     ("contract", "The Chancery Guide", "contract"), ("", "Lease", "unknown")],
)  # fmt: skip
def test_a_category_is_the_court_or_the_kind(kind, title, category):
    assert category_of(SimpleNamespace(profile=SimpleNamespace(kind=kind, title=title))) == category  # type: ignore[arg-type]


def test_five_passages_are_shown_unless_told_and_an_index_that_finds_nothing_fails(tmp_path, monkeypatch, capsys):
    texts = {f"d{n}": f"The rent of house {n} is due – größer." for n in range(8)}
    made(tmp_path, Hashing(256)).index(written(tmp_path / "c", **texts), tmp_path / "index")
    folder = str(tmp_path / "index")
    assert inspect.main([folder, "search", "--query", "rent", "--json"]) == 0
    shown = capsys.readouterr().out
    assert len(json.loads(shown)) == 5 and "größer" in shown and shown.startswith('[\n {\n  "')
    out = tmp_path / "found.json"
    assert inspect.main([folder, "export", "--query", "rent", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 5 passages\n"
    assert out.read_text(encoding="utf-8").startswith('{\n "query": "rent"') and "größer" in out.read_text("utf-8")
    for action in ("search", "export"):
        with pytest.raises(SystemExit):
            inspect.main([folder, action, "--query", "  "])
        assert f"{action} needs --query" in capsys.readouterr().err
    monkeypatch.setattr(inspect, "TEST_QUESTIONS", ("Who pays the rent?", " "))
    assert inspect.main([folder, "test"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines] == ["ok  ", "ok  ", "ok  ", "FAIL"] and lines[-1] == "FAIL  search:  : nothing"
    assert [row["documents"] for row in Inspector(tmp_path / "index").categories()] == [8]


# ---------------------------------------------------------------- Milvus


def test_what_a_collection_is_indexed_with_unless_told():
    own = Path("own.db")
    assert Address.parse("lite?index=HNSW", own=own).build() == {"M": 16, "efConstruction": 80}
    assert Address.parse("lite?index=IVF_FLAT", own=own).build() == {"nlist": 1024}
    assert Address.parse("lite?index=IVF_FLAT&nprobe=9", own=own).widen(3) == {"nprobe": 9}
    assert Address.parse("lite?index=HNSW&ef=9", own=own).widen(10) == {"ef": 10}
    assert Address.parse("lite?index=autoindex", own=own).widen(3) == {}
    assert Address.parse("x/a.db", own=own).uri == str(Path("x/a.db").absolute())


def test_ranges_weigh_as_much_as_four_keys_and_are_joined_in_pairs_of_pairs():
    def ranges(count: int) -> list[str]:
        return list(make_conditions("id", np.concatenate([np.arange(5) + 10 * n for n in range(count)])))

    assert [len(ranges(count)) for count in (1023, 1024, 1025)] == [1, 1, 2]
    a, b, c, d, e = (f"(id >= {10 * n} and id <= {10 * n + 4})" for n in range(5))
    assert ranges(2) == [f"{a} or {b}"] and ranges(4) == [f"({a} or {b}) or ({c} or {d})"]
    assert ranges(5) == [f"(({a} or {b}) or ({c} or {d})) or {e}"]


@pytest.mark.parametrize("languages", [frozenset({"en"}), None])
def test_a_document_in_a_language_that_the_embedder_does_not_know_is_found_by_its_words_alone(tmp_path, languages):
    embedder = Batches()
    if languages:
        embedder.languages = languages
    german = "Der Mieter zahlt die Miete im Voraus und darf die Wohnung nicht ohne Erlaubnis untervermieten. " * 9
    english = "The Tenant pays the rent each month in advance and shall not sublet the flat without permission. " * 9
    folder = written(tmp_path / "corpus", vertrag=german, lease=english)
    pipeline = made(tmp_path, embedder, preset="routed")
    pipeline.index(folder, tmp_path / "index")
    assert any("Tenant" in text for text in embedder.texts)
    assert any("Mieter" in text for text in embedder.texts) is (languages is None)
    [found] = pipeline.search(["Darf der Mieter die Wohnung ohne Erlaubnis untervermieten?"])
    assert "Mieter" in found.ranked[0].text
