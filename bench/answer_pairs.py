"""Measures how often the answer metrics accept right answers and reject wrong ones.

    python -m bench.answer_pairs [--json] [--judge openai:MODEL]

`tests/evaluation/answer_pairs.jsonl` has 180 questions about contracts, laws and policies. Each has an
expected answer, right replies in other words, and equally many replies that are wrong by one word.
`refusals.jsonl` beside it has 210 refusals, and 210 answers that use the same words. 200 pairs of a
question and a reply, and 100 of the texts in `refusals.jsonl`, were held out before the rules were written.
Each metric is tested by itself. A metric accepts a reply if its value is at least 1 for `answered_rightly` and
`answer_contained`, 0.5 for `answer_f1`, and 4 for `answer_correctness`, the mark of a judge.
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
from exhibit.storage.cache import find_cache_folder

FOLDER = ROOT / "tests" / "evaluation"
LEAST = {"answered_rightly": 1.0, "answer_contained": 1.0, "answer_f1": 0.5, "answer_correctness": 4.0}
"""The least value of each metric at which a reply counts as right."""


class Pairs(NamedTuple):
    """The replies of one part of the data (development or held-out), and for each whether it is right."""

    cases: list[Case]
    right: list[bool]


class Accuracy(NamedTuple):
    """The accuracy of one metric on one part of the pairs: the development pairs or the held-out ones."""

    part: str
    metric: str
    pairs: int
    judged: float
    """The share of the pairs for which the metric has a value."""
    accuracy: float
    """The share of right decisions among these."""
    near_misses_called_right: float
    """The share of wrong replies that the metric calls right."""


class Recognised(NamedTuple):
    """The accuracy of the rule that recognises refusals, on the development replies or the held-out ones."""

    part: str
    replies: int
    accuracy: float
    unsure: int


def _read_rows(name: str, *, held_out: bool) -> Iterator[dict[str, Any]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["held_out"] is held_out:
            yield row


def read_pairs(*, held_out: bool) -> Pairs:
    """Return questions with replies, and for each reply whether it is right.

    With `held_out`, they are the held-out part of `answer_pairs.jsonl`; otherwise they are the part with which
    the rules were developed.
    """
    cases: list[Case] = []
    right: list[bool] = []
    for row in _read_rows("answer_pairs.jsonl", held_out=held_out):
        for kind in ("right", "wrong"):
            for answer in row[kind]:
                cases.append(Case(len(cases), row["question"], row["expected"], reply=Reply(answer)))
                right.append(kind == "right")
    return Pairs(cases, right)


def measure_accuracies(part: str, pairs: Pairs, options: Options) -> list[Accuracy]:
    """Return how often each answer metric judges a reply correctly.

    If `options` has a judge, the judge's accuracy is included. `part` names the data: development or
    held-out.
    """
    names = [name for name in LEAST if name != "answer_correctness" or options.judge is not None]
    values = measure(pairs.cases, options, names=names)
    return [_measure_accuracy(part, name, pairs.right, values[name]) for name in names]


def _measure_accuracy(part: str, name: str, right: Sequence[bool], values: Values) -> Accuracy:
    said = [None if value is None else value >= LEAST[name] for value in values]
    known = [(one, truth) for one, truth in zip(said, right, strict=True) if one is not None]
    agreed = sum(one == truth for one, truth in known) / len(known) if known else 0.0
    fooled = sum(bool(one) and not truth for one, truth in known) / right.count(False)
    return Accuracy(part, name, len(right), len(known) / len(right), agreed, fooled)


def measure_recognised(part: str, *, held_out: bool) -> Recognised:
    """Return the accuracy of the rule that recognises refusals, on the development or the held-out replies.

    `part` is the name of these replies in the result.
    """
    rows = list(_read_rows("refusals.jsonl", held_out=held_out))
    read = [read_refusal(row["text"]) for row in rows]
    agreed = sum(one.refused == row["refusal"] for one, row in zip(read, rows, strict=True))
    return Recognised(part, len(rows), agreed / len(rows), sum(not one.sure for one in read))


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print two tables: the accuracy of the answer metrics, and that of the rule that recognises refusals."""
    parser = build_parser("python -m bench.answer_pairs", __doc__)
    add_json(parser)
    parser.add_argument("--judge", metavar="LLM", help="a language model whose marks are also compared with the pairs")
    options = parser.parse_args(argv)
    judge = None
    if options.judge:
        module, model = load_plugin("exhibit.models.llms", options.judge)
        judge = module.open(model, {"cache": find_cache_folder() / "llm"})
    settings = Options(judge=judge)
    parts = {"written on": False, "held out": True}
    rows = [
        one for part, held in parts.items() for one in measure_accuracies(part, read_pairs(held_out=held), settings)
    ]
    refusals = [measure_recognised(part, held_out=held) for part, held in parts.items()]
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
