"""Checks that ruff, mypy, import-linter and mkdocs do not make: locks, tests named in docs, requirements, imports."""

import ast
import csv
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache

import pytest
import yaml

import evaluate_rag
from exhibit.schemas import __version__
from tests.conftest import ROOT

NAMED = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")
LOCKS = ("requirements.lock", "models.lock", "extras.lock")


@pytest.mark.parametrize("name", LOCKS)
def test_lock_contains_only_names_versions_and_hashes(name):
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==[^\s/@]+( ; [^/@]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_lock_contains_base_and_dev_dependencies_but_no_heavy_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=\[ ;]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names <= locked, names - locked
    assert not {"torch", "ray", "pymilvus"} & locked


def test_docs_name_only_tests_that_exist():
    named = [pair for page in (ROOT / "docs").glob("*.md") for pair in NAMED.findall(page.read_text("utf-8"))]
    missing = [pair for pair in named if f"def {pair[1]}(" not in (ROOT / "tests" / pair[0]).read_text("utf-8")]
    assert len(named) > 20 and not missing


def test_citation_states_the_version_of_the_package():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


@pytest.mark.parametrize("name", ["converters", "rag", "schemas"])
def test_top_level_folder_only_reexports_its_exhibit_subpackage(name):
    """`python -m converters.cuad` works in a checkout, and no code is defined twice."""
    assert [path.name for path in (ROOT / name).iterdir() if path.name != "__pycache__"] == ["__init__.py"]
    lines = (ROOT / name / "__init__.py").read_text(encoding="utf-8").splitlines()
    assert f"from exhibit.{name} import __path__ as __path__" in lines and not any("def " in line for line in lines)


def test_converters_run_as_modules_of_the_top_level_folder():
    command = [sys.executable, "-m", "converters.cuad", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.startswith("usage: exhibit convert cuad --out DIR")


def test_imports_do_not_load_heavy_packages_that_are_unused():
    """Otherwise every command and worker would load these packages, which takes a third of a second."""
    code = """
import sys
def show(*packages):
    print(*(name for name in packages if name in sys.modules), sep=" ", end="|")
import exhibit.engine.worker, exhibit.evidence
show("pydantic", "pypdf")
import exhibit.converters.cuad
show("playwright.sync_api", "pypdf", "httpx")
import exhibit.evidence.show, exhibit.hub.card
show("torch")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split("|") == ["", "", "", ""]


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


def test_each_requirement_marked_as_working_refers_to_existing_tests():
    proofs = [proof for row in ROWS if row["state"] == "works" for proof in row["proof"].split() or [row["what"]]]
    missing = [proof for proof in proofs if proof.partition("::")[2] not in list_tests(proof.partition("::")[0])]
    assert len(ROWS) == 183 and missing == []


@pytest.mark.parametrize("row", DIFFERENT, ids=[row["what"] for row in DIFFERENT])
def test_settings_that_restore_seed_behaviour_are_valid(row, capsys, monkeypatch):
    """The command is run with the settings in backticks and a missing folder; it may report only that folder."""
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
