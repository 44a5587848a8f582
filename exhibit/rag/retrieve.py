"""Retrieval for a question: parse it, choose documents, rank passages, select the passages for the answer."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from exhibit.law.language import list_asked_terms
from exhibit.models.llms import count_tokens
from exhibit.models.protocols import Vectors
from exhibit.rag.config import Config
from exhibit.rag.documents import Choice, normalise
from exhibit.rag.index import DOCUMENT, Index, list_section_keys
from exhibit.rag.laws import route_to_law
from exhibit.rag.passages import RankedPassage, make_hits
from exhibit.rag.protocols import Hit, Keys, Retrieved, Scores, make_section_keys
from exhibit.rag.questions import Query, is_written_as_name, understand
from exhibit.rag.rank import CANDIDATES_PER_K, Parts, make_chunk_passages, rank_passages, rerank

_BATCH_QUESTIONS = 256  # enough for matrix products, few enough that scores need little memory
_MAX_DOCUMENTS = 8  # most documents that are searched; all are searched if the question names none
# without the documents' names, 156 of mini's 776 questions are below it; as published or reworded, none is
_MIN_PROBABILITY = 0.5  # of the searched documents together: the question then more likely means one of them than not
_ENOUGH_PROBABILITY = 0.99  # above it, no further document is searched; from 0.5 to 0.999 mini's results are the same
# weights of a document's names and of its best chunk's BM25 score, where the question names a document apart: with 0.2
# the names of all of mini's questions still choose the right document, with 0.3 of all but two
_NAMES_APART, _WORDS_APART = 1.0, 0.2
# and where words of the question only look like a name: on 200 freely worded questions about mini R@64 is 94.1 and 0.8%
# of the first eight passages are in a wrong document; with 0.6 and 0.6 it is 93.5 and 2.3%
_NAMES_WITHIN, _WORDS_WITHIN = 0.8, 0.4
_WORDED_CHUNKS = 2048  # chunks with compared BM25 scores: in a larger collection the other chunks match too little
_BEST_SHARE, _MEAN_SHARE = 0.6, 0.4  # weights in a document's score of its best passage and of the mean of its passages


def retrieve(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    routed = parts.config.method == "routed"
    carried = parts.index.names.has_rare_name if routed else is_written_as_name
    queries = [understand(question, carried) for question in questions]
    asked = [query for query in queries if query.question.strip()] if len(parts.index) and parts.only != () else []
    search = _retrieve_passages if routed else _retrieve_chunks
    batches = (asked[start : start + _BATCH_QUESTIONS] for start in range(0, len(asked), _BATCH_QUESTIONS))
    results = chain.from_iterable(search(batch, parts) for batch in batches)
    return [next(results) if asked and query.question.strip() else Retrieved(query, (), ()) for query in queries]


# ---------------------------------------------------------------- routed retrieval


def _retrieve_passages(queries: Sequence[Query], parts: Parts) -> list[Retrieved]:
    vectors = parts.embedder.embed([query.asks for query in queries], role="query")
    return [_route(query, vector, parts) for query, vector in zip(queries, vectors, strict=True)]


def _route(query: Query, vector: Vectors, parts: Parts) -> Retrieved:
    index = parts.index
    choice, documents = choose_documents(query, index)
    law = route_to_law(query.question, index)
    if law.documents:
        documents = dict.fromkeys(law.documents, 0.0)
    if parts.only is not None:
        weights = dict(zip(choice.numbers.tolist(), choice.log_weights.tolist(), strict=True))
        documents = {number: weights.get(number, 0.0) for number in parts.only}
    ranking = rank_passages(query, vector, parts, documents)
    hits = make_hits(index, _put_first(law.passages, ranking.passages))
    before = None if ranking.before is None else make_hits(index, _put_first(law.passages, ranking.before))
    # the confidence is about passages, not about paragraphs that the question cites by number
    result = _select(query, hits, parts, confidence=ranking.confidence, before=before)
    selected = () if law.nothing else result.selected
    return replace(result, vector=vector, selected=selected, note=law.note, named=len(law.passages))


def choose_documents(query: Query, index: Index) -> tuple[Choice, dict[int, float] | None]:
    """Return the documents' probabilities, and the documents to search with their log-weights.

    If the documents to search are None, all are searched. In German a capital does not mark a name, because all nouns
    have capitals.
    """
    choice = index.names.score(query)
    if not query.english or _choose_likely(choice) is None:
        return choice, None
    choice = _add_content(choice, query, index)
    return choice, _choose_likely(choice)


def _choose_likely(choice: Choice) -> dict[int, float] | None:
    """Return the likeliest documents; None if the question's words, such as `IP`, fit hundreds of documents."""
    if not len(choice.log_weights) or np.ptp(choice.log_weights) < 1e-9:
        return None
    likely = choice.choose_best(_MAX_DOCUMENTS, share=_ENOUGH_PROBABILITY)
    return likely if np.exp(list(likely.values())).sum() >= _MIN_PROBABILITY else None


