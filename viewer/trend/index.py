"""The command `results index`: a page over all runs, checks for a CI, and what it is told."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.terminal import read_scale
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.whole import write_whole
from exhibit.viewer.trend.changes import find_regressions, watched_metrics
from exhibit.viewer.trend.explain import explain
from exhibit.viewer.trend.gates import check_gates, parse_gate
from exhibit.viewer.trend.sentences import headline, sentences
from exhibit.viewer.trend.series import make_series, read_runs
from exhibit.viewer.trend.summary import junit, markdown
from exhibit.viewer.trend.timeline import NAME, write_index

GATE = 4
"""The exit code when something that `--fail-on` names is so: 1 is an error, 3 too many failed questions."""
_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Where GitHub's CI, and those that follow it, take a summary from."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `results index`."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results"), metavar="RESULTS_DIR")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"the page (default: RESULTS_DIR/{NAME})")
    parser.add_argument("--bands", type=Path, metavar="FILE", help="Good / Acceptable / Poor by metric, as TOML")
    parser.add_argument(
        "--where", action="append", default=[], metavar="NAME=VALUE", help="only runs with this setting"
    )
    parser.add_argument("--metrics", type=split_requests, default=[], metavar="NAME,…")
    parser.add_argument("--all", action="store_true", help="every metric that can get worse")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        type=_gate,
        metavar="WHAT",
        help=f"exit {GATE} on: regression (one stands in the newest run), band (a mean is poor), "
        "or a bound that holds, such as 'cuad:char_recall@8 < 0.6'; repeat",
    )
    parser.add_argument(
        "--summary-markdown", type=Path, metavar="FILE", help=f"append a summary (default: ${_SUMMARY} where it is set)"
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the checks as JUnit XML")


def index(options: argparse.Namespace) -> int:
    """Write the page and what CI was promised; print what was found; return 4 where a gate is not passed."""
    where = parse_settings({"where": options.where}, where="--where").where
    runs, notes = read_runs(options.folder, where=where)
    for note in notes:
        print_note(note)
    scale = read_scale(options.bands)
    series = make_series(runs)
    metrics = {one.title: watched_metrics(one, options.metrics, every=options.all) for one in series}
    if options.metrics and not any(metrics.values()):
        raise ToolkitError(f"no run has {', '.join(options.metrics)}")
    regressions = [regression for one in series for regression in find_regressions(one, metrics[one.title])]
    explained = [explain(regression) for regression in regressions]
    checks = check_gates(options.fail_on, series, regressions, scale)
    page = write_index(options.out or options.folder / NAME, runs, series, metrics, explained, scale)
    summary = options.summary_markdown or (Path(os.environ[_SUMMARY]) if os.environ.get(_SUMMARY) else None)
    if summary:
        _append(summary, markdown(series, metrics, explained, checks, scale))
    if options.junit:
        write_whole(options.junit, junit(checks))
    for one in explained:
        print(headline(one))
        print("\n".join(f"  {sentence}" for sentence in sentences(one)))
        named = ", ".join(str(fallen.id) for fallen in one.questions[:20])
        print(f"  questions: {named}{' …' if len(one.questions) > 20 else ''}")
    if not explained:
        print(f"{len(runs)} runs: none is worse than the one before it")
    for check in checks:
        print(f"{'pass' if check.holds else 'FAIL'}: {check.suite}: {check.name}: {check.told}")
    print(f"page: {page}")
    return 0 if all(check.holds for check in checks) else GATE


def _gate(text: str) -> str:
    try:
        return parse_gate(text)
    except ToolkitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
