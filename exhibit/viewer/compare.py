"""The page that compares a run with others: their metrics side by side, and the questions that changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhibit.evaluation import compare as regression
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.stages import count_losses, describe_losses
from exhibit.evaluation.statistics import Difference, Overlap, Table, compare, count_overlap, summarise_run
from exhibit.evaluation.text_tables import choose_metrics, describe_not_compared, diff_lines, read_scale
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.page import Record, render
from exhibit.viewer.plots import MEANINGS, group_rows, make_funnel, make_metric_rows, stack_shares
from exhibit.viewer.questions import CHANGES, OUTCOMES, Matching
from exhibit.viewer.report import format_start, make_names_unique, write_page

NAME = "compare.html"
_NOT_SETTINGS = ("run_name", "datasets", "version", "format", "output_dir", "resume")


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs, paired by question."""

    names: tuple[str, str]
    differences: dict[str, Difference]
    overlap: Overlap
    regressions: list[str]  # the metrics and outcomes that are worse beyond chance or, with few documents, much worse

    @property
    def better(self) -> str:
        """Which of the two runs is better, in a sentence."""
        return regression.describe_better(self.names, self.differences, self.regressions)

    def __repr__(self) -> str:
        lines = diff_lines(self.differences, choose_metrics(self.differences), self.overlap)
        return "\n".join([self.better, "", *lines])


def compare_two(
    first: RunResults, second: RunResults, metrics: Sequence[str] = (), *, max_fall: float = regression.MAX_FALL
) -> Comparison:
    """Compare two runs on the questions that are the same in both; raise an error if there are none."""
    before, after = (list(run.tables.values()) for run in (first, second))
    differences, shared = regression.compare_runs(before, after), count_overlap(before, after)
    if not differences:
        fault = "have no dataset and metric in common; evaluate both on the same bundle and metrics"
        raise ToolkitError(f"{first.folder} and {second.folder} {fault}")
    if not shared.asked:
        fault = "no question has the same words, expected answer, gold and documents in both"
        raise ToolkitError(f"{first.folder} and {second.folder} cannot be compared: {fault}; run both on one bundle")
    worse = regression.find_regressions(differences, metrics, max_fall=max_fall)
    return Comparison((first.name, second.name), differences, shared, worse)


def write_comparison(folders: Sequence[Path], *, out: Path | None = None, home: str = "", **how: Any) -> Path:
    """Compare the first results folder with each other folder on a page; `how` are options for `write_page`."""
    runs = [RunResults(folder) for folder in folders]
    make_names_unique(runs)
    names, tables = [run.name for run in runs], [list(run.tables.values()) for run in runs]
    compared = [compare_two(runs[0], run) for run in runs[1:]]
    left_out = [f"{pair.names[1]}: {line}" for pair in compared for line in describe_not_compared(pair.overlap)]
    first, *losses = map(count_losses, runs)
    moves = zip(names[1:], losses, strict=True)
    moved = [f"{name}: {line}" for name, loss in moves for line in describe_losses(first, loss)]

    def make_body(matching: Matching, meta: Record, notes: list[str]) -> str:
        counts = dict(zip(meta["facets"][0]["values"], meta["facets"][0]["counts"], strict=True))
        tallies = dict(zip(names, matching.tallies, strict=True))
        values: Record = {"home": home, "meta": meta, "notes": notes, "moved": moved, "meanings": MEANINGS}
        values["runs"] = [(run.name, format_start(run), describe_result(run.tables.values())) for run in runs]
        values |= {"grids": _make_grids(names, tables), "left_out": left_out, "differing": _find_differing(runs)}
        values |= {"asked": min(pair.overlap.asked for pair in compared), "better": [pair.better for pair in compared]}
        values["answered"] = min(pair.overlap.answered for pair in compared)
        stages = ((run, tallies[run.name].stages) for run in runs)
        values["funnels"] = [(run.name, counted, make_funnel(counted, run.means)) for run, counted in stages]
        changes = ((name, change.meaning, counts.get(name)) for name, change in CHANGES.items())
        values["changes"] = [change for change in changes if change[2]]
        totals = {name: tally.total for name, tally in tallies.items()}
        return render("compare.html.j2", shares=stack_shares(totals, reversed(OUTCOMES)), **values)

    title = f"{', '.join(names[:-1])} and {names[-1]} – Exhibit comparison"
    return write_page(runs, out or Path(folders[-1]) / NAME, title, make_body, **how)


def _make_grids(names: Sequence[str], tables: Sequence[Sequence[Table]]) -> list[tuple[str, list[Any]]]:
    """Return tables of metrics with one column per run: first over all datasets, then for each dataset."""
    datasets = [table.name for table in tables[0]]
    wanted = {"All benchmarks, with equal weights": ""} if len(datasets) > 1 else {}
    grids = []
    for title, dataset in (wanted | {name: name for name in datasets}).items():
        chosen = [[table for table in of_run if dataset in ("", table.name)] for of_run in tables]
        columns = dict(zip(names, map(summarise_run, chosen), strict=True))
        differences = [{}, *(compare(chosen[0], other) for other in chosen[1:])]
        rows = make_metric_rows(columns, read_scale(), differences=differences)
        grids += [(title, group_rows(rows))] if rows else []
    return grids


def _find_differing(runs: Sequence[RunResults]) -> list[tuple[str, list[str]]]:
    """Return the settings that differ between the runs, each as its name and its value in every run."""
    settings = [{**run.settings, "commit": run.commit or "unknown"} for run in runs]
    names = dict.fromkeys(name for config in settings for name in config if name.partition(".")[0] not in _NOT_SETTINGS)
    values = {name: [config.get(name, "–") for config in settings] for name in names}
    return [(name, each) for name, each in values.items() if len(set(each)) > 1]
