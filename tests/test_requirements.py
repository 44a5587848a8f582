"""Each requirement in docs/requirements.tsv names an existing test or a setting that restores it."""

from __future__ import annotations

import ast
import csv
import re
import shlex
import sys
import tomllib
from functools import cache

import pytest

import evaluate_rag
from tests.conftest import ROOT

with (ROOT / "docs" / "requirements.tsv").open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))
DIFFERENT = [row for row in ROWS if row["state"] == "different"]


@cache
def list_tests(path: str) -> set[str]:
    """Return the names of the functions in a test file; none if there is no such file."""
    if not (ROOT / path).is_file():
        return set()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_requirements_with_state_works_name_existing_tests():
    proofs = [proof for row in ROWS if row["state"] == "works" for proof in row["proof"].split() or [row["what"]]]
    missing = [proof for proof in proofs if proof.partition("::")[2] not in list_tests(proof.partition("::")[0])]
    assert len(ROWS) == 183 and missing == []


@pytest.mark.parametrize("row", DIFFERENT, ids=[row["what"] for row in DIFFERENT])
def test_settings_that_restore_seed_behaviour_are_valid(row, capsys, monkeypatch):
    """Text in backticks is passed to the command, which lists all errors at once: only the folder may be wrong."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # importing it takes many seconds
    monkeypatch.delitem(sys.modules, "exhibit.models.embedders.sentence_transformers", raising=False)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for way in re.findall(r"`([^`]+)`", row["note"]):
        if extra := re.fullmatch(r"pip install 'exhibit-rag\[(\w+)\]'", way):
            assert extra[1] in extras
            continue
        assert evaluate_rag.main(["no-such-folder", *shlex.split(way)]) == 1
        errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
        known = [error for error in errors if "needs an extra" not in error]
        assert known == ["error: no-such-folder: no such folder"], way
