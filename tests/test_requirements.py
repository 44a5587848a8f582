"""docs/requirements.tsv: the requirements of the seed texts, and that each proof it names exists."""

from __future__ import annotations

import ast
import csv
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest

import evaluate_rag
from tests.test_documentation import addresses

ROOT = Path(__file__).parent.parent
with (ROOT / "docs" / "requirements.tsv").open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))
NAMED = [f"{row['seed']} {row['what']}" for row in ROWS]
STATES = {"works", "different", "partly", "missing"}
DIFFERENT = [row for row in ROWS if row["state"] == "different"]


def test_every_requirement_is_there_once():
    assert len(ROWS) == len(set(NAMED)) == 183
    assert {row["state"] for row in ROWS} <= STATES and all(row["seed"] and row["what"] for row in ROWS)
    assert {row["seed"] for row in ROWS} == {"S0", "S1", "S2", "S3", "S4", "M"}


@cache
def functions_of(path: str) -> dict[str, list[str]]:
    """Return the decorators of each function in a file, by its name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: [ast.unparse(one) for one in node.decorator_list] for node in functions}


@pytest.mark.parametrize("row", ROWS, ids=NAMED)
def test_its_proof_is_there(row):
    if row["state"] in {"partly", "missing"}:
        assert row["note"], "what is missing, what was tried and why not"
        return
    assert row["proof"], "a test or a page"
    for proof in row["proof"].split():
        if row["state"] == "different":
            page, _, heading = proof.partition("#")
            assert heading in addresses(ROOT / page), proof
            continue
        path, _, name = proof.partition("::")
        assert name in functions_of(path), f"{proof}: no such test"
        assert not any("mark.skip" in mark for mark in functions_of(path)[name]), f"{proof}: not run"


@pytest.mark.parametrize("row", DIFFERENT, ids=[row["what"] for row in DIFFERENT])
def test_the_way_of_the_seed_is_a_setting_that_there_is(row, capsys):
    """Text in backticks is passed to the command, which lists all errors at once: only the folder is wrong."""
    ways = re.findall(r"`([^`]+)`", row["note"])
    assert ways or row["what"] == "packages: requests", "a package in place of another has no flag"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for way in ways:
        if extra := re.fullmatch(r"pip install 'exhibit-rag\[(\w+)\]'", way):
            assert extra[1] in extras
            continue
        assert evaluate_rag.main(["no-such-folder", *shlex.split(way)]) == 1
        errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
        assert [error for error in errors if "needs an extra" not in error] == [
            "error: no-such-folder: no such folder"
        ], way
