"""The base install has no Playwright: PDFs and texts are converted, what a browser must print says what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def exhibit(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command where Playwright cannot be imported, in the workers neither."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['playwright'] = None\n", encoding="utf-8")

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "exhibit", *map(str, words)]
        environment = os.environ | {"PYTHONPATH": str(hidden)}
        return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", env=environment)

    return run


@pytest.mark.parametrize("name", [pytest.param("cuad", marks=pytest.mark.slow), "maud"])
def test_a_benchmark_of_pdfs_or_of_text_is_converted(exhibit, samples, tmp_path, name):
    out = tmp_path / name
    done = exhibit("convert", name, "--source", samples / name, "--out", out, "--limit", "1", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert (out / "parquet" / "gold.parquet").is_file()


def test_what_must_be_printed_names_the_extra(exhibit, samples, tmp_path):
    out = tmp_path / "table"
    source = samples / "table"
    done = exhibit("convert", "table", "--source", source, "--out", out, "--jobs", "1")
    assert done.returncode == 1 and not out.exists()
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "pip install 'exhibit-rag[print]', then exhibit prepare browser" in line


def test_drafting_says_so_before_it_begins(exhibit, tmp_path):
    (tmp_path / "contracts").mkdir()
    for name in ("lease.md", "loan.md", "will.txt"):
        (tmp_path / "contracts" / name).write_text("# Lease\n\nThe rent is due monthly.\n", encoding="utf-8")
    done = exhibit("draft", tmp_path / "contracts", "--out", tmp_path / "mine", "--jobs", "1")
    assert done.returncode == 1 and "drafts: " not in done.stderr
    assert "error: lease.md and 1 more: " in done.stderr and "exhibit-rag[print]" in done.stderr


def test_the_doctor_counts_printing_as_optional(exhibit):
    shown = exhibit("doctor").stdout
    assert "absent   browser" in shown and "exhibit-rag[print]" in shown
    assert "missing  browser" not in shown
    done = exhibit("prepare", "browser")
    assert done.returncode == 1 and "exhibit-rag[print]" in done.stderr
