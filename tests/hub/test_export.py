"""Exports: each format has everything the bundle states, and what a format cannot hold is counted."""

from __future__ import annotations

import csv
import hashlib
import json
import zlib
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from exhibit.conversion import main as convert_main
from exhibit.evidence.text import main as text_main
from exhibit.hub.export import format_names, main
from exhibit.hub.exports import Cut
from exhibit.hub.exports.beir_passages import score_pieces, tile
from exhibit.hub.exports.legalbenchrag import merge_cuts
from exhibit.schemas.bundle import CORPUS, GOLD, TRAIN, write_gold, write_train
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, Context, Gold, Row
from exhibit.storage.bundle import BundleFolder, open_bundle
from tests.hub.bundles import files_of


def convert_back(source: Path, folder: Path) -> Path:
    assert convert_main(["legalbenchrag", "--source", str(source), "--out", str(folder), "--jobs", "1"]) == 0
    return folder


@pytest.fixture(scope="module")
def texts_bundle(converted) -> Path:
    """A bundle whose corpus is text."""
    return converted("legalbenchrag")


@pytest.fixture(scope="module")
def pdf_bundle(converted) -> Path:
    """A bundle of PDFs with impossible rows, gold passages of several spans, and one passage that is absent."""
    return converted("cuad", "--keep-ambiguous")