def _add_content(choice: Choice, query: Query, index: Index) -> Choice:
    scores, keys = index.chunks.search(list_asked_terms(query.asks), _WORDED_CHUNKS)
    if not len(keys):
        return choice
    owners = index.table[index.find_rows(keys), DOCUMENT]
    best = np.full(len(choice.numbers), scores[-1] if len(keys) == _WORDED_CHUNKS else 0.0)
    np.maximum.at(best, np.searchsorted(choice.numbers, owners), scores)
    names, words = (_NAMES_APART, _WORDS_APART) if query.apart else (_NAMES_WITHIN, _WORDS_WITHIN)
    return Choice(choice.numbers, normalise(names * choice.log_weights + words * (best - best.max())))


def _put_first(named: Sequence[RankedPassage], passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the paragraphs that a question cites, then the passages that do not overlap them."""
    best = max((passage.score for passage in passages), default=0.0)
    first = [passage._replace(score=best + len(named) - at) for at, passage in enumerate(named)]
    taken = [(passage.document, passage.span) for passage in named]
    return first + [p for p in passages if not any(n == p.document and span.overlaps(p.span) for n, span in taken)]


# ---------------------------------------------------------------- ranking by one kind of evidence


def _retrieve_chunks(queries: Sequence[Query], parts: Parts) -> list[Retrieved]:
    config, index = parts.config, parts.index
    within = None if parts.only is None else index.chunk_keys(parts.only)
    if config.method != "dense":
        return [_select_chunks(query, *_search_words(query, within, parts), parts) for query in queries]
    vectors = parts.embedder.embed([query.question for query in queries], role="query")
    if config.layer_documents or config.layer_sections:
        found = [_search_layers(vector, parts) for vector in vectors]
    else:
        found = list(zip(*index.store("chunk").search(vectors, parts.depth, within=within), strict=True))
    results = []
    for query, vector, (scores, keys) in zip(queries, vectors, found, strict=True):
        keys, scores = keys[keys >= 0], scores[keys >= 0]
        if config.document_limit and len(keys):
            keys, scores = _limit_documents(vector, keys, scores, index, config)
        results.append(_select_chunks(query, scores, keys, parts))
    return results


def _search_words(query: Query, within: Keys | None, parts: Parts) -> tuple[Scores, Keys]:
    terms, words = list_asked_terms(query.question), parts.index.chunks
    depth = parts.depth if within is None else len(words)
    scores, keys = words.search(terms, depth, method=parts.config.method)
    inside = np.full(len(keys), True) if within is None else np.isin(keys, within)
    return scores[inside][: parts.depth], keys[inside][: parts.depth]


def _search_layers(vector: Vectors, parts: Parts) -> tuple[Scores, Keys]:
    index, config = parts.index, parts.config
    numbers = np.array(index.numbers if parts.only is None else parts.only, np.int64)
    if config.layer_documents:
        _, [near] = index.store("document").search(vector[None], config.layer_documents, within=numbers)
        numbers = near[near >= 0]
    keys = index.chunk_keys(numbers)
    if config.layer_sections:
        counts = {number: len(index.document(number).sections) for number in sorted(numbers.tolist())}
        within = np.concatenate([np.zeros(0, np.int64), *(make_section_keys(*pair) for pair in counts.items())])
        _, [near] = index.store("section").search(vector[None], config.layer_sections, within=within)
        rows = index.table[index.find_rows(keys)]
        keys = keys[np.isin(list_section_keys(rows), near)]
    [scores], [nearest] = index.store("chunk").search(vector[None], parts.depth, within=keys)
    return scores, nearest


def _limit_documents(vector: Vectors, keys: Keys, scores: Scores, index: Index, config: Config) -> tuple[Keys, Scores]:
    """Return the chunks of the documents with the highest best and mean scores among the first candidates."""
    candidates: dict[int, list[float]] = defaultdict(list)
    owners = index.table[index.find_rows(keys), DOCUMENT]
    for number, score in zip(owners[: CANDIDATES_PER_K * config.k].tolist(), scores.tolist(), strict=False):
        candidates[number].append(score)
    judged = {
        number: _BEST_SHARE * max(cosines) + _MEAN_SHARE * float(np.mean(cosines))
        for number, cosines in candidates.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    if config.layer_documents or config.layer_sections:  # chunks that the upper layers excluded are not added again
        inside = np.isin(owners, best)
        return keys[inside], scores[inside]
    [scores], [within] = index.store("chunk").search(vector[None], len(keys), within=index.chunk_keys(best))
    return within[within >= 0], scores[within >= 0]


def _select_chunks(query: Query, scores: Scores, keys: Keys, parts: Parts) -> Retrieved:
    """Return the chunks as hits, the first ones sorted by the reranker, and a selection for the answer."""
    index = parts.index
    hits = make_hits(index, make_chunk_passages(index, index.find_rows(keys), scores.tolist()))
    if parts.reranker is None:
        return _select(query, hits, parts)
    head = hits[: parts.config.rerank]
    order, confidence = rerank(query.question, [hit.text for hit in head], scores.tolist(), parts.reranker)
    # a hit that moves gets the score of its new rank, so that the scores in the list still decrease
    moved = [replace(head[at], score=old.score) for old, at in zip(head, order, strict=True)]
    return _select(query, [*moved, *hits[len(head) :]], parts, confidence=confidence, before=hits)


# ---------------------------------------------------------------- the selection for an answer


def _select(
    query: Query,
    hits: Sequence[Hit],
    parts: Parts,
    *,
    confidence: float | None = None,
    before: Sequence[Hit] | None = None,
) -> Retrieved:
    """Return the ranked passages and those for the answer; below `refuse_below`, only the reader gets the latter."""
    config = parts.config
    candidates = hits[: CANDIDATES_PER_K * config.k]
    least = -np.inf if config.threshold is None or not hits else hits[0].score - config.threshold
    near = [hit for rank, hit in enumerate(candidates) if hit.score >= least or rank < config.min_chunks]
    # the first passage is kept even if it is longer than the budget
    tokens = np.cumsum([count_tokens(hit.text) for hit in near])
    fitting = near[: max(1, int(np.searchsorted(tokens, config.budget_tokens, side="right")))]
    selected = fitting[: config.k]
    cut_by = "number" if len(hits) > len(selected) else ""
    if len(selected) < min(config.k, len(candidates)):
        cut_by = "budget" if len(fitting) < len(near) else "threshold"
    if confidence is not None and confidence < (config.refuse_below or 0.0) and not config.reads:
        selected, cut_by = [], "confidence"
    return Retrieved(
        query,
        tuple(hits[: config.depth]),
        tuple(selected),
        confidence=confidence,
        before=None if before is None else tuple(before[: config.depth]),
        cut_by=cut_by,
    )
