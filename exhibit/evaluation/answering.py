"""Direct evaluation: a search server returns passages, and a language model answers from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.scoring import write_json
from exhibit.evaluation.statistics import compute_mean
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evidence import Span
from exhibit.rag.answerers import answer_all, assemble
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Hit
from exhibit.schemas.run import RunQuestion
from exhibit.schemas.run_folder import RunFolder

RESULTS = "direct_evaluation_results.json"


def make_answerer(options: TargetOptions) -> Callable[[Case, Reply], Reply]:
    """Return a function that adds the answer of the options' language model to the reply of a search server."""
    config, llm = options.config, Pipeline(options.config, cache=options.cache, llm=options.llm).llm

    def add_answer(case: Case, reply: Reply) -> Reply:
        starts = list(accumulate((len(passage.text) + 1 for passage in reply.passages), initial=0))[: config.k]
        hits = [
            Hit(item.filename or item.told_filename or "", Span(at, at + len(item.text)), item.text, item.score or 0.0,
                page=item.told_page)
            for at, item in zip(starts, reply.passages, strict=False)
        ]  # fmt: skip
        context = assemble(hits, summaries={}, budget=config.budget_tokens)
        [answer] = answer_all([(case.question, context)], config, llm)
        # a source may combine several passages: it gets the number of the last passage that begins before it
        ranks = {
            source.number: max(rank for rank, at in enumerate(starts, 1) if at <= source.span.start)
            for source in context.sources
        }
        read = tuple(ranks.values())
        reply = replace(reply, usage=dict(answer.usage), selected=len(read), context=read)
        if answer.error:
            return replace(reply, error=answer.error)
        return replace(reply, answer=renumber(answer.text, ranks))

    return add_answer


# ---------------------------------------------------------------- the file of the third seed


def write_direct_results(folder: Path) -> None:
    """Write each question of a run with its sources and scores, and means by the seed's labels."""
    rows = list(map(_flatten_row, RunFolder(folder).rows))
    groups: dict[str, dict[str, Any]] = {}
    for label in ("source_type", "category"):
        values = sorted({str(row[label]) for row in rows if row[label] is not None})
        groups[f"by_{label}"] = {v: _compute_means([row for row in rows if str(row[label]) == v]) for v in values}
    write_json(folder / RESULTS, {"overall": _compute_means(rows), **groups, "results": rows})


def _flatten_row(row: RunQuestion) -> dict[str, Any]:
    return {
        "question": row.question,
        "truth": row.truth,
        "answer": row.reply.answer,
        "error": row.reply.error or None,
        "sources": [passage.filename for passage in row.reply.passages],
        "source_type": row.labels.get("source_type"),
        "category": row.labels.get("category"),
        "metrics": dict(row.scores),
    }


def _compute_means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of questions and of failed questions, and the mean of each metric over the other questions."""
    scores = [row["metrics"] for row in rows if not row["error"]]
    names = sorted({name for metrics in scores for name in metrics})
    means = {name: compute_mean(metrics.get(name) for metrics in scores) for name in names}
    return {"count": len(rows), "failed": len(rows) - len(scores), "metrics": means}
