"""For each broken promise of a bundle, the validator names the file, the row and the field."""

import json
import shutil

import pytest

from exhibit.evidence.check import main as check_main
from exhibit.schemas.models import FileEntry
from exhibit.schemas.validate import validate as check_files
from exhibit.storage.bundle import main
from exhibit.storage.bundle import validate_at as validate


@pytest.fixture
def bundle(converted, tmp_path):
    return shutil.copytree(converted("cuad", "--max-documents", "1"), tmp_path / "bundle")


def edit_json(path, change):
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def edit_gold(bundle, number, change):
    lines = (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[number])
    change(record)
    lines[number] = json.dumps(record)
    (bundle / "gold.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def messages(bundle):
    return [str(problem) for problem in validate(bundle)]


def test_validate_finds_no_problem_in_a_sound_bundle(bundle, capsys):
    assert validate(bundle) == []
    assert main([str(bundle)]) == 0
    assert capsys.readouterr().out.endswith(": sound\n")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("id", "3", "train.json: row 2: id: Input should be a valid integer"),
        ("question", "", "train.json: row 2: question: String should match pattern"),
        ("answer", " ", "train.json: row 2: answer"),
        ("is_impossible", 0, "train.json: row 2: is_impossible: Input should be a valid boolean"),
        ("contexts", ["x"], "train.json: row 2: contexts.0"),
        ("contexts", [{"filename": "../../etc/passwd"}], "contexts.0.filename: must be a plain file name"),
        ("clause", "Parties", "train.json: row 2: clause: Extra inputs are not permitted"),
    ],
)
def test_validate_names_an_invalid_field(bundle, field, value, expected):
    edit_json(bundle / "train.json", lambda rows: rows[2].update({field: value}))
    assert any(expected in message for message in messages(bundle))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda line: line.update(id=999), "expected row 0, context 0"),
        (lambda line: line.update(filename="other.pdf"), "but train.json says"),
        (lambda line: line.update(spans=[[5, 5]]), "gold.jsonl: line 1: spans.0"),
        (lambda line: line.pop("how"), "gold.jsonl: line 1: how: Field required"),
    ],
)
def test_validate_reports_gold_that_contradicts_the_questions(bundle, change, expected):
    edit_gold(bundle, 0, change)
    assert any(expected in message for message in messages(bundle))


def edit(name, change):
    return lambda bundle: edit_json(bundle / name, change)


def set_count(name):
    return edit("bundle.json", lambda info: info["counts"].update({name: 999}))


def add_file(path):
    entry = {"sha256": "0" * 64, "bytes": 1}
    return edit("bundle.json", lambda info: info["files"].update({path: entry}))


def copy_document(bundle):
    (bundle / "corpus" / "more").mkdir()
    name = next(path.name for path in (bundle / "corpus").iterdir() if path.is_file())
    (bundle / "corpus" / "more" / name).write_bytes(b"x")


def remove_gold_line(bundle):
    lines = (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    (bundle / "gold.jsonl").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def link_outside(bundle):
    (bundle.parent / "secret").write_text("x")
    (bundle / "corpus" / "link.pdf").symlink_to(bundle.parent / "secret")


COUNTS = ("documents", "questions", "answerable", "impossible", "contexts")
DATA = ("train.json", "gold.jsonl", "bundle.json")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (edit("train.json", lambda rows: rows[5].update(id=1)), "train.json: row 5: id: 1 is also the id of row 1"),
        (
            edit("train.json", lambda rows: rows[0]["contexts"][0].update(filename="gone.pdf")),
            "contexts.0.filename: no file 'gone.pdf' under corpus/",
        ),
        (edit("bundle.json", lambda info: info["documents"].pop()), "under corpus/, but not listed"),
        (edit("bundle.json", lambda info: info["counts"]["located"].update(exact=999)), "located.exact: 999, but the"),
        *((set_count(name), f"counts: {name}: 999, but the bundle has ") for name in COUNTS),
        *((add_file(path), "inside the bundle") for path in ("../outside", "/etc/passwd", "corpus/../../x")),
        *((lambda bundle, n=name: (bundle / n).write_bytes(b"[\xff\xfe]"), f"{name}: not UTF-8") for name in DATA),
        *((lambda bundle, n=name: (bundle / n).unlink(), f"{name}: missing") for name in (*DATA, "README.md")),
        (copy_document, "same basename as corpus/"),
        (remove_gold_line, "lines; train.json needs"),
        (link_outside, "corpus/link.pdf: a link that leads out of the bundle"),
    ],
)
def test_validate_names_each_fault_of_a_bundle(bundle, change, expected):
    change(bundle)
    assert any(expected in message for message in messages(bundle))


