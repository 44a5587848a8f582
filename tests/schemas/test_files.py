"""The exact bytes of a bundle's files, and the position that an error states for each fault."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from exhibit import schemas
from exhibit.schemas.bundle import (
    load_json,
    numbered_lines,
    read_gold,
    read_info,
    read_text,
    write_gold,
    write_info,
    write_train,
)
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.schemas.parsing import parse_json
from exhibit.schemas.validate import sha256_of

CONTEXT = {"filename": "a.pdf", "text": "rënt"}
ROW = {"id": 7, "question": "Wie?", "answer": "Ämter", "is_impossible": False, "contexts": [CONTEXT]}
GOLD = {
    "id": 7, "context": 0, "filename": "a.pdf", "pages": [1], "spans": [[0, 4]], "alternatives": [], "how": "exact",
    "score": 1.0, "labels": {"clause": "rënt"},
}  # fmt: skip


def gold(**fields: object) -> Gold:
    return Gold.model_validate_json(json.dumps({**GOLD, **fields}))


def row(**fields: object) -> Row:
    return Row.model_validate_json(json.dumps({**ROW, **fields}))


def info(root, **fields: object) -> dict[str, object]:
    files = {
        path.relative_to(root).as_posix(): {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "bundle.json"
    }
    return {
        "format": "exhibit-bundle/1", "name": "leases", "title": "Leäses", "source": {"name": "us"},
        "licence": {"id": "cc0-1.0", "name": "CC0"},
        "counts": {"documents": 1, "questions": 1, "answerable": 1, "impossible": 0, "contexts": 1, "located": {}},
        "left_out": {}, "noted": {}, "documents": [], "files": files, "tool": {"name": "x", "version": "1"},
        "options": {}, **fields,
    }  # fmt: skip


@pytest.fixture
def bundle(tmp_path):
    """A small sound bundle."""
    root = tmp_path / "bundle"
    (root / "corpus" / "sub").mkdir(parents=True)
    (root / "corpus" / "a.pdf").write_bytes(b"rent")
    (root / "README.md").write_text("card", encoding="utf-8")
    write_train([row()], root / "train.json")
    write_gold([gold()], root / "gold.jsonl")
    told(root)
    return root


def told(root, **fields: object) -> None:
    (root / "bundle.json").write_text(json.dumps(info(root, **fields)), encoding="utf-8")


# ---------------------------------------------------------------- written and read


def test_bundle_files_are_written_in_utf8_with_unix_newlines(tmp_path):
    write_gold([gold(), gold(id=8)], tmp_path / "gold.jsonl")
    lines = (tmp_path / "gold.jsonl").read_bytes().split(b"\n")
    assert len(lines) == 3 and "rënt".encode() in lines[0] and lines[2] == b""
    write_train([row(), row(id=8)], tmp_path / "train.json")
    text = (tmp_path / "train.json").read_bytes()
    assert text.startswith(b'[\n{"id": 7') and text.endswith(b"}\n]\n") and "Ämter".encode() in text
    (tmp_path / "corpus").mkdir()
    made = BundleInfo.model_validate_json(json.dumps(info(tmp_path)))
    write_info(made, tmp_path / "bundle.json")
    assert "Leäses".encode() in (tmp_path / "bundle.json").read_bytes()
    assert "patches" not in json.loads((tmp_path / "bundle.json").read_bytes()), "where there are none"
    assert read_info(tmp_path / "bundle.json") == made
    entry = {"name": "p", "sha256": "0" * 64, "about": "", "documents": 0, "questions": 0, "corrections": 1}
    patched = BundleInfo.model_validate_json(json.dumps(info(tmp_path, patches=[entry])))
    write_info(patched, tmp_path / "bundle.json")
    assert read_info(tmp_path / "bundle.json").patches[0].corrections == 1


def test_readers_report_the_position_in_an_unreadable_file(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_bytes(json.dumps(GOLD).encode() + b"\n\n" + b'{"a": "\xe9"}\n')
    at = path.read_bytes().index(b"\xe9")
    lines = read_gold(path)
    assert next(lines).id == 7
    for read in (lambda: next(lines), lambda: read_text(path), lambda: list(numbered_lines(path))):
        with pytest.raises(BundleError, match=rf"gold\.jsonl: not UTF-8 \(byte {at}\); save it again as UTF-8"):
            read()
    with pytest.raises(BundleError, match=rf"here: not UTF-8 \(byte {at}\)"):
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
        ("[1,\n2", "not JSON: Expecting ',' delimiter at line 2"),
        ("[" * 100_000, "the JSON is nested too deeply"),
        ("1" * 5000, "the JSON has a number that is too long"),
    ],
)
def test_parse_json_reports_invalid_json_with_its_source(text, message):
    with pytest.raises(ToolkitError, match=f"here: {message}") as raised:
        parse_json(text, where="here", error=ToolkitError)
    assert type(raised.value) is ToolkitError


# ---------------------------------------------------------------- the published schemas, and plug-ins


def test_bundle_files_are_valid_under_the_published_json_schemas(bundle):
    def faults_by(name: str, value: object) -> list[list[object]]:
        schema = json.loads((Path(schemas.__file__).parent / "json" / f"{name}.schema.json").read_text())
        return [list(one.absolute_path) for one in jsonschema.Draft202012Validator(schema).iter_errors(value)]

    assert faults_by("train", json.loads((bundle / "train.json").read_text())) == []
    assert faults_by("bundle", json.loads((bundle / "bundle.json").read_text())) == []
    assert faults_by("gold", GOLD) == []
    assert faults_by("train", [ROW, {**ROW, "id": -1}]) == [[1, "id"]]
    assert faults_by("gold", {**GOLD, "pages": [1, 0]}) == [["pages", 1]]
    assert {tuple(path) for path in faults_by("bundle", info(bundle, counts={}))} == {("counts",)}
