"""Measures how much of the scoring time is spent on finding the stage at which each gold passage was lost.

    python -m bench.stage_cost RUN [--times 3]

RUN is a run of the built-in pipeline, such as that of `exhibit demo`. Its replies are read from its
journal, and its index from the cache. The replies are scored again, alternately with and without the
stages. The times are processor times, and the ratio is that of the shortest times.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from bench._table import print_table
from exhibit.evaluation import scoring
from exhibit.evaluation.case_stages import PreparedDocuments
from exhibit.evaluation.datasets import Dataset, load_datasets
from exhibit.evaluation.journal import JOURNAL
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.system_documents import TargetDocuments
from exhibit.evaluation.targets.builtin import Builtin
from exhibit.runtime.command import guarded
from exhibit.schemas.run_folder import RunFolder


@contextmanager
def without_stages() -> Iterator[None]:
    """Switch off, in the `with` block, the part of the scoring that finds the stage at which gold is lost."""
    with patch.object(scoring, "stages_of", lambda *_: []), patch.object(scoring, "ceilings_of", lambda _: {}):
        yield


def score_once(place: Path, dataset: Dataset, target: Builtin, prepared: PreparedDocuments | None) -> float:
    """Return the processor seconds of scoring a dataset's stored replies and of writing the result files."""
    with tempfile.TemporaryDirectory() as scratch:
        # the original journal is used, not a copy: it is only read, since no question is left to ask
        replies = scoring.ask(place, dataset, target)
        options = Options(ks=(1, 2, 4, 8, 16, 32, 64))
        started = time.process_time()
        told = scoring.Scoring(options, (), "cost", prepared)
        scored = scoring.measure_rounds(Path(scratch), dataset, [replies], told)
        scored.write(scored.table(lambda _: None), failed=None)
        return time.process_time() - started


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the processor time of scoring a run, with and without finding the stage that loses each gold passage.

    Also print the ratio of the two times.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.stage_cost", description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="a finished run of the built-in pipeline")
    parser.add_argument("--times", type=int, default=3, help="the number of measurements of each (default: 3)")
    options = parser.parse_args(argv)
    run = RunFolder(options.run)
    paths = [entry.path for entry in run.config.datasets.values()]
    asked = {"dataset_paths": paths, "preset": run.settings["preset"], "file_type": ["pdf"]}
    settings = parse_settings(asked)
    datasets, _ = load_datasets(settings.dataset_paths, settings.selection)
    target = Builtin(settings.make_target_options())
    least = {True: 0.0, False: 0.0}
    for dataset in (one for one in datasets if (options.run / one.name / JOURNAL).is_file()):
        target.ingest(dataset)
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(2 * options.times):
            with_stages = bool(number % 2)
            prepared = TargetDocuments(target.text, target.chunks) if with_stages else None
            with nullcontext() if with_stages else without_stages():
                times[with_stages].append(score_once(options.run / dataset.name, dataset, target, prepared))
        for with_stages, taken in times.items():
            least[with_stages] += min(taken)
    rows = [["without the stages", f"{least[False]:.2f}", "1.00"]]
    rows.append(["with the stages", f"{least[True]:.2f}", f"{least[True] / least[False]:.2f}"])
    print_table("Scoring, seconds of processor time", ["", "seconds", "ratio"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
