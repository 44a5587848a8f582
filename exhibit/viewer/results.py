"""Summarise, compare and follow runs.

exhibit results summary results/naive results/sac
exhibit results diff results/before results/after --fail-on-regression
exhibit results report results/after
exhibit results compare results/naive results/sac results/routed
exhibit results index results --fail-on regression
exhibit results export results/after --to eval-results --model my-firm/contract-rag
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exhibit.evaluation import compare as regression
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.records import make_summary_json
from exhibit.evaluation.result_exports import FORMS, export_results
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.stages import count_losses, describe_losses
from exhibit.evaluation.text_tables import ALL, choose_metrics, diff_lines, format_outcome_counts, table_of
from exhibit.runtime.command import (
    Parser,
    add_json,
    guarded,
    measure_text_width,
    parse_positive,
    print_note,
    print_results,
    rename_commands,
)
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer import compare as comparison
from exhibit.viewer import trend
from exhibit.viewer.drawing import MAX_PAGES
from exhibit.viewer.report import find_dataset_roots, write_report


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Return 1 for an error or, with --fail-on-regression, for a regression, and 4 for a failed check of `index`."""
    options = _make_parser().parse_args(argv)
    code: int = options.work(options)
    return code


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=rename_commands("exhibit results"),
        description=rename_commands(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def add_command(name: str, work: Callable[[Any], int], help: str, **positional: Any) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help)
        command.set_defaults(work=work)
        name_of_runs = "folder" if name == "index" else "runs"
        command.add_argument(name_of_runs, **{"type": Path, "metavar": "RUN", **positional})
        if name in ("summary", "diff", "index"):
            command.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
            command.add_argument("--all", action="store_true", help="every metric")
        if name in ("diff", "index"):
            what = "the largest fall that is not a regression if there are too few documents for an interval: absolute "
            what += f"for a share, relative for other units (default: {regression.MAX_FALL})"
            command.add_argument("--max-fall", type=float, default=regression.MAX_FALL, metavar="SIZE", help=what)
        if name in ("report", "compare"):
            _add_page_flags(command)
        add_json(command)
        return command

    add_command("summary", _print_summary, "means with intervals: one run's datasets, or runs side by side", nargs="+")
    diff = add_command("diff", _print_diff, "how the second run differs from the first, paired by question", nargs=2)
    what = "exit 1 when a metric is worse beyond chance, or more questions failed"
    diff.add_argument("--fail-on-regression", action="store_true", help=what)
    add_command("report", _write_pages, "write the report of a run again, from its results folder", nargs=1)
    what = "any number of runs side by side: metrics, and every question by system"
    compared = add_command("compare", _write_pages, what, nargs="+")
    what = f"default: {comparison.NAME} in the last run's folder"
    compared.add_argument("--out", type=Path, metavar="FILE", help=what)
    exported = add_command(
        "export", _export, "results for a model's repository on the Hub, or Every Eval Ever", nargs=1
    )
    exported.add_argument("--to", choices=FORMS, required=True, help="the form")
    exported.add_argument("--model", required=True, metavar="OWNER/NAME", help="the name of the system that was tested")
    exported.add_argument("--dataset", default="", metavar="OWNER/NAME", help="the bundle's repository on the Hub")
    exported.add_argument("--out", type=Path, default=Path("exported"), metavar="DIR", help="default: exported")
    what = "a page over all runs, with the run that made a metric worse, and why"
    index = add_command("index", trend.index, what, nargs="?", default=Path("results"), metavar="RESULTS_DIR")
    add = index.add_argument
    add("--out", type=Path, metavar="FILE", help=f"the page (default: RESULTS_DIR/{trend.NAME})")
    what = "Good / Acceptable / Poor by metric: a TOML file, or seed: the seed project's expected figures"
    add("--bands", type=Path, metavar="FILE", help=what)
    add("--where", action="append", default=[], metavar="NAME=VALUE", help="only runs with this setting")
    what = f"exit {trend.GATE} on: regression (the newest run is still worse), band (a mean is poor), or a true "
    what += "comparison, such as 'cuad:char_recall@8 < 0.6'; repeat"
    add("--fail-on", action="append", type=trend.parse_gate, default=[], metavar="WHAT", help=what)
    return parser


