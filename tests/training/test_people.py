"""Questions as people ask them become a table, a bundle and a pack."""

import json
from collections import Counter
from pathlib import Path

import pytest

from exhibit.__main__ import main as exhibit
from exhibit.evidence import Span
from exhibit.schemas.errors import SourceError
from training import people
from training.gather import Excluded, find_short, gather

CONTRACT = (
    "LEASE\n\nRoof Ltd lets an office to Desk Inc.\n\n1. Rent. Desk Inc pays £900 a month, in advance.\n\n"
    "2. Pets. Desk Inc may keep one cat.\n\n3. Law. The law of Norway governs.\n"
)
AGREEMENT = "NDA\n\nAlder shall return all papers within ten days after Birch asks for them.\n"


def span_of(text: str, words: str) -> list[int]:
    return [text.index(words), text.index(words) + len(words)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three questions on two published documents, written as a table."""
    contracts = tmp_path / "data" / "cuad/CUAD_v1/full_contract_txt"
    contracts.mkdir(parents=True)
    (contracts / "Lease.txt").write_text(CONTRACT, encoding="utf-8")
    agreements = tmp_path / "data" / "contractnli/contract-nli"
    agreements.mkdir(parents=True)
    document = {"documents": [{"file_name": "nda.pdf", "text": AGREEMENT}]}
    (agreements / "train.json").write_text(json.dumps(document), encoding="utf-8")
    rows = [
        {"document": "cuad/Lease.txt", "question": "How much is the rent?", "answer": "£900", "kind": "words",
         "spans": [span_of(CONTRACT, "Desk Inc pays £900 a month, in advance.")]},
        {"document": "cuad/Lease.txt", "question": "May the tenant keep a cat?", "answer": "Yes", "kind": "yes",
         "spans": [span_of(CONTRACT, "Desk Inc may keep one cat.")]},
        {"document": "cuad/Lease.txt", "question": "Is there a deposit?", "answer": "", "kind": "none", "spans": []},
        {"document": "contractnli/nda.pdf", "question": "How soon are papers returned?", "answer": "within ten days",
         "kind": "words", "spans": [span_of(AGREEMENT, AGREEMENT.strip()[5:])]},
    ]  # fmt: skip
    questions = tmp_path / "places.jsonl"
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(people, "QUESTIONS", questions)
    people.read_text.cache_clear()
    assert people.main(["--data", str(tmp_path / "data"), "--out", str(tmp_path / "table")]) == 0
    return tmp_path / "table"


def test_table_of_questions_by_people_has_passage_texts_from_the_published_documents(table: Path) -> None:
    rows = [json.loads(line) for line in (table / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows[:2]] == [
        ["Desk Inc pays £900 a month, in advance."],
        ["Desk Inc may keep one cat."],
    ]
    assert [row["impossible"] for row in rows] == [False, False, True, False]
    assert (table / "documents" / "Lease.txt").read_text(encoding="utf-8") == CONTRACT
    assert (table / "documents" / "nda.txt").read_text(encoding="utf-8") == AGREEMENT


def test_error_of_read_text_names_the_missing_document(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file 'Nowhere.txt'"):
        people.read_text(tmp_path, "cuad/Nowhere.txt")


def test_gather_collects_short_answers_and_verdicts(tmp_path: Path, table: Path) -> None:
    out = tmp_path / "people"
    command = ["convert", "table", "--source", str(table / "questions.jsonl"), "--documents", str(table / "documents")]
    assert exhibit([*command, "--as", "is", "--name", "people", "--out", str(out)]) == 0
    pack = gather([out], excluded=Excluded(), dev=0.0)
    texts = {"Lease.txt": CONTRACT, "nda.txt": AGREEMENT}
    documents = [document["name"] for document in pack.documents]
    short = {texts[documents[pack.rows[row, 0]]][start:end] for row, start, end in pack.short.tolist()}
    assert short == {"£900", "within ten days"}
    assert Counter(said for _, said in pack.says.tolist()) == {1: 1}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("£900", "£900"),
        ("desk  inc", "Desk Inc"),  # white space and case do not matter
        ("£800", None),
        ("", None),
        ("Desk Inc pays £900 a month, in advance.", None),  # the whole quote is not a short answer
    ],
)
def test_find_short_finds_answers_only_inside_the_gold(answer: str, found: str | None) -> None:
    start, end = span_of(CONTRACT, "Desk Inc pays £900 a month, in advance.")
    assert [CONTRACT[slice(*span)] for span in find_short(answer, [Span(start, end)], CONTRACT)] == (
        [found] if found else []
    )
