"""The way of a question to its passages: understand, choose documents, rank passages, select those for the answer."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from exhibit.evidence import Span
from exhibit.law.language import language_of, list_asked_terms
from exhibit.models.llms import count_tokens
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.rerankers import Reranker, find_retrieval_weight
from exhibit.rag.config import Config
from exhibit.rag.documents import Choice
from exhibit.rag.index import DOCUMENT, END, KEY, SECTION, START, Index
from exhibit.rag.laws import Route, route_to_law
from exhibit.rag.passages import RankedPassage, make_hits
from exhibit.rag.protocols import Hit, Keys, Retrieved, Scores, make_section_key, make_section_keys
from exhibit.rag.questions import Query, is_written_as_name, understand
from exhibit.rag.rank import order_by, rank_passages

_BATCH_QUESTIONS = 256  # enough for matrix products, few enough that scores need little memory
_MAX_DOCUMENTS = 8  # that are searched; for a question that names none, all documents are
_MIN_PROBABILITY = 0.5
"""The least probability that the searched documents have together: one of them is then more likely meant than not. None
of LegalBench-RAG-mini's 776 questions is below it, as published or reworded. Without the documents' names 156 are
below it, and for 127 of these the answer was in none of the eight searched documents.
"""
_ENOUGH_PROBABILITY = 0.99
"""The probability of the searched documents above which no further document is searched: where one document is certain,
seven searches are saved. From 0.5 to 0.999 the figures on LegalBench-RAG-mini are the same.
"""
_NAMES_APART, _WORDS_APART = 1.0, 0.2
"""Weights of a document's names and of its best chunk's BM25 score, where the question names a document apart.
With 0.2 the names of all 776 questions on LegalBench-RAG-mini still choose the right document, with 0.3 of 774."""
_NAMES_WITHIN, _WORDS_WITHIN = 0.8, 0.4
"""The same weights where words of the question only look like a name. With 0.6 and 0.6, fitted to training/people, 2.3%
of the first eight passages for 200 freely worded questions on LegalBench-RAG-mini are in a wrong document and R@64 is
93.5; with these 0.8% and 94.1, and on OHR-Bench's 621 questions the right document is first for 95.2 instead of 95.3%.
"""
_WORDED_CHUNKS = 2048  # whose BM25 scores are compared: in a larger collection the others match too little
_CANDIDATES_PER_K = 2  # the seed's 2k candidates, by which documents and passages are chosen
_BEST_SHARE, _MEAN_SHARE = 0.6, 0.4  # of a document's score: its best passage, and the mean of its passages


@dataclass(frozen=True)
class Parts:
    """The index, the models and the settings that retrieval uses."""

    index: Index
    embedder: Embedder
    config: Config
    reranker: Reranker | None = None
    only: tuple[int, ...] | None = None
    """The numbers of the documents that are searched; None = all."""

    @property
    def depth(self) -> int:
        """The number of passages that are ranked."""
        return max(self.config.depth, _CANDIDATES_PER_K * self.config.k)

    @property
    def chunk_keys(self) -> Keys | None:
        """The keys of the chunks that are searched; None = all."""
        return None if self.only is None else self.index.chunk_keys(self.only)


def retrieve(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return the retrieved passages of each question, in order; none for a blank question."""
    carried = is_written_as_name
    if parts.config.routing:
        carried = partial(parts.index.names.has_rare_name, filenames=parts.config.filenames)
    queries = [understand(question, carried) for question in questions]
    results = [Retrieved(query, (), (), {"search": "blank question"}) for query in queries]
    asked = [position for position, query in enumerate(queries) if query.question.strip()]
    if not len(parts.index) or parts.only == ():
        return results
    search = _retrieve_routed if parts.config.routing else _retrieve_chunks
    for start in range(0, len(asked), _BATCH_QUESTIONS):
        batch = asked[start : start + _BATCH_QUESTIONS]
        for position, found in zip(batch, search([queries[position] for position in batch], parts), strict=True):
            results[position] = found
    return results


# ---------------------------------------------------------------- routed retrieval