def _add_page_flags(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    what = f"pages drawn, failures first: N, all or none (default: {MAX_PAGES})"
    add("--pages", type=_parse_page_limit, metavar="N", help=what)
    what = "the folders of the bundles, if they were moved after the run"
    add("--dataset-paths", nargs="+", metavar="DIR", help=what)


def _parse_page_limit(text: str) -> int | str:
    return text if text in ("all", "none") else parse_positive(text)


def _print_summary(options: Any) -> int:
    runs = list(map(RunResults, options.runs))
    if len(runs) == 1:  # the datasets of one run side by side
        columns = {name: runs[0].means_of(name) for name in runs[0].datasets}
        columns |= {ALL: runs[0].means} if len(columns) > 1 else {}
    else:
        columns = {run.name: run.means for run in runs}
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    chosen = list(names) if options.all else choose_metrics(names, options.metrics)
    lines = [table_of(columns, chosen, width=measure_text_width()), ""]
    lines += [f"{run.name}: {describe_result(run.tables.values())}" for run in runs]
    record = {name: make_summary_json(means) for name, means in columns.items()}
    print_results(record, "\n".join(lines), as_json=options.json)
    return 0


def _print_diff(options: Any) -> int:
    runs = [RunResults(run) for run in options.runs]
    compared = comparison.compare_two(runs[0], runs[1], options.metrics, max_fall=options.max_fall)
    differences, shared, worse = compared.differences, compared.overlap, compared.regressions
    names = list(differences) if options.all else choose_metrics(differences, options.metrics)
    counts = [regression.count_outcomes(list(run.tables.values())) for run in runs]
    lines = [f"{run.name}: {describe_result(run.tables.values())}" for run in runs]
    lines += [compared.better, "", *diff_lines(differences, [*names, *(n for n in worse if n not in names)], shared)]
    lines += ["", "what became of the questions", *format_outcome_counts(*counts)]
    losses = [count_losses(run) for run in runs]
    if changed := describe_losses(*losses):
        lines += ["", "where gold is lost", *(f"  {line}" for line in changed)]
    if worse:
        lines += ["", *regression.describe_regressions(differences, worse, max_fall=options.max_fall)]
    more = shared.failed_after - shared.failed_before
    if more > 0:
        lines += ["", f"worse: {shared.failed_after} of {shared.asked} questions failed, {more} more than before"]
    metrics = {name: {**asdict(one), "change": one.mean} for name, one in differences.items()}
    record = {"metrics": metrics, "questions": asdict(shared), "worse": worse, "better": compared.better}
    for name, (first, second) in {"outcomes": counts, "lost_at": losses}.items():
        record[name] = {"before": dict(first), "after": dict(second)}
    print_results(record, "\n".join(lines), as_json=options.json)
    return 1 if (worse or more > 0) and options.fail_on_regression else 0


def _export(options: Any) -> int:
    run = RunResults(options.runs[0])
    files = export_results(run, options.to, options.out, model=options.model, dataset=options.dataset)
    print_results({"files": files}, "\n".join(map(str, files)), as_json=options.json)
    return 0


def _write_pages(options: Any) -> int:
    runs = list(map(RunResults, options.runs))
    pages = {None: MAX_PAGES, "all": None, "none": 0}.get(options.pages, options.pages)
    how: dict[str, Any] = {"pages": pages, "say": print_note}
    if options.dataset_paths:
        how["datasets"] = find_dataset_roots(runs, given=options.dataset_paths, say=print_note)
    if options.command == "report":
        page = write_report(options.runs[0], **how)
    elif len(runs) < 2:
        raise ToolkitError(f"compare {options.runs[0]}: a comparison needs at least two runs; name another run")
    else:
        page = comparison.write_comparison(options.runs, out=options.out, **how)
    print_results({"page": page}, str(page), as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
