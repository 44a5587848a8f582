"""ACORD clauses are printed together as PDF files, and relevance grades become gold and labels."""

import shutil
from pathlib import Path

import pytest

from exhibit.converters import acord
from exhibit.schemas.errors import SourceError
from tests.conversion import read_source

ASIS = "bc785f7fb7"
NO_TEXT = "document without a text, or with the id of another document"


@pytest.fixture
def source(samples: Path, tmp_path: Path) -> Path:
    """A copy of the sample for tests that damage it."""
    return Path(shutil.copytree(samples / "acord", tmp_path / "acord"))


def append(path: Path, line: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")


@pytest.mark.parametrize(("split", "ids"), [("train", [0, 1, 2]), ("valid", [3]), ("test", [4, 5]), ("all", range(6))])
def test_acord_split_flag_changes_neither_question_ids_nor_documents(source, split, ids):
    benchmark, _ = read_source(acord, source, "--split", split)
    assert [row.id for row in benchmark.rows] == list(ids)
    assert len(benchmark.documents) == 42


def test_acord_fails_only_if_no_split_has_grades(source):
    (source / "qrels" / "test.tsv").unlink()
    _, tally = read_source(acord, source)
    assert tally.noted == {"incomplete release: the grades of a split are missing": ["test"]}
    shutil.rmtree(source / "qrels")
    with pytest.raises(SourceError, match="no grades in qrels/"):
        read_source(acord, source)


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("qrels/train.tsv", f"waiver of indirect damages\t{ASIS}\t5", "grade that is not 0 to 4"),
        ("qrels/train.tsv", "waiver of indirect damages\tnowhere\t1", "grade that is not 0 to 4"),
        ("qrels/train.tsv", f"unheard of\t{ASIS}\t0", "grades of a query that is not in queries.jsonl"),
        ("qrels/test.tsv", f"waiver of indirect damages\t{ASIS}\t0", "query that is graded in two splits"),
        ("corpus.jsonl", f'{{"_id": "{ASIS}", "text": "x"}}', NO_TEXT),
        ("corpus.jsonl", '{"_id": "none"}', NO_TEXT),
        ("queries.jsonl", '{"_id": "none"}', "query without an id or a text"),
        ("queries.jsonl", '{"_id": "New York Governing Law", "text": "again"}', "query that occurs twice"),
    ],
)
def test_acord_fails_on_a_malformed_line_only_when_strict(source, file, line, reason):
    append(source / file, line)
    _, tally = read_source(acord, source)
    assert sum(len(names) for text, names in tally.left_out.items() if text.startswith(reason)) == 1
    with pytest.raises(SourceError):
        read_source(acord, source, strict=True)


def test_answerable_only_flag_drops_acord_queries_with_low_grades(source):
    append(source / "qrels" / "valid.tsv", f"clause that requires notice to end automatic renewal\t{ASIS}\t2")
    benchmark, tally = read_source(acord, source)
    (row,) = [row for row in benchmark.rows if row.id == 6]
    assert row.quotes == () and not row.is_impossible
    assert row.labels["grades"] == f'{{"{ASIS}.pdf": 2}}'
    assert list(tally.noted) == ["best clause below grade 3: only graded metrics apply"]
    benchmark, tally = read_source(acord, source, "--answerable-only")
    assert 6 not in [row.id for row in benchmark.rows]
    assert "no clause of grade 3 or 4 in the library" in tally.left_out
