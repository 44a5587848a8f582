"""docs/extending.md: its files are put into a copy of the project, and the tests that it shows pass there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
ROOMS = (
    "schemas",
    "storage",
    "evidence",
    "engine",
    "law",
    "models",
    "hub",
    "converters",
    "rag",
    "evaluation",
    "viewer",
    "exhibit",
)
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
TESTS = [name for name in FILES if name.startswith("tests/")]
PARTS = [name for name in FILES if name not in TESTS]


def test_every_kind_is_shown_with_its_test():
    kinds = re.findall(r"^\| [^|]+ \| `([a-z/]+)/` \|", PAGE, re.MULTILINE)
    assert len(kinds) == 13 and sorted(kinds) == sorted(str(Path(name).parent) for name in PARTS)
    assert len(TESTS) == len(PARTS) == PAGE.count("```python") / 2
    stems = {Path(name).stem.removeprefix("test_") for name in TESTS}
    assert stems == {Path(name).stem for name in PARTS}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project with the page's files, every one of them new."""
    folder = tmp_path_factory.mktemp("project")
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room)  # with what is compiled of it, where it is
    for name in ("evaluate_rag.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for name, code in FILES.items():
        path = folder / name
        assert not path.exists(), f"{name}: there is such a file already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return folder


def test_the_files_of_the_page_work_where_nothing_else_is_edited(project):
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *TESTS]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert done.stdout.split()[0] == "." * len(TESTS), done.stdout


def test_the_files_of_the_page_are_in_the_style_of_the_house(project):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--ignore", "ARG,N", *FILES],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--diff", *FILES], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
