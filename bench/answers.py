"""Measures the speed of the built-in pipeline in questions per second, from a bundle's questions to its replies.

    python -m bench.answers BUNDLE [--questions 1000] [--preset routed] [--rounds 3]

The index is built or found, and every question is embedded, before the clock starts: the time is that of retrieval and
of the extractive answer, in this process and its workers. The best of the rounds counts. CPU time is that of all
processes together, and depends less on other programs. To compare two versions, run both alternately.
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
    for number in range(options.rounds + 1):  # the first round starts workers and computes vectors
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
