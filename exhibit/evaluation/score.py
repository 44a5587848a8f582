"""Score retrieved passages against a gold file: exact match, span F1, recall@K, nDCG@K.

examples:
    python score.py predictions.json gold.json [--k 10] [--output results.json] [--parity seed]

predictions.json: [{"query": "…", "retrieved_passages": ["…", …]}, …]
gold.json:        {"tests": [{"query": "…", "snippets": [{"file_path": "…", "span": [0, 9], "answer": "…"}]}, …]}
"""

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.metrics import K, Options, measure
from exhibit.evaluation.statistics import compute_mean
from exhibit.runtime.command import add_json, build_parser, guarded, parse_positive, print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults, read_text
from exhibit.storage.atomic import write_whole


class _Prediction(BaseModel):
    query: str
    retrieved_passages: list[str]


class _Snippet(BaseModel):
    file_path: str
    span: tuple[int, int] | None = None
    answer: str | None = None


class _Test(BaseModel):
    query: str
    snippets: list[_Snippet]


class _Gold(BaseModel):
    tests: list[_Test]


_PREDICTIONS = TypeAdapter(Annotated[list[_Prediction], Field(min_length=1)])


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser("python score.py", __doc__)
    add = parser.add_argument
    add("predictions", type=Path, metavar="predictions.json", help="the retrieved passages, best first")
    add("gold", type=Path, metavar="gold.json", help="the queries with the snippets that answer them")
    add("--k", type=parse_positive, default=K, metavar="K", help=f"cutoff rank of recall and nDCG (default: {K})")
    add("--output", type=Path, metavar="FILE", help="also write the results to this file, as JSON")
    seed = "seed: match texts as the first specification does: if one contains the other, even if it is a single word"
    add("--parity", choices=["seed"], default="", help=seed)
    add_json(parser)
    options = parser.parse_args(argv)
    results = score(options.predictions, options.gold, k=options.k, parity=options.parity)
    if options.output:
        write_whole(options.output, json.dumps(results, indent=2) + "\n")
    figures = [f"{name}: {value:.4f}" for name, value in results.items()]
    print_results(results, "\n".join(["Evaluation Results:", "=" * 26, *figures, "=" * 26]), as_json=options.json)
    return 0


def score(predictions: Path, gold: Path, *, k: int = K, parity: Literal["", "seed"] = "") -> dict[str, float]:
    """Return the means of exact match, span F1, recall@K and nDCG@K, and the number of examples."""
    cases = _pair_cases(predictions, gold)
    names = ["exact_match", "span_f1", f"recall@{k}", f"ndcg@{k}"]
    values = measure(cases, Options(k=k, parity=parity), names=names)
    return {**{name: compute_mean(values[name]) or 0.0 for name in names}, "num_examples": len(cases)}


def _pair_cases(predictions: Path, gold: Path) -> list[Case]:
    predicted, tests = _read(predictions, _PREDICTIONS), _read(gold, TypeAdapter(_Gold)).tests
    waiting: dict[str, list[tuple[GoldPassage, ...]]] = defaultdict(list)
    for number, test in enumerate(tests):
        where = f"{gold}: test {number}"
        golds = tuple(GoldPassage(snippet.file_path, _read_answer(snippet, gold, where)) for snippet in test.snippets)
        if not any(passage.text and passage.text.strip() for passage in golds):
            raise ToolkitError(f"{where}: no snippet has an answer to compare with; correct the gold file")
        waiting[test.query].append(golds)
    paired = [(reply, waiting[reply.query].pop(0) if waiting[reply.query] else None) for reply in predicted]
    cases = [
        Case(number, reply.query, "", golds, reply=Reply(passages=tuple(map(Passage, reply.retrieved_passages))))
        for number, (reply, golds) in enumerate(paired)
        if golds is not None
    ]
    if not cases:
        raise ToolkitError(f"{predictions}: none of its queries is in {gold}; is this the right gold file?")
    if unknown := [reply.query for reply, golds in paired if golds is None]:
        where = f"{len(unknown)} of {len(predicted)} queries are not in {gold} (the first: {unknown[0][:80]!r})"
        print_note(f"{predictions}: {where} and are not counted (a gold file does not list impossible questions)")
    if len(tests) > len(cases):
        print_note(f"{len(tests) - len(cases)} of {len(tests)} tests in {gold} have no prediction and are not counted")
    return cases


def _read(path: Path, form: TypeAdapter[Any]) -> Any:
    try:
        return form.validate_json(read_text(path))
    except ValidationError as error:
        fault = format_faults(error, most=1)
        raise ToolkitError(f"{path}: {fault}; see python score.py --help for the format") from error


def _read_answer(snippet: _Snippet, gold: Path, where: str) -> str:
    """Return a snippet's `answer` or, without it, the text at its span in the corpus beside the gold file."""
    if snippet.answer is not None:
        return snippet.answer
    paths = [root / "corpus" / snippet.file_path for root in (gold.parent, gold.parent.parent)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None or snippet.span is None:
        needed = f"a snippet needs 'answer', or 'span' and corpus/{snippet.file_path} beside the gold file"
        raise ToolkitError(f"{where}: {needed}; add one of them")
    return path.read_bytes().decode("utf-8")[slice(*snippet.span)]


if __name__ == "__main__":
    sys.exit(main())
