"""A bundle's files: what the lenient reader accepts, why it refuses, and the bytes that are written."""

import json
from pathlib import Path

import jsonschema
import pytest

from exhibit import schemas
from exhibit.schemas.bundle import (
    LooseContext,
    load_json,
    numbered_lines,
    read_gold,
    read_info,
    read_questions,
    read_text,
    write_gold,
    write_info,
    write_train,
)
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import Context, Gold, PatchEntry, Row
from exhibit.schemas.parsing import parse_json
from exhibit.storage.bundle import open_bundle
from tests.rag.bundles import gold_line

CONTEXT = {"filename": "a.pdf", "text": "rënt"}
ROW = {"id": 7, "question": "Wie?", "answer": "Ämter", "is_impossible": False, "contexts": [CONTEXT]}
GOLD = {**gold_line(7, 0, "a.pdf", [[0, 4]], {"clause": "rënt"}), "pages": [1]}


def questions(tmp_path, rows):
    path = tmp_path / "train.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return read_questions(path)


def test_read_questions_accepts_every_supported_json_format(tmp_path):
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
def test_read_questions_refuses_every_unsupported_json_format(tmp_path, rows, message):
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


def test_read_info_names_the_wrong_field_of_bundle_json(tmp_path):
    path = tmp_path / "bundle.json"
    path.write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(BundleError, match=r"bundle\.json: name: Field required|bundle\.json: format: "):
        read_info(path)


def test_bundle_files_are_written_in_utf8_with_unix_newlines(converted, tmp_path):
    gold, row = Gold.model_validate_json(json.dumps(GOLD)), Row.model_validate_json(json.dumps(ROW))
    write_gold([gold, gold], tmp_path / "gold.jsonl")
    lines = (tmp_path / "gold.jsonl").read_bytes().split(b"\n")
    assert len(lines) == 3 and "rënt".encode() in lines[0] and lines[2] == b""
    write_train([row, row.model_copy(update={"contexts": [Context(filename="a.pdf")]})], tmp_path / "train.json")
    first, *lines, last, end = (tmp_path / "train.json").read_bytes().split(b"\n")
    assert (first, len(lines), last, end) == (b"[", 2, b"]", b"") and "Ämter".encode() in lines[0]
    assert json.loads(lines[1])["contexts"] == [{"filename": "a.pdf"}]
    write_train([], tmp_path / "empty.json")
    assert json.loads((tmp_path / "empty.json").read_text()) == []
    info = read_info(converted("cuad") / "bundle.json").model_copy(update={"title": "Leäses"})
    write_info(info, tmp_path / "bundle.json")
    assert "Leäses".encode() in (tmp_path / "bundle.json").read_bytes()
    assert "patches" not in json.loads((tmp_path / "bundle.json").read_bytes()), "no patches"
    assert read_info(tmp_path / "bundle.json") == info
    entry = PatchEntry(name="p", sha256="0" * 64, about="", documents=0, questions=0, corrections=1)
    write_info(info.model_copy(update={"patches": [entry]}), tmp_path / "bundle.json")
    assert read_info(tmp_path / "bundle.json").patches == [entry]


def test_readers_report_the_position_of_the_fault_in_an_unreadable_file(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_bytes(json.dumps(GOLD).encode() + b"\n\n" + b'{"a": "\xe9"}\n')
    at = path.read_bytes().index(b"\xe9")
    lines = read_gold(path)
    assert next(lines).id == 7
    for read in (lambda: next(lines), lambda: read_text(path), lambda: list(numbered_lines(path))):
        with pytest.raises(BundleError, match=rf"gold\.jsonl: not UTF-8 \(byte {at}\); save it again as UTF-8"):
            read()
    with pytest.raises(BundleError, match=f"here: not JSON: .*position {at}"):
        parse_json(b'"' + b"x" * (at - 1) + b'\xe9"', where="here")
    for read in (lambda path: next(read_gold(path)), read_text):
        with pytest.raises(BundleError, match=r"none\.jsonl: missing"):
            read(tmp_path / "none.jsonl")
        with pytest.raises(BundleError, match="not a file|cannot be read: Is a directory"):
            read(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert load_json(path) == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1,\n2", "not JSON: Expecting ',' delimiter: line 2"),
        ("[" * 100_000, "not JSON: .*recursion"),
        ("1" * 5000, "not JSON: Exceeds the limit"),
    ],
)
def test_parse_json_error_names_the_source_of_invalid_json(text, message):
    with pytest.raises(ToolkitError, match=f"here: {message}") as raised:
        parse_json(text, where="here", error=ToolkitError)
    assert type(raised.value) is ToolkitError


def test_bundle_files_are_valid_under_the_published_json_schemas(converted):
    def faults_by(name: str, value: object) -> list[list[object]]:
        schema = json.loads((Path(schemas.__file__).parent / "json" / f"{name}.schema.json").read_text())
        return [list(pair.absolute_path) for pair in jsonschema.Draft202012Validator(schema).iter_errors(value)]

    bundle = converted("cuad")
    train, info = (json.loads((bundle / f"{name}.json").read_text(encoding="utf-8")) for name in ("train", "bundle"))
    gold = json.loads((bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert [faults_by(*pair) for pair in (("train", train), ("bundle", info), ("gold", gold))] == [[], [], []]
    assert faults_by("train", [ROW, {**ROW, "id": -1}]) == [[1, "id"]]
    assert faults_by("gold", {**GOLD, "pages": [1, 0]}) == [["pages", 1]]
    assert {tuple(path) for path in faults_by("bundle", {**info, "counts": {}})} == {("counts",)}
