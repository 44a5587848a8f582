"""One file never ends a run: it is set aside by name, and the rest goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from evaluate_rag import main as evaluate
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from tests.rag.bundles import rows_of, write_bundle

COLUMNS = ("--question", "question", "--answer", "answer", "--document", "document")


@pytest.fixture
def closed(monkeypatch):
    """Deny access to two files, even if the tests run as root."""
    opened = Path.open

    def refuse(self: Path, *args: object, **more: object) -> object:
        if self.name in ("closed.txt", "alder.txt"):
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **more)

    monkeypatch.setattr(Path, "open", refuse)


@pytest.fixture
def folder(tmp_path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "good.txt").write_text("Rent is due in May.", encoding="utf-8")
    (documents / "closed.txt").write_text("Closed words.", encoding="utf-8")
    if sys.platform == "linux":
        (documents / os.fsdecode(b"bad\xff.txt")).write_text("Words.", encoding="utf-8")
    rows = [
        {"question": "When is rent due?", "answer": "May", "document": "good.txt"},
        {"question": "What is closed?", "answer": "Words", "document": "closed.txt"},
        {"question": "What is odd?", "answer": "x", "document": "\ud800.txt"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def test_files_that_cannot_be_opened_or_named_are_left_out_of_a_table(folder, convert, closed):
    source = ("--source", folder / "rows.jsonl", "--documents", folder / "documents", *COLUMNS)
    bundle = convert("table", *source, "--engine", "serial", "--as", "is")
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["documents"] == info["counts"]["questions"] == 1
    told = [line for lines in info["left_out"].values() for line in lines]
    assert any("closed.txt" in line and "Permission denied" in line for line in told)
    assert any("\\ud800.txt" in line for line in told)
    if sys.platform == "linux":
        assert any("bad\\udcff.txt" in line for line in told)


def test_files_of_one_name_are_told_apart_by_their_paths_in_an_index(tmp_path):
    for place, words in {"a": "Rent is due in May.", "b": "Notice is given in June.", "c/a": "Third."}.items():
        (tmp_path / "files" / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / place / "contract.txt").write_text(words, encoding="utf-8")
    (tmp_path / "files" / "other.txt").write_text("Nothing of interest.", encoding="utf-8")
    pipeline = Pipeline(Config(embedder="hashing"), engine="serial")
    report = pipeline.index(tmp_path / "files", tmp_path / "index")
    assert report.documents == 4 and report.set_aside == ()
    names = {"a/contract.txt", "b/contract.txt", "c/a/contract.txt", "other.txt"}
    assert {name for name in names if pipeline.text(name)} == names
    [found] = pipeline.search(["When is notice given?"])
    assert found.ranked[0].chunk.document == "b/contract.txt"


def test_a_document_that_cannot_be_opened_fails_its_questions_alone(tmp_path, request, capsys):
    bundle = write_bundle(tmp_path / "supply")
    request.getfixturevalue("closed")
    settings = ["--embedder", "hashing", "--engine", "serial", "--report-cases", "0", "--max-failures", "1"]
    folder = ["--dataset-paths", str(bundle), "--output-dir", str(tmp_path / "results"), "--run-name", "r"]
    assert evaluate([*folder, *settings]) == 0
    assert len(rows_of(tmp_path / "results" / "r" / "supply" / "eval_results.jsonl")) == 9
    told = capsys.readouterr()
    assert "not readable by this user: alder.txt" in told.err and "3 failed" in told.out
