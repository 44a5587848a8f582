"""Measures the agreement of each answer metric with verdicts given by hand, on the samples.

    python -m bench.verdicts [--json]

`samples/verdicts.jsonl` has 200 replies of the built-in pipeline, each judged with its question and
expected answer: right, partly, wrong, refused-rightly or refused-wrongly. A metric counts a reply as good
if the metric is 0.5 or more; a verdict counts it as good if the verdict is right or refused-rightly. Only
replies that a metric applies to are compared. Kappa is Cohen's: 0 is agreement by chance.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench._table import print_table
from exhibit.evaluation.cases import Case, GoldPassage, Reply
from exhibit.evaluation.metrics import Values, measure
from exhibit.law.refusals import is_refusal
from exhibit.runtime.command import add_json, build_parser, guarded, print_results

FILE = Path(__file__).resolve().parent.parent / "samples" / "verdicts.jsonl"
GOOD = frozenset({"right", "refused-rightly"})
METRICS = ("answer_contained", "answer_gold_f1", "answer_f1", "answer_exact_match", "essential_coverage")
ALWAYS, TOGETHER = "every reply is good", "a refusal, else answer_contained, else answer_gold_f1"
_ENOUGH = 0.5  # the least share of a good answer


class Agreement(NamedTuple):
    """The agreement of a metric with verdicts given by hand: number of replies, accuracy, and Cohen's kappa."""

    metric: str
    replies: int
    accuracy: float
    kappa: float


def read_verdicts(path: Path = FILE) -> tuple[list[Case], list[str]]:
    """Return the replies of a file of verdicts as cases, and the verdict on each reply, such as `right`."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    cases = [
        Case(
            number, row["question"], row["expected"], tuple(GoldPassage(None, text) for text in row["gold"]),
            row["is_impossible"], reply=Reply(row["answer"]),
        )
        for number, row in enumerate(rows)
    ]  # fmt: skip
    return cases, [row["verdict"] for row in rows]


def compute_kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Return Cohen's kappa of pairs of judgments; 1 if all judgments of all pairs are the same."""
    counts, n = Counter(pairs), len(pairs)
    agreed = sum(one == other for one, other in pairs) / n
    first, second = (sum(counts[pair] for pair in counts if pair[side]) / n for side in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return (agreed - chance) / (1 - chance) if chance < 1 else 1.0


def measure_agreements(cases: Sequence[Case], verdicts: Sequence[str]) -> list[Agreement]:
    """Return how often each metric agrees with the verdicts that people gave.

    Two more rows are for comparison: a combination of the metrics, and the rule that every reply is good.
    """
    values: Mapping[str, Values] = measure(cases, names=METRICS)
    columns = {name: values[name] for name in METRICS}
    columns[TOGETHER] = [
        float(case.is_impossible == is_refusal(case.reply.answer or ""))
        if case.is_impossible or is_refusal(case.reply.answer or "")
        else next((value for name in METRICS[:2] if (value := values[name][row]) is not None), None)
        for row, case in enumerate(cases)
    ]
    columns[ALWAYS] = [1.0] * len(cases)
    rows = []
    for name, column in columns.items():
        known = [(v >= _ENOUGH, told in GOOD) for v, told in zip(column, verdicts, strict=True) if v is not None]
        rows.append(Agreement(name, len(known), sum(a == b for a, b in known) / len(known), compute_kappa(known)))
    return rows


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print how well each answer metric agrees with the verdicts that people gave on sample replies."""
    parser = build_parser("python -m bench.verdicts", __doc__)
    add_json(parser)
    options = parser.parse_args(argv)
    cases, verdicts = read_verdicts()
    found = measure_agreements(cases, verdicts)
    if options.json:
        print_results([one._asdict() for one in found], "", as_json=True)
        return 0
    title = f"{len(cases)} replies: {', '.join(f'{count} {verdict}' for verdict, count in Counter(verdicts).items())}"
    rows = [[name, str(n), f"{accuracy:.3f}", f"{value:.3f}"] for name, n, accuracy, value in found]
    print_table(title, ["metric", "replies", "accuracy", "kappa"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
