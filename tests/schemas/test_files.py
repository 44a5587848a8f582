"""The files of a bundle, byte by byte: writing, reading, and the stated position of each fault."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from exhibit import schemas
from exhibit.runtime.plugins import list_plugins, load_plugin
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
from exhibit.schemas.models import BundleInfo, Context, Gold, Row
from exhibit.schemas.parsing import LazyLines, parse_json
from exhibit.schemas.validate import sha256_of, validate

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


def faults(root, **options) -> list[str]:
    return [str(problem) for problem in validate(root, **options)]


# ---------------------------------------------------------------- written and read


def test_files_are_written_in_utf8_and_lines_end_alike(tmp_path):
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


def test_where_a_file_cannot_be_read(tmp_path):
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


def test_blank_lines_count_in_the_line_of_an_error(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text(f"{json.dumps(GOLD)}\n\n\n[]\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"gold\.jsonl: line 4: "):
        list(read_gold(path))
    assert "line 4" in [problem.row for problem in validate(tmp_path)]
    write_train([row()], tmp_path / "train.json")
    path.write_text(f"\n\n{json.dumps({**GOLD, 'id': 9})}\n", encoding="utf-8")
    assert ("line 3", "id") in [(problem.row, problem.field) for problem in validate(tmp_path)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1,\n2", "not JSON: Expecting ',' delimiter at line 2"),
        ("[" * 100_000, "the JSON is nested too deeply"),
        ("1" * 5000, "the JSON has a number that is too long"),
    ],
)
def test_what_is_no_json_is_one_error(text, message):
    with pytest.raises(ToolkitError, match=f"here: {message}") as raised:
        parse_json(text, where="here", error=ToolkitError)
    assert type(raised.value) is ToolkitError


def test_a_fault_of_bundle_json_is_the_first_one(tmp_path):
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps({**info(tmp_path), "name": 5, "title": 6}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"bundle\.json: name: Input should be a valid string"):
        read_info(path)
    (tmp_path / "gold.jsonl").write_text(json.dumps({**GOLD, "pages": [0], "how": "x"}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"gold\.jsonl: line 1: pages\.0: "):
        next(read_gold(tmp_path / "gold.jsonl"))


# ---------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"how": "absent"}, "must have no spans if `how` is 'absent', and at least one span otherwise"),
        ({"spans": []}, "must have no spans if `how` is 'absent', and at least one span otherwise"),
        ({"filename": None}, "must have a filename if it has a context"),
        ({"filename": ".."}, "must be a plain file name"),
        ({"filename": "a/b"}, "must be a plain file name"),
        ({"filename": "a\0b"}, "must be a plain file name"),
        ({"filename": ""}, "at least 1 character"),
        ({"pages": [0]}, "greater than or equal to 1"),
        ({"id": -1}, "greater than or equal to 0"),
        ({"score": 1.5}, "less than or equal to 1"),
        ({"score": -0.5}, "greater than or equal to 0"),
        ({"id": "7"}, "valid integer"),
        ({"other": 1}, "Extra inputs are not permitted"),
    ],
)
def test_each_fault_of_a_line_of_gold(fields, message):
    with pytest.raises(ValidationError, match=message):
        gold(**fields)


def test_gold_that_is_nowhere_and_gold_of_no_context():
    assert gold(how="absent", spans=[]).score is None
    assert gold(context=None, filename=None, how="absent", spans=[]).labels == {"clause": "rënt"}
    least = {name: GOLD[name] for name in ("id", "context", "filename", "pages", "spans", "alternatives", "how")}
    made = Gold.model_validate_json(json.dumps(least))
    assert (made.score, made.labels) == (1.0, {})
    with pytest.raises(ValidationError, match="frozen"):
        made.id = 8  # type: ignore[misc]
    with pytest.raises(ValidationError, match="valid integer"):
        Gold.model_validate({**GOLD, "id": "7", "spans": [(0, 4)]})


def test_an_impossible_question_has_no_passage():
    assert row(is_impossible=True, contexts=[{"filename": "a.pdf"}]).contexts == [Context(filename="a.pdf")]
    with pytest.raises(ValidationError, match="is_impossible is true, but a context has text"):
        row(is_impossible=True)


@pytest.mark.parametrize("name", ["/a", "a//b", "a/../b", "./a", "a\0", ""])
def test_files_of_a_bundle_are_inside_it(tmp_path, name):
    entry = {"sha256": "0" * 64, "bytes": 1}
    with pytest.raises(ValidationError):
        BundleInfo.model_validate_json(json.dumps(info(tmp_path, files={name: entry})))


def test_what_a_bundle_json_may_leave_out(tmp_path):
    documents = [{"filename": "a.pdf", "title": "", "characters": 4}]
    made = BundleInfo.model_validate_json(json.dumps(info(tmp_path, documents=documents)))
    assert (made.summary, made.citation, made.groups, made.account, made.printing, made.patches) == (
        "", "", None, {}, None, [],
    )  # fmt: skip
    assert made.licence.redistributable and (made.licence.url, made.licence.note) == ("", "")
    assert (made.source.url, made.source.version, made.source.sha256) == ("", "", {})
    assert (made.documents[0].pages, made.documents[0].source, made.documents[0].ocr) == (None, "", {})


# ---------------------------------------------------------------- a whole bundle


def test_a_sound_bundle_has_no_fault_and_a_missing_one_one(bundle, tmp_path):
    assert faults(bundle) == []
    assert faults(tmp_path / "none") == [f"{tmp_path / 'none'}: no such folder"]


def test_files_that_are_missing_or_changed(bundle):
    (bundle / "README.md").unlink()
    assert faults(bundle) == [
        "bundle.json: files: README.md: recorded, but there is no such file",
        "README.md: missing; every bundle needs a dataset card",
    ]  # fmt: skip
    (bundle / "README.md").write_text("cards", encoding="utf-8")
    assert faults(bundle) == ["bundle.json: files: README.md: 5 bytes, but 4 are recorded"]
    (bundle / "README.md").write_text("cord", encoding="utf-8")
    assert faults(bundle) == [
        "bundle.json: files: README.md: the content differs from the recorded sha256",
    ]  # fmt: skip
    (bundle / "README.md").write_text("card", encoding="utf-8")
    (bundle / "more.txt").touch()
    (bundle / ".cache").mkdir()
    (bundle / ".cache" / "x").touch()
    (bundle / ".exhibit-origin.json").touch()
    assert faults(bundle) == ["bundle.json: files: more.txt: in the bundle, but not recorded"]


def test_files_that_are_in_a_store_already_are_taken_for_what_they_are_said_to_be(bundle):
    made = read_info(bundle / "bundle.json")
    there = {name: made.files[name] for name in ("README.md", "corpus/a.pdf")}
    for name in there:
        (bundle / name).unlink()
    assert faults(bundle, elsewhere=there) == []
    other = {**there, "README.md": made.files["train.json"]}
    assert faults(bundle, elsewhere=other) == [
        "bundle.json: files: README.md: the content differs from the recorded size or sha256"
    ]
    (bundle / "corpus" / "sub" / "a.pdf").write_bytes(b"rent")
    assert "corpus/sub/a.pdf: same basename as corpus/a.pdf" in faults(bundle, elsewhere=there)
    extra = {**there, "corpus/z.pdf": made.files["README.md"]}
    (bundle / "corpus" / "sub" / "a.pdf").unlink()
    assert faults(bundle, elsewhere=extra) == ["bundle.json: files: corpus/z.pdf: in the bundle, but not recorded"]


def test_the_corpus_has_each_name_once_and_no_link_that_leaves_it(bundle, tmp_path):
    (tmp_path / "secret.pdf").write_bytes(b"rent")
    (bundle / "corpus" / "b.pdf").symlink_to(tmp_path / "secret.pdf")
    (bundle / "corpus" / "c.pdf").symlink_to(bundle / "corpus" / "a.pdf")
    told(bundle)
    assert faults(bundle) == [
        "corpus/b.pdf: a link that leads out of the bundle",
        "bundle.json: files: corpus/b.pdf: a link that leads out of the bundle",
    ]  # fmt: skip
    (bundle / "corpus" / "b.pdf").unlink()
    (bundle / "corpus" / "sub" / "a.pdf").write_bytes(b"x")
    told(bundle)
    assert faults(bundle) == ["corpus/sub/a.pdf: same basename as corpus/a.pdf"]


def test_questions_that_do_not_fit_the_corpus_or_each_other(bundle):
    write_train([row(), row(contexts=[CONTEXT, {"filename": "z.pdf"}])], bundle / "train.json")
    write_gold([gold(), gold(), gold(context=1, filename="z.pdf", how="absent", spans=[])], bundle / "gold.jsonl")
    counts = {"documents": 1, "questions": 2, "answerable": 2, "impossible": 0, "contexts": 3, "located": {}}
    told(bundle, counts=counts)
    assert faults(bundle) == [
        "train.json: row 1: id: 7 is also the id of row 0",
        "train.json: row 1 (id 7): contexts.1.filename: no file 'z.pdf' under corpus/",
    ]
    told(bundle)
    assert faults(bundle)[2:] == [
        "bundle.json: counts: questions: 1, but train.json has 2",
        "bundle.json: counts: contexts: 1, but train.json has 3",
    ]
    told(bundle, counts={**counts, "impossible": 1})
    assert faults(bundle)[2:] == ["bundle.json: counts: impossible: 1, but train.json has 0"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "gold.jsonl: 0 lines; train.json needs 1"),
        ([{}, {}], "gold.jsonl: 2 lines; train.json needs 1"),
        ([{"id": 8}], "gold.jsonl: line 1: id: is row 8, context 0; expected row 7, context 0 (train.json's order)"),
        (
            [{"context": 1}],
            "gold.jsonl: line 1: id: is row 7, context 1; expected row 7, context 0 (train.json's order)",
        ),
        ([{"filename": "b.pdf"}], "gold.jsonl: line 1: filename: 'b.pdf', but train.json says 'a.pdf'"),
    ],
)
def test_gold_that_is_not_train_jsons(bundle, lines, fault):
    write_gold([gold(**fields) for fields in lines], bundle / "gold.jsonl")
    told(bundle)
    assert faults(bundle) == [fault]


def test_gold_that_is_located_where_there_is_nothing_to_locate(bundle):
    write_train(
        [row(contexts=[{"filename": "a.pdf"}]), row(id=8, is_impossible=True, contexts=[])], bundle / "train.json"
    )
    write_gold([gold(), gold(id=8, context=None, filename=None)], bundle / "gold.jsonl")
    told(
        bundle, counts={"documents": 1, "questions": 2, "answerable": 1, "impossible": 1, "contexts": 1, "located": {}}
    )
    assert faults(bundle) == [
        "gold.jsonl: line 1: spans: has a location, but the context has no text",
        "gold.jsonl: line 2: spans: has a location, but the row has no context",
    ]


def test_files_that_cannot_be_understood(bundle):
    (bundle / "train.json").write_text(json.dumps([{**ROW, "id": -1, "more": 1}]), encoding="utf-8")
    (bundle / "gold.jsonl").write_text(json.dumps({**GOLD, "spans": []}) + "\n" + json.dumps({**GOLD, "id": -1}))
    (bundle / "bundle.json").write_text(json.dumps(info(bundle, name=5)), encoding="utf-8")
    assert faults(bundle) == [
        "train.json: row 0: id: Input should be greater than or equal to 0",
        "train.json: row 0: more: Extra inputs are not permitted",
        "gold.jsonl: line 1: must have no spans if `how` is 'absent', and at least one span otherwise",
        "gold.jsonl: line 2: id: Input should be greater than or equal to 0",
        "bundle.json: name: Input should be a valid string",
    ]
    for name in ("train.json", "gold.jsonl", "bundle.json"):
        (bundle / name).unlink()
    assert faults(bundle) == ["train.json: missing", "gold.jsonl: missing", "bundle.json: missing"]
    (bundle / "corpus" / "a.pdf").unlink()
    (bundle / "corpus" / "sub").rmdir()
    (bundle / "corpus").rmdir()
    assert faults(bundle)[0] == "corpus/: no such folder"


# ---------------------------------------------------------------- the published schemas, and plug-ins


def test_a_bundle_follows_the_schemas_that_others_check_it_by(bundle):
    def faults_by(name: str, value: object) -> list[list[object]]:
        schema = json.loads((Path(schemas.__file__).parent / "json" / f"{name}.schema.json").read_text())
        return [list(one.absolute_path) for one in jsonschema.Draft202012Validator(schema).iter_errors(value)]

    assert faults_by("train", json.loads((bundle / "train.json").read_text())) == []
    assert faults_by("bundle", json.loads((bundle / "bundle.json").read_text())) == []
    assert faults_by("gold", GOLD) == []
    assert faults_by("train", [ROW, {**ROW, "id": -1}]) == [[1, "id"]]
    assert faults_by("gold", {**GOLD, "pages": [1, 0]}) == [["pages", 1]]
    assert {tuple(path) for path in faults_by("bundle", info(bundle, counts={}))} == {("counts",)}


def test_plug_ins_are_the_files_that_do_not_begin_with_a_line():
    names = list_plugins("exhibit.rag.splitters")
    assert names == ["naive", "rcts", "sections"]
    module, argument = load_plugin("exhibit.rag.splitters", "rcts:sentences")
    assert (module.__name__, argument) == ("exhibit.rag.splitters.rcts", "sentences")
    assert load_plugin("exhibit.rag.splitters", "rcts:")[1] is None
    assert load_plugin("exhibit.evaluation.metrics", "answer-f1")[0].__name__ == "exhibit.evaluation.metrics.answer_f1"
    with pytest.raises(ToolkitError, match="no splitter 'words'; there are naive, rcts, sections"):
        load_plugin("exhibit.rag.splitters", "words")


@pytest.mark.parametrize("take", [lambda rows: rows[1], lambda rows: list(rows)])
def test_a_broken_line_is_named_by_its_number_in_the_file(tmp_path, take):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n\n\n{"a": \n', encoding="utf-8")
    rows = LazyLines(path, lambda line, where: parse_json(line, where=where))
    with pytest.raises(ToolkitError, match="rows.jsonl: line 4"):
        take(rows)
