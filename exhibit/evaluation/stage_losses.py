"""Count the questions of a run by the stage that first loses their gold, and compare the losses of two runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stages import GOLD_STAGES
from exhibit.evaluation.statistics import Difference, compare
from exhibit.schemas.run import RunQuestion

KEPT = "nowhere"
"""The name that stands for the stage where no known stage loses the gold."""
STAGE_TITLES = {
    "page": "on the page",
    "text": "in the system's text",
    "chunks": "in its chunks",
    "retrieved": "retrieved",
    "reranked": "kept by the reranker",
    "context": "in the context",
    "cited": "cited",
    "answered": "answered",
}
"""Descriptions of gold that a stage keeps."""


def find_loss(row: RunQuestion) -> str:
    """Return the first stage that loses some of a question's gold, or `nowhere` if no stage loses any.

    The result is empty if nothing is known about the gold.
    """
    return (row.lost_at or KEPT) if row.gold_stages else ""


@dataclass
class StageCounts:
    """The number of questions of a run by the first stage that loses some of their gold, and by the reason."""

    questions: int = 0
    lost: dict[str, Counter[str]] = field(default_factory=dict)
    """The counts by stage and reason."""
    known: set[str] = field(default_factory=set)
    """The stages about which something is known."""

    def add(self, row: RunQuestion) -> None:
        """Count one question; a question without known stages is not counted."""
        if not row.gold_stages:
            return
        self.questions += 1
        self.known.update(stage for gold in row.gold_stages for stage in gold if stage in GOLD_STAGES)
        if row.lost_at:
            first = next(gold for gold in row.gold_stages if gold.get("lost_at") == row.lost_at)
            self.lost.setdefault(row.lost_at, Counter())[str(first.get("reason") or row.lost_at)] += 1

    def list_stages(self) -> list[str]:
        """Return the stages for which at least one question has a known result, in the order of the stages."""
        return [stage for stage in GOLD_STAGES if stage in self.known]


def make_loss_tables(run: RunResults) -> list[Table]:
    """Return one table per dataset, with the share of each question's gold that is lost at each stage.

    The values are None for a question without gold, and for a stage that the dataset's replies do not report.
    """
    columns: dict[str, dict[str, list[float | None]]] = {
        name: {stage: [] for stage in GOLD_STAGES} for name in run.tables
    }
    told: set[tuple[str, str]] = set()
    for row in run.rows:
        golds = row.gold_stages
        told.update((row.dataset, stage) for gold in golds for stage in gold)
        for stage, column in columns[row.dataset].items():
            lost = sum(gold.get("lost_at") == stage for gold in golds)
            column.append(lost / len(golds) if golds else None)
    for name, values in columns.items():
        values |= {stage: [None] * len(column) for stage, column in values.items() if (name, stage) not in told}
    return [replace(table, values=columns[name], repeats=()) for name, table in run.tables.items()]


def compare_stages(first: Sequence[Table], second: Sequence[Table]) -> dict[str, Difference]:
    """Return, for each stage known in both runs, the difference in the share of gold that is lost there."""
    differences = compare(first, second)
    return {stage: differences[stage] for stage in GOLD_STAGES if stage in differences and differences[stage].n}


def describe_moves(differences: Mapping[str, Difference]) -> list[str]:
    """Return a line for each stage that loses more or less gold in the second run than in the first.

    The largest change is first. If no stage changed, the only line says so.
    """
    moved = {stage: one for stage, one in differences.items() if one.mean}
    if not moved:
        return ["every stage loses as much gold as before"] if differences else []
    ordered = sorted(moved, key=lambda stage: -abs(moved[stage].mean or 0.0))
    return [f"{stage}: gold lost there {_change(moved[stage])}" for stage in ordered]


def _change(one: Difference) -> str:
    change = one.mean or 0.0
    ends = f" [{one.ci95[0]:+.3f}, {one.ci95[1]:+.3f}]" if one.ci95 else ""
    words = "worse" if change > 0 else "better"
    words = words if one.beyond_chance else "no interval" if one.ci95 is None else "within chance"
    return f"{one.first:.3f} before, {one.second:.3f} after ({change:+.3f}{ends}, {words})"
