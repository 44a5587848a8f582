"""The lenient reader accepts what the evaluator must accept, and gives all reasons for a refusal."""

from __future__ import annotations

import json

import pytest

from exhibit.schemas.bundle import LooseContext, numbered_lines, read_info, read_questions, write_train
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import Context, Row
from exhibit.storage.bundle import open_bundle


def questions(tmp_path, rows):
    path = tmp_path / "train.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return read_questions(path)


def test_read_questions_accepts_every_supported_shape(tmp_path):
    rows = [
        {"question": "a?", "answer": "A"},
        {"query_id": "q-1", "question": "b?", "answer": "B", "contexts": ["plain", "strings"]},
        {"id": 40, "question": "c?", "answer": "C", "is_impossible": True, "extra": 1},
        {"id": "x", "question": "d?", "answer": "D", "contexts": [{"filename": "d.pdf"}]},
    ]
    found = questions(tmp_path, rows)
    assert [q.id for q in found] == [0, "q-1", 40, "x"]
    assert found[1].contexts == (LooseContext(None, "plain"), LooseContext(None, "strings"))
    assert found[2].is_impossible and found[3].contexts == (LooseContext("d.pdf", None),)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"tests": []}, "must be a JSON array of objects"),
        ("[1, 2", "not JSON"),
        ([3], "row 0: Input should be a dictionary"),
        ([{"question": "a?"}], "row 0: answer: Field required"),
        ([{"question": " ", "answer": "A"}], "row 0: question"),
        ([{"id": 1.5, "question": "a?", "answer": "A"}], "row 0: id"),
        ([{"question": "a?", "answer": "A", "is_impossible": "no"}], "is_impossible"),
        ([{"question": "a?", "answer": "A", "contexts": ["s", {"filename": "f"}]}], "has both strings and objects"),
        ([{"question": "a?", "answer": "A", "contexts": [{"text": "t"}]}], "contexts.0.filename"),
        ([{"id": 1, "question": "a?", "answer": "A"}] * 2, "id 1 occurs more than once"),
    ],
)
def test_read_questions_refuses_every_unsupported_shape(tmp_path, rows, message):
    with pytest.raises(BundleError, match=message.replace("[", r"\[")):
        questions(tmp_path, rows)


def test_read_questions_and_open_bundle_report_all_problems_at_once(tmp_path):
    with pytest.raises(BundleError) as error:
        questions(tmp_path, [{"question": ""}, {"answer": "A"}, "x"])
    assert len(str(error.value).splitlines()) == 4
    with pytest.raises(BundleError) as error:
        open_bundle(tmp_path)
    assert "train.json: row 0" in str(error.value) and "corpus: no such folder" in str(error.value)


def test_open_bundle_refuses_two_files_with_the_same_name(tmp_path):
    (tmp_path / "corpus" / "sub").mkdir(parents=True)
    (tmp_path / "corpus" / "a.pdf").touch()
    (tmp_path / "corpus" / "sub" / "a.pdf").touch()
    (tmp_path / "train.json").write_text("[]")
    with pytest.raises(BundleError, match="two files have the same name 'a.pdf'"):
        open_bundle(tmp_path)


def test_bundle_files_are_split_at_newlines_only(tmp_path):
    row = Row(id=0, question="q\u2028?", answer="a\x85b", is_impossible=False, contexts=[Context(filename="a\x1c.pdf")])
    write_train([row], tmp_path / "train.json")
    assert read_questions(tmp_path / "train.json")[0].answer == "a\x85b"
    (tmp_path / "gold.jsonl").write_text('{"a": "x\u2028y"}\n{"b": 1}\n', encoding="utf-8")
    assert len(list(numbered_lines(tmp_path / "gold.jsonl"))) == 2


def test_write_train_writes_a_line_per_row_without_missing_texts(tmp_path):
    rows = [
        Row(id=i, question="q?", answer="é", is_impossible=False, contexts=[Context(filename="a.pdf")]) for i in (0, 1)
    ]
    write_train(rows, tmp_path / "train.json")
    lines = (tmp_path / "train.json").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "[" and lines[-1] == "]" and len(lines) == 4
    assert json.loads(lines[2])["contexts"] == [{"filename": "a.pdf"}] and "é" in lines[1]
    write_train([], tmp_path / "empty.json")
    assert json.loads((tmp_path / "empty.json").read_text()) == []


def test_read_info_names_the_wrong_field_of_bundle_json(tmp_path):
    path = tmp_path / "bundle.json"
    path.write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(BundleError, match=r"bundle\.json: name: Field required|bundle\.json: format: "):
        read_info(path)
