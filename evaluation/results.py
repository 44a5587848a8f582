"""Runs compared, and the health of the gold they are scored on.

python -m evaluation.results summary results/naive results/sac
python -m evaluation.results diff results/before results/after --fail-on-regression
python -m evaluation.results gold datasets_out/cuad
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.datasets import Dataset, Selection, load_datasets
from evaluation.records import read_run
from evaluation.statistics import Difference, Estimate, compare, summarise, summarise_run
from schemas.errors import ToolkitError
from schemas.models import HOWS

SHOWN = (
    "char_precision@1", "char_precision@8", "char_recall@8", "char_recall@64", "drm@1", "document_hit@1", "recall@10",
    "ndcg@10", "answer_f1", "abstention_accuracy", "false_refusal_rate", "statute_citation_accuracy",
    "precedent_matching", "groundedness", "relevance", "latency",
)  # fmt: skip
"""What a table shows when nothing is asked for; the files have everything."""
LOWER_IS_BETTER = ("drm@", "false_refusal_rate", "chunk_neither@", "latency", "groundedness_", "relevance_")
NEUTRAL = ("answer_length", "chunk_complementary@")
"""Neither more nor less of it is better."""
UNSURE = ("latency",)
"""Depends on the machine: worse is no regression, unless it is asked for."""


def shown_metrics(summary: Mapping[str, Estimate], asked: Sequence[str] = ()) -> list[str]:
    """Return the metrics that a table shows: those asked for, or a few that tell most."""
    if asked:
        return [name for name in summary if {name, name.partition("@")[0]} & set(asked)] or list(summary)
    return [name for name in SHOWN if name in summary] or list(summary)


def table_of(columns: Mapping[str, Mapping[str, Estimate]], metrics: Sequence[str]) -> str:
    """Return means with their intervals, a row a metric and a column a dataset or run."""
    head = ["", *columns]
    rows = [[name, *(cell(means.get(name)) for means in columns.values())] for name in metrics]
    failed = {name: max((estimate.errors for estimate in means.values()), default=0) for name, means in columns.items()}
    lines = _aligned([head, *rows])
    if any(failed.values()):
        told = ", ".join(f"{name}: {count}" for name, count in failed.items() if count)
        lines.append(f"failed questions, which are in no mean: {told}")
    return "\n".join(lines)


def cell(estimate: Estimate | None) -> str:
    """Return a mean and its interval in brackets, a dash where there is none."""
    if estimate is None or estimate.mean is None:
        return "–"
    mean = _figure(estimate.mean)
    return mean if estimate.ci95 is None else f"{mean} [{_figure(estimate.ci95[0])}, {_figure(estimate.ci95[1])}]"


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.0f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in rows]


# ---------------------------------------------------------------- two runs


def better(name: str, change: float) -> bool | None:
    """Return whether a change of a metric is for the better, None where neither way is."""
    if name.startswith(NEUTRAL):
        return None
    return change < 0 if name.startswith(LOWER_IS_BETTER) else change > 0


def is_regression(name: str, difference: Difference, asked: Sequence[str] = ()) -> bool:
    """Return whether a metric is worse by more than chance."""
    if name.startswith(UNSURE) and name not in asked:
        return False
    change = difference.mean
    return change is not None and difference.beyond_chance and better(name, change) is False


def diff_lines(differences: Mapping[str, Difference], metrics: Sequence[str]) -> list[str]:
    """Return a row a metric: before, after, the change with its interval, and an arrow where it is beyond chance."""
    rows = [["", "before", "after", "change", "n", ""]]
    for name in metrics:
        found = differences[name]
        if found.first is None or found.second is None or found.mean is None:
            rows.append([name, "–", "–", "–", "0", ""])
            continue
        ends = f" [{found.ci95[0]:+.3f}, {found.ci95[1]:+.3f}]" if found.ci95 else ""
        change = f"{found.mean:+.3f}{ends}"
        rows.append([name, _figure(found.first), _figure(found.second), change, str(found.n), _told(name, found)])
    return _aligned(rows)


def _told(name: str, found: Difference) -> str:
    change = found.mean or 0.0
    if not change:
        return "="
    arrow = "▲" if change > 0 else "▼"
    if not found.beyond_chance:
        return f"{arrow} within chance"
    good = better(name, change)
    return arrow if good is None else f"{arrow} {'better' if good else 'worse'}"


# ---------------------------------------------------------------- gold


def gold_lines(dataset: Dataset, *, listed: int) -> list[str]:
    """Return what share of a dataset's gold is located, by method, and the passages that are not."""
    worded = [
        (case, gold, dataset.found[case.id, index].how)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; return 1 on an error, or on a regression where that is asked for."""
    options = _parser().parse_args(argv)
    commands = {"summary": _summary, "diff": _diff, "gold": _gold}
    try:
        return commands[options.command](options)
    except ToolkitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _summary(options: Any) -> int:
    runs = {run.name: read_run(run) for run in options.runs}
    if len(runs) == 1:  # its datasets side by side
        [tables] = runs.values()
        columns = {**{table.name: summarise(table) for table in tables}, "ALL": summarise_run(tables)}
    else:
        columns = {name: summarise_run(tables) for name, tables in runs.items()}
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    print(table_of(columns, list(names) if options.all else shown_metrics(names, options.metrics)))
    return 0


def _diff(options: Any) -> int:
    before, after = (read_run(run) for run in options.runs)
    differences = compare(before, after)
    if not differences:
        raise ToolkitError(f"{options.runs[0]} and {options.runs[1]} have no dataset and metric in common")
    means = {name: Estimate(found.second, found.n) for name, found in differences.items()}
    names = list(differences) if options.all else shown_metrics(means, options.metrics)
    print("\n".join(diff_lines(differences, names)))
    worse = [name for name in differences if is_regression(name, differences[name], options.metrics)]
    worse = [name for name in worse if not options.metrics or name in names]
    if worse:
        print(f"\nworse beyond chance: {', '.join(worse)}")
    return 1 if worse and options.fail_on_regression else 0


def _gold(options: Any) -> int:
    datasets, warnings = load_datasets(options.datasets, Selection())
    for warning in warnings:
        print(f"note: {warning}", file=sys.stderr)
    for dataset in datasets:
        print("\n".join(gold_lines(dataset, listed=options.list)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.results", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="means with intervals: one run's datasets, or runs side by side")
    summary.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    diff = commands.add_parser("diff", help="how the second run differs from the first, paired by question")
    diff.add_argument("runs", nargs=2, type=Path, metavar="RUN")
    diff.add_argument("--fail-on-regression", action="store_true", help="exit 1 when a metric is worse beyond chance")
    for command in (summary, diff):
        command.add_argument("--metrics", type=lambda text: text.split(","), default=[], metavar="NAME,…")
        command.add_argument("--all", action="store_true", help="every metric")
    gold = commands.add_parser("gold", help="what share of a bundle's gold is located, by method; lists the rest")
    gold.add_argument("datasets", nargs="+", metavar="DIR")
    gold.add_argument("--list", type=int, default=20, metavar="N", help="passages listed (default: 20)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
