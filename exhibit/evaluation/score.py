"""Score retrieved passages against a gold file: exact match, span F1, recall@K, nDCG@K.

examples:
    python score.py predictions.json gold.json [--k 10] [--output results.json] [--parity seed]

predictions.json: [{"query": "…", "retrieved_passages": ["…", …]}, …]
gold.json:        {"tests": [{"query": "…", "snippets": [{"file_path": "…", "span": [0, 9], "answer": "…"}]}, …]}
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.metrics import K, Options, measure
from exhibit.evaluation.score_table import compute_mean
from exhibit.runtime.command import add_json, build_parser, guarded, print_note, print_results
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.atomic import write_whole

RULE = "=" * 26


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the means of exact match, span F1, recall@K and nDCG@K over the predictions."""
    parser = build_parser("python score.py", __doc__)
    add = parser.add_argument
    add("predictions", type=Path, metavar="predictions.json", help="the retrieved passages, best first")
    add("gold", type=Path, metavar="gold.json", help="the queries with the snippets that answer them")
    add("--k", type=int, default=K, metavar="K", help=f"the cutoff of recall and nDCG (default: {K})")
    add("--output", type=Path, metavar="FILE", help="also write the results to this file, as JSON")
    add(
        "--parity",
        choices=["seed"],
        help="the seed's definition: either text contains the other, so that a word matches",
    )
    add_json(parser)
    options = parser.parse_args(argv)
    if options.k < 1:
        parser.error(f"argument --k: {options.k} is not a whole number from 1")
    results = score(options.predictions, options.gold, k=options.k, parity=options.parity or "")
    if options.output:
        write_whole(options.output, json.dumps(results, indent=2) + "\n")
    figures = [f"{name}: {value:.4f}" for name, value in results.items()]
    print_results(results, "\n".join(["Evaluation Results:", RULE, *figures, RULE]), as_json=options.json)
    return 0


def score(predictions: Path, gold: Path, *, k: int = K, parity: Literal["", "seed"] = "") -> dict[str, float]:
    """Return the means of exact match, span F1, recall@K and nDCG@K, and the number of examples."""
    cases = _pair_cases(_read_predictions(predictions), _read_gold(gold), predictions, gold)
    names = ["exact_match", "span_f1", f"recall@{k}", f"ndcg@{k}"]
    values = measure(cases, Options(k=k, parity=parity), names=names)
    return {**{name: compute_mean(values[name]) or 0.0 for name in names}, "num_examples": len(cases)}


def _pair_cases(
    predicted: list[tuple[str, list[str]]], tests: list[tuple[str, list[GoldPassage]]], predictions: Path, gold: Path
) -> list[Case]:
    """Return a case for each prediction, with the gold of the test that has the same query."""
    waiting: dict[str, list[list[GoldPassage]]] = defaultdict(list)
    for query, golds in tests:
        waiting[query].append(golds)
    asked = Counter(query for query, _ in predicted)
    unknown = [query for query in asked if query not in waiting]
    where = f"{predictions}: {len(unknown)} of {len(asked)} queries are not in {gold}"
    if len(unknown) == len(asked):
        raise ToolkitError(
            f"{predictions}: none of its {len(asked)} queries is in {gold} (the first: {_shorten(unknown[0])}); "
            "is this the right gold file?"
        )
    if unknown:
        print_note(
            f"{where} and are not counted, first {_shorten(unknown[0])}: impossible questions have no gold there"
        )
    predicted = [(query, passages) for query, passages in predicted if query in waiting]
    for query, times in asked.items():
        if query in waiting and times != len(waiting[query]):
            raise ToolkitError(
                f"{predictions}: the query {_shorten(query)} occurs {times} times, but {len(waiting[query])} times in "
                f"{gold}; it must occur equally often in both files"
            )
    if len(tests) > len(predicted):
        left = len(tests) - len(predicted)
        print_note(f"{left} of {len(tests)} tests in {gold} have no prediction and are not counted")
    return [
        Case(
            id=number,
            question=query,
            truth="",
            gold=tuple(waiting[query].pop(0)),
            reply=Reply(passages=tuple(Passage(text) for text in passages)),
        )
        for number, (query, passages) in enumerate(predicted)
    ]


# ---------------------------------------------------------------- files


def _read_predictions(path: Path) -> list[tuple[str, list[str]]]:
    rows = _load(path)
    if not isinstance(rows, list) or not rows:
        raise ToolkitError(
            f'{path}: must be a list of objects {{"query": …, "retrieved_passages": […]}}, with at least one'
        )
    predictions = []
    for number, row in enumerate(rows):
        where = f"{path}: prediction {number}"
        passages = _get_field(row, "retrieved_passages", list, where)
        if not all(isinstance(passage, str) for passage in passages):
            raise ToolkitError(f"{where}: retrieved_passages must be a list of strings, the best first")
        predictions.append((_get_field(row, "query", str, where), passages))
    return predictions


def _read_gold(path: Path) -> list[tuple[str, list[GoldPassage]]]:
    content = _load(path)
    golds_by_query = []
    for number, test in enumerate(_get_field(content, "tests", list, str(path))):
        where = f"{path}: test {number}"
        golds = []
        for place, snippet in enumerate(_get_field(test, "snippets", list, where)):
            file = _get_field(snippet, "file_path", str, f"{where}, snippet {place}")
            golds.append(GoldPassage(file, _read_answer(snippet, file, path, f"{where}, snippet {place}")))
        if not any(gold.text and gold.text.strip() for gold in golds):
            raise ToolkitError(f"{where}: no snippet has an answer to compare with; correct the gold file")
        golds_by_query.append((_get_field(test, "query", str, where), golds))
    return golds_by_query


def _read_answer(snippet: Any, file: str, gold: Path, where: str) -> str:
    """Return a snippet's text: its field `answer` or, without this field, the text at its span in `file`."""
    if "answer" in snippet or "span" not in snippet:
        return str(_get_field(snippet, "answer", str, where))
    start, end = [*_get_field(snippet, "span", list, where), 0, 0][:2]
    found = [root / "corpus" / file for root in (gold.parent, gold.parent.parent) if (root / "corpus" / file).is_file()]
    if not found:
        raise ToolkitError(
            f"{where}: no 'answer', and its span cannot be read, because corpus/{file} is not beside {gold}; "
            "add one of them"
        )
    return found[0].read_bytes().decode("utf-8")[start:end]


def _load(path: Path) -> Any:
    return parse_json(read_text(path).removeprefix("\ufeff"), where=path)


def _get_field(row: Any, name: str, kind: type, where: str) -> Any:
    if not isinstance(row, dict) or name not in row:
        raise ToolkitError(f"{where}: no {name!r}; see python score.py --help for the format")
    if not isinstance(row[name], kind):
        raise ToolkitError(f"{where}: {name!r} must be a {'list' if kind is list else 'string'}")
    return row[name]


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")


if __name__ == "__main__":
    sys.exit(main())
