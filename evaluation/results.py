"""Runs compared, and the health of the gold they are scored on.

python -m evaluation.results summary results/naive results/sac
python -m evaluation.results diff results/before results/after --fail-on-regression
python -m evaluation.results report results/after
python -m evaluation.results compare results/before results/after
python -m evaluation.results gold datasets_out/cuad
python -m evaluation.results index results --fail-on regression
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.report.verbs import add_commands
from exhibit.evaluation.soundness import explained, folders_in
from exhibit.evaluation.statistics import compare, overlap, summarise, summarise_run
from exhibit.evaluation.terminal import ALL, diff_lines, is_regression, shown_metrics, table_of
from exhibit.evaluation.trend.index import add_arguments, index
from exhibit.schemas.command import Parser, guarded, print_note, spelled
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import HOWS

# ---------------------------------------------------------------- gold


def gold_lines(dataset: Dataset, *, listed: int) -> list[str]:
    """Return what share of a dataset's gold is located, by method, and the passages that are not."""
    worded = [
        (case, gold, dataset.matches[case.id, index].how)
        for case in dataset.cases
        for index, gold in enumerate(case.gold)
        if gold.text and gold.text.strip()
    ]
    counts = Counter(how for _, _, how in worded)
    located = len(worded) - counts["absent"]
    share = f" ({100 * located / len(worded):.2f}%)" if worded else ""
    lines = [f"{dataset.name}: {located} of {len(worded)} gold passages located{share}"]
    lines += [f"  {how:<7} {counts[how]}" for how in HOWS if counts[how]]
    names = sum(len(case.gold) for case in dataset.cases) - len(worded)
    lines += [f"  {names} name a file and quote no words"] if names else []
    absent = [(case, gold) for case, gold, how in worded if how == "absent"]
    for case, gold in absent[:listed]:
        words = " ".join((gold.text or "").split())
        lines.append(f"  not located: {case.id}, {gold.filename}: {words if len(words) <= 100 else words[:99] + '…'}")
    return lines + ([f"  … and {len(absent) - listed} more (--list)"] if len(absent) > listed else [])


# ---------------------------------------------------------------- the command


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; return 1 on an error, or on a regression where that is asked for."""
    parser, pages = _parser()
    options = parser.parse_args(argv)
    commands = {"summary": _summary, "diff": _diff, "gold": _gold, "index": index, **pages}
    with explained(folders_in(options)):
        return commands[options.command](options)


def _summary(options: Any) -> int:
    runs = {run.name: read_tables(run) for run in options.runs}
    if len(runs) == 1:  # its datasets side by side
        [tables] = runs.values()
        columns = {table.name: summarise(table) for table in tables}
        columns |= {ALL: summarise_run(tables)} if len(tables) > 1 else {}
    else:
        columns = {name: summarise_run(tables) for name, tables in runs.items()}
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    print(table_of(columns, list(names) if options.all else shown_metrics(names, options.metrics)))
    return 0


def _diff(options: Any) -> int:
    before, after = (read_tables(run) for run in options.runs)
    differences = compare(before, after)
    if not differences:
        raise ToolkitError(f"{options.runs[0]} and {options.runs[1]} have no dataset and metric in common")
    names = list(differences) if options.all else shown_metrics(differences, options.metrics)
    shared = overlap(before, after)
    print("\n".join(diff_lines(differences, names, shared)))
    worse = [name for name in differences if is_regression(name, differences[name], options.metrics)]
    worse = [name for name in worse if not options.metrics or name in names]
    if worse:
        print(f"\nworse beyond chance: {', '.join(worse)}")
    more = shared.failed_after - shared.failed_before
    if more > 0:
        print(f"\nworse: {shared.failed_after} of {shared.asked} questions failed, {more} more than before")
    return 1 if (worse or more > 0) and options.fail_on_regression else 0


def _gold(options: Any) -> int:
    datasets, warnings = load_datasets(options.datasets, Selection())
    for warning in warnings:
        print_note(warning)
    for dataset in datasets:
        print("\n".join(gold_lines(dataset, listed=options.list)))
    return 0


def _parser() -> tuple[argparse.ArgumentParser, dict[str, Callable[[Any], int]]]:
    """Return the parser, and what does the commands that other modules add to it."""
    parser = Parser(
        prog=spelled("python -m evaluation.results"),
        description=spelled(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="means with intervals: one run's datasets, or runs side by side")
    summary.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    diff = commands.add_parser("diff", help="how the second run differs from the first, paired by question")
    diff.add_argument("runs", nargs=2, type=Path, metavar="RUN")
    diff.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit 1 when a metric is worse beyond chance, or more questions failed",
    )
    for command in (summary, diff):
        command.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
        command.add_argument("--all", action="store_true", help="every metric")
    gold = commands.add_parser("gold", help="what share of a bundle's gold is located, by method; lists the rest")
    gold.add_argument("datasets", nargs="+", metavar="DIR")
    gold.add_argument("--list", type=int, default=20, metavar="N", help="passages listed (default: 20)")
    add_arguments(commands.add_parser("index", help="a page over all runs; which one made what worse, and why"))
    return parser, add_commands(commands)


if __name__ == "__main__":
    sys.exit(main())
