"""The base install has no Playwright: PDFs are converted, and what must be printed says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WITHOUT = (
    "import sys; sys.modules['playwright'] = None; from exhibit.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


def exhibit(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


def test_a_benchmark_of_pdfs_is_converted(samples, tmp_path):
    out = tmp_path / "cuad"
    done = exhibit("convert", "cuad", "--source", samples / "cuad", "--out", out, "--limit", "1", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert (out / "parquet" / "gold.parquet").is_file()


def test_what_must_be_printed_names_the_extra(samples, tmp_path):
    out = tmp_path / "table"
    source = samples / "table"
    done = exhibit("convert", "table", "--source", source, "--out", out, "--jobs", "1")
    assert done.returncode == 1 and not out.exists()
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "pip install 'exhibit-rag[print]', then exhibit prepare browser" in line


def test_the_doctor_counts_printing_as_optional(tmp_path):
    shown = exhibit("doctor").stdout
    assert "absent   browser" in shown and "exhibit-rag[print]" in shown
    assert "missing  browser" not in shown
    done = exhibit("prepare", "browser")
    assert done.returncode == 1 and "exhibit-rag[print]" in done.stderr
