"""Summarise, compare and follow runs.

exhibit results summary results/naive results/sac
exhibit results diff results/before results/after --fail-on-regression
exhibit results report results/after
exhibit results compare results/naive results/sac results/routed
exhibit results index results --fail-on regression
exhibit results export results/after --to eval-results --model my-firm/contract-rag
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exhibit.evaluation import compare as regression
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.result_exports import FORMS, export_results
from exhibit.evaluation.runs import RunResults, make_summary_json
from exhibit.evaluation.stages import count_losses, describe_losses
from exhibit.evaluation.text_tables import choose_metrics, diff_lines, format_outcome_counts, table_of
from exhibit.runtime import command as cli
from exhibit.runtime.command import print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer import compare as comparison
from exhibit.viewer import trend
from exhibit.viewer.drawing import MAX_PAGES
from exhibit.viewer.report import find_dataset_roots, write_report


@cli.guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code.

    The code is 1 for an error, 1 for a regression if --fail-on-regression is given, and 4 if a check of `index` fails.
    """
    options = _make_parser().parse_args(argv)
    return int(options.work(options))


def _make_parser() -> cli.Parser:
    parser = cli.build_parser("exhibit results", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def add_command(
        name: str, work: Callable[[Any], int], help: str, nargs: int | str = 1, **extra: Any
    ) -> Callable[..., Any]:
        command: argparse.ArgumentParser = commands.add_parser(name, help=help)
        command.set_defaults(work=work)
        command.add_argument("runs", **{"type": Path, "metavar": "RUN", "nargs": nargs, **extra})
        if name in ("summary", "diff", "index"):
            command.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
        if name in ("summary", "diff"):
            command.add_argument("--all", action="store_true", help="show every metric")
        if name in ("report", "compare"):
            what = f"the largest number of pages to draw, failures first (default: {MAX_PAGES})"
            command.add_argument("--pages", type=cli.parse_natural, default=MAX_PAGES, metavar="N", help=what)
            what = "the folders of the bundles, if they were moved after the run"
            command.add_argument("--dataset-paths", nargs="+", metavar="DIR", help=what)
        cli.add_json(command)
        return command.add_argument

    add_command("summary", _print_summary, "print means with intervals: of one run by dataset, or of several runs", "+")
    add = add_command("diff", _print_diff, "compare two runs, paired by question", 2)
    what = "exit with 1 if the second run has a metric that is worse by more than chance, or more failed questions"
    add("--fail-on-regression", action="store_true", help=what)
    what = "the largest fall that counts as chance if there are too few documents for an interval: absolute for a "
    what += f"share, relative for other units (default: {regression.MAX_FALL})"
    add("--max-fall", type=float, default=regression.MAX_FALL, metavar="SIZE", help=what)
    add_command("report", _write_pages, "write the report of a run again, from its results folder")
    what = "compare any number of runs: metrics, and every question in each run"
    add = add_command("compare", _write_pages, what, "+")
    add("--out", type=Path, metavar="FILE", help=f"page to write (default: {comparison.NAME} in the last run's folder)")
    add = add_command("export", _export, "export results for a model's repository on the Hub or for Every Eval Ever")
    add("--to", choices=FORMS, required=True, help="the format to write")
    add("--model", required=True, metavar="OWNER/NAME", help="the name of the system that was tested")
    add("--dataset", default="", metavar="OWNER/NAME", help="the bundle's repository on the Hub")
    add("--out", type=Path, default=Path("exported"), metavar="DIR", help="the folder to write (default: exported)")
    what = "write a page on all runs that shows which run made a metric worse"
    add = add_command("index", trend.index, what, "?", default=Path("results"), metavar="RESULTS_DIR")
    add("--out", type=Path, metavar="FILE", help=f"the page to write (default: RESULTS_DIR/{trend.NAME})")
    what = "a TOML file of good and poor values of means; seed: those of the second specification (docs/report.md)"
    add("--bands", type=Path, metavar="FILE", help=what)
    what = f"exit with {trend.GATE} if the newest run is worse than an earlier run or has a poor mean; repeatable"
    add("--fail-on", action="append", choices=(trend.REGRESSION, trend.BAND), default=[], help=what)
    return parser


def _print_summary(options: Any) -> int:
    runs = list(map(RunResults, options.runs))
    columns = {run.name: run.means for run in runs}
    if len(runs) == 1:  # the datasets of one run side by side
        columns = runs[0].columns
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    chosen = list(names) if options.all else choose_metrics(names, options.metrics)
    lines = [table_of(columns, chosen, width=cli.measure_text_width()), ""]
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
    lines += ["", "outcomes", *format_outcome_counts(*counts)]
    losses = list(map(count_losses, runs))
    if changed := describe_losses(*losses):
        lines += ["", "where gold is lost", *(f"  {line}" for line in changed)]
    if worse:
        lines += ["", *regression.describe_regressions(differences, worse, max_fall=options.max_fall)]
    more = shared.failed_after - shared.failed_before
    if more > 0:
        lines += ["", f"worse: {shared.failed_after} of {shared.asked} questions failed, {more} more than before"]
    metrics = {name: {**asdict(difference), "change": difference.mean} for name, difference in differences.items()}
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
    how: dict[str, Any] = {"pages": options.pages, "say": print_note}
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
