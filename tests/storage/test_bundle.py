"""Bundles with missing parts, and copies of remote bundles without their documents."""

from pathlib import Path

import pytest

from exhibit.schemas.bundle import ORIGIN
from exhibit.schemas.errors import BundleError
from exhibit.storage.bundle import describe_missing_parts, list_corpus_files, main, mirror_bundle, open_bundle
from exhibit.storage.bundle import validate_at as validate
from exhibit.storage.locations import Remote, origin_of
from tests.hub.bundles import write
from tests.rag.bundles import write_bundle, write_files
from tests.storage.memory import memory, put, upload

__all__ = ["memory"]

NAMES = ("aurora.txt", "borealis.txt")


@pytest.fixture
def bundle(memory, tmp_path) -> Remote:
    return upload(write(tmp_path / "charters", names=NAMES), memory / "charters")


def test_mirror_bundle_returns_the_path_of_a_local_bundle(tmp_path):
    assert mirror_bundle(tmp_path) == tmp_path and origin_of(tmp_path) is None


def test_mirror_bundle_downloads_only_small_files_of_a_remote_bundle(bundle, tmp_path):
    folder = mirror_bundle(bundle)
    assert sorted(path.name for path in folder.iterdir()) == [ORIGIN, "bundle.json", "gold.jsonl", "train.json"]
    assert list((tmp_path / "cache" / "bundles").iterdir()) == [folder], "no partial copy may be left"
    assert origin_of(folder) == bundle
    opened, local = open_bundle(folder), open_bundle(tmp_path / "charters")
    assert (opened.questions, opened.gold, opened.info) == (local.questions, local.gold, local.info)
    assert opened.address == str(bundle)
    for name, file in list_corpus_files(folder).items():
        entry = local.info.files[f"corpus/{name}"]
        assert file == Remote(f"{bundle}/corpus/{name}", entry.sha256, entry.bytes)


def test_mirror_bundle_replaces_a_damaged_local_copy(bundle):
    folder = mirror_bundle(bundle)
    questions = (folder / "train.json").read_bytes()
    (folder / "train.json").write_bytes(questions[: len(questions) // 2])
    assert (mirror_bundle(bundle) / "train.json").read_bytes() == questions


def test_mirror_bundle_refuses_questions_with_a_wrong_checksum(bundle, tmp_path):
    put(bundle / "train.json", b"[]")
    with pytest.raises(BundleError, match=r"train.json: the content differs from the sha256 in bundle.json"):
        mirror_bundle(bundle)
    assert list((tmp_path / "cache" / "bundles").iterdir()) == [], "no partial copy may be left"


def test_validate_checks_every_file_of_a_remote_bundle(bundle, capsys):
    assert validate(bundle) == [] and main([str(bundle), "--minimal"]) == 0
    put(bundle / "corpus/aurora.txt", b"something else")
    put(bundle / "corpus/stray.txt")
    assert [str(problem) for problem in validate(bundle)] == [
        "bundle.json: files: corpus/aurora.txt: the content differs from the recorded size or sha256",
        "bundle.json: files: corpus/stray.txt: in the bundle, but not recorded",
        "bundle.json: counts: documents: 2, but the bundle has 3",
        "bundle.json: documents: stray.txt: under corpus/, but not listed",
    ]
    assert main([str(bundle)]) == 1 and f"{bundle}: 4 problems" in capsys.readouterr().out
    assert main(["memory://bucket/none"]) == 1 and "no bundle.json in it" in capsys.readouterr().err


def write_minimal(folder: Path, *contexts: list[dict[str, str]]) -> Path:
    rows = [{"id": n, "question": "q?", "answer": "a", "contexts": given} for n, given in enumerate(contexts)]
    return write_files(folder, {"a.txt": "Rent is due."}, rows)


def list_missing(folder: Path) -> list[str]:
    return [line.partition(":")[0] for line in describe_missing_parts(open_bundle(folder))]


def test_list_missing_returns_the_files_and_fields_that_a_bundle_lacks(tmp_path):
    always = ["no bundle.json", "no gold.jsonl"]
    assert list_missing(write_minimal(tmp_path / "a", [])) == [*always, "no question names a passage or a document"]
    assert list_missing(write_minimal(tmp_path / "b", [], [{"filename": "a.txt"}])) == [
        *always,
        "no context has a text",
    ]
    assert (
        list_missing(write_minimal(tmp_path / "c", [{"filename": "a.txt"}], [{"filename": "a.txt", "text": "Rent"}]))
        == always
    )
    assert list_missing(write_bundle(tmp_path / "d")) == ["no bundle.json"]


def test_open_bundle_reports_a_missing_folder_in_a_single_line(tmp_path):
    with pytest.raises(BundleError, match="^[^\n]*none: no such folder$"):
        open_bundle(tmp_path / "none")


def test_validate_checks_the_folder_of_a_run(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}", encoding="utf-8")
    assert main([str(tmp_path / "run")]) == 1
    output = capsys.readouterr()
    assert "config.json" in output.out + output.err and str(tmp_path / "run") in output.out
