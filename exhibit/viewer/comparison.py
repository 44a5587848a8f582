"""The page that compares a run with others: their metrics side by side, and the questions that changed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from exhibit.evaluation import regression
from exhibit.evaluation.bands import read_scale
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stage_losses import compare_stages, describe_moves, make_loss_tables
from exhibit.evaluation.statistics import Overlap, compare, count_overlap, summarise_run
from exhibit.evaluation.text_tables import describe_not_compared
from exhibit.viewer.drawing import Record
from exhibit.viewer.funnel import make_funnel_rows
from exhibit.viewer.matching import CHANGES, Matching
from exhibit.viewer.metric_tables import MetricRow, compare_cell, group_rows, make_cell, with_ceiling
from exhibit.viewer.page import GROUP_MEANINGS, render
from exhibit.viewer.page_output import View
from exhibit.viewer.plots import stack_shares
from exhibit.viewer.report import format_start

NAME = "compare.html"
_NOT_SETTINGS = ("run_name", "datasets", "version", "format", "output_dir", "resume")


def write_comparison(folders: Sequence[Path], *, out: Path | None = None, **how: Any) -> Path:
    """Write a page that compares the first results folder with each of the others, and return its path.

    Without `out`, the page is `compare.html` in the last folder; `how` sets the options of `View`.
    """
    runs = [RunResults(folder) for folder in folders]
    tables = [list(run.tables.values()) for run in runs]
    grids, overlaps = _make_grids(tables, folders), [count_overlap(tables[0], other) for other in tables[1:]]
    names = [run.name for run in runs]
    title = f"{', '.join(names[:-1])} and {names[-1]} – Exhibit comparison"
    better = [
        regression.describe_better([names[0], name], compare(tables[0], other))
        for name, other in zip(names[1:], tables[1:], strict=True)
    ]
    losses = [make_loss_tables(run) for run in runs]
    moved = [
        f"{name}: {line}"
        for name, other in zip(names[1:], losses[1:], strict=True)
        for line in describe_moves(compare_stages(losses[0], other))
    ]
    body = partial(_make_body, grids=grids, overlaps=overlaps, better=better, moved=moved)
    return View(**how).write(runs, out or Path(folders[-1]) / NAME, title, body)


def _make_grids(tables: Sequence[Sequence[Table]], folders: Sequence[Path]) -> list[tuple[str, list[MetricRow]]]:
    """Return tables of metrics with one column per run: first over all datasets, then for each dataset."""
    for folder, other in zip(folders[1:], tables[1:], strict=True):
        regression.check_comparable([folders[0], folder], compare(tables[0], other), count_overlap(tables[0], other))
    names = [table.name for table in tables[0]]
    grids = [("All benchmarks, each counting alike" if len(names) > 1 else names[0], _make_grid(tables))]
    if len(names) > 1:
        grids += [(name, _make_grid([[one for one in mine if one.name == name] for mine in tables])) for name in names]
    return [(title, rows) for title, rows in grids if rows]


def _make_grid(tables: Sequence[Sequence[Table]]) -> list[MetricRow]:
    scale, columns = read_scale(), [summarise_run(mine) for mine in tables]
    differences = [{}, *(compare(tables[0], other) for other in tables[1:])]
    names = dict.fromkeys(name for means in columns for name, one in means.items() if one.mean is not None)
    rows = []
    for metric in shorten_metrics(names, all_families=True):
        own = [with_ceiling(metric, make_cell(metric, means.get(metric), scale), means) for means in columns]
        cells = [compare_cell(metric, one, paired.get(metric)) for one, paired in zip(own, differences, strict=True)]
        rows.append(MetricRow(metric, describe_metric(metric), cells))
    return rows


def _make_body(
    matching: Matching,
    meta: Record,
    notes: list[str],
    *,
    grids: list[tuple[str, list[MetricRow]]],
    overlaps: Sequence[Overlap],
    better: Sequence[str],
    moved: Sequence[str],
) -> str:
    counts = dict(zip(meta["facets"][0]["values"], meta["facets"][0]["counts"], strict=True))
    names = [run.name for run in matching.runs]
    left_out = [
        f"{name}: {line}" for name, one in zip(names[1:], overlaps, strict=True) for line in describe_not_compared(one)
    ]
    return render(
        "compare.html.j2",
        language=meta["language"],
        runs=[
            (run.name, format_start(run, meta["language"]), tally)
            for run, tally in zip(matching.runs, matching.tallies, strict=True)
        ],
        meta=meta,
        notes=notes,
        grids=[(title, group_rows(rows)) for title, rows in grids],
        meanings=GROUP_MEANINGS,
        asked=min(one.asked for one in overlaps),
        answered=min(one.answered for one in overlaps),
        left_out=left_out,
        better=better,
        moved=moved,
        funnels=[
            (run.name, tally.stages, make_funnel_rows(tally.stages, run.means))
            for run, tally in zip(matching.runs, matching.tallies, strict=True)
        ],
        changes=[(name, change.meaning, counts[name]) for name, change in CHANGES.items() if counts.get(name)],
        shares=stack_shares({name: tally.count_total() for name, tally in zip(names, matching.tallies, strict=True)}),
        differing=_find_differing(matching.runs),
    )


def _find_differing(runs: Sequence[RunResults]) -> list[tuple[str, list[str]]]:
    """Return the settings that differ between the runs, each as its name and its value in every run."""
    settings = [run.settings for run in runs]
    names = dict.fromkeys(name for one in settings for name in one if name.partition(".")[0] not in _NOT_SETTINGS)
    values = {name: [one.get(name, "–") for one in settings] for name in names}
    return [(name, each) for name, each in values.items() if len(set(each)) > 1]