def _retrieve_routed(queries: Sequence[Query], parts: Parts) -> list[Retrieved]:
    """Return the passages of each question from the documents that the question means."""
    vectors = parts.embedder.embed([query.asks for query in queries], role="query")
    return [_route(query, vector, parts) for query, vector in zip(queries, vectors, strict=True)]


def _route(query: Query, vector: Vectors, parts: Parts) -> Retrieved:
    index, config = parts.index, parts.config
    english = language_of(query.question) == "en"
    choice, documents = choose_documents(query, parts, english=english)
    law = route_to_law(query.question, index)
    if law and law.documents:
        documents = dict.fromkeys(law.documents, 0.0)
    if parts.only is not None:
        weights = dict(zip(choice.numbers.tolist(), choice.log_weights.tolist(), strict=True))
        documents = {number: weights.get(number, 0.0) for number in parts.only}
    fused = parts.reranker is not None and find_retrieval_weight(parts.reranker) is not None
    ranking = rank_passages(
        query.asks if english else query.question,
        vector,
        index,
        documents=documents,
        depth=parts.depth,
        size=config.passage_characters,
        english=english,
        reranker=parts.reranker if fused else None,
        rerank=config.rerank,
    )
    likeliest = {index.document(number).filename: why for number, why in choice.explain().items()}
    trace: dict[str, Any] = {
        "query": {"names": query.names, "asks": query.asks, "kind": query.kind},
        "documents": {"likeliest": likeliest, "kept": len(documents) if documents else "any"},
        "passages": ranking.trace,
    }
    hits = make_hits(index, _put_first(law, ranking.passages))
    before = None if ranking.before is None else make_hits(index, _put_first(law, ranking.before))
    # paragraphs that the question cites by number rank first, and are not reranked
    final = fused or law is not None
    found = _select(query, hits, parts, trace, fused=final, confidence=ranking.confidence, before=before)
    found = replace(found, vector=vector)
    if law is None:
        return found
    trace["law"] = {"versions": len(law.documents), "version": law.note, "nothing": law.nothing}
    selected = () if law.nothing else found.selected
    return replace(found, selected=selected, note=law.note, named=len(law.passages))


def choose_documents(query: Query, parts: Parts, *, english: bool) -> tuple[Choice, dict[int, float] | None]:
    """Return the documents' probabilities, and the documents to search with their log-weights.

    None searches all documents. A capital does not mark a name in German, since all nouns have one.
    """
    choice = parts.index.names.score(query, filenames=parts.config.filenames)
    if not english or _choose_likely(choice) is None:
        return choice, None
    choice = _add_content(choice, query, parts.index)
    return choice, _choose_likely(choice)


def _choose_likely(choice: Choice) -> dict[int, float] | None:
    """Return the likeliest documents with their log-weights; None if all must be searched.

    A word such as `IP` or a kind such as `nda` makes hundreds of documents a little likelier, and a choice of a few of
    them would be arbitrary.
    """
    if not len(choice.log_weights) or np.ptp(choice.log_weights) < 1e-9:
        return None
    likely = choice.choose_best(_MAX_DOCUMENTS, share=_ENOUGH_PROBABILITY)
    return likely if np.exp(list(likely.values())).sum() >= _MIN_PROBABILITY else None


def _add_content(choice: Choice, query: Query, index: Index) -> Choice:
    """Return the documents' probabilities, updated by the BM25 score of each document's best chunk."""
    scores, keys = index.chunks.search(list_asked_terms(query.asks), _WORDED_CHUNKS)
    if not len(keys):
        return choice
    owners = index.table[np.searchsorted(index.table[:, KEY], keys), DOCUMENT]
    best = np.full(len(choice.numbers), scores[-1] if len(keys) == _WORDED_CHUNKS else 0.0)
    np.maximum.at(best, np.searchsorted(choice.numbers, owners), scores)
    names, words = (_NAMES_APART, _WORDS_APART) if query.apart else (_NAMES_WITHIN, _WORDS_WITHIN)
    return choice.add_signal("words", words * (best - best.max()) + (names - 1) * choice.log_weights)


