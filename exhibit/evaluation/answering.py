"""Direct evaluation: a search server returns passages, and a language model answers from them."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.records import write_json
from exhibit.evaluation.targets import NumberedReply, Target, TargetOptions
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evaluation.targets.http import Server
from exhibit.evidence import Span
from exhibit.rag.answerers import answer_all
from exhibit.rag.context import assemble
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Chunk, Hit
from exhibit.schemas.run import Ingestion
from exhibit.schemas.run_folder import RunFolder

RESULTS = "direct_evaluation_results.json"
GROUP_LABELS = ("source_type", "category")


def with_answers(target: Target, options: TargetOptions) -> Target:
    """Return a target whose replies contain answers."""
    if not options.answers or options.config.llm == "none" or not isinstance(target, Server):
        return target
    return AnsweringTarget(target, options) if target.paths.answer == ("",) else target


class AnsweringTarget:
    """A search server combined with a language model that answers from the first passages."""

    def __init__(self, search: Target, options: TargetOptions) -> None:
        self._search, self._options, config = search, options, options.config
        self._llm = Pipeline(config, cache=options.cache, llm=options.llm).llm
        self.name, self.exact = f"{search.name} + {config.llm}", search.exact

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Probe the search server, and return its notes for the user."""
        return self._search.probe(dataset, cases)

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Return what the search server reports about the documents that it holds."""
        return self._search.ingest(dataset)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield one reply for each case: the server's passages with the language model's answer."""

        def answer(searched: NumberedReply) -> NumberedReply:
            return searched._replace(reply=self._answer_from(cases[searched.position], searched.reply))

        with ThreadPoolExecutor(self._options.threads) as pool:
            searched = self._search.ask(dataset, cases)
            while batch := list(islice(searched, self._options.threads)):  # a batch is journaled before the next
                yield from pool.map(answer, batch)

    def _answer_from(self, case: Case, reply: Reply) -> Reply:
        if reply.error:
            return reply
        began, config = time.monotonic(), self._options.config
        hits = _make_hits(reply)[: config.k]
        context = assemble(hits, summaries={}, budget=config.budget_tokens)
        [answer] = answer_all([(case.question, context)], config, self._llm)
        seconds = (reply.seconds or 0.0) + time.monotonic() - began
        starts = [hit.chunk.span.start for hit in hits]
        ranks = {
            source.number: max(rank for rank, start in enumerate(starts, 1) if start <= source.hit.chunk.span.start)
            for source in context.sources
        }
        read = tuple(ranks.values())
        reply = replace(reply, seconds=seconds, usage=dict(answer.usage), selected=len(read), context=read)
        if answer.error:
            return replace(reply, error=answer.error)
        return replace(reply, answer=renumber(answer.text, ranks))


def _make_hits(reply: Reply) -> list[Hit]:
    """Return the passages of a reply as hits."""
    texts = [passage.text for passage in reply.passages]
    starts = accumulate((len(text) + 1 for text in texts), initial=0)
    return [
        Hit(
            Chunk(one.filename or one.told_filename or "", Span(start, start + len(one.text)), page=one.told_page),
            one.score or 0.0,
            one.text,
        )
        for start, one in zip(starts, reply.passages, strict=False)
    ]


def write_direct_results(folder: Path) -> None:
    """Write the file of the third seed: each question with its sources and scores, and means by the seed's labels."""
    rows = [
        {
            "question": row.question,
            "truth": row.truth,
            "answer": row.reply.answer,
            "error": row.reply.error or None,
            "sources": [passage.filename for passage in row.reply.passages],
            **{label: row.labels.get(label) for label in GROUP_LABELS},
            "metrics": dict(row.scores),
        }
        for row in RunFolder(folder).rows
    ]
    groups = {
        f"by_{label}": {
            str(value): _compute_means([row for row in rows if row[label] == value])
            for value in sorted({row[label] for row in rows if row[label] is not None}, key=str)
        }
        for label in GROUP_LABELS
    }
    write_json(folder / RESULTS, {"overall": _compute_means(rows), **groups, "results": rows})


def _compute_means(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of questions, the number of failed ones, and the mean of each metric over the others."""
    answered = [row["metrics"] for row in rows if not row["error"]]
    metrics = {}
    for name in sorted({name for scores in answered for name in scores}):
        values = [scores[name] for scores in answered if scores.get(name) is not None]
        metrics[name] = sum(values) / len(values) if values else None
    return {"count": len(rows), "failed": len(rows) - len(answered), "metrics": metrics}
