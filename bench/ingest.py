"""Compares the ingestion of this checkout with that of another one, by processor time, on the same documents.

    python -m bench.ingest --source FOLDER --before ../exhibit-of-last-week [--presets routed] [--every 8]
    python -m bench.ingest --parts --before ../exhibit-of-last-week --rounds 3    all parts except embedding

The other checkout runs the default preset, this one each of `--presets`, alternately. Every run has its own process and
an empty cache of vectors; graphs and tables are made before the clock starts. Processor time counts all processes, and
hardly depends on other programs. `--every N` takes every Nth document.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench._table import ROOT, corpus_folder, print_table
from exhibit.rag.config import DEFAULT
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

_CHILD = """
import json, resource, sys, time
from pathlib import Path

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

if __name__ == "__main__":
    sys.path.insert(0, "")
    from exhibit.rag.config import Config
    from exhibit.rag.pipeline import Pipeline
    source, every, preset, folder = sys.argv[1:]
    paths = sorted(path for path in Path(source).rglob("*") if path.is_file())[:: int(every)]
    pipeline = Pipeline(Config.preset(preset), cache=Path(folder) / "cache")
    pipeline.embedder.embed(["This Agreement is made between the parties."], role="passage")
    started, before = time.perf_counter(), spent()
    report = pipeline.index(paths, Path(folder) / "index")
    told = [report.documents, report.chunks, time.perf_counter() - started, spent() - before]
    print(json.dumps(told))
"""


_PARTS = """
import json, sys, time
from pathlib import Path

def time_calls(module, name, seconds):
    inner = getattr(module, name)

    def counted(*arguments, **options):
        started = time.process_time()
        result = inner(*arguments, **options)
        seconds[name] = seconds.get(name, 0.0) + time.process_time() - started
        return result

    setattr(module, name, counted)

if __name__ == "__main__":
    sys.path.insert(0, "")
    import exhibit.rag.ingest
    from exhibit.rag.config import Config
    source, every, preset, folder = sys.argv[1:]
    seconds = {}
    for name in ("read_structure", "read_profile", "read_words"):
        time_calls(exhibit.rag.ingest, name, seconds)
    work = exhibit.rag.ingest.Preparation(Config.preset(preset))
    for path in sorted(path for path in Path(source).rglob("*") if path.is_file())[:: int(every)]:
        work(path)
    print(json.dumps(seconds))
"""


class Ingested(NamedTuple):
    """The size of an ingestion, and its time."""

    documents: int
    chunks: int
    seconds: float
    processor: float


def run(checkout: Path, source: Path, preset: str, *, every: int) -> Ingested:
    """Index a folder's documents by the code of a checkout, in a separate process."""
    return Ingested(*_run_code(_CHILD, checkout, source, preset, every=every))


def run_parts(checkout: Path, source: Path, preset: str, *, every: int) -> dict[str, float]:
    """Return the processor seconds that a checkout's code takes for each part of ingestion except embedding."""
    seconds: dict[str, float] = _run_code(_PARTS, checkout, source, preset, every=every)
    return seconds | {"all three": sum(seconds.values())}


def _run_code(code: str, checkout: Path, source: Path, preset: str, *, every: int) -> Any:
    if not (checkout / "exhibit").is_dir():  # otherwise the installed code would be measured
        raise ToolkitError(f"{checkout}: {preset} failed: no folder exhibit/ here; name a checkout")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "child.py"  # a file, since workers import it again
        script.write_text(code, encoding="utf-8")
        command = [sys.executable, str(script), str(source.resolve()), str(every), preset, folder]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolkitError(f"{checkout}: {preset} failed: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare_parts(before: Path, source: Path, *, every: int, rounds: int) -> list[list[str]]:
    """Return a row for each part: the least processor seconds of both checkouts, and their ratio."""
    turns = [[run_parts(where, source, DEFAULT, every=every) for where in (before, ROOT)] for _ in range(rounds)]
    rows = []
    for part in turns[0][0]:
        old, new = (min(turn[which][part] for turn in turns) for which in (0, 1))
        rows.append([part, f"{old:.2f}", f"{new:.2f}", f"{old / new:.2f}"])
    return rows


def best(runs: Sequence[Ingested]) -> Ingested:
    """Return the run with the least processor time; other programs caused the rest."""
    return min(runs, key=lambda one: one.processor)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run all alternately, and print the table."""
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.ingest",
        description=what,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", type=Path, help="a folder of documents (default: LegalBench-RAG-mini)")
    parser.add_argument("--before", type=Path, default=ROOT, metavar="DIR", help="another checkout (default: this one)")
    parser.add_argument("--presets", default=DEFAULT, help=f"presets of this checkout (default: {DEFAULT})")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth document (default: 1)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, of which the best counts (default: 1)")
    parser.add_argument(
        "--parts", action="store_true", help="measure structure, profile and words alone, in both checkouts"
    )
    options = parser.parse_args(arguments)
    source = corpus_folder(options.source)
    if options.parts:
        head = ["processor seconds", "before", "now", "times as fast"]
        print_table("Parts", head, compare_parts(options.before, source, every=options.every, rounds=options.rounds))
        return 0
    cases = [(options.before, DEFAULT), *((ROOT, preset) for preset in options.presets.split(","))]
    turns = [
        [run(where, source, preset, every=options.every) for where, preset in cases] for _ in range(options.rounds)
    ]
    fastest = [best(column) for column in zip(*turns, strict=True)]
    names = [f"{DEFAULT}, before", *options.presets.split(",")]
    rows = [
        [
            name,
            f"{one.documents:,}",
            f"{one.chunks:,}",
            f"{one.seconds:.1f}",
            f"{one.processor:.1f}",
            _times(one, fastest),
        ]
        for name, one in zip(names, fastest, strict=True)
    ]
    head = ["preset", "documents", "chunks", "seconds", "processor seconds", "times as fast, by processor time"]
    print_table("Ingest", head, rows)
    return 0


def _times(one: Ingested, fastest: Sequence[Ingested]) -> str:
    return f"{fastest[0].processor / one.processor:.1f}"


if __name__ == "__main__":
    sys.exit(main())
