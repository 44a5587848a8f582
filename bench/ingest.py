"""Ingest: this checkout against another one, by processor time, in turn on the same documents.

    python -m bench.ingest --source FOLDER --before ../exhibit-of-last-week [--presets routed,fast] [--every 8]

The other checkout is asked for the default preset, this one for each of `--presets`. Every run has a process of its own
and an empty cache of vectors; graphs and tables are made before the clock starts. Processor time counts all processes,
and hardly depends on what else the machine does; `--every` takes only each so manieth document.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench._table import ROOT, corpus_folder, print_table
from rag.config import DEFAULT
from schemas.command import guarded
from schemas.errors import ToolkitError

_CHILD = """
import json, resource, sys, time
from pathlib import Path

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

if __name__ == "__main__":
    sys.path.insert(0, "")
    from rag.config import Config
    from rag.pipeline import Pipeline
    source, every, preset, folder = sys.argv[1:]
    paths = sorted(path for path in Path(source).rglob("*") if path.is_file())[:: int(every)]
    pipeline = Pipeline(Config.preset(preset), cache=Path(folder) / "cache")
    pipeline.embedder.embed(["This Agreement is made between the parties."], role="passage")
    started, before = time.perf_counter(), spent()
    report = pipeline.index(paths, Path(folder) / "index")
    told = [report.documents, report.chunks, time.perf_counter() - started, spent() - before]
    print(json.dumps(told))
"""


class Ingested(NamedTuple):
    """What an ingest was of, and what it took."""

    documents: int
    chunks: int
    seconds: float
    processor: float


def run(checkout: Path, source: Path, preset: str, *, every: int) -> Ingested:
    """Index a folder's documents by the code of a checkout, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "child.py"  # workers import it again, which a string could not be
        script.write_text(_CHILD, encoding="utf-8")
        command = [sys.executable, str(script), str(source.resolve()), str(every), preset, folder]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolkitError(f"{checkout}: {preset} failed: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    return Ingested(*json.loads(done.stdout.splitlines()[-1]))


def best(runs: Sequence[Ingested]) -> Ingested:
    """Return the run that took least processor time: what is over it is the machine's doing."""
    return min(runs, key=lambda one: one.processor)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run each in turn and print the table."""
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.ingest",
        description=what,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", type=Path, help="a folder of documents (default: LegalBench-RAG-mini)")
    parser.add_argument("--before", type=Path, default=ROOT, metavar="DIR", help="another checkout (default: this one)")
    parser.add_argument("--presets", default=f"{DEFAULT},fast", help=f"of this checkout (default: {DEFAULT},fast)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth document (default: 1)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, of which the best counts (default: 1)")
    options = parser.parse_args(arguments)
    source = corpus_folder(options.source)
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
