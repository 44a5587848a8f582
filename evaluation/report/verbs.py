"""The commands `report` and `compare` of a run's results: flags, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exhibit.engine import positive
from exhibit.engine.limits import add_limit_arguments, limits_from
from exhibit.evaluation.datasets import find_datasets
from exhibit.evaluation.report.comparison import write_comparison
from exhibit.evaluation.report.drawing import PAGES
from exhibit.evaluation.report.export import comparison_records, only, report_records, write_table
from exhibit.evaluation.report.sources import dataset_names, dataset_roots
from exhibit.evaluation.report.write import write_report
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import ToolkitError

_SINGLE_PAGES = 300
"""Pages drawn for a single file unless told otherwise: about what fits."""


def add_commands(commands: Any) -> dict[str, Callable[[Any], int]]:
    """Add the two commands to a parser's, and return what does each."""
    report = commands.add_parser("report", help="draw the report of a run anew, from its results folder")
    report.add_argument("run", type=Path, metavar="RUN")
    compare = commands.add_parser("compare", help="two runs side by side: figures, and the questions that changed")
    compare.add_argument("runs", nargs=2, type=Path, metavar="RUN")
    compare.add_argument("--out", type=Path, metavar="FILE", help="default: compare.html in the second run's folder")
    for command in (report, compare):
        command.add_argument(
            "--pages", type=_pages, metavar="N", help=f"pages drawn, failures first: N, all or none (default: {PAGES})"
        )
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
    return {"report": _report, "compare": _compare}


def _report(options: Any) -> int:
    if options.export:
        return _export(report_records(options.run), options)
    print(write_report(options.run, **_asked(options, [options.run])))
    return 0


def _compare(options: Any) -> int:
    before, after = options.runs
    if options.export:
        return _export(comparison_records(before, after), options)
    print(write_comparison(before, after, out=options.out, **_asked(options, options.runs)))
    return 0


def _export(records: Any, options: Any) -> int:
    wanted = {}
    for given in options.only:
        name, equals, value = given.partition("=")
        if not equals:
            raise ToolkitError(f"--only {given}: must be NAME=VALUE, as verdict=failed")
        wanted[name] = value
    count = write_table(only(records, wanted), options.export)
    print_note(f"{options.export}: {count:,} questions")
    return 0


def _asked(options: Any, runs: Sequence[Path]) -> dict[str, Any]:
    asked: dict[str, Any] = {"single_file": options.single_file, "jobs": options.jobs, "say": print_note}
    asked["limits"] = limits_from(options)
    usual = _SINGLE_PAGES if options.single_file else PAGES
    asked["pages"] = {None: usual, "all": None, "none": 0}.get(options.pages, options.pages)
    if options.dataset_paths:
        folders, notes, problems = find_datasets(options.dataset_paths)
        if problems:
            raise ToolkitError("\n".join(problems))
        for note in notes:
            print_note(note)
        roots = {name: root for run in runs for name, root in dataset_roots(run, lambda _: None).items()}
        known = {name for run in runs for name in dataset_names(run)}
        asked["datasets"] = roots | {name: folder for name, folder in folders.items() if name in known}
    return asked


def _pages(text: str) -> str | int:
    return text if text in ("all", "none") else positive(text)
