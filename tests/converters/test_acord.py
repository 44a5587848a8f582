"""ACORD: clauses are printed together as PDF files, and relevance grades become gold and labels."""

from __future__ import annotations

import json
import shutil
import zipfile
from argparse import Namespace
from pathlib import Path

import pytest

from exhibit.converters import Benchmark, Tally, acord
from exhibit.evidence import read_document
from exhibit.evidence.fold import fold
from exhibit.hub.card import CardText, Example, render_card
from exhibit.hub.tables import HubConfig
from exhibit.schemas.bundle import GOLD, INFO, TRAIN, read_info
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import Gold, Row
from exhibit.schemas.validate import validate
from tests.converters.account import account_of

ASIS = "bc785f7fb7"
LONG = "f63fe286c0"


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("acord")


@pytest.fixture
def source(samples: Path, tmp_path: Path) -> Path:
    """A copy of the sample for tests that damage it."""
    return Path(shutil.copytree(samples / "acord", tmp_path / "acord"))


def read(source: Path, *, strict: bool = False, **options: object) -> tuple[Benchmark, Tally]:
    """Read a source without making a bundle of it, which needs a browser."""
    tally = Tally(strict=strict)
    chosen = {"split": "all", "limit": None, "answerable_only": False, **options}
    return acord.read(source, Namespace(**chosen), tally), tally


def gold_of(bundle: Path) -> list[dict]:
    return [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]


