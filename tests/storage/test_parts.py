"""The parts that a minimal bundle lacks are reported, and one bad bundle does not stop the check of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhibit.schemas.errors import BundleError
from exhibit.storage.bundle import describe_missing_parts, open_bundle
from exhibit.storage.bundle import main as validate
from tests.rag.bundles import write_bundle


def minimal(folder: Path, *contexts: list[dict[str, str]]) -> Path:
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "a.txt").write_text("Rent is due.", encoding="utf-8")
    rows = [{"id": n, "question": "q?", "answer": "a", "contexts": given} for n, given in enumerate(contexts)]
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def lacks(folder: Path) -> list[str]:
    return [line.partition(":")[0] for line in describe_missing_parts(open_bundle(folder))]


def test_missing_parts_of_a_bundle_are_listed(tmp_path):
    always = ["no bundle.json", "no gold.jsonl"]
    assert lacks(minimal(tmp_path / "a", [])) == [*always, "no question names a passage or a document"]
    assert lacks(minimal(tmp_path / "b", [], [{"filename": "a.txt"}])) == [*always, "no context has a text"]
    assert lacks(minimal(tmp_path / "c", [{"filename": "a.txt"}], [{"filename": "a.txt", "text": "Rent"}])) == always
    assert lacks(write_bundle(tmp_path / "d")) == ["no bundle.json"]


def test_missing_folder_is_one_error(tmp_path):
    with pytest.raises(BundleError, match="^[^\n]*none: no such folder$"):
        open_bundle(tmp_path / "none")


def test_validate_checks_the_folder_of_a_run(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}", encoding="utf-8")
    assert validate([str(tmp_path / "run")]) == 1
    told = capsys.readouterr()
    assert "config.json" in told.out + told.err and str(tmp_path / "run") in told.out
