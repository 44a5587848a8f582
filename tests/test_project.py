"""Checks that ruff, mypy, import-linter and mkdocs do not make: lock files, tests named in docs, imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from exhibit.schemas import __version__
from tests.conftest import ROOT

NAMED = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")
LOCKS = ("requirements.lock", "models.lock", "extras.lock")


@pytest.mark.parametrize("name", LOCKS)
def test_lock_contains_only_names_versions_and_hashes(name):
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==[^\s/@]+( ; [^/@]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_lock_covers_dependencies_without_heavy_extras():
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
    last = (ROOT / name / "__init__.py").read_text(encoding="utf-8").splitlines()[-1]
    assert last == f"from exhibit.{name} import __path__ as __path__"


def test_imports_leave_unused_heavy_packages_unloaded():
    """Every command and worker would load these packages, which take a third of a second."""
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