def append(path: Path, line: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")


# ---------------------------------------------------------------- the sample


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("acord/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("acord/account.json", account_of(bundle))
    kept = ("id", "context", "filename", "how", "labels")
    lines = [json.dumps({key: line[key] for key in kept}, ensure_ascii=False) for line in gold_of(bundle)]
    golden("acord/gold.jsonl", "\n".join(lines) + "\n")


def test_every_clause_is_a_document_and_reads_as_the_source_has_it(bundle, samples):
    lines = (samples / "acord" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    clauses = {clause["_id"]: clause["text"] for clause in map(json.loads, lines)}
    documents = {path.stem: read_document(path) for path in (bundle / "corpus").iterdir()}
    assert len(documents) == 42
    assert documents.keys() == clauses.keys()
    for key, document in documents.items():
        assert fold(document.text, loose=True) == fold(clauses[key], loose=True), key
    assert {key for key, document in documents.items() if len(document.pages) > 1} == {LONG}


def test_gold_is_grade_3_or_4_best_first_and_every_grade_is_on_the_first_line(bundle):
    lines = [line for line in gold_of(bundle) if line["id"] == 3]
    assert [line["labels"]["grade"] for line in lines] == [4, 3]
    grades = json.loads(lines[0]["labels"]["grades"])
    assert len(grades) == 9
    assert sorted(grades.values(), reverse=True) == [4, 3, 2, 1, 1, 1, 0, 0, 0]
    assert grades[lines[0]["filename"]] == 4
    assert "grades" not in lines[1]["labels"]
    assert lines[0]["labels"]["split"] == "valid" and lines[0]["labels"]["category"] == "Indemnification"


def test_questions_are_the_source_s_words_and_the_answer_is_the_best_clause(bundle):
    rows = {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}
    assert rows[2]["question"] == '"as is" clause without carveouts'
    assert rows[2]["contexts"][0]["filename"] == f"{ASIS}.pdf"
    assert rows[2]["answer"] == rows[2]["contexts"][0]["text"]
    assert not any(row["is_impossible"] for row in rows.values())
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert info["left_out"] == {
        "query for which no clause was graded": ["clause that requires notice to end automatic renewal"]
    }
    assert set(info["source"]["sha256"]) == {"corpus.jsonl", "queries.jsonl", "train.tsv", "valid.tsv", "test.tsv"}


def test_the_card_has_licence_and_citation_and_shows_a_line_without_its_thousand_grades(bundle):
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert 'license: "cc-by-4.0"' in card and "wang-etal-2025-acord" in card
    row = Row.model_validate(json.loads((bundle / TRAIN).read_text(encoding="utf-8"))[2])
    (line,) = [Gold.model_validate_json(json.dumps(line)) for line in gold_of(bundle) if line["id"] == row.id]
    every = json.dumps({f"{number}.pdf": 0 for number in range(1000)})
    example = Example(row, line.model_copy(update={"labels": {"grade": 4, "grades": every}}))
    config = HubConfig("corpus", "parquet/corpus-*.parquet", [{"name": "text", "dtype": "string"}], 1, 1)
    words = render_card(read_info(bundle / INFO), configs=[config], example=example, text=CardText())
    assert '"grade": 4, "grades": "{' in words
    assert max(map(len, words.splitlines())) < 1500


def test_the_same_source_gives_the_same_bytes(bundle, convert, samples):
    again = convert("acord", "--source", samples / "acord", "--split", "test")
    pdfs = {path.name: path.read_bytes() for path in (bundle / "corpus").iterdir()}
    assert pdfs == {path.name: path.read_bytes() for path in (again / "corpus").iterdir()}


# ---------------------------------------------------------------- splits and archives


@pytest.mark.parametrize(("split", "ids"), [("train", [0, 1, 2]), ("valid", [3]), ("test", [4, 5]), ("all", range(6))])
def test_a_split_keeps_ids_and_the_whole_library(source, split, ids):
    benchmark, _ = read(source, split=split)
    assert [row.id for row in benchmark.rows] == list(ids)
    assert len(benchmark.documents) == 42


def test_a_split_that_is_not_there_is_said(source):
    (source / "qrels" / "test.tsv").unlink()
    with pytest.raises(SourceError, match="no grades for split 'test' in qrels/"):
        read(source, split="test")
    _, tally = read(source)
    assert tally.noted == {"part of the release: grades of a split are not there": ["test"]}
    shutil.rmtree(source / "qrels")
    with pytest.raises(SourceError, match="no grades for any split"):
        read(source)


def test_an_archive_may_have_a_folder_around_it(source, tmp_path, convert, monkeypatch):
    archive = tmp_path / "acord.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in source.rglob("*.*"):
            file.write(path, f"ACORD Dataset/{path.relative_to(source)}")
        file.writestr("__MACOSX/ACORD Dataset/corpus.jsonl", b"\0")
    folder = convert("acord", "--source", archive, "--split", "test", "--max-documents", "25")
    assert len(list((folder / "corpus").iterdir())) == 25


def test_a_folder_without_the_corpus_is_not_acord(tmp_path):
    with pytest.raises(SourceError, match=r"no corpus\.jsonl in it"):
        read(tmp_path)


# ---------------------------------------------------------------- what is wrong with a source


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("qrels/train.tsv", f"waiver of indirect damages\t{ASIS}\t5", "grade '5' that is not 0 to 4"),
        ("qrels/train.tsv", "waiver of indirect damages\tnowhere\t1", "grade of a clause that is not in the corpus"),
        ("qrels/train.tsv", f'"""as is"" clause without carveouts"\t{ASIS}\t0', "second, different grade for a clause"),
        ("qrels/train.tsv", f"unheard of\t{ASIS}\t0", "grades of a query that is not in queries.jsonl"),
        ("qrels/train.tsv", f"New York Governing Law\t{ASIS}\t0", "query that is graded in two splits"),
        ("corpus.jsonl", '{"_id": "a/b", "text": "x"}', "clause whose id is taken, or cannot be a file's name"),
        ("corpus.jsonl", f'{{"_id": "{ASIS}", "text": "x"}}', "clause whose id is taken, or cannot be a file's name"),
        ("corpus.jsonl", '{"_id": "blank", "text": " "}', "clause without words"),
        ("corpus.jsonl", '{"_id": "none"}', "record without _id or text"),
        ("queries.jsonl", '{"_id": "New York Governing Law", "text": "again"}', "query without words, or with an id"),
    ],
)
def test_a_bad_line_is_counted_or_with_strict_an_error(source, file, line, reason):
    append(source / file, line)
    _, tally = read(source)
    assert sum(len(names) for told, names in tally.left_out.items() if told.startswith(reason)) == 1
    with pytest.raises(SourceError):
        read(source, strict=True)


def test_a_query_whose_best_clause_is_below_gold_is_kept_for_its_grades(source):
    append(source / "qrels" / "valid.tsv", f"clause that requires notice to end automatic renewal\t{ASIS}\t2")
    benchmark, tally = read(source)
    (row,) = [row for row in benchmark.rows if row.id == 6]
    assert row.quotes == () and not row.is_impossible
    assert row.labels["grades"] == f'{{"{ASIS}.pdf": 2}}'
    assert list(tally.noted) == ["best clause below grade 3: graded metrics alone apply"]
    benchmark, tally = read(source, answerable_only=True)
    assert 6 not in [row.id for row in benchmark.rows]
    assert "no clause of grade 3 or 4 in the library" in tally.left_out


def test_a_limit_keeps_the_first_clauses_and_their_grades(source):
    benchmark, tally = read(source, limit=10)
    names = {document.filename for document in benchmark.documents}
    assert len(names) == 10
    for row in benchmark.rows:
        assert {quote.filename for quote in row.quotes} <= names
    kept = {row.id for row in benchmark.rows}
    assert len(kept) + len(tally.left_out["no clause of grade 3 or 4 in the library"]) == 6
