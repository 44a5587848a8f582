"""Any number of runs side by side: a grid of metrics, and every question by system with the evidence behind it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics import about, shortened
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.statistics import Overlap, Table, compare, overlap, summarise_run
from exhibit.evaluation.terminal import not_compared, read_scale
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.cases import CHANGES
from exhibit.viewer.drawing import Record
from exhibit.viewer.listing import Matching
from exhibit.viewer.page import render
from exhibit.viewer.plots import shares
from exhibit.viewer.report import MetricRow, cell, compared, when
from exhibit.viewer.view import View

NAME = "compare.html"
_NOT_SETTINGS = ("run_name", "datasets", "version", "format", "output_dir", "resume")


def write_comparison(folders: Sequence[Path], *, out: Path | None = None, **how: Any) -> Path:
    """Write the comparison of results folders with the first of them, and return its path.

    It is `compare.html` in the last one's folder unless `out` says otherwise; `how` are the fields of `View`.
    """
    runs = [RunFolder(folder) for folder in folders]
    tables = [read_tables(run) for run in runs]
    grids, overlaps = _grids(tables, folders), [overlap(tables[0], other) for other in tables[1:]]
    names = [run.name for run in runs]
    title = f"{', '.join(names[:-1])} and {names[-1]} – Exhibit comparison"
    body = partial(_body, grids=grids, overlaps=overlaps)
    return View(**how).write(runs, out or Path(folders[-1]) / NAME, title, body)


def _grids(tables: Sequence[Sequence[Table]], folders: Sequence[Path]) -> list[tuple[str, list[MetricRow]]]:
    """Return the metrics of all runs over all datasets, then of each dataset."""
    for folder, other in zip(folders[1:], tables[1:], strict=True):
        if not compare(tables[0], other):
            raise ToolkitError(f"{folders[0]} and {folder} have no dataset and metric in common")
    names = [table.name for table in tables[0]]
    grids = [("All benchmarks, each counting alike" if len(names) > 1 else names[0], _grid(tables))]
    if len(names) > 1:
        grids += [(name, _grid([[one for one in mine if one.name == name] for mine in tables])) for name in names]
    return [(title, rows) for title, rows in grids if rows]


def _grid(tables: Sequence[Sequence[Table]]) -> list[MetricRow]:
    scale, columns = read_scale(), [summarise_run(mine) for mine in tables]
    differences = [{}, *(compare(tables[0], other) for other in tables[1:])]
    names = dict.fromkeys(name for means in columns for name, one in means.items() if one.mean is not None)
    rows = []
    for metric in shortened(names, all_families=True):
        own = [cell(metric, means.get(metric), scale) for means in columns]
        cells = [compared(metric, one, paired.get(metric)) for one, paired in zip(own, differences, strict=True)]
        rows.append(MetricRow(metric, about(metric), cells))
    return rows


def _body(
    matching: Matching,
    meta: Record,
    notes: list[str],
    *,
    grids: list[tuple[str, list[MetricRow]]],
    overlaps: Sequence[Overlap],
) -> str:
    counts = dict(zip(meta["facets"][0]["values"], meta["facets"][0]["counts"], strict=True))
    names = [run.name for run in matching.runs]
    left_out = [f"{name}: {line}" for name, one in zip(names[1:], overlaps, strict=True) for line in not_compared(one)]
    return render(
        "compare.html.j2",
        language=meta["language"],
        runs=[
            (run.name, when(run, meta["language"]), tally)
            for run, tally in zip(matching.runs, matching.tallies, strict=True)
        ],
        meta=meta,
        notes=notes,
        grids=grids,
        asked=min(one.asked for one in overlaps),
        answered=min(one.answered for one in overlaps),
        left_out=left_out,
        changes=[(name, told.meaning, counts[name]) for name, told in CHANGES.items() if counts.get(name)],
        shares=shares({name: tally.total() for name, tally in zip(names, matching.tallies, strict=True)}),
        differing=_differing(matching.runs),
    )


def _differing(runs: Sequence[RunFolder]) -> list[tuple[str, list[str]]]:
    """Return the settings that are not the same in all runs."""
    told = [run.settings for run in runs]
    names = dict.fromkeys(name for one in told for name in one if name.partition(".")[0] not in _NOT_SETTINGS)
    values = {name: [one.get(name, "–") for one in told] for name in names}
    return [(name, each) for name, each in values.items() if len(set(each)) > 1]
