"""Runs compared, and the health of the gold they are scored on.

python -m evaluation.results summary results/naive results/sac
python -m evaluation.results diff results/before results/after --fail-on-regression
python -m evaluation.results report results/after
python -m evaluation.results compare results/naive results/sac results/routed
python -m evaluation.results card results/after --model me/my-rag
python -m evaluation.results gold datasets_out/cuad
python -m evaluation.results index results --fail-on regression
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exhibit.engine import positive
from exhibit.engine.limits import add_limit_arguments, limits_from
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics import about, split_requests
from exhibit.evaluation.records import read_tables, summary_json
from exhibit.evaluation.statistics import compare, overlap, summarise, summarise_run
from exhibit.evaluation.terminal import ALL, diff_lines, is_regression, shown_metrics, table_of
from exhibit.schemas.command import Parser, add_json, guarded, print_note, print_results, spelled
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import HOWS
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.comparison import NAME, write_comparison
from exhibit.viewer.drawing import PAGES
from exhibit.viewer.export import only, records, write_table
from exhibit.viewer.page import languages
from exhibit.viewer.report import write_report
from exhibit.viewer.trend.index import add_arguments, index
from exhibit.viewer.view import dataset_roots

_SINGLE_PAGES = 300
"""Pages drawn for a single file unless told otherwise: about what fits."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; return 1 on an error, or on a regression where that is asked for."""
    options = _parser().parse_args(argv)
    run: int = options.run_command(options)
    return run


def _summary(options: Any) -> int:
    runs = {run.name: read_tables(run) for run in options.runs}
    if len(runs) == 1:  # its datasets side by side
        [tables] = runs.values()
        columns = {table.name: summarise(table) for table in tables}
        columns |= {ALL: summarise_run(tables)} if len(tables) > 1 else {}
    else:
        columns = {name: summarise_run(tables) for name, tables in runs.items()}
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    table = table_of(columns, list(names) if options.all else shown_metrics(names, options.metrics))
    print_results({name: summary_json(means) for name, means in columns.items()}, table, as_json=options.json)
    return 0


def _diff(options: Any) -> int:
    before, after = (read_tables(run) for run in options.runs)
    differences = compare(before, after)
    if not differences:
        raise ToolkitError(f"{options.runs[0]} and {options.runs[1]} have no dataset and metric in common")
    names = list(differences) if options.all else shown_metrics(differences, options.metrics)
    shared = overlap(before, after)
    lines = diff_lines(differences, names, shared)
    worse = [name for name in differences if is_regression(name, differences[name], options.metrics)]
    worse = [name for name in worse if not options.metrics or name in names]
    if worse:
        lines += ["", f"worse beyond chance: {', '.join(worse)}"]
    more = shared.failed_after - shared.failed_before
    if more > 0:
        lines += ["", f"worse: {shared.failed_after} of {shared.asked} questions failed, {more} more than before"]
    metrics = {name: {**asdict(one), "change": one.mean} for name, one in differences.items()}
    record = {"metrics": metrics, "questions": asdict(shared), "worse": worse}
    print_results(record, "\n".join(lines), as_json=options.json)
    return 1 if (worse or more > 0) and options.fail_on_regression else 0


def _pages(options: Any) -> int:
    """Write the page of one run or of several, or the list of its questions as a file."""
    if options.export:
        return _export(options)
    how: dict[str, Any] = {"single_file": options.single_file, "jobs": options.jobs, "say": print_note}
    usual = _SINGLE_PAGES if options.single_file else PAGES
    how |= {"pages": {None: usual, "all": None, "none": 0}.get(options.pages, options.pages)}
    how |= {"limits": limits_from(options)}
    how |= {"language": options.language}
    if options.dataset_paths:
        how["datasets"] = dataset_roots(list(map(RunFolder, options.runs)), given=options.dataset_paths, say=print_note)
    if options.command == "report":
        page = write_report(options.runs[0], **how)
    else:
        if len(options.runs) < 2:
            raise ToolkitError(f"compare {options.runs[0]}: with what? give two runs or more")
        page = write_comparison(options.runs, out=options.out, **how)
    print_results({"page": page}, str(page), as_json=options.json)
    return 0


