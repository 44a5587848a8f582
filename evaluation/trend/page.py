"""The page over all runs: what got worse and why, the newest figures, a line for each metric, and every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from exhibit.evaluation.metrics import about
from exhibit.evaluation.report.shell import page
from exhibit.evaluation.report.write import NAME as REPORT
from exhibit.evaluation.statistics import Estimate
from exhibit.evaluation.trend.bands import Scale
from exhibit.evaluation.trend.curves import BOTTOM, LEFT, RIGHT, TOP, draw
from exhibit.evaluation.trend.explain import LISTED, Explanation, shown_digest
from exhibit.evaluation.trend.runs import Series, TrendRun
from exhibit.evaluation.trend.sentences import change, fall_in_words, headline, metric_title, sentences, value
from exhibit.storage.whole import write_whole

NAME = "index.html"
_HERE = Path(__file__).parent
_TELLING = ("target", "preset", "config.embedder", "config.splitter", "llm", "config.llm", "config.k", "limit")
"""Settings that say at a glance what was run; the others unfold."""


def write_index(
    path: Path,
    runs: Sequence[TrendRun],
    series: Sequence[Series],
    metrics: Mapping[str, Sequence[str]],
    explained: Sequence[Explanation],
    scale: Scale,
) -> Path:
    """Write the page and return its path; it needs no server and no other file, and links to the runs' reports."""
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {
        "value": value, "change": change, "metric_title": metric_title, "headline": headline, "sentences": sentences,
        "fall_in_words": fall_in_words, "listed": LISTED, "frame": (LEFT, RIGHT, TOP, BOTTOM), "numbers": numbers,
    }  # fmt: skip
    body = environment.get_template("index.html.j2").render(
        runs=[_run(run, numbers[run.name], path.parent) for run in reversed(runs)],
        first=runs[0].started[:10],
        last=runs[-1].started[:10],
        series=[_series(one, metrics[one.title], numbers, explained, scale) for one in series],
        explained=sorted(explained, key=lambda one: (not one.regression.stands, -numbers[one.regression.run])),
        standing=sum(one.regression.stands for one in explained),
        reports={run.name: address for run in runs if (address := _report(run, path.parent))},
    )
    style = (_HERE / "trend.css").read_text(encoding="utf-8")
    script = (_HERE / "trend.js").read_text(encoding="utf-8")
    write_whole(path, page("Results over time – Exhibit", body, style=style, scripts=[script]))
    return path


def _series(
    series: Series,
    metrics: Sequence[str],
    numbers: Mapping[str, int],
    explained: Sequence[Explanation],
    scale: Scale,
) -> dict[str, Any]:
    mine = [one.regression for one in explained if one.regression.series is series]
    pictures = [draw(series, metric, numbers, mine, scale.of(series.dataset, metric)) for metric in metrics]
    newest = series.runs[-1]
    return {
        "title": series.title,
        "runs": len(series.runs),
        "newest": newest.name,
        "pictures": [picture for picture in pictures if picture],
        "rows": [row for metric in metrics if (row := _row(series, metric, scale))],
    }


def _row(series: Series, metric: str, scale: Scale) -> dict[str, Any] | None:
    """Return a metric's newest mean, its band, and the mean before."""
    means = series.means(metric)
    newest = means[-1]
    if newest is None or newest.mean is None:
        return None
    bands = scale.of(series.dataset, metric)
    before = next((mean for mean in reversed(means[:-1]) if mean and mean.mean is not None), None)
    return {
        "metric": metric,
        "newest": newest,
        "before": before,
        "best": _best(metric, [mean for mean in means if mean and mean.mean is not None]),
        "band": bands.band(newest.mean) if bands else "",
        "bounds": f"good {bands.good}, poor {bands.poor}" if bands else "",
    }


def _best(metric: str, means: Sequence[Estimate]) -> Estimate:
    ordered = sorted(means, key=lambda mean: mean.mean or 0.0)
    return ordered[0 if about(metric).better == "less" else -1]


def _run(run: TrendRun, number: int, folder: Path) -> dict[str, Any]:
    asked = run.asked
    telling = {name.removeprefix("config."): asked[name] for name in _TELLING if asked.get(name)}
    machine = run.provenance.get("machine") or {}
    return {
        "name": run.name,
        "number": number,
        "started": run.started.replace("T", " ")[:16],
        "report": _report(run, folder),
        "telling": telling,
        "asked": asked,
        "commit": shown_digest(run.commit),
        "whole_commit": run.commit,
        "version": run.config.get("version") or "",
        "machine": machine,
        "data": {name: shown_digest(run.data_version(name)) for name in run.tables},
        "questions": run.questions,
        "failed": run.failed,
    }


def _report(run: TrendRun, folder: Path) -> str:
    """Return the address of a run's report from the page; nothing where there is none."""
    report = run.folder / REPORT
    if not report.is_file():
        return ""
    place, base = report.resolve(), folder.resolve()
    if place.is_relative_to(base):
        return "/".join(quote(part, safe="") for part in place.relative_to(base).parts)
    return place.as_uri()
