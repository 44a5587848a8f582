"""Shows what a change of the scoring rules changed: compares two scorings of the same replies.

    exhibit evaluate BUNDLE --target predictions:FILE --run-name before     (in a checkout of the older version)
    exhibit evaluate BUNDLE --target predictions:FILE --run-name after
    python -m bench.rescore results/before results/after [--metrics recall@10,char_recall@8] [--questions 3]

A metric's mean is over the questions that have a value. A question has changed if its two values differ, or
if only one version has a value for it. Verdicts are counted by their old and their new value.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench._table import print_table
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import RESULTS

METRICS = (
    "answered_rightly,answer_judged,answer_contained,answer_f1,abstention_accuracy,false_refusal_rate,recall@10,ndcg@10,"
    "char_recall@8,char_precision@8,document_hit@1,drm@8,citations_matched"
)
SAME = 1e-9  # of shares: smaller differences are those of the order of a sum

Key = tuple[str, str]
"""A dataset, and the id of a question."""


class Change(NamedTuple):
    """A metric's means on one dataset before and after a change of the scoring rules, with question counts."""

    dataset: str
    metric: str
    before: float | None
    after: float | None
    questions: tuple[int, int]
    """How many questions had a value, and how many have one."""
    changed: int
    """Questions whose value changed."""
    gained: int
    """Questions that have a value and had none."""
    lost: int
    """Questions that had a value and have none."""


def read_rows(run: Path) -> dict[Key, dict[str, Any]]:
    """Return the rows of a run's result files by dataset and id.

    The rows are not validated, since an older version may have written them.
    """
    files = sorted(run.glob(f"*/{RESULTS}"))
    if not files:
        raise ToolkitError(f"{run}: no DATASET/{RESULTS}; give the folder of a run")
    rows: dict[Key, dict[str, Any]] = {}
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[path.parent.name, str(row["id"])] = row
    return rows


def check_same_replies(before: Mapping[Key, dict[str, Any]], after: Mapping[Key, dict[str, Any]]) -> None:
    """Raise an error if the two runs do not have the same questions with the same answers."""
    if before.keys() != after.keys():
        raise ToolkitError(f"{len(before.keys() ^ after.keys())} questions are in one of the two runs only")
    other = [key for key in before if before[key]["reply"].get("answer") != after[key]["reply"].get("answer")]
    if other:
        dataset, id = other[0]
        raise ToolkitError(
            f"{len(other)} questions have another answer, such as {id} of {dataset}: score one file twice"
        )


def find_changes(
    before: Mapping[Key, dict[str, Any]], after: Mapping[Key, dict[str, Any]], metrics: Sequence[str]
) -> Iterator[Change]:
    """Yield how each metric changed on each dataset, if at least one of the two runs has a value for the metric."""
    for dataset in dict.fromkeys(key[0] for key in before):
        keys = [key for key in before if key[0] == dataset]
        for metric in metrics:
            pairs = [(before[key]["scores"].get(metric), after[key]["scores"].get(metric)) for key in keys]
            old, new = ([pair[side] for pair in pairs if pair[side] is not None] for side in (0, 1))
            if old or new:
                both = [pair for pair in pairs if None not in pair]
                yield Change(
                    dataset, metric, _compute_mean(old), _compute_mean(new), (len(old), len(new)),
                    sum(abs(one - two) > SAME for one, two in both),
                    sum(one is None and two is not None for one, two in pairs),
                    sum(one is not None and two is None for one, two in pairs),
                )  # fmt: skip


def _compute_mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def find_moved(before: Mapping[Key, dict[str, Any]], after: Mapping[Key, dict[str, Any]], metric: str) -> list[Key]:
    """Return the questions for which a metric's value changed, the largest differences first.

    A question with a value in only one of the two runs counts as a difference of 2.
    """
    found = []
    for key in before:
        one, two = (rows[key]["scores"].get(metric) for rows in (before, after))
        if one is None or two is None:
            found += [(2.0, key)] if one is not two else []
        elif abs(one - two) > SAME:
            found.append((abs(one - two), key))
    return [key for _, key in sorted(found, key=lambda pair: -pair[0])]


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Compare two runs with the same replies: print the metrics, changed verdicts and most changed questions."""
    parser = build_parser("python -m bench.rescore", __doc__)
    add_json(parser)
    parser.add_argument("before", type=Path, help="the run of the older version")
    parser.add_argument("after", type=Path, help="the run of this version")
    parser.add_argument("--metrics", default=METRICS, metavar="NAME,…", help=f"default: {METRICS}")
    parser.add_argument("--questions", type=int, default=3, metavar="N", help="shown for each metric (default: 3)")
    options = parser.parse_args(argv)
    before, after = read_rows(options.before), read_rows(options.after)
    check_same_replies(before, after)
    names = options.metrics.split(",")
    table = list(find_changes(before, after, names))
    verdicts = Counter((before[key]["verdict"], after[key]["verdict"]) for key in before)
    other = {pair: n for pair, n in verdicts.most_common() if pair[0] != pair[1]}
    if options.json:
        record = {
            "metrics": [one._asdict() for one in table],
            "verdicts": [{"before": one, "after": two, "questions": n} for (one, two), n in other.items()],
            "moved": {name: [list(key) for key in find_moved(before, after, name)] for name in names},
        }
        print_results(record, "", as_json=True)
        return 0
    head = ["dataset", "metric", "before", "after", "n before", "n after", "changed", "now known", "now unknown"]
    cells = [[*one[:2], *map(_format_share, one[2:4]), *one.questions, *one[5:]] for one in table]
    print_table("The same replies, scored by two versions", head, cells)
    print_table("Verdicts that changed", ["before", "after", "questions"], [[*pair, n] for pair, n in other.items()])
    for name in names:
        for key in find_moved(before, after, name)[: options.questions]:
            _print_question(name, before[key], after[key], key)
    return 0


def _format_share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _print_question(metric: str, before: dict[str, Any], after: dict[str, Any], key: Key) -> None:
    old, new = (_format_share(row["scores"].get(metric)) for row in (before, after))
    print(f"\n{metric} {old} -> {new}: {key[0]} {key[1]}: {after['question']}")
    print(f"  expected: {after['truth'][:300]!r}\n  reply: {str(after['reply'].get('answer'))[:300]!r}")
    print(f"  verdict: {before['verdict']} -> {after['verdict']}; {after.get('answer_reason') or ''}")


if __name__ == "__main__":
    sys.exit(main())