def test_validate_reports_changed_missing_and_unlisted_files(bundle):
    path = next(p for p in (bundle / "corpus").iterdir())
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    (bundle / "README.md").unlink()
    (bundle / "corpus" / "extra.txt").write_text("x")
    found = messages(bundle)
    assert any("differs from the recorded size or sha256" in message for message in found)
    assert any("files: README.md: recorded, but there is no such file" in message for message in found)
    assert any("files: corpus/extra.txt: in the bundle, but not recorded" in message for message in found)


@pytest.mark.parametrize("name", [".DS_Store", "corpus/.lease.pdf.swp", ".git/config"])
def test_validate_reports_an_unrecorded_hidden_file(bundle, name):
    """A bundle is published with all its files, including hidden files of an editor or a file manager."""
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_bytes(b"left here")
    assert [line for line in messages(bundle) if f"files: {name}: in the bundle, but not recorded" in line]


def test_validate_ignores_the_cache_folder_of_the_hub_client(bundle):
    (bundle / ".cache" / "huggingface").mkdir(parents=True)
    (bundle / ".cache" / "huggingface" / "train.json.metadata").write_bytes(b"kept by the Hub's own client")
    assert messages(bundle) == []


def test_validate_command_prints_all_problems_and_exits_1(bundle, tmp_path, capsys):
    edit_json(bundle / "train.json", lambda rows: rows[0].update(id="x"))
    assert main([str(bundle), str(tmp_path / "nowhere")]) == 1
    out = capsys.readouterr().out
    assert "row 0: id" in out and "problems" in out and "no such folder" in out


def test_validate_with_minimal_flag_checks_only_what_the_evaluator_requires(tmp_path, capsys):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "Report_2023").write_text("The rent is due.", encoding="utf-8")
    rows = [{"question": "When?", "answer": "Now", "contexts": [{"filename": "Report_2023"}]}]
    (tmp_path / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    assert main(["--minimal", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert output.out == f"{tmp_path}: sound\n"
    for lack in ("no bundle.json", "no gold.jsonl", "no context has a text: only documents and answers are scored"):
        assert lack in output.err
    assert main([str(tmp_path)]) == 1
    (tmp_path / "train.json").write_text('{"tests": []}')
    assert main(["--minimal", str(tmp_path)]) == 1
    assert "must be a JSON array" in capsys.readouterr().out


def test_validate_skips_and_notes_paths_of_files_that_are_not_bundles(bundle, capsys):
    note = bundle.with_name("README.md")
    note.write_text("bundles go here", encoding="utf-8")
    assert main([str(note), str(bundle)]) == 0
    out, err = capsys.readouterr()
    assert f"{bundle}: sound" in out and f"note: {note}: is not a bundle's folder; skipped" in err
    assert check_main([str(bundle), str(note)]) == 0
    assert f"note: {note}: is not a bundle's folder; skipped" in capsys.readouterr().err
    assert main([str(note)]) == 1  # a path without a wildcard must be a bundle


def test_validate_reports_located_gold_for_a_context_without_text(bundle):
    lines = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    number, line = next((n, entry) for n, entry in enumerate(lines) if entry["how"] != "absent")
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    del next(row for row in rows if row["id"] == line["id"])["contexts"][line["context"]]["text"]
    (bundle / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    found = [message for message in messages(bundle) if "has a location, but the context has no text" in message]
    assert len(found) == 1 and found[0].startswith(f"gold.jsonl: line {number + 1}: spans")


def test_check_files_accepts_missing_files_that_the_caller_lists(bundle):
    listed = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["files"]
    entries = {path: FileEntry.model_validate(entry) for path, entry in listed.items()}
    gone = next(path for path in entries if path.startswith("corpus/"))
    (bundle / gone).unlink()
    assert any("no file" in str(problem) for problem in check_files(bundle))
    assert check_files(bundle, elsewhere={gone: entries[gone]}) == []
    (bundle / "README.md").unlink()
    assert [str(problem) for problem in check_files(bundle, elsewhere={gone: entries[gone]})][-1] == (
        "README.md: missing; every bundle needs a dataset card"
    )
    there = {gone: entries[gone], "README.md": entries[gone]}
    assert not any("dataset card" in str(problem) for problem in check_files(bundle, elsewhere=there))
