"""Measures the rules that judge replies: how many they judge, how many correctly, and how many wrong ones they accept.

    python -m bench.answer_pairs [--json] [--misjudged]

The pairs are in `tests/evaluation`. `answer_pairs.jsonl` has replies in other words, and replies with one wrong word.
`judging_pairs.jsonl` and `judging_campaign.jsonl` have replies that should mislead the rules; they are older than the
rules. `refusals.jsonl` has refusals, and answers that resemble refusals. `samples/verdicts.jsonl` has 200 replies of
the built-in pipeline that a person judged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import ROOT, Table, publish
from exhibit.evaluation.judging.kernel import judge_answer
from exhibit.law.refusals import is_refusal
from exhibit.runtime.command import add_json, build_parser, guarded, print_results

FOLDER = ROOT / "tests" / "evaluation"


class Pair(NamedTuple):
    """A reply to a question, and whether it is right."""

    question: str
    expected: str
    reply: str
    right: bool
    gold: tuple[str, ...] = ()

    def judge(self) -> bool | None:
        """Return whether the rules call the reply right; a refusal is wrong, because each question has an answer."""
        if is_refusal(self.reply):
            return False
        return judge_answer(self.question, self.expected, self.reply, self.gold).right


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file."""
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def read_pairs() -> dict[str, list[Pair]]:
    """Return the pairs by the name of their set; replies that a person called partly right are left out."""
    sets: dict[str, list[Pair]] = {}
    for row in read_lines(FOLDER / "answer_pairs.jsonl"):
        name = "wrong by a word, held out" if row["held_out"] else "wrong by a word"
        for kind in ("right", "wrong"):
            sets.setdefault(name, []).extend(
                Pair(row["question"], row["expected"], reply, kind == "right") for reply in row[kind]
            )
    for name in ("judging_pairs", "judging_campaign"):
        sets[name] = [
            Pair(row["question"], row["expected"], row["reply"], row["is"] == "right")
            for row in read_lines(FOLDER / f"{name}.jsonl")
            if row["is"] in ("right", "wrong")
        ]
    sets["judged by a person"] = [
        Pair(row["question"], row["expected"], row["answer"], row["verdict"] == "right", tuple(row["gold"]))
        for row in read_lines(ROOT / "samples" / "verdicts.jsonl")
        if not row["is_impossible"] and row["verdict"] != "partly"
    ]
    return sets


def measure_pairs(name: str, pairs: Sequence[Pair]) -> list[object]:
    """Return a table row about pairs.

    It has their number, the share that the rules judge, the share of these that they judge correctly, and the share of
    the wrong replies that they call right.
    """
    decided = [(pair.judge(), pair.right) for pair in pairs]
    judged = [(said, right) for said, right in decided if said is not None]
    agreed = sum(said == right for said, right in judged) / len(judged)
    misses = [said for said, right in decided if not right]
    return [
        name,
        len(pairs),
        f"{len(judged) / len(pairs):.3f}",
        f"{agreed:.3f}",
        f"{misses.count(True) / len(misses):.3f}",
    ]


def measure_refusals() -> list[list[object]]:
    """Return two table rows: for the texts from which the rules were written, and for held-out texts."""
    rows = list(read_lines(FOLDER / "refusals.jsonl"))
    parts = {"written on": False, "held out": True}
    texts = {part: [row for row in rows if row["held_out"] is held_out] for part, held_out in parts.items()}
    return [
        [part, len(own), f"{sum(is_refusal(row['text']) == row['refusal'] for row in own) / len(own):.3f}"]
        for part, own in texts.items()
    ]


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print two tables: how the rules judge pairs, and how they recognise refusals."""
    parser = build_parser("python -m bench.answer_pairs", __doc__)
    add_json(parser)
    parser.add_argument("--misjudged", action="store_true", help="list the replies that are judged wrongly")
    options = parser.parse_args(argv)
    sets = read_pairs()
    pairs = [measure_pairs(name, own) for name, own in sets.items()]
    refusals = measure_refusals()
    if options.json:
        print_results({"pairs": pairs, "refusals": refusals}, "", as_json=True)
        return 0
    head = ["pairs", "replies", "judged", "accuracy of the judged", "near misses called right"]
    publish(None, "", [Table("Answers", head, pairs), Table("Refusals", ["part", "replies", "accuracy"], refusals)])
    for pair in chain.from_iterable(sets.values()) if options.misjudged else ():
        if pair.judge() not in (None, pair.right):
            print(f"\n{pair.question}\n  expected: {pair.expected}\n  reply: {pair.reply}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
