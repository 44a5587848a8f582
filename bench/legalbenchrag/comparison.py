"""Our figures beside the published ones, and beside ours under another condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.legalbenchrag.names import DATASETS, LOWER, METRICS
from bench.legalbenchrag.papers import ALL, Method, best
from bench.legalbenchrag.runs import Condition, Measured
from exhibit.evaluation.metrics import KS
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.statistics import Difference, Table, compare

ABOVE, NOT_ABOVE = "▲", "▽"


def number(value: float) -> str:
    """Return a percentage as tables show it: small ones as fine as they were published."""
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def signed(share: float) -> str:
    """Return a change in points with its sign; what rounds to nothing is no loss."""
    return f"{round(100 * share, 1) + 0.0:+.1f}".replace("-", "−")


def comparable(runs: Sequence[Measured]) -> bool:
    """Return whether the published figures are on these questions: the whole sample, as it was asked."""
    return all(run.is_published_sample and run.condition.wording == "original" for run in runs)


def marks(run: Measured, metric: str, dataset: str, highest: Sequence[float] | None) -> list[str]:
    """Return for each k whether a run is above the best published value; nothing where there is none."""
    if highest is None:
        return [""] * len(KS)
    figures = [run.figure(metric, dataset, k) for k in KS]
    return [
        "" if figure is None else (ABOVE if figure.mean > value else NOT_ABOVE)
        for figure, value in zip(figures, highest, strict=True)
    ]


class Score(NamedTuple):
    """In how many places a run is above what was published, and where it is not."""

    won: int
    places: int
    lost: list[str]


def score_of(run: Measured) -> Score:
    """Return a run's score against the best published value of each dataset, metric and k."""
    won, lost = 0, []
    for dataset, title in DATASETS.items():
        for metric in METRICS:
            signs = marks(run, metric, dataset, best(metric, dataset))
            won += signs.count(ABOVE)
            below = [str(k) for k, sign in zip(KS, signs, strict=True) if sign == NOT_ABOVE]
            if below:
                where = "every k" if len(below) == len(KS) else f"k = {', '.join(below)}"
                lost.append(f"{title} {metric} at {where}")
    places = sum(len(best(metric, dataset) or ()) for dataset in DATASETS for metric in METRICS)
    return Score(won, places, lost)


def against(run: Measured, method: Method) -> list[str]:
    """Return in how many k a run is better over all datasets, for each metric that a method has."""
    told = []
    for metric in METRICS:
        curve = method.curve(metric, ALL)
        figures = [run.figure(metric, ALL, k) for k in KS]
        if curve and all(figures):
            less = metric in LOWER
            pairs = [(f.mean, value) for f, value in zip(figures, curve, strict=True) if f]
            better = sum(ours < theirs if less else ours > theirs for ours, theirs in pairs)
            told.append(f"{metric} at {better} of {len(KS)} k")
    return told


def falls(
    groups: Sequence[tuple[Condition, Sequence[Measured]]],
) -> Iterator[tuple[Condition, str, Mapping[str, Difference]]]:
    """Yield what each preset loses under other wordings, paired with its run on the questions as published."""
    plain = {(condition, run.label): run for condition, runs in groups for run in runs}
    for condition, runs in groups:
        if condition.wording == "original":
            continue
        for run in runs:
            other = plain.get((condition._replace(wording="original"), run.label))
            if other is not None:
                yield condition, run.label, compare(_by_id(other.folder), _by_id(run.folder))


def _by_id(folder: Path) -> list[Table]:
    """Return a run's values without the digests of its questions: a question in other words keeps its id."""
    return [replace(table, contents=()) for table in read_tables(folder)]
