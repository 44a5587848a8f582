"""Direct evaluation: a search server returns passages, and a language model answers from them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.scoring import write_json
from exhibit.evaluation.statistics import compute_mean
from exhibit.evaluation.targets import NumberedReply, Target, TargetOptions
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evaluation.targets.http import Server
from exhibit.evidence import Span
from exhibit.rag.answerers import answer_all, assemble
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Hit
from exhibit.schemas.run import RunQuestion
from exhibit.schemas.run_folder import RunFolder

RESULTS = "direct_evaluation_results.json"


def with_answers(target: Target, options: TargetOptions) -> Target:
    if not options.answers or options.config.llm == "none" or not isinstance(target, Server):
        return target
    return AnsweringTarget(target, options) if target.paths.answer == ("",) else target


class AnsweringTarget:
    """A search server combined with a language model that answers from the first passages."""

    def __init__(self, search: Target, options: TargetOptions) -> None:
        self._search, self._threads, self._config = search, options.threads, options.config
        self.probe, self.ingest = search.probe, search.ingest
        self._llm = Pipeline(options.config, cache=options.cache, llm=options.llm).llm
        self.name, self.exact = f"{search.name} + {options.config.llm}", search.exact

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        def answer(searched: NumberedReply) -> NumberedReply:
            return searched._replace(reply=self._answer_from(cases[searched.position], searched.reply))

        with ThreadPoolExecutor(self._threads) as pool:
            searched = self._search.ask(dataset, cases)
            while batch := list(islice(searched, self._threads)):  # each batch is journaled before the next begins
                yield from pool.map(answer, batch)

    def _answer_from(self, case: Case, reply: Reply) -> Reply:
        if reply.error:
            return reply
        began, config = time.monotonic(), self._config
        starts = list(accumulate((len(passage.text) + 1 for passage in reply.passages), initial=0))[: config.k]
        hits = [
            Hit(one.filename or one.told_filename or "", Span(at, at + len(one.text)), one.text, one.score or 0.0,
                page=one.told_page)
            for at, one in zip(starts, reply.passages, strict=False)
        ]  # fmt: skip
        context = assemble(hits, summaries={}, budget=config.budget_tokens)
        [answer] = answer_all([(case.question, context)], config, self._llm)
        seconds = (reply.seconds or 0.0) + time.monotonic() - began
        # a source may combine several passages: it gets the number of the last passage that begins before it
        ranks = {
            source.number: max(rank for rank, at in enumerate(starts, 1) if at <= source.span.start)
            for source in context.sources
        }
        read = tuple(ranks.values())
        reply = replace(reply, seconds=seconds, usage=dict(answer.usage), selected=len(read), context=read)
        if answer.error:
            return replace(reply, error=answer.error)
        return replace(reply, answer=renumber(answer.text, ranks))


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
