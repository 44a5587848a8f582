"""Helpers for the benchmarks: they print tables, find the benchmark data, and measure memory."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with aligned columns: its title, the column headings and the rows."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head), *cells]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [list(head), ["-" * width for width in widths], *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def find_data_folder() -> Path | None:
    """Return the folder with the real benchmark data, or None if there is none.

    It is the folder that EXHIBIT_DATA names, else ../shared/data.
    """
    for folder in (os.environ.get("EXHIBIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def find_cuad_folder(given: Path | None) -> Path:
    """Return the CUAD folder: the given one, else the real release, else the sample (with a note on stderr)."""
    data = find_data_folder()
    if given is not None:
        return given
    if data is not None and (data / "cuad" / "CUAD_v1").is_dir():
        return data / "cuad" / "CUAD_v1"
    print("no real data (set EXHIBIT_DATA): measuring on the samples, which are too few to mean much", file=sys.stderr)
    return ROOT / "samples" / "cuad" / "CUAD_v1"


def find_corpus_folder(given: Path | None) -> Path:
    """Return a folder of text files to measure on.

    It is the given folder, else LegalBench-RAG's corpus, else the corpus of the sample (with a note on stderr).
    """
    data = find_data_folder()
    if given is not None:
        return given
    if data is not None and (data / "legalbenchrag" / "corpus").is_dir():
        return data / "legalbenchrag" / "corpus"
    print("no real data (set EXHIBIT_DATA): measuring on the samples, which are too few to mean much", file=sys.stderr)
    return ROOT / "samples" / "legalbenchrag" / "corpus"


def read_texts(folder: Path) -> list[str]:
    """Return the contents of all .txt files below a folder, in the order of their paths."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.txt"))]


def measure_peak_memory() -> float:
    """Return the peak memory of this process in MB.

    On Linux it is read from /proc, since `ru_maxrss` includes the memory of the parent process there.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        return int(status.read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