@pytest.fixture(scope="module")
def pdf_texts(pdf_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pdf") / "texts"
    assert text_main([str(pdf_bundle), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A bundle written by hand: gold in two files, a passage of two spans, one not located, one impossible row."""
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


def places(bundle: BundleFolder) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Return each question that has located gold, with its spans one by one."""
    found = []
    for question in bundle.questions:
        lines = [line for line in bundle.gold if line.id == question.id]
        spans = [(line.filename, *span) for line in lines for span in line.spans]
        if spans:
            found.append((question.question, spans))
    return found


# ---------------------------------------------------------------- legalbenchrag


def _labels(bundle: BundleFolder, number: int) -> list[Any]:
    return [(line.how, line.labels) for line in bundle.gold if line.id == bundle.questions[number].id]


def apart(found):
    """Merge the spans that overlap or touch, as the benchmark's own types require."""
    return [
        (
            question,
            [
                (one.filename, one.start, one.end)
                for one in merge_cuts([Cut(*place, "") for place in spans], defaultdict(str))
            ],
        )
        for question, spans in found
    ]


def test_a_bundle_exported_and_converted_back_has_the_same_gold(texts_bundle, tmp_path):
    exported = export(texts_bundle, "legalbenchrag", tmp_path / "out")
    assert record(exported)["left_out"] == {}
    names = sorted(path.name for path in (exported / "benchmarks").iterdir())
    assert names == ["contractnli.json", "cuad.json", "maud.json", "privacy_qa.json"]
    before = open_bundle(texts_bundle)
    after = open_bundle(convert_back(exported, tmp_path / "back"))
    assert after.info.left_out == after.info.noted == {}
    assert places(after) == apart(places(before)) != places(before), "one question has gold that overlaps"
    assert len(places(after)) == len(before.questions) == 15
    joined = [number for number, (old, new) in enumerate(zip(places(before), places(after), strict=True)) if old != new]
    assert record(exported)["noted"] == {
        "snippets of a test at most one character apart were merged": [str(before.questions[n].id) for n in joined]
    }
    kept = [number for number in range(15) if number not in joined]
    assert [after.questions[n].contexts for n in kept] == [before.questions[n].contexts for n in kept]
    assert [_labels(after, n) for n in kept] == [_labels(before, n) for n in kept]
    assert {n: p.read_bytes() for n, p in after.files.items()} == {n: p.read_bytes() for n, p in before.files.items()}


def test_a_bundle_of_pdfs_comes_back_with_the_same_gold(pdf_bundle, pdf_texts, tmp_path):
    exported = export(pdf_bundle, "legalbenchrag", tmp_path / "out", "--texts", pdf_texts)
    before = open_bundle(pdf_bundle)
    after = open_bundle(convert_back(exported, tmp_path / "back"))
    renamed = [(question, [(f"{name}.txt", *span) for name, *span in spans]) for question, spans in places(before)]
    assert places(after) == apart(renamed)
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
        "noted": {
            "has carriage returns: read it without converting line ends, or the spans are shifted": [
                'small/one "1".txt'
            ]
        },
    }


AFTER = {(name, end): "0123456789"[end : end + 1] for name in ("a.txt", "b.txt") for end in range(10)}


def test_snippets_that_overlap_or_stand_a_character_apart_are_one(tmp_path):
    def cut(start, end, name="a.txt"):
        return Cut(name, start, end, "0123456789"[start:end])

    assert merge_cuts([cut(4, 6), cut(0, 2)], AFTER) == [cut(4, 6), cut(0, 2)], "in the order of the source"
    assert merge_cuts([cut(3, 6), cut(0, 2)], AFTER) == [cut(0, 6)], (
        "one character between them, as the benchmark merges"
    )
    assert merge_cuts([cut(5, 8), cut(0, 2), cut(1, 5)], AFTER) == [cut(0, 8)], "2 to 5 touches 5 to 8"
    assert merge_cuts([cut(0, 9), cut(2, 4), cut(0, 9)], AFTER) == [cut(0, 9)]
    assert merge_cuts([cut(6, 9), cut(0, 3, "b.txt"), cut(2, 6, "b.txt"), cut(1, 2)], AFTER) == [
        cut(6, 9),
        cut(0, 6, "b.txt"),
        cut(1, 2),
    ]


@pytest.fixture
def overlapping(tmp_path: Path) -> Path:
    """A bundle with a question whose gold passages overlap."""
    root = tmp_path / "overlapping"
    (root / CORPUS).mkdir(parents=True)
    text = "The Seller shall pay the fee. The fee is due in May."
    (root / CORPUS / "a.txt").write_text(text, encoding="utf-8")
    quotes = ["The Seller shall pay the fee.", "pay the fee. The fee", "in May."]
    contexts = [Context(filename="a.txt", text=quote) for quote in quotes]
    write_train([Row(id=0, question="fee?", answer="May", is_impossible=False, contexts=contexts)], root / TRAIN)
    lines = []
    for number, quote in enumerate(quotes):
        span = (text.index(quote), text.index(quote) + len(quote))
        lines.append(
            Gold(
                id=0,
                context=number,
                filename="a.txt",
                spans=[span],
                how="exact",
                score=1.0,
                labels={},
                pages=[],
                alternatives=[],
            )
        )
    write_gold(lines, root / GOLD)
    return root


def test_a_test_with_overlapping_gold_is_exported_whole(overlapping, tmp_path):
    exported = export(overlapping, "legalbenchrag", tmp_path / "out")
    [test] = json.loads((exported / "benchmarks" / "overlapping.json").read_text(encoding="utf-8"))["tests"]
    assert [(one["span"], one["answer"]) for one in test["snippets"]] == [
        ([0, 37], "The Seller shall pay the fee. The fee"),
        ([45, 52], "in May."),
    ]
    assert record(exported)["noted"] == {"snippets of a test at most one character apart were merged": ["0"]}


@pytest.mark.data
def test_the_benchmark_s_own_types_take_every_export(
    texts_bundle, pdf_bundle, pdf_texts, small, overlapping, peers, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(peers / "legalbenchrag")
    types = import_module("legalbenchrag.benchmark_types")
    bundles = [(texts_bundle, ()), (pdf_bundle, ("--texts", pdf_texts)), (small, ()), (overlapping, ())]
    for number, (bundle, flags) in enumerate(bundles):
        exported = export(bundle, "legalbenchrag", tmp_path / f"out{number}", *flags)
        place = tmp_path / f"as-they-want-it{number}"
        place.mkdir()
        (place / "data").symlink_to(exported)
        monkeypatch.chdir(place)
        for path in (exported / "benchmarks").iterdir():
            told = json.loads(path.read_text(encoding="utf-8"))
            benchmark = types.Benchmark.model_validate(told)
            assert len(benchmark.tests) == len(told["tests"]) > 0
            for test, written in zip(benchmark.tests, told["tests"], strict=True):
                if bundle != small:  # its text has carriage returns, which their reader changes, as the export notes
                    assert [one.answer for one in test.snippets] == [one["answer"] for one in written["snippets"]]


# ---------------------------------------------------------------- BEIR with passages


@pytest.mark.parametrize("text", ["", "a", "word " * 900, "x" * 2500, "One.\n\n" * 400, "line\n" * 700 + "y" * 1500])
def test_pieces_make_up_the_text(text):
    pieces = list(tile(text))
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(0 < end - start <= 1000 for start, end in pieces)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("0123456789", [10]),
        ("0123456789a", [10, 11]),
        ("01234 6789abcdef", [6, 16]),
        ("0123 56789abcdef", [10, 16]),  # a break in the first half is none
        ("012345678 abc", [10, 13]),
        ("0123456789 bc", [10, 13]),  # one that begins behind it, too
        ("01234\n6 89abc", [6, 13]),
        ("0123. 6\n9abc", [8, 12]),
        ("01234. 78 abc", [7, 13]),
        ("012345\n\n8\nabc", [8, 13]),
    ],
)
def test_a_piece_ends_at_the_best_break_of_its_second_half(text, ends):
    assert [end for _, end in tile(text, 10)] == ends


def test_passages_of_a_bundle_and_which_of_them_answer(overlapping, tmp_path):
    text = (overlapping / CORPUS / "a.txt").read_text(encoding="utf-8")
    long = f"{text}\n\n" + "Nothing here. " * 70
    (overlapping / CORPUS / "a.txt").write_text(long, encoding="utf-8")
    exported = export(overlapping, "beir_passages", tmp_path / "out")
    corpus = [json.loads(line) for line in (exported / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "".join(one["text"] for one in corpus) == long and len(corpus) == 2
    with (exported / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file, delimiter="\t"))[1:] == [["0", corpus[0]["_id"], "2"]]


def test_a_passage_with_little_of_the_gold_counts_less(tmp_path):
    lines = [
        Gold(
            id=0, context=0, filename="a", spans=[(5, 12)], how="exact", score=1.0, labels={}, pages=[], alternatives=[]
        )
    ]
    assert score_pieces(lines, {"a": [(0, 6), (6, 20), (20, 30)]}) == {"a#0-6": 1, "a#6-20": 2}
    half = lines[0].model_copy(update={"spans": [(0, 4), (10, 14)]})
    assert score_pieces([half, *lines], {"a": [(0, 8), (8, 12), (12, 20)]}) == {
        "a#0-8": 2,
        "a#8-12": 2,
        "a#12-20": 1,
    }
    assert score_pieces([*lines, half], {"b": [(0, 8)]}) == {}


@pytest.mark.interop
def test_beir_s_own_loader_reads_both_formats(pdf_bundle, pdf_texts, tmp_path):
    from beir.datasets.data_loader import GenericDataLoader

    bundle = open_bundle(pdf_bundle)
    possible = {str(question.id) for question in bundle.questions if not question.is_impossible}
    for form in ("beir", "beir_passages"):
        exported = export(pdf_bundle, form, tmp_path / form, "--texts", pdf_texts)
        corpus, queries, qrels = GenericDataLoader(data_folder=str(exported)).load(split="test")
        assert set(qrels) <= possible and set(queries) == set(qrels), (
            "it keeps the queries that have something relevant"
        )
        assert all(name in corpus for names in qrels.values() for name in names)
        if form == "beir_passages":
            assert len(corpus) > len(bundle.files) and max(len(one["text"]) for one in corpus.values()) <= 1000


def test_croissant_describes_the_files_it_writes(pdf_bundle, tmp_path):
    exported = export(pdf_bundle, "croissant", tmp_path / "croissant")
    told = json.loads((exported / "croissant.json").read_text(encoding="utf-8"))
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.0" and told["license"]
    for file in told["distribution"]:
        data = (exported / file["contentUrl"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["sha256"] and file["contentSize"] == f"{len(data)} B"
    named = {field["name"] for records in told["recordSet"] for field in records["field"]}
    assert {"question", "answer", "filename", "how"} <= named


@pytest.mark.interop
def test_mlcroissant_itself_reads_a_croissant_export(pdf_bundle, tmp_path):
    import mlcroissant

    exported = export(pdf_bundle, "croissant", tmp_path / "croissant")
    dataset = mlcroissant.Dataset(jsonld=str(exported / "croissant.json"))
    records = list(dataset.records("questions"))
    bundle = open_bundle(pdf_bundle)
    assert [int(one["questions/id"]) for one in records] == [question.id for question in bundle.questions]
    assert len(list(dataset.records("gold"))) == len(bundle.gold)


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
    assert "missing; run exhibit text" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*.partial"))


def test_texts_of_another_version_are_refused(pdf_bundle, pdf_texts, tmp_path, capsys):
    stale = tmp_path / "stale"
    stale.mkdir()
    for path in pdf_texts.iterdir():
        (stale / path.name).write_bytes(path.read_bytes() + b".")
    export(pdf_bundle, "legalbenchrag", tmp_path / "out", "--texts", stale, expect=1)
    assert "but bundle.json says" in capsys.readouterr().err


def test_text_folders_are_replaced_only_when_they_are_that(texts_bundle, tmp_path, capsys):
    out = tmp_path / "texts"
    assert text_main([str(texts_bundle), "--out", str(out)]) == 0
    assert text_main([str(texts_bundle), "--out", str(out)]) == 1
    assert text_main([str(texts_bundle), "--out", str(out), "--force"]) == 0
    (out / "thesis.docx").write_text("mine", encoding="utf-8")
    assert text_main([str(texts_bundle), "--out", str(out), "--force"]) == 1
    assert "does not contain texts" in capsys.readouterr().err
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
    assert record(out)["noted"] == {"question on several documents, repeated for each": ["1"]}


def test_an_impossible_question_without_a_document_is_counted(small, tmp_path):
    gold = (small / GOLD).read_text(encoding="utf-8").splitlines()
    last = json.loads(gold[-1])
    (small / GOLD).write_text("\n".join([*gold[:-1], json.dumps({**last, "filename": None})]), encoding="utf-8")
    left = record(export(small, "squad", tmp_path / "out"))["left_out"]
    assert left["impossible question that names no document"] == ["3"]
    assert left["question without a located passage"] == ["2"]


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


def test_parquet_takes_the_names_that_others_give_their_questions(small, tmp_path):
    rows = json.loads((small / TRAIN).read_text(encoding="utf-8"))
    named = [{**row, "id": row["id"] or "first"} for row in rows]  # some are numbers
    (small / TRAIN).write_text(json.dumps(named), encoding="utf-8")
    (small / GOLD).unlink()
    questions = pq.read_table(export(small, "parquet", tmp_path / "out") / "questions.parquet")
    assert str(questions.schema.field("id").type) == "string"
    assert questions.to_pylist() == [{**row, "id": str(row["id"])} for row in named]


# ---------------------------------------------------------------- the command


def test_every_format_writes_the_same_bytes_twice(small, tmp_path):
    assert format_names() == [
        "beir",
        "beir_passages",
        "croissant",
        "inspect",
        "legalbenchrag",
        "mteb",
        "parquet",
        "squad",
    ]
    for name in set(format_names()) - {"croissant"}:  # it needs a bundle.json, and has a test of its own
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
    assert "does not contain an export" in capsys.readouterr().err
    assert (small / TRAIN).is_file()


def test_gold_past_the_end_of_a_text_is_refused_and_nothing_is_written(small, tmp_path, capsys):
    (small / CORPUS / "deep" / "two.txt").write_bytes(b"Law.")
    export(small, "legalbenchrag", tmp_path / "out", expect=1)
    assert "two.txt: gold at 0-11, but the text has only 4 characters" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_texts_that_no_file_could_hold_or_two_would_be_are_refused(small, tmp_path, capsys):
    longest = small / CORPUS / f"{'n' * 248}.md"
    longest.write_bytes(b"x")
    export(small, "legalbenchrag", tmp_path / "255")
    longest.rename(small / CORPUS / f"{'n' * 249}.md")
    export(small, "legalbenchrag", tmp_path / "256")  # the name is cut, and has a digest
    assert all(len(path.name.encode()) <= 255 for path in (tmp_path / "256").rglob("*"))
    (small / CORPUS / f"{'n' * 249}.md").unlink()
    for name in ("b.md", "b.md.txt"):
        (small / CORPUS / name).write_bytes(b"x")
    export(small, "legalbenchrag", tmp_path / "two", expect=1)
    assert "two documents would have the path corpus/small/b.md.txt" in capsys.readouterr().err


def test_formats_that_need_places_say_when_there_are_none(small, tmp_path, capsys):
    (small / GOLD).unlink()
    export(small, "squad", tmp_path / "out", expect=1)
    assert "this format needs the locations of the gold" in capsys.readouterr().err
    export(small, "parquet", tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "gold.parquet").num_rows == 0


def test_the_summary_names_what_was_written_and_what_was_left_out(small, tmp_path, capsys):
    export(small, "legalbenchrag", tmp_path / "out")
    out = capsys.readouterr().out
    assert "benchmarks/ (1), corpus/ (2), export.json" in out
    assert "left out: impossible question: 1" in out


def test_every_bundle_has_its_croissant(pdf_bundle, tmp_path):
    told = json.loads((pdf_bundle / "croissant.json").read_text(encoding="utf-8"))
    for file in told["distribution"]:
        assert hashlib.sha256((pdf_bundle / file["contentUrl"]).read_bytes()).hexdigest() == file["sha256"]
    exported = export(pdf_bundle, "croissant", tmp_path / "croissant")
    assert (exported / "croissant.json").read_bytes() == (pdf_bundle / "croissant.json").read_bytes()
    assert "croissant.json" in open_bundle(pdf_bundle).info.files


def test_an_mteb_task_lies_beside_the_passages(pdf_bundle, pdf_texts, tmp_path):
    exported = export(pdf_bundle, "mteb", tmp_path / "mteb", "--texts", pdf_texts)
    told = json.loads((exported / "task.json").read_text(encoding="utf-8"))
    assert told["type"] == "Retrieval" and told["main_score"] == "ndcg_at_10" and told["name"].endswith("Retrieval")
    compile((exported / "task.py").read_text(encoding="utf-8"), "task.py", "exec")
    passages = export(pdf_bundle, "beir_passages", tmp_path / "beir", "--texts", pdf_texts)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        assert (exported / name).read_bytes() == (passages / name).read_bytes()


def test_an_inspect_task_has_a_sample_for_every_question(pdf_bundle, pdf_texts, tmp_path):
    exported = export(pdf_bundle, "inspect", tmp_path / "inspect", "--texts", pdf_texts)
    samples = [json.loads(line) for line in (exported / "questions.jsonl").read_text("utf-8").splitlines()]
    bundle = open_bundle(pdf_bundle)
    assert [sample["id"] for sample in samples] == [str(question.id) for question in bundle.questions]
    characters = {entry.filename: entry.characters for entry in bundle.info.documents}
    for sample, question in zip(samples, bundle.questions, strict=True):
        assert sample["input"] == question.question and sample["target"] == question.answer
        assert sample["metadata"]["is_impossible"] == question.is_impossible
        name = sample["metadata"]["document"]
        text = (exported / "documents" / f"{name}.txt").read_text("utf-8")
        assert len(text) == characters[name]
        assert sample["metadata"]["passages"] == [context.text for context in question.contexts]
    compile((exported / "task.py").read_text(encoding="utf-8"), "task.py", "exec")


@pytest.mark.interop
def test_mteb_itself_runs_an_export(pdf_bundle, pdf_texts, tmp_path, monkeypatch):
    import mteb
    import numpy as np
    from mteb.models.model_meta import ModelMeta

    class Words:
        """A dummy model whose vectors are hashed word counts."""

        mteb_model_meta = ModelMeta.create_empty({"name": "exhibit/words", "revision": "1"})

        def encode(self, inputs, **_):
            texts = [text for batch in inputs for text in batch["text"]]
            vectors = np.zeros((len(texts), 512), np.float32)
            for row, text in zip(vectors, texts, strict=True):
                for word in text.lower().split():
                    row[zlib.crc32(word.encode()) % 512] += 1
            return vectors

        def similarity(self, one, other):
            return np.asarray(one) @ np.asarray(other).T

        def similarity_pairwise(self, one, other):
            return (np.asarray(one) * np.asarray(other)).sum(axis=1)

    exported = export(pdf_bundle, "mteb", tmp_path / "mteb", "--texts", pdf_texts)
    monkeypatch.syspath_prepend(exported)
    import task

    [result] = mteb.evaluate(Words(), [task.load()], cache=None).task_results
    assert 0 < result.scores["test"][0]["ndcg_at_10"] <= 1


@pytest.mark.interop
def test_inspect_itself_runs_an_export(pdf_bundle, pdf_texts, tmp_path, monkeypatch):
    import inspect_ai
    import tiktoken
    from inspect_ai.model import ModelOutput, get_model

    # it counts tokens by a table that it downloads
    words = SimpleNamespace(name="words", encode=lambda text, **_: text.split())
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: words)
    exported = export(pdf_bundle, "inspect", tmp_path / "inspect", "--texts", pdf_texts)
    monkeypatch.chdir(exported)
    said = ModelOutput.from_content("mockllm/model", "The document does not say.")
    model = get_model("mockllm/model", custom_outputs=[said] * len(open_bundle(pdf_bundle).questions))
    [log] = inspect_ai.eval("task.py", model=model, log_dir=str(tmp_path / "logs"), display="none")
    assert log.status == "success"
    impossible = sum(question.is_impossible for question in open_bundle(pdf_bundle).questions)
    [score] = log.results.scores
    assert score.metrics["mean"].value == pytest.approx(impossible / len(open_bundle(pdf_bundle).questions))