def _export(options: Any) -> int:
    wanted = {}
    for given in options.only:
        name, equals, value = given.partition("=")
        if not equals:
            raise ToolkitError(f"--only {given}: must be NAME=VALUE, as verdict=failed")
        wanted[name] = value
    rows = records([RunFolder(run) for run in options.runs])
    count = write_table(only(rows, wanted), options.export)
    if options.json:
        print_results({"file": options.export, "questions": count}, "", as_json=True)
    print_note(f"{options.export}: {count:,} questions")
    return 0


def _card(options: Any) -> int:
    """Print a run's means as the head of a model's or a Space's card, where the Hub looks for results."""
    from huggingface_hub import EvalResult, ModelCardData  # half a second to load

    run = RunFolder(options.runs[0])
    results = []
    for table in read_tables(run):
        means = summarise(table)
        for metric in shown_metrics(means, options.metrics):
            one = means[metric]
            given = {"n": one.n, "failed": one.errors, **({"ci95": list(one.ci95)} if one.ci95 else {})}
            told = EvalResult(
                task_type="question-answering",
                dataset_type=(run.config.datasets[table.name].origin or table.name).removeprefix("hf://"),
                dataset_name=table.name,
                metric_type=metric,
                metric_name=about(metric).title,
                metric_value=round(one.mean or 0.0, 4),
                metric_args=given,
            )
            results += [told] if one.mean is not None else []
    card = ModelCardData(model_name=options.model or run.name, eval_results=results)
    print(f"---\n{card.to_yaml()}\n---")
    return 0


def _gold(options: Any) -> int:
    datasets, warnings = load_datasets(options.datasets, Selection())
    for warning in warnings:
        print_note(warning)
    lines = [line for dataset in datasets for line in gold_lines(dataset, listed=options.list)]
    hows = {one.name: Counter(match.how or "no words" for match in one.matches.values()) for one in datasets}
    print_results(hows, "\n".join(lines), as_json=options.json)
    return 0


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


# ---------------------------------------------------------------- flags


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=spelled("python -m evaluation.results"),
        description=spelled(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, does: Any, told: str, runs: int | str | None = "+") -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=told)
        command.set_defaults(run_command=does)
        add_json(command)
        if runs:
            command.add_argument("runs", nargs=runs, type=Path, metavar="RUN")
        return command

    summary = add("summary", _summary, "means with intervals: one run's datasets, or runs side by side")
    diff = add("diff", _diff, "how the second run differs from the first, paired by question", 2)
    diff.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit 1 when a metric is worse beyond chance, or more questions failed",
    )
    for command in (summary, diff):
        command.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
        command.add_argument("--all", action="store_true", help="every metric")
    report = add("report", _pages, "draw the report of a run anew, from its results folder", 1)
    side_by_side = add("compare", _pages, "any number of runs side by side: metrics, and every question by system")
    side_by_side.add_argument("--out", type=Path, metavar="FILE", help=f"default: {NAME} in the last run's folder")
    for command in (report, side_by_side):
        _add_page_flags(command)
    gold = add("gold", _gold, "what share of a bundle's gold is located, by method; lists the rest", None)
    gold.add_argument("datasets", nargs="+", metavar="DIR")
    gold.add_argument("--list", type=int, default=20, metavar="N", help="passages listed (default: 20)")
    card = add("card", _card, "means as the head of a model's card on the Hugging Face Hub (model-index)", 1)
    card.add_argument("--model", metavar="NAME", help="what was tested (default: the run's name)")
    card.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
    add_arguments(add("index", index, "a page over all runs; which one made what worse, and why", None))
    return parser


def _add_page_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--pages",
        type=lambda text: text if text in ("all", "none") else positive(text),
        metavar="N",
        help=f"pages drawn, failures first: N, all or none (default: {PAGES})",
    )
    command.add_argument("--language", choices=languages(), default="en", help="of the page's own words (default: en)")
    command.add_argument("--single-file", action="store_true", help="one HTML file with what fits, and no folder")
    command.add_argument(
        "--dataset-paths", nargs="+", metavar="DIR", help="bundles, where they are no longer where the run had them"
    )
    command.add_argument(
        "--export", type=Path, metavar="FILE", help="write the list to FILE.csv, .jsonl or .parquet, and no page"
    )
    command.add_argument(
        "--only", action="append", default=[], metavar="NAME=VALUE", help="of --export: rows with this; repeat"
    )
    command.add_argument("--jobs", type=positive, metavar="N", help="workers (default: all processors)")
    add_limit_arguments(command)


if __name__ == "__main__":
    sys.exit(main())
