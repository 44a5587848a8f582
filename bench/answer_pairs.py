"""How often answers are called right that are, on pairs of our own: right in other words, and wrong by one word.

    python -m bench.answer_pairs [--json] [--judge openai:MODEL]

`tests/evaluation/answer_pairs.jsonl` has 180 questions on contracts, laws and policies with an expected answer, and as
many right replies as wrong ones; `refusals.jsonl` beside it has 210 replies that refuse and 210 that use the same
words and answer. 200 pairs and 100 replies were set aside before
the rules were written. Containment calls a reply right at 1,
token F1 from 0.5 on, a judge from a mark of 4 on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench._table import ROOT, print_table
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.metrics import Options, Values, measure
from exhibit.law.refusals import read_refusal
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import load_plugin
from exhibit.storage.cache import cache_folder

FOLDER = ROOT / "tests" / "evaluation"
LEAST = {"answered_rightly": 1.0, "answer_contained": 1.0, "answer_f1": 0.5, "answer_correctness": 4.0}
"""From which value on a metric calls a reply right."""


class Pairs(NamedTuple):
    """Replies of one part, and which of them are right."""

    cases: list[Case]
    right: list[bool]


class Accuracy(NamedTuple):
    """How a metric does on one part of the pairs."""

    part: str
    metric: str
    pairs: int
    judged: float
    """Share of the pairs that the metric has a value for."""
    accuracy: float
    """Share of those that it calls what they are."""
    near_misses_called_right: float
    """Share of all wrong replies that it calls right."""


class Recognised(NamedTuple):
    """How the rule for refusals does on one part of the replies."""

    part: str
    replies: int
    accuracy: float
    unsure: int


def _rows(name: str, *, held_out: bool) -> Iterator[dict[str, Any]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["held_out"] is held_out:
            yield row


def read_pairs(*, held_out: bool) -> Pairs:
    """Return the pairs that rules may be written on, or those that were set aside."""
    cases: list[Case] = []
    right: list[bool] = []
    for row in _rows("answer_pairs.jsonl", held_out=held_out):
        for kind in ("right", "wrong"):
            for answer in row[kind]:
                cases.append(Case(len(cases), row["question"], row["expected"], reply=Reply(answer)))
                right.append(kind == "right")
    return Pairs(cases, right)


def accuracies(part: str, pairs: Pairs, options: Options) -> list[Accuracy]:
    """Return how each metric does; a judge's marks where there is a judge."""
    names = [name for name in LEAST if name != "answer_correctness" or options.judge is not None]
    values = measure(pairs.cases, options, names=names)
    return [_accuracy(part, name, pairs.right, values[name]) for name in names]


def _accuracy(part: str, name: str, right: Sequence[bool], values: Values) -> Accuracy:
    said = [None if value is None else value >= LEAST[name] for value in values]
    known = [(one, truth) for one, truth in zip(said, right, strict=True) if one is not None]
    agreed = sum(one == truth for one, truth in known) / len(known) if known else 0.0
    fooled = sum(bool(one) and not truth for one, truth in known) / right.count(False)
    return Accuracy(part, name, len(right), len(known) / len(right), agreed, fooled)


def recognised(part: str, *, held_out: bool) -> Recognised:
    """Return how the rule for refusals does."""
    rows = list(_rows("refusals.jsonl", held_out=held_out))
    read = [read_refusal(row["text"]) for row in rows]
    agreed = sum(one.refused == row["refusal"] for one, row in zip(read, rows, strict=True))
    return Recognised(part, len(rows), agreed / len(rows), sum(not one.sure for one in read))


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = build_parser("python -m bench.answer_pairs", __doc__)
    add_json(parser)
    parser.add_argument("--judge", metavar="LLM", help="a language model whose marks are held against the pairs, too")
    options = parser.parse_args(argv)
    judge = None
    if options.judge:
        module, model = load_plugin("exhibit.models.llms", options.judge)
        judge = module.open(model, {"cache": cache_folder() / "llm"})
    settings = Options(judge=judge)
    parts = {"written on": False, "held out": True}
    rows = [one for part, held in parts.items() for one in accuracies(part, read_pairs(held_out=held), settings)]
    refusals = [recognised(part, held_out=held) for part, held in parts.items()]
    if options.json:
        record = {"pairs": [one._asdict() for one in rows], "refusals": [one._asdict() for one in refusals]}
        print_results(record, "", as_json=True)
        return 0
    head = ["part", "metric", "pairs", "judged", "accuracy of the judged", "near misses called right"]
    print_table(
        "Pairs of expected and given answers", head, [[*one[:3], *(f"{x:.3f}" for x in one[3:])] for one in rows]
    )
    table = [[one.part, one.replies, f"{one.accuracy:.3f}", one.unsure] for one in refusals]
    print_table("Refusals", ["part", "replies", "accuracy", "not sure"], table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
