"""The report of a run: a page in which its evidence can be seen, made from its results folder alone.

>>> write_report(Path("results/first"))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exhibit.evaluation.terminal import read_scale
from exhibit.schemas.run import REPORT
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.matching import Matching
from exhibit.viewer.opening import headlines, tested, tiles, worth_looking_at
from exhibit.viewer.page import render
from exhibit.viewer.plots import make_plots, shares
from exhibit.viewer.sheets import Record
from exhibit.viewer.tables import breakdowns, by_group, metric_rows, run_columns
from exhibit.viewer.view import View
from exhibit.viewer.wording import OUTCOMES


def write_report(folder: Path, **how: Any) -> Path:
    """Write the report of a results folder and return its path; `how` are the fields of `View`."""
    run = RunFolder(folder)
    return View(**how).write([run], folder / REPORT, f"{run.name} – Exhibit report", _body)


def _body(matching: Matching, meta: Record, notes: list[str]) -> str:
    [run], [tally] = matching.runs, matching.tallies
    columns, scale = run_columns(run), read_scale()
    total = tally.total()
    several = {"All": total} if len(tally.outcomes) > 1 else {}
    return render(
        "report.html.j2",
        run=run,
        tally=tally,
        meta=meta,
        notes=notes,
        tested=tested(run, tally),
        headlines=headlines(run),
        tiles=tiles(tally),
        looks=worth_looking_at(tally),
        shares=shares(several | tally.outcomes),
        kinds=[(name, OUTCOMES[name].meaning, total[name]) for name in reversed(OUTCOMES) if total[name]],
        groups=by_group(metric_rows(columns, None, scale)),
        every=metric_rows(columns, {name: None for means in columns.values() for name in means}, scale),
        columns=list(columns),
        heads_of=[name or "All" for name in columns],
        warnings=_warnings(run),
        breakdowns=breakdowns(run, scale),
        plots=make_plots(run, tally.seconds),
        ingestions={name: read for name in run.datasets if (read := run.ingestion(name)).files is not None},
    )


def _warnings(run: RunFolder) -> list[str]:
    """Return what a reader must know before any figure: what was drafted, and what is missing to judge by."""
    drafted = [f"{name}: {entry.draft}." for name, entry in run.config.datasets.items() if entry.draft]
    return [*drafted, *(f"{line}." for name in run.datasets for line in run.missing(name).lines)]