def _put_first(law: Route | None, passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the paragraphs that a question cites, then the other passages that do not overlap them."""
    named = law.passages if law else ()
    best = max((passage.score for passage in passages), default=0.0)
    first = [passage._replace(score=best + len(named) - at) for at, passage in enumerate(named)]
    return first + [other for other in passages if not any(_overlaps(other, passage) for passage in named)]


def _overlaps(one: RankedPassage, other: RankedPassage) -> bool:
    return one.document == other.document and one.span.start < other.span.end and other.span.start < one.span.end


# ---------------------------------------------------------------- ranking by one kind of evidence


def _retrieve_chunks(queries: Sequence[Query], parts: Parts) -> list[Retrieved]:
    """Return the chunks of each question, ranked by their vectors or by their words."""
    config, index = parts.config, parts.index
    if config.method != "dense":
        return [_search_words(query, parts) for query in queries]
    vectors = parts.embedder.embed([query.question for query in queries], role="query")
    if config.layer_documents or config.layer_sections:
        found = [_search_layers(vector, parts) for vector in vectors]
    else:
        scores, keys = index.store("chunk").search(vectors, parts.depth, within=parts.chunk_keys)
        found = [(*pair, {}) for pair in zip(scores, keys, strict=True)]
    results = []
    for query, vector, (scores, keys, trace) in zip(queries, vectors, found, strict=True):
        keys, scores = keys[keys >= 0], scores[keys >= 0]
        trace["search"] = {"layer": "chunk", "depth": parts.depth, "found": len(keys)}
        if config.document_limit and len(keys):
            keys, scores = _limit_documents(vector, keys, scores, index, config, trace)
        results.append(_select(query, _make_chunk_hits(index, keys, scores), parts, trace))
    return results


def _search_words(query: Query, parts: Parts) -> Retrieved:
    terms, within, words = list_asked_terms(query.question), parts.chunk_keys, parts.index.chunks
    depth = parts.depth if within is None else len(words)
    scores, keys = words.search(terms, depth, method=parts.config.method)
    if within is not None:
        inside = np.isin(keys, within)
        scores, keys = scores[inside][: parts.depth], keys[inside][: parts.depth]
    trace = {"search": {"method": parts.config.method, "depth": parts.depth, "found": len(keys)}}
    return _select(query, _make_chunk_hits(parts.index, keys, scores), parts, trace)


def _search_layers(vector: Vectors, parts: Parts) -> tuple[Scores, Keys, dict[str, Any]]:
    """Return the nearest chunks of the nearest sections of the nearest documents, and a trace of the search."""
    index, config = parts.index, parts.config
    numbers = np.array(index.numbers if parts.only is None else parts.only, np.int64)
    trace: dict[str, Any] = {}
    if config.layer_documents:
        _, [near] = index.store("document").search(vector[None], config.layer_documents, within=numbers)
        numbers = near[near >= 0]
        trace["documents layer"] = [index.document(int(number)).filename for number in numbers]
    keys = index.chunk_keys(numbers)
    if config.layer_sections:
        counts = {number: len(index.document(number).sections) for number in sorted(numbers.tolist())}
        within = np.concatenate([np.zeros(0, np.int64), *(make_section_keys(*pair) for pair in counts.items())])
        _, [near] = index.store("section").search(vector[None], config.layer_sections, within=within)
        rows = index.table[np.searchsorted(index.table[:, KEY], keys)]
        keys = keys[np.isin(make_section_key(rows[:, DOCUMENT], np.maximum(rows[:, SECTION], 0)), near)]
        trace["sections layer"] = {"chunks": len(keys)}
    [scores], [nearest] = index.store("chunk").search(vector[None], parts.depth, within=keys)
    return scores, nearest, trace


def _limit_documents(
    vector: Vectors, keys: Keys, scores: Scores, index: Index, config: Config, trace: dict[str, Any]
) -> tuple[Keys, Scores]:
    """Return the chunks of the `document_limit` best documents, which are searched again if no layer was.

    A document's score combines the highest and the mean score of its chunks among the first candidates.
    """
    candidates: dict[int, list[float]] = defaultdict(list)
    first = keys[: _CANDIDATES_PER_K * config.k]
    for number, score in zip(index.find_document_numbers(first), scores, strict=False):
        candidates[int(number)].append(float(score))
    judged = {
        number: _BEST_SHARE * max(cosines) + _MEAN_SHARE * float(np.mean(cosines))
        for number, cosines in candidates.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    trace["documents"] = {index.document(number).filename: round(judged[number], 4) for number in best}
    if config.layer_documents or config.layer_sections:  # chunks that the upper layers excluded stay excluded
        inside = np.isin(index.find_document_numbers(keys), best)
        return keys[inside], scores[inside]
    [scores], [within] = index.store("chunk").search(vector[None], len(keys), within=index.chunk_keys(best))
    return within[within >= 0], scores[within >= 0]


def _make_chunk_hits(index: Index, keys: Keys, scores: Scores) -> list[Hit]:
    rows = np.searchsorted(index.table[:, KEY], keys)
    chunks = zip(rows.tolist(), index.table[rows].tolist(), scores.tolist(), strict=True)
    return make_hits(
        index, [RankedPassage(row[DOCUMENT], Span(row[START], row[END]), score, at) for at, row, score in chunks]
    )


# ---------------------------------------------------------------- the selection for an answer


def _select(
    query: Query,
    hits: list[Hit],
    parts: Parts,
    trace: dict[str, Any],
    *,
    fused: bool = False,
    confidence: float | None = None,
    before: Sequence[Hit] | None = None,
) -> Retrieved:
    """Return the ranked passages, reranked unless that is done (`fused`), and those selected for the answer.

    If the confidence is below `refuse_below`, none are selected, so that the answerer refuses. Only the answerer
    `reader` still gets the passages, because it uses the confidence itself.
    """
    config = parts.config
    if parts.reranker is not None and not fused:
        before, hits = hits, rerank_hits(query.question, hits, parts.reranker, first=config.rerank)
        trace["reranked"] = {"by": parts.reranker.name, "passages": min(config.rerank, len(hits))}
    candidates = hits[: _CANDIDATES_PER_K * config.k]
    near = _keep_near_best(candidates, config)
    fitting = _keep_within_budget(near, config.budget_tokens)
    selected = fitting[: config.k]
    cut_by = "number" if len(hits) > len(selected) else ""
    if len(selected) < min(config.k, len(candidates)):
        cut_by = "budget" if len(fitting) < len(near) else "threshold"
    if confidence is not None and confidence < (config.refuse_below or 0.0) and not config.reads:
        selected, cut_by = [], "confidence"
    trace["selected"] = {"near": len(near), "within budget": len(fitting), "k": len(selected)}
    return Retrieved(
        query,
        tuple(hits[: config.depth]),
        tuple(selected),
        trace,
        confidence=confidence,
        before=None if before is None else tuple(before[: config.depth]),
        cut_by=cut_by,
    )


def rerank_hits(question: str, hits: Sequence[Hit], reranker: Reranker, *, first: int) -> list[Hit]:
    """Return the hits with the first ones sorted again by a reranker.

    A hit that moves gets the retrieval score of its new rank, so that the scores in the list still decrease.
    """
    head = list(hits[:first])
    scores = reranker.score(question, [hit.text for hit in head])
    order = order_by(scores, [hit.score for hit in head], weight=find_retrieval_weight(reranker))
    return [*(replace(head[at], score=old.score) for old, at in zip(head, order, strict=True)), *hits[first:]]


def _keep_near_best(hits: list[Hit], config: Config) -> list[Hit]:
    if config.threshold is None or not hits:
        return hits
    least = hits[0].score - config.threshold
    return [hit for rank, hit in enumerate(hits) if hit.score >= least or rank < config.min_chunks]


def _keep_within_budget(hits: list[Hit], budget: int) -> list[Hit]:
    """Return the first passages that fit the token budget; the first one is always kept."""
    tokens = np.cumsum([count_tokens(hit.text) for hit in hits])
    return hits[: max(1, int(np.searchsorted(tokens, budget, side="right")))]
