"""Asking the built-in pipeline: questions a second, from a bundle's questions to replies in the journal's order.

    python -m bench.answers BUNDLE [--questions 1000] [--preset routed] [--rounds 3]

The index is built first, or found, and every question is embedded before the clock starts: what is measured is
retrieval and the extractive answer, in this process and its workers. The best of the rounds counts; CPU is that of all
processes together, which a busy machine does not change as much. Compare two versions by running both, in turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from bench._table import print_table
from bench.targets import Cost
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.rag.config import Config
from exhibit.runtime.command import guarded
from exhibit.storage.cache import cache_folder


@guarded()
def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--preset", default="routed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    [dataset], _ = load_datasets([options.bundle], Selection(limit=options.questions))
    target = open_target("builtin", TargetOptions(config=Config.preset(options.preset), cache=cache_folder()))
    target.ingest(dataset)
    rows = []
    for number in range(options.rounds + 1):  # the first brings workers and vectors
        before = Cost.until_now(began := time.perf_counter())
        failed = sum(bool(reply.error) for _, reply in target.ask(dataset, dataset.cases))
        cost = Cost.until_now(began)
        asked = len(dataset.cases)
        each = 1000 * (cost.cpu - before.cpu) / asked
        rows.append([str(number), f"{asked / cost.seconds:.0f}", f"{each:.2f}", str(failed)])
    print_table(
        f"{dataset.name}: {len(dataset.cases)} questions, {options.preset}, {os.cpu_count()} processors, "
        f"load {os.getloadavg()[0]:.0f}",
        ["round", "questions a second", "CPU ms each", "failed"],
        rows[1:],
    )
    best = max(float(row[1]) for row in rows[1:]), min(float(row[2]) for row in rows[1:])
    print(f"\nbest: {best[0]:.0f} questions a second, {best[1]:.2f} ms each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
