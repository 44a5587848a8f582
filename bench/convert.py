"""Measures whole conversions: time, memory and located gold, for each benchmark that is available.

    python -m bench.convert [cuad maud …]

The first rows compare CUAD's conversion with a simple pipeline (pypdf, one regular expression per quote) in the same
run; `bench.locate` analyses that comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pypdf import PdfReader

from bench._table import ROOT, find_data_folder, print_table
from bench.locate import load, matches_expression, time_work
from exhibit.runtime.command import guarded

SOURCES = {
    "cuad": "cuad/CUAD_v1",
    "contractnli": "contractnli/contract-nli",
    "maud": "maud/maud-main",
    "privacyqa": "privacyqa",
    "cpr": "cpr",
    "legalbenchrag": "legalbenchrag",
    "acord": "acord",
}
"""The place of each benchmark in the real data; without it, samples/NAME is used."""
SAMPLES_ONLY = ("table", "web")


@dataclass(frozen=True)
class Conversion:
    """The measurements of one conversion, taken from outside its process."""

    seconds: float
    peak: int
    info: dict[str, dict[str, int]]


def convert(name: str, source: Path, jobs: int, *flags: str) -> Conversion | str:
    """Run a converter in a separate process; return its measurements, or its error."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        out = Path(folder) / "out" / name
        command = [sys.executable, "-m", f"converters.{name}", "--source", str(source), "--out", str(out)]
        command += ["--jobs", str(jobs), *flags]
        environment = {**os.environ, "EXHIBIT_CACHE": f"{folder}/cache"}
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        peak = _watch(process)
        error = process.communicate()[1]
        if process.returncode:
            return error.strip().splitlines()[-1] if error.strip() else f"exit {process.returncode}"
        return Conversion(
            time.perf_counter() - started, peak(), json.loads((out / "bundle.json").read_text(encoding="utf-8"))
        )


def _watch(process: subprocess.Popen[str]) -> Callable[[], int]:
    """Start to sample the memory of a process and its children; return a function that returns the peak so far."""
    highest = [0]

    def sample() -> None:
        while process.poll() is None:
            highest[0] = max(highest[0], measure_tree_memory(process.pid))
            time.sleep(0.2)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    return lambda: highest[0]


def measure_tree_memory(root: int) -> int:
    """Return the bytes that a process and its descendants hold; shared pages count once (Linux: PSS)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    tree = {root}
    for _ in range(6):
        tree |= {child for child, parent in parents.items() if parent in tree}
    total = 0
    for process in tree:
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(rollup.partition("Pss:")[2].split()[0]) * 1024
        except (OSError, IndexError, ValueError):
            continue
    return total


def source_of(name: str) -> tuple[Path, str]:
    """Return the path of a benchmark's source, and the word `real` or `sample`."""
    data = find_data_folder()
    if data is not None and name in SOURCES and (data / SOURCES[name]).exists():
        return data / SOURCES[name], "real"
    return ROOT / "samples" / name, "sample"


@contextmanager
def serve_site(folder: Path) -> Iterator[Path]:
    """Serve the sample web site on localhost; yield the path of a file that lists the URLs of its pages."""
    handler = partial(_Quiet, directory=str(folder / "site"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = sorted(path.relative_to(folder / "site") for path in (folder / "site").rglob("*.html"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("".join(f"http://127.0.0.1:{server.server_port}/{page.as_posix()}\n" for page in pages))
        file.flush()
        yield Path(file.name)
    server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Suppress the log lines of the server."""


def measure_row(name: str, jobs: int) -> list[object]:
    """Convert one benchmark and return its row of the printed table: counts, located gold, time and memory.

    If the conversion fails, the row has the error message instead of the figures.
    """
    source, which = source_of(name)
    if name == "web":
        with serve_site(source) as urls:
            run = convert(name, urls, jobs, "--allow-private", "--delay", "0")
    else:
        run = convert(name, source, jobs)
    if isinstance(run, str):
        return [name, which, run[:60], "", "", "", "", ""]
    counts = run.info["counts"]
    located: dict[str, int] = counts["located"]  # type: ignore[assignment]
    quotes = sum(located.values())
    share = f"{100 * (1 - located['absent'] / quotes):.2f}%" if quotes else "none"
    return [
        name, which, counts["documents"], counts["questions"], share,
        f"{run.seconds:.1f}", f"{counts['documents'] / run.seconds:.1f}", f"{run.peak >> 20}",
    ]  # fmt: skip


def search_simply(root: Path, limit: int) -> tuple[int, int, float]:
    """Search CUAD's quotes with a simple pipeline: pypdf, and one regular expression per quote.

    Return the number of matched quotes, the number of all quotes, and the seconds.
    """
    contracts = load(root, limit)

    def search_quotes() -> int:
        located = 0
        for contract in contracts:
            text = "\n".join(page.extract_text() for page in PdfReader(contract.pdf).pages)
            located += sum(matches_expression(quote, text) for quote in contract.quotes)
        return located

    located, seconds = time_work(search_quotes)
    return located, sum(len(contract.quotes) for contract in contracts), seconds


def compare_cuad(jobs: int, limit: int) -> None:
    """Print a table that compares CUAD's conversion with a simple search: quotes found, and seconds.

    The simple search only matches a regular expression for each quote in pypdf's text. The conversion also
    copies files, writes the card and validates the bundle.
    """
    source, _ = source_of("cuad")
    root = source if (source / "master_clauses.csv").is_file() else source / "CUAD_v1"
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        flags = ["--source", str(root), "--out", f"{folder}/cuad", "--max-documents", str(limit), "--jobs", str(jobs)]
        command = [sys.executable, "-m", "converters.cuad", *flags, "--keep-ambiguous"]
        _, seconds = time_work(lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True))
        counts = json.loads((Path(folder) / "cuad" / "bundle.json").read_text(encoding="utf-8"))["counts"]
    matched, quotes, slow = search_simply(root, limit)
    located = counts["contexts"] - counts["located"]["absent"]
    print_table(
        f"CUAD, the first {counts['documents']} contracts",
        ["", "quotes found", "share", "seconds", "ratio"],
        [
            ["pypdf + re, search alone, one process", matched, f"{100 * matched / quotes:.1f}%", f"{slow:.1f}", "1.0"],
            [
                f"converters.cuad --jobs {jobs}",
                located,
                f"{100 * located / counts['contexts']:.2f}%",
                f"{seconds:.1f}",
                f"{slow / seconds:.1f} x",
            ],
        ],
    )


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Measure the time and memory of the named converters, or of all converters, and print them in a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.convert", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*SOURCES, *SAMPLES_ONLY])}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--contracts", type=int, default=40, metavar="N", help="contracts in the comparison (40)")
    options = parser.parse_args(argv)
    names = options.names or [*SOURCES, *SAMPLES_ONLY]
    if "cuad" in names:
        compare_cuad(options.jobs, options.contracts)
    head = ["converter", "source", "documents", "questions", "located", "seconds", "docs/s", "peak MB"]
    print_table(f"Conversions, --jobs {options.jobs}", head, [measure_row(name, options.jobs) for name in names])
    return 0


if __name__ == "__main__":
    sys.exit(main())
