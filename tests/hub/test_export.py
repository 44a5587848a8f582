"""Exports: what a bundle says is said in each format, and what a format cannot hold is counted."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from converters._cli import main as convert_main
from evidence.text import main as text_main
from hub.export import format_names, main
from schemas.bundle import CORPUS, GOLD, TRAIN, write_gold, write_train
from schemas.models import IMPOSSIBLE_ANSWER, Context, Gold, Row
from storage.bundle import Bundle, open_bundle
from tests.hub.bundles import files_of


def converted(name: str, source: Path, folder: Path, *more: str) -> Path:
    flags = ["--source", str(source), "--out", str(folder), "--jobs", "1", *more]
    assert convert_main(import_module(f"converters.{name}"), flags) == 0
    return folder


@pytest.fixture(scope="module")
def texts_bundle(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose corpus is text."""
    return converted("legalbenchrag", samples / "legalbenchrag", tmp_path_factory.mktemp("text") / "bundle")


@pytest.fixture(scope="module")
def pdf_bundle(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of PDFs, with impossible rows, passages in parts and one that is absent."""
    return converted("cuad", samples / "cuad", tmp_path_factory.mktemp("pdf") / "bundle", "--keep-ambiguous")


@pytest.fixture(scope="module")
def pdf_texts(pdf_bundle: Path) -> Path:
    folder = pdf_bundle.with_name("texts")
    assert text_main([str(pdf_bundle), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A bundle by hand: gold in two files, an interrupted passage, one not found, one impossible row."""
    root = tmp_path / "small"
    (root / CORPUS / "deep").mkdir(parents=True)
    (root / CORPUS / 'one "1".txt').write_bytes("\ufeffFee: 5 🐚.\r\nDue: May.".encode())
    (root / CORPUS / "deep" / "two.txt").write_bytes(b"Law: Maine.")
    one, two = 'one "1".txt', "two.txt"
    fee, due, law = [(1, 10)], [(12, 21)], [(0, 11)]
    rows = [
        ("fee?", [(one, "Fee: 5 … Due: May.", [*fee, *due], "parts")], {"kind": "money", "year": 2008, "share": 1}),
        ("law?", [(two, "Law: Maine.", law, "exact"), (one, "Due: May.", due, "exact")], {"kind": None, "share": 0.5}),
        ("seal?", [(one, "Sealed.", [], "absent")], {"year": "none", "ok": True}),
        ("age?", [], {}),
    ]
    train, gold = [], []
    for number, (question, passages, labels) in enumerate(rows):
        contexts = [Context(filename=name, text=text) for name, text, *_ in passages]
        answer = passages[0][1] if passages else IMPOSSIBLE_ANSWER
        train.append(Row(id=number, question=question, answer=answer, is_impossible=not passages, contexts=contexts))
        for index, (name, _, spans, how) in enumerate(passages):
            line = {"id": number, "context": index, "filename": name, "pages": [], "spans": spans, "how": how}
            gold.append(
                Gold.model_validate({**line, "alternatives": [fee] if how == "parts" else [], "labels": labels})
            )
        if not passages:
            line = {"id": number, "context": None, "filename": two, "pages": [], "spans": [], "how": "absent"}
            gold.append(Gold.model_validate({**line, "alternatives": [], "labels": labels}))
    write_train(train, root / TRAIN)
    write_gold(gold, root / GOLD)
    return root


def export(root: Path, name: str, out: Path, *flags: str | Path, expect: int = 0) -> Path:
    assert main([str(root), "--to", name, "--out", str(out), *map(str, flags)]) == expect
    return out


def record(folder: Path) -> dict:
    return json.loads((folder / "export.json").read_text(encoding="utf-8"))


def jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n") if line]


def places(bundle: Bundle) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Return each question that has located gold, with its places one by one."""
    found = []
    for question in bundle.questions:
        lines = [line for line in bundle.gold if line.id == question.id]
        spans = [(line.filename, *span) for line in lines for span in line.spans]
        if spans:
            found.append((question.question, spans))
    return found


# ---------------------------------------------------------------- legalbenchrag


def test_a_bundle_exported_and_converted_back_has_the_same_gold(texts_bundle, tmp_path):
    exported = export(texts_bundle, "legalbenchrag", tmp_path / "out")
    assert record(exported)["left_out"] == {}
    names = sorted(path.name for path in (exported / "benchmarks").iterdir())
    assert names == ["contractnli.json", "cuad.json", "maud.json", "privacy_qa.json"]
    before = open_bundle(texts_bundle)
    after = open_bundle(converted("legalbenchrag", exported, tmp_path / "back"))
    assert after.info.left_out == after.info.noted == {}
    assert places(after) == places(before)
    assert len(places(after)) == len(before.questions) == 15
    assert [q.contexts for q in after.questions] == [q.contexts for q in before.questions]
    assert [(line.how, line.labels) for line in after.gold] == [(line.how, line.labels) for line in before.gold]
    assert {n: p.read_bytes() for n, p in after.files.items()} == {n: p.read_bytes() for n, p in before.files.items()}


def test_a_bundle_of_pdfs_comes_back_with_the_same_gold(pdf_bundle, pdf_texts, tmp_path):
    exported = export(pdf_bundle, "legalbenchrag", tmp_path / "out", "--texts", pdf_texts)
    before = open_bundle(pdf_bundle)
    after = open_bundle(converted("legalbenchrag", exported, tmp_path / "back"))
    renamed = [(question, [(f"{name}.txt", *span) for name, *span in spans]) for question, spans in places(before)]
    assert places(after) == renamed
    assert after.info.left_out == {}
    assert {line.labels["benchmark"] for line in after.gold} == {"cuad"}
    left_out = record(exported)["left_out"]
    assert len(left_out["impossible question"]) == sum(question.is_impossible for question in before.questions) > 0
    absent = [line for line in before.gold if line.context is not None and line.how == "absent"]
    assert len(left_out["passage without a place in the document"]) == len(absent) > 0


def test_snippets_are_cut_from_the_text_and_an_interrupted_passage_is_several(small, tmp_path):
    exported = export(small, "legalbenchrag", tmp_path / "out")
    tests = json.loads((exported / "benchmarks" / "small.json").read_text(encoding="utf-8"))["tests"]
    one = {"file_path": 'small/one "1".txt', "span": [12, 21], "answer": "Due: May."}
    assert tests == [
        {"query": "fee?", "snippets": [{**one, "span": [1, 10], "answer": "Fee: 5 🐚."}, one]},
        {"query": "law?", "snippets": [{"file_path": "small/two.txt", "span": [0, 11], "answer": "Law: Maine."}, one]},
    ]
    assert record(exported) == {
        "format": "legalbenchrag",
        "bundle": "small",
        "tool": record(exported)["tool"],
        "left_out": {
            "passage without a place in the document": ['2: one "1".txt'],
            "question without a located passage": ["2"],
            "impossible question": ["3"],
        },
        "noted": {"has carriage returns: read it without changing newlines, or the spans shift": ['small/one "1".txt']},
    }


# ---------------------------------------------------------------- texts


def test_extracted_texts_are_what_gold_counts_in(pdf_bundle, pdf_texts):
    bundle = open_bundle(pdf_bundle)
    assert {path.name for path in pdf_texts.iterdir()} == {f"{name}.txt" for name in bundle.files}
    for entry in bundle.info.documents:
        assert len((pdf_texts / f"{entry.filename}.txt").read_bytes().decode("utf-8")) == entry.characters


@pytest.mark.parametrize("name", ["beir", "squad", "legalbenchrag"])
def test_pdfs_are_read_on_the_way_out(name, pdf_bundle, pdf_texts, tmp_path):
    export(pdf_bundle, name, tmp_path / "read")
    export(pdf_bundle, name, tmp_path / "given", "--texts", pdf_texts)
    assert files_of(tmp_path / "read") == files_of(tmp_path / "given")


def test_texts_that_are_not_there_are_missed(pdf_bundle, tmp_path, capsys):
    export(pdf_bundle, "squad", tmp_path / "out", "--texts", tmp_path / "none", expect=1)
    assert "missing; run python -m evidence.text" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.partial").exists()


def test_texts_of_another_version_are_refused(pdf_bundle, pdf_texts, tmp_path, capsys):
    stale = tmp_path / "stale"
    stale.mkdir()
    for path in pdf_texts.iterdir():
        (stale / path.name).write_bytes(path.read_bytes() + b".")
    export(pdf_bundle, "legalbenchrag", tmp_path / "out", "--texts", stale, expect=1)
    assert "but the bundle counted" in capsys.readouterr().err


def test_text_folders_are_replaced_only_when_they_are_that(texts_bundle, tmp_path, capsys):
    out = tmp_path / "texts"
    assert text_main([str(texts_bundle), "--out", str(out)]) == 0
    assert text_main([str(texts_bundle), "--out", str(out)]) == 1
    assert text_main([str(texts_bundle), "--out", str(out), "--force"]) == 0
    (out / "thesis.docx").write_text("mine", encoding="utf-8")
    assert text_main([str(texts_bundle), "--out", str(out), "--force"]) == 1
    assert "holds something else than texts" in capsys.readouterr().err
    assert (out / "thesis.docx").is_file()


# ---------------------------------------------------------------- beir


def test_beir_has_documents_queries_and_judgements(small, tmp_path):
    out = export(small, "beir", tmp_path / "out")
    corpus = {line["_id"]: line for line in jsonl(out / "corpus.jsonl")}
    assert corpus['one "1".txt']["text"] == "\ufeffFee: 5 🐚.\r\nDue: May."
    assert corpus["two.txt"]["title"] == "two"
    queries = jsonl(out / "queries.jsonl")
    assert [(line["_id"], line["text"]) for line in queries] == [
        ("0", "fee?"), ("1", "law?"), ("2", "seal?"), ("3", "age?"),
    ]  # fmt: skip
    assert queries[3]["metadata"]["is_impossible"] is True
    # as BEIR's loader reads it
    with (out / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))
    assert rows == [
        ["query-id", "corpus-id", "score"],
        ["0", 'one "1".txt', "1"],
        ["1", "two.txt", "1"],
        ["1", 'one "1".txt', "1"],
        ["2", 'one "1".txt', "1"],
    ]
    assert record(out)["noted"] == {"query without a relevant document": ["3"]}


def test_beir_takes_titles_from_the_bundle(pdf_bundle, pdf_texts, tmp_path):
    out = export(pdf_bundle, "beir", tmp_path / "out", "--texts", pdf_texts)
    titles = {line["_id"]: line["title"] for line in jsonl(out / "corpus.jsonl")}
    assert titles == {entry.filename: entry.title for entry in open_bundle(pdf_bundle).info.documents}


# ---------------------------------------------------------------- squad


def test_squad_answers_stand_at_their_offsets(pdf_bundle, pdf_texts, tmp_path):
    out = export(pdf_bundle, "squad", tmp_path / "out", "--texts", pdf_texts)
    data = json.loads((out / "squad.json").read_text(encoding="utf-8"))
    assert data["version"] == "v2.0"
    count, identities = 0, []
    for article in data["data"]:
        (paragraph,) = article["paragraphs"]
        for entry in paragraph["qas"]:
            identities.append(entry["id"])
            assert entry["is_impossible"] == (not entry["answers"])
            for answer in entry["answers"]:
                start = answer["answer_start"]
                assert paragraph["context"][start : start + len(answer["text"])] == answer["text"]
                count += 1
    left = record(out)["left_out"]
    questions = open_bundle(pdf_bundle).questions
    assert sorted(identities) == sorted(
        str(q.id) for q in questions if str(q.id) not in left.get("question without a located passage", [])
    )
    assert count > 100


def test_squad_gives_a_question_on_two_documents_under_each(small, tmp_path):
    out = export(small, "squad", tmp_path / "out")
    data = json.loads((out / "squad.json").read_text(encoding="utf-8"))["data"]
    asked = {article["title"]: article["paragraphs"][0]["qas"] for article in data}
    due = {"text": "Due: May.", "answer_start": 12}
    assert asked == {
        'one "1".txt': [
            {
                "id": "0",
                "question": "fee?",
                "answers": [{"text": "Fee: 5 🐚.", "answer_start": 1}, due],
                "is_impossible": False,
            },
            {"id": "1-2", "question": "law?", "answers": [due], "is_impossible": False},
        ],
        "two.txt": [
            {
                "id": "1-1",
                "question": "law?",
                "answers": [{"text": "Law: Maine.", "answer_start": 0}],
                "is_impossible": False,
            },
            {"id": "3", "question": "age?", "answers": [], "is_impossible": True},
        ],
    }
    assert record(out)["left_out"]["question without a located passage"] == ["2"]
    assert record(out)["noted"] == {"question on several documents, given under each": ["1"]}


# ---------------------------------------------------------------- parquet


def test_parquet_has_the_types_and_values_of_the_bundle(small, tmp_path):
    out = export(small, "parquet", tmp_path / "out")
    questions, gold = (pq.read_table(out / f"{name}.parquet") for name in ("questions", "gold"))
    assert {field.name: str(field.type) for field in questions.schema} == {
        "id": "int64",
        "question": "string",
        "answer": "string",
        "is_impossible": "bool",
        "contexts": "list<element: struct<filename: string, text: string>>",
    }
    assert questions.to_pylist() == json.loads((small / TRAIN).read_text(encoding="utf-8"))
    types = {field.name: str(field.type) for field in gold.schema}
    assert types["labels"] == "struct<kind: string, year: string, share: double, ok: bool>"
    assert (types["context"], types["score"], types["pages"]) == ("int32", "double", "list<element: int32>")
    first, *_, last = gold.to_pylist()
    assert first["spans"] == [{"start": 1, "end": 10}, {"start": 12, "end": 21}]
    assert first["alternatives"] == [[{"start": 1, "end": 10}]]
    assert first["labels"] == {"kind": "money", "year": "2008", "share": 1.0, "ok": None}
    assert (last["context"], last["filename"]) == (None, "two.txt")


# ---------------------------------------------------------------- the command


def test_every_format_writes_the_same_bytes_twice(small, tmp_path):
    assert format_names() == ["beir", "legalbenchrag", "parquet", "squad"]
    for name in format_names():
        one, two = (export(small, name, tmp_path / f"{name}{n}") for n in (1, 2))
        first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (one, two))
        assert first == second
        assert len(first) > 1


def test_an_export_is_replaced_only_by_force_and_nothing_else_is(small, tmp_path, capsys):
    out = export(small, "beir", tmp_path / "out")
    export(small, "squad", out, expect=1)
    assert "add --force" in capsys.readouterr().err
    export(small, "squad", out, "--force")
    assert sorted(path.name for path in out.iterdir()) == ["export.json", "squad.json"]
    export(small, "squad", small, "--force", expect=1)
    assert "holds something else than an export" in capsys.readouterr().err
    assert (small / TRAIN).is_file()


def test_gold_past_the_end_of_a_text_is_refused_and_nothing_is_written(small, tmp_path, capsys):
    (small / CORPUS / "deep" / "two.txt").write_bytes(b"Law.")
    export(small, "legalbenchrag", tmp_path / "out", expect=1)
    assert "two.txt: gold at 0-11, past its 4 characters" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_formats_that_need_places_say_when_there_are_none(small, tmp_path, capsys):
    (small / GOLD).unlink()
    export(small, "squad", tmp_path / "out", expect=1)
    assert "this format needs the places of the gold" in capsys.readouterr().err
    export(small, "parquet", tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "gold.parquet").num_rows == 0


def test_the_summary_names_what_was_written_and_what_was_left_out(small, tmp_path, capsys):
    export(small, "legalbenchrag", tmp_path / "out")
    out = capsys.readouterr().out
    assert "benchmarks/ (1), corpus/ (2), export.json" in out
    assert "left out: impossible question: 1" in out
