"""Compares our results on LegalBench-RAG with the results in published papers.

It also compares our results on reworded questions with our results on the published questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.legalbenchrag.names import DATASETS, LOWER, METRICS
from bench.legalbenchrag.papers import ALL, Method, find_best
from bench.legalbenchrag.runs import Condition, Measured
from exhibit.evaluation.metrics import KS
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import Difference, compare

ABOVE, NOT_ABOVE = "▲", "▽"


def format_number(value: float) -> str:
    """Return a percentage for a table: with two decimals below 10, as in the papers, else with one."""
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def format_signed(share: float) -> str:
    """Return a change of a share in percentage points with its sign: 0.123 becomes `+12.3`.

    A change that rounds to zero becomes `+0.0`.
    """
    return f"{round(100 * share, 1) + 0.0:+.1f}".replace("-", "−")


def is_comparable(runs: Sequence[Measured]) -> bool:
    """Return whether all runs used the published questions: all of LegalBench-RAG-mini, in its own wording."""
    return all(run.is_published_sample and run.condition.wording == "original" for run in runs)


def make_marks(run: Measured, metric: str, dataset: str, highest: Sequence[float] | None) -> list[str]:
    """Return one mark per k: `▲` if the run is above the highest published value, otherwise `▽`.

    A mark is an empty string if the run has no value at that k, or if no value was published.
    """
    if highest is None:
        return [""] * len(KS)
    figures = [run.figure(metric, dataset, k) for k in KS]
    return [
        "" if figure is None else (ABOVE if figure.mean > value else NOT_ABOVE)
        for figure, value in zip(figures, highest, strict=True)
    ]


class Score(NamedTuple):
    """A run compared with the published values.

    `places` is the number of published values, and `won` the number of them that the run exceeds. `lost`
    describes the published values that the run does not exceed.
    """

    won: int
    places: int
    lost: list[str]


def score_of(run: Measured) -> Score:
    """Compare a run with the best published value for each dataset, metric and k.

    Return how many published values the run exceeds, how many there are, and which it does not exceed.
    """
    won, lost = 0, []
    for dataset, title in DATASETS.items():
        for metric in METRICS:
            signs = make_marks(run, metric, dataset, find_best(metric, dataset))
            won += signs.count(ABOVE)
            below = [str(k) for k, sign in zip(KS, signs, strict=True) if sign == NOT_ABOVE]
            if below:
                where = "every k" if len(below) == len(KS) else f"k = {', '.join(below)}"
                lost.append(f"{title} {metric} at {where}")
    places = sum(len(find_best(metric, dataset) or ()) for dataset in DATASETS for metric in METRICS)
    return Score(won, places, lost)


def compare_with_method(run: Measured, method: Method) -> list[str]:
    """Return, for each metric, the number of values of k at which a run is better than a published method.

    An example is `recall at 5 of 7 k`. Means over all datasets are compared.
    """
    told = []
    for metric in METRICS:
        curve = method.find_curve(metric, ALL)
        figures = [run.figure(metric, ALL, k) for k in KS]
        if curve and all(figures):
            less = metric in LOWER
            pairs = [(f.mean, value) for f, value in zip(figures, curve, strict=True) if f]
            better = sum(ours < theirs if less else ours > theirs for ours, theirs in pairs)
            told.append(f"{metric} at {better} of {len(KS)} k")
    return told


def measure_falls(
    groups: Sequence[tuple[Condition, Sequence[Measured]]],
) -> Iterator[tuple[Condition, str, Mapping[str, Difference]]]:
    """Yield how much the metrics of each preset change if the questions are reworded.

    Each tuple has the condition of the reworded questions, the label of the preset, and for each metric the
    difference from the same preset's run on the published questions.
    """
    plain = {(condition, run.label): run for condition, runs in groups for run in runs}
    for condition, runs in groups:
        if condition.wording == "original":
            continue
        for run in runs:
            other = plain.get((condition._replace(wording="original"), run.label))
            if other is not None:
                yield condition, run.label, compare(_read_by_id(other.folder), _read_by_id(run.folder))


def _read_by_id(folder: Path) -> list[Table]:
    """Return a run's tables without the digests of the question texts.

    Without digests, a reworded question is paired with the original question by its id.
    """
    return [replace(table, contents=()) for table in read_tables(folder)]
