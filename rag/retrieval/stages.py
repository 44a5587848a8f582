"""The stages of the seed's recipe, each a small step that a setting switches on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.models.rerankers import Reranker, retrieval_weight
from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


Tokens = Callable[[str], int]


@dataclass(frozen=True)
class Parts:
    """What retrieval works with."""

    index: Index
    embedder: Embedder
    config: Config
    tokens: Tokens
    """How many tokens a text has."""
    reranker: Reranker | None = None
    llm: LLM | None = None
    only: tuple[int, ...] | None = None
    """The numbers of the documents that are searched; None = all."""

    @property
    def chunk_keys(self) -> Keys | None:
        """The keys of the chunks that are searched; None = all."""
        return None if self.only is None else self.index.chunk_keys(self.only)


@dataclass
class State:
    """One question on its way: ranked chunks, and what each stage did."""

    question: str
    vector: npt.NDArray[np.float32]
    keys: Keys
    scores: Scores
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Retrieved:
    """What was found for a question."""

    question: str
    ranked: tuple[Hit, ...]
    """All passages in order, as deep as was asked: metrics at k are prefixes of this."""
    selected: tuple[Hit, ...]
    """The few that an answer is made from."""
    trace: dict[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    """How likely it is that an answer is among the first passages; None where nobody can tell."""
    note: str = ""
    """Which version of a law the passages are from, as it says itself; an answer says it, too."""
    named: int = 0
    """How many of the first passages the question names by their number: they are the answer, whatever its words."""


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, *, first: int = 32) -> list[Hit]:
    """Return the hits with the `first` ones by the reranker's score, equals as they were; the rest as it was.

    Scores stay in the order that they had, so that they fall from first to last as every ranking's do: a
    reranker's scale has nothing in common with that of the hits behind it.
    """
    head = list(hits[:first])
    scores = reranker.score(question, [hit.text for hit in head])
    order = order_by(scores, [hit.score for hit in head], weight=retrieval_weight(reranker))
    moved = [replace(head[at], score=place.score) for place, at in zip(head, order, strict=True)]
    return [*moved, *hits[first:]]


def order_by(judged: Sequence[float], retrieved: Sequence[float], *, weight: float | None) -> list[int]:
    """Return places, best first, by the reranker's score, joined with the retrieval's where that has a weight."""
    if not len(judged):
        return []
    scores = np.asarray(judged, np.float64)
    if weight is not None:
        scores = _standard(scores) + weight * _standard(np.asarray(retrieved, np.float64))
    return [int(at) for at in np.argsort(-scores, kind="stable")]


def _standard(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values in standard deviations from their mean; zero where they do not differ."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def choose_documents(state: State, index: Index, config: Config) -> None:
    """Keep the best documents, judged by their passages among the first candidates; rank again within them."""
    if not config.document_limit or not len(state.keys):
        return
    first = state.keys[: config.candidates * config.k]
    scores: dict[int, list[float]] = defaultdict(list)
    for number, score in zip(index.document_numbers(first), state.scores, strict=False):
        scores[int(number)].append(float(score))
    judged = {
        number: config.document_max * max(cosines) + config.document_mean * float(np.mean(cosines))
        for number, cosines in scores.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    state.trace["documents"] = {index.document(number).filename: round(judged[number], 4) for number in best}
    if config.layer_documents or config.layer_sections:  # what the layers above left out stays out
        kept = np.isin(index.document_numbers(state.keys), best)
        state.keys, state.scores = state.keys[kept], state.scores[kept]
        return
    [scores_within], [keys_within] = index.store("chunk").search(
        state.vector[None], len(state.keys), within=index.chunk_keys(best)
    )
    kept = keys_within >= 0
    state.keys, state.scores = keys_within[kept], scores_within[kept]


def finish(
    question: str,
    hits: list[Hit],
    parts: Parts,
    trace: dict[str, Any],
    *,
    reranked: bool = False,
    confidence: float | None = None,
) -> Retrieved:
    """Return the ranking, looked at a second time if there is a reranker, and what an answer is made from.

    `reranked` says that the second look has been taken. Where the confidence is below the config's, an answer is made
    from nothing, and so is a refusal, whoever writes it; but for the reader, which decides with that confidence itself.
    """
    config = parts.config
    if parts.reranker is not None and not reranked:
        hits = rerank(question, hits, parts.reranker, first=config.rerank)
        trace["reranked"] = {"by": parts.reranker.name, "passages": min(config.rerank, len(hits))}
    near = near_the_best(hits[: config.candidates * config.k], config)
    fitting = within_budget(near, config, parts.tokens)
    selected = fitting[: config.k]
    unlikely = confidence is not None and confidence < (config.refuse_below or 0.0)
    if unlikely and not config.reads:
        selected = []
    trace["selected"] = {"near": len(near), "within budget": len(fitting), "k": len(selected)}
    return Retrieved(question, tuple(hits[: config.depth]), tuple(selected), trace, confidence)


def near_the_best(hits: list[Hit], config: Config) -> list[Hit]:
    """Drop passages that score lower than the best by more than the threshold, but keep so many at least."""
    if config.threshold is None or not hits:
        return hits
    least = hits[0].score - config.threshold
    return [hit for place, hit in enumerate(hits) if hit.score >= least or place < config.min_chunks]


def within_budget(hits: list[Hit], config: Config, tokens: Tokens) -> list[Hit]:
    """Keep passages from the front while they fit; the first one always does."""
    kept: list[Hit] = []
    spent = 0
    for hit in hits:
        spent += tokens(hit.text)
        if kept and spent > config.budget:
            break
        kept.append(hit)
    return kept
