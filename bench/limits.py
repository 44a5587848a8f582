"""What the limits on reading cost where nothing is wrong: the same PDFs with them and without, in turns, in one run.

    python -m bench.limits

Processor time, so that other work on the machine counts little; of several turns the quickest of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench._table import cuad_folder, print_table
from exhibit.engine import Limits
from exhibit.engine.limits import serve_within
from exhibit.evidence import read_document
from exhibit.runtime.command import guarded


def read_all(paths: list[Path], limits: Limits) -> float:
    """Return the processor time of reading the files one after another, as a worker with these limits does."""
    serve_within(limits)
    began = time.process_time()
    for path in paths:
        read_document(path)
    return time.process_time() - began


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.limits", description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=40, help="PDFs to read (default: 40)")
    parser.add_argument("--turns", type=int, default=6, help="how often each way (default: 6)")
    options = parser.parse_args(argv)
    files = sorted(cuad_folder(None).rglob("*"))
    paths = [path for path in files if path.suffix.lower() == ".pdf"][: options.limit]
    free, limited = Limits(None, None), Limits()
    read_all(paths, free)  # libraries are loaded
    turns = [(read_all(paths, free), read_all(paths, limited)) for _ in range(options.turns)]
    without, within = (min(turn[way] for turn in turns) for way in (0, 1))
    rows = [
        ["without limits", f"{without:.2f} s", "1.00"],
        ["within the usual limits", f"{within:.2f} s", f"{within / without:.2f}"],
    ]
    print_table(f"{len(paths)} PDFs of CUAD read", ["", "processor time", "ratio"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
