"""One process that evaluates again and again: `python -m tests.campaign.endurance --minutes 20`.

Memory, open files, child processes and threads are counted after each evaluation. The counts in the last
tenth of the evaluations must not exceed those in the second tenth.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from evaluate_rag import main as evaluate
from exhibit.engine.limits import list_programs
from tests.rag.bundles import write_bundle

_SLACK = 1.1
"""How much more memory the last tenth may take than the second: allocators keep what they once had."""


class Look(NamedTuple):
    """The resources that this process uses at one moment."""

    megabytes: int
    files: int
    processes: int
    threads: int


def look() -> Look:
    """Return the resources that this process uses now, after a garbage collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    megabytes = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a listing of links, none of which is followed
    return Look(megabytes, files, len(list_programs(os.getpid())), threading.active_count())


def once(folder: Path, number: int) -> None:
    """Index and evaluate a small bundle in worker processes, with an empty cache."""
    for name in ("results", "cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    os.environ["EXHIBIT_CACHE"] = str(folder / "cache")
    flags = ["--embedder", "hashing", "--jobs", "2", "--run-name", f"r{number}", "--report-cases", "2"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = evaluate(["--dataset-paths", str(folder / "supply"), "--output-dir", str(folder / "results"), *flags])
    if code != 0:
        raise SystemExit(f"evaluation {number}: exit {code}")


def endure(minutes: float) -> list[Look]:
    """Evaluate for a number of minutes; return the resources in use after each evaluation."""
    looks: list[Look] = []
    ends = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder:
        write_bundle(Path(folder) / "supply")
        while time.monotonic() < ends:
            once(Path(folder), len(looks))
            looks.append(look())
    return looks


def grown(looks: list[Look]) -> list[str]:
    """Return a line for each resource that grew between the second and the last tenth of the evaluations."""
    tenth = max(1, len(looks) // 10)
    before, after = looks[tenth : 2 * tenth] or looks[:1], looks[-tenth:]
    faults = []
    for name in Look._fields:
        first, last = max(getattr(one, name) for one in before), max(getattr(one, name) for one in after)
        if last > first * (_SLACK if name == "megabytes" else 1):
            faults.append(f"{name}: {first} to {last}")
    return faults


def main(argv: list[str] | None = None) -> int:
    """Evaluate for `--minutes` minutes and print the resources in use; return 1 if any of them grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.endurance", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    began = time.monotonic()
    looks = endure(parser.parse_args(argv).minutes)
    tenth = max(1, len(looks) // 10)
    print(f"{len(looks)} evaluations in {(time.monotonic() - began) / 60:.1f} minutes")
    for name, one in (("first", looks[0]), ("after a tenth", looks[min(tenth, len(looks) - 1)]), ("last", looks[-1])):
        print(f"{name}: {one}")
    faults = grown(looks)
    print("\n".join(faults) or "nothing grew")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
