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
from exhibit.evaluation.servers.server import Server
from exhibit.evaluation.target_protocol import NumberedReply, Target, TargetOptions
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evidence import Span
from exhibit.models.llms import choose_counter
from exhibit.rag.answerers import open_answerer
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Chunk, Hit
from exhibit.rag.retrieval.stages import assemble
from exhibit.schemas.run import Ingestion
from exhibit.schemas.run_folder import RunFolder

RESULTS = "direct_evaluation_results.json"
_GROUPS = ("source_type", "category")
"""The labels that the results are grouped by, as in the seed project for Azure AI Search."""


def with_answers(target: Target, options: TargetOptions) -> Target:
    """Return a target whose replies contain answers.

    For a search server, which returns only passages, the configured language model writes the answers.
    """
    if not options.answers or options.config.llm == "none" or not isinstance(target, Server):
        return target
    told = target.system.reply.answer  # None: the field of the answer is not configured and is detected in the reply
    return AnsweringTarget(target, options) if told is not None and not any(told) else target


class AnsweringTarget:
    """A search server combined with a language model that answers from the first passages."""

    def __init__(self, search: Target, options: TargetOptions) -> None:
        self._search, self._options, config = search, options, options.config
        llm = Pipeline(config, cache=options.cache, llm=options.llm).llm
        self._answerer = open_answerer(config, llm=llm)
        self._tokens = choose_counter(config.llm.partition(":")[2] or None)
        self.name, self.exact = f"{search.name} + {config.llm}", search.exact

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Probe the search server, and return its notes for the user."""
        return self._search.probe(dataset, cases)

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Return what the search server reports about the documents that it holds."""
        return self._search.ingest(dataset)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield one reply for each case: the server's passages with the language model's answer.

        A failed search yields the server's failed reply.
        """

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
        context = assemble(case.question, hits, summaries={}, budget=config.budget, tokens=self._tokens)
        answer = self._answerer.answer(case.question, context)
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
    """Return the passages of a reply as hits.

    The spans are offsets in a made-up text that joins all passages, so that two hits never have the same span.
    """
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
    """Write the results of a run to one JSON file: the scores of each question, and means.

    The means are over all questions, by source type and by category. The format is that of one of the projects
    that Exhibit reproduces (see docs/differences.md).
    """
    results: list[dict[str, Any]] = [
        {
            "question": row.question,
            "truth": row.truth,
            "answer": row.reply.answer,
            "error": row.reply.error or None,
            "sources": [passage.filename for passage in row.reply.passages],
            **{label: row.labels.get(label) for label in _GROUPS},
            "metrics": dict(row.scores),
        }
        for row in RunFolder(folder).rows
    ]
    groups = {
        f"by_{label}": {
            str(value): _compute_means([one for one in results if one[label] == value])
            for value in sorted({one[label] for one in results if one[label] is not None}, key=str)
        }
        for label in _GROUPS
    }
    write_json(folder / RESULTS, {"overall": _compute_means(results), **groups, "results": results})


def _compute_means(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of questions and the mean of each metric; failed questions are in no mean."""
    names = sorted({name for one in results for name in one["metrics"]})
    values = {
        name: [one["metrics"][name] for one in results if one["metrics"].get(name) is not None and not one["error"]]
        for name in names
    }
    metrics = {name: sum(some) / len(some) if some else None for name, some in values.items()}
    return {"count": len(results), "failed": sum(bool(one["error"]) for one in results), "metrics": metrics}
