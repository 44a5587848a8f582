"""The parts that a minimal bundle lacks are reported, and one bad bundle does not stop the check of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.storage.bundle import describe_missing_parts, open_bundle
from exhibit.storage.validate import CheckedBundle, check_each
from exhibit.storage.validate import main as validate
from tests.rag.bundles import write_bundle


def minimal(folder: Path, *contexts: list[dict[str, str]]) -> Path:
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "a.txt").write_text("Rent is due.", encoding="utf-8")
    rows = [{"id": n, "question": "q?", "answer": "a", "contexts": given} for n, given in enumerate(contexts)]
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def lacks(folder: Path) -> list[str]:
    return [line.partition(":")[0] for line in describe_missing_parts(open_bundle(folder))]


def test_what_a_bundle_lacks_is_told_part_by_part(tmp_path):
    always = ["no bundle.json", "no gold.jsonl"]
    assert lacks(minimal(tmp_path / "a", [])) == [*always, "no question names a passage or a document"]
    assert lacks(minimal(tmp_path / "b", [], [{"filename": "a.txt"}])) == [*always, "no context has a text"]
    assert lacks(minimal(tmp_path / "c", [{"filename": "a.txt"}], [{"filename": "a.txt", "text": "Rent"}])) == always
    assert lacks(write_bundle(tmp_path / "d")) == ["no bundle.json"]


def test_each_bundle_is_checked_whatever_becomes_of_another(tmp_path, capsys):
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()

    def check(root):
        if root.name == "b":
            raise ToolkitError("b cannot be read")
        return CheckedBundle(["torn"] if root.name == "c" else [], "seen", {"name": root.name})

    assert check_each(folders, check, as_json=False) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"{folders[0]}: seen", f"{folders[2]}: torn", f"{folders[2]}: seen"]
    assert "b cannot be read" in err
    assert check_each(folders[:2], check, as_json=True) == 1
    assert json.loads(capsys.readouterr().out) == [{"bundle": str(folders[0]), "name": "a"}]
    assert check_each(folders[2:], check, as_json=False) == 1 and check_each(folders[:1], check, as_json=True) == 0


def test_a_folder_that_is_none_is_told_once(tmp_path):
    with pytest.raises(BundleError, match="^[^\n]*none: no such folder$"):
        open_bundle(tmp_path / "none")


def test_a_folder_of_a_run_is_checked_as_a_run(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}", encoding="utf-8")
    assert validate([str(tmp_path / "run")]) == 1
    told = capsys.readouterr()
    assert "config.json" in told.out + told.err and str(tmp_path / "run") in told.out
