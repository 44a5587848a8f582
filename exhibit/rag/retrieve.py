"""Retrieval for a question: parse it, choose documents, rank passages, select the passages for the answer.

Passages are ranked by combined signals: vectors, words, headings and neighbours. Each signal is measured in standard
deviations among the compared chunks, because cosines and BM25 scores have no common scale.
bench/results/notebook-retrieval.md shows the effect of each signal.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.evidence import Span
from exhibit.law.language import PART, list_asked_terms, list_word_parts, search_terms
from exhibit.models.llms import count_tokens
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.rerankers import Reranker, estimate_confidence
from exhibit.rag.config import Config
from exhibit.rag.documents import Choice, normalise
from exhibit.rag.index import DOCUMENT, END, KEY, START, Index, list_section_keys
from exhibit.rag.laws import route_to_law
from exhibit.rag.lexicon import compute_rarity, weigh_terms
from exhibit.rag.passages import RankedPassage, form_passages, make_hits
from exhibit.rag.protocols import Hit, Keys, Retrieved, Scores, make_section_keys
from exhibit.rag.questions import Query, is_written_as_name, understand

_BATCH_QUESTIONS = 256  # large enough for fast matrix products, small enough to keep the scores in memory
_MAX_DOCUMENTS = 8  # most documents that are searched; all are searched if the question names none
# mini's questions below it: 156 of 776 without the documents' names; none as published, and none as reworded
_MIN_PROBABILITY = 0.5  # least joint probability of the searched documents; below it, all documents are searched
# no further document is searched above this joint probability; mini's results are the same from 0.5 to 0.999
_ENOUGH_PROBABILITY = 0.99
# Weights of a document's names and of its best chunk's BM25 score, if the question states the name separately. With 0.2
# for BM25, the right document is still first for all of mini's questions; with 0.3, for all but two.
_NAMES_APART, _WORDS_APART = 1.0, 0.2
# The same weights if words of the question only look like a name. On 200 freely worded questions about mini, R@64 is
# 94.1%, and 0.8% of the first eight passages are in a wrong document; with 0.6 and 0.6, it is 93.5% and 2.3%.
_NAMES_WITHIN, _WORDS_WITHIN = 0.8, 0.4
_WORDED_CHUNKS = 2048  # the best chunks by BM25, whose scores are used to choose documents
_BEST_SHARE, _MEAN_SHARE = 0.6, 0.4  # a document's score: the weights of its best chunk and of the mean of its chunks
PASSAGE_CHARS = 500  # most characters of a passage that is formed around chunks
CANDIDATES_PER_K = 2  # documents and passages are chosen from the first 2k candidates, as in the original system
_MODEL_CHUNKS = 3  # top chunks with which later chunks are compared; with 2 to 4, mini's R@64 differs by less than 0.1
_SETTLED_RANKS = 24  # the comparison does not change these first ranks; results with 12 to 24 are the same
_CANDIDATES = 256  # chunks that each kind of evidence proposes if any document may answer


class Weights(NamedTuple):
    """The weight of each signal relative to the dense (vector) score; signals are in standard deviations."""

    # the words of the question in the chunk, weighted by rarity; less if no chunk contains most of them
    lexical: float = 0.55
    heading: float = 0.15  # the question's words in the headings above the chunk
    neighbours: float = 0.2  # the scores of the chunks before and after: an answer often continues in the next chunk
    section: float = 0.6  # the score of the best chunk of the section: the rest of a clause follows its best part
    likeness: float = 1.5  # the similarity of a later chunk to the first chunks: clauses that answer are similar
    document: float = 3.0  # the log-probability of the document: half the probability costs two standard deviations


Ranking = tuple[list[RankedPassage], float | None, list[RankedPassage] | None]
WEIGHTS = Weights()
WORDS_ALONE = Weights(lexical=20.0, heading=0.0, neighbours=0.0, section=0.0, likeness=0.0)
"""The weights for a question in another language, because the default embedder knows only English."""


@dataclass(frozen=True)
class Parts:
    index: Index
    embedder: Embedder
    config: Config
    reranker: Reranker | None = None
    only: tuple[int, ...] | None = None  # the numbers of the documents that are searched; None = all

    @property
    def depth(self) -> int:
        return max(self.config.depth, CANDIDATES_PER_K * self.config.k)


def retrieve(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    routed = parts.config.method == "routed"
    carried = parts.index.names.has_rare_name if routed else is_written_as_name
    queries = [understand(question, carried) for question in questions]
    nonblank = [query for query in queries if query.question.strip()] if len(parts.index) and parts.only != () else []
    search = _retrieve_passages if routed else _retrieve_chunks
    batches = (nonblank[start : start + _BATCH_QUESTIONS] for start in range(0, len(nonblank), _BATCH_QUESTIONS))
    results = chain.from_iterable(search(batch, parts) for batch in batches)
    return [next(results) if nonblank and query.question.strip() else Retrieved(query, (), ()) for query in queries]


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
    passages, confidence, chunks = rank_passages(query, vector, parts, documents)
    hits = make_hits(index, _put_first(law.passages, passages))
    before = None if chunks is None else make_hits(index, _put_first(law.passages, chunks))
    # the confidence refers to the passages, not to paragraphs that the question cites by number
    result = _select(query, hits, parts, confidence=confidence, before=before)
    selected = () if law.nothing else result.selected
    return replace(result, vector=vector, selected=selected, note=law.note, named=len(law.passages))


def choose_documents(query: Query, index: Index) -> tuple[Choice, dict[int, float] | None]:
    """Return the documents' probabilities, and the log-weights of the documents to search, or None to search all.

    All documents are searched for a question that is not in English. In German, for example, a capital does not mark a
    name, because all nouns have capitals.
    """
    choice = index.names.score(query)
    if not query.english or _choose_likely(choice) is None:
        return choice, None
    choice = _add_content(choice, query, index)
    return choice, _choose_likely(choice)


def _choose_likely(choice: Choice) -> dict[int, float] | None:
    """Return the likeliest documents; None if all are equally likely, or if hundreds match words such as `IP`."""
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


# ---------------------------------------------------------------- ranking by combined signals


def rank_passages(query: Query, vector: Vectors, parts: Parts, documents: Mapping[int, float] | None) -> Ranking:
    """Return the best passages of the documents with these log-weights; a reranker, if any, first sorts the chunks.

    The other two results are the probability that a passage answers, and the chunks before the reranker sorted
    them; both are None without a reranker.
    """
    index, depth = parts.index, parts.depth
    asks, weights = (query.asks, WEIGHTS) if query.english else (query.question, WORDS_ALONE)
    terms = list_asked_terms(asks)
    rows = index.find_rows(index.chunk_keys(documents)) if documents else _choose_pool(terms, vector, index)
    if not len(rows):
        return [], None, None
    table = index.table[rows]  # `take` would copy the whole table, which is stored column by column
    groups = np.flatnonzero(np.diff(table[:, DOCUMENT], prepend=-1)) if documents else np.zeros(1, np.int64)
    own_scores, rarity = _score_rows(terms, vector, table, groups, index, weights, within=documents is not None)
    if documents:
        owners, at = np.unique(table[:, DOCUMENT], return_inverse=True)
        log_weights = np.array([documents[int(number)] for number in owners], np.float32)
        own_scores = own_scores + weights.document * (log_weights - log_weights.max())[at]
    total = add_context(own_scores, table, weights)
    order = np.argsort(-total, kind="stable")[: 4 * depth]
    scores = total[order]
    confidence, before = None, None
    if parts.reranker is not None:
        chunks = make_chunk_passages(index, rows[order], scores.tolist())
        texts = [index.text_of(chunk.document)[slice(*chunk.span)] for chunk in chunks[: parts.config.rerank]]
        moved, confidence = rerank(asks, texts, scores.tolist(), parts.reranker)
        before = chunks[:depth]
        order = np.concatenate([order[moved], order[len(moved) :]])
    order = _follow_first(table, order, own_scores, index, weights)
    passages = form_passages(
        index,
        # each chunk gets the score of its new rank, so that scores decrease from first to last
        list(zip(rows[order].tolist(), scores.tolist(), strict=True)),
        scores=dict(zip(rows.tolist(), own_scores.tolist(), strict=True)),
        depth=depth,
        size=PASSAGE_CHARS,
        weigh=make_weigher(terms, rarity[np.searchsorted(groups, order[0], side="right") - 1]),
        trim_first=query.english,
    )
    return passages, confidence, before


def make_chunk_passages(index: Index, rows: Keys, scores: Sequence[float]) -> list[RankedPassage]:
    chunks = zip(index.table[rows].tolist(), scores, strict=True)
    return [RankedPassage(row[DOCUMENT], Span(row[START], row[END]), score) for row, score in chunks]


def _choose_pool(terms: Sequence[str], vector: Vectors, index: Index) -> Keys:
    _, [near] = index.store("chunk").search(vector.reshape(1, -1), _CANDIDATES)
    _, worded = index.chunks.search(terms, _CANDIDATES)
    rows = index.find_rows(np.union1d(near[near >= 0], worded))
    around = np.unique(np.concatenate([rows - 1, rows, rows + 1]))
    return around[(around >= 0) & (around < len(index.table))]


def _score_rows(
    terms: Sequence[str], vector: Vectors, table: Keys, groups: Keys, index: Index, weights: Weights, *, within: bool
) -> tuple[Scores, Scores]:
    """Return the weighted sum of each chunk's signals, and the weight of each term in each group.

    A group is the chunks of one document, or all chunks if any document may answer; `groups` has the position of each
    group's first chunk. Each signal is standardised within its group. The weight of a word is its rarity within the
    group: in a confidentiality agreement, the word `confidential` distinguishes no chunk.
    """
    sizes = np.diff(groups, append=len(table))
    [dense] = _compare_vectors(vector.reshape(1, -1), table[:, KEY], index)
    matched = index.chunks.score_terms(terms, table[:, KEY])
    spread = np.add.reduceat(matched > 0, groups, axis=0, dtype=np.int64)
    rarity = compute_rarity(spread, sizes[:, None]).astype(np.float32) * weigh_terms(terms)
    lexical = (matched * np.repeat(rarity, sizes, axis=0)).sum(axis=1)
    coverage = np.repeat(_measure_coverage(matched, rarity, groups, sizes), sizes) if within else 1.0
    scores = standardise(dense, groups) + weights.lexical * coverage * standardise(lexical, groups)
    if weights.heading:
        sections, where = np.unique(list_section_keys(table), return_inverse=True)
        scores = scores + weights.heading * standardise(index.headings.scores(terms, sections)[where], groups)
    return scores, rarity


def _measure_coverage(matched: Scores, rarity: Scores, groups: Keys, sizes: Keys) -> Scores:
    """Return, for each group, the largest weighted share of the question's words that a single chunk contains.

    The share multiplies the lexical weight: if question and document use different words, a word that matches by chance
    misleads. On freely worded questions P@1 is 38.4% with this factor, and 35.3% with a fixed weight of 0.3.
    """
    held = ((matched > 0) * np.repeat(rarity, sizes, axis=0)).sum(axis=1)
    total = rarity.sum(axis=1)
    best = np.maximum.reduceat(held, groups)
    share: Scores = np.divide(best, total, out=np.zeros_like(best), where=total > 0)
    return share


def add_context(scores: Scores, table: Keys, weights: Weights = WEIGHTS) -> Scores:
    """Average each chunk's score with the scores of the adjacent chunks, and add its section's weighted best score."""
    same = table[1:, DOCUMENT] == table[:-1, DOCUMENT]
    before, after = scores.copy(), scores.copy()
    before[1:][same] = scores[:-1][same]
    after[:-1][same] = scores[1:][same]
    mean = (before + after) / 2
    smooth = ((scores + weights.neighbours * mean) / (1 + weights.neighbours)).astype(np.float32)
    _, place = np.unique(list_section_keys(table), return_inverse=True)
    best = np.full(place.max() + 1, -np.inf, np.float32)
    np.maximum.at(best, place, smooth)
    lifted: Scores = (smooth + weights.section * best[place]).astype(np.float32)
    return lifted


def standardise(values: npt.NDArray[np.floating], groups: Keys) -> Scores:
    """Return values in standard deviations from the mean of their group; zero where all values of a group are equal."""
    sizes = np.diff(groups, append=len(values))
    mean = np.add.reduceat(values, groups, dtype=np.float64) / sizes
    away = values - np.repeat(mean, sizes)
    spread = np.sqrt(np.add.reduceat(away * away, groups) / sizes)
    spread[spread < 1e-6] = np.inf
    scores: Scores = (away / np.repeat(spread, sizes)).astype(np.float32)
    return scores


def _compare_vectors(vectors: Vectors, keys: Keys, index: Index) -> Scores:
    """Return each query's similarity to each chunk; chunks that an approximate search omits get the lowest value."""
    scores, near = index.store("chunk").search(vectors, len(keys), within=keys)
    similarity = np.zeros((len(vectors), len(keys)), np.float32)
    for row, row_scores, row_near in zip(similarity, scores, near, strict=True):
        present = row_near >= 0
        if present.any():
            row[:] = row_scores[present].min()
            row[np.searchsorted(keys, row_near[present])] = row_scores[present]
    return similarity


def rerank(
    asks: str, texts: Sequence[str], retrieved: Sequence[float], reranker: Reranker
) -> tuple[list[int], float | None]:
    """Return the texts' positions, sorted by reranker and retrieval scores, and the probability that a text answers."""
    judged = reranker.score(asks, texts)
    scores: npt.NDArray[np.floating] = np.asarray(judged, np.float64)
    weight: float | None = getattr(reranker, "retrieval_weight", None)
    if weight is not None and len(scores):
        every = np.zeros(1, np.int64)
        retrieval_scores = np.asarray(retrieved[: len(judged)], np.float64)
        scores = standardise(scores, every) + weight * standardise(retrieval_scores, every)
    return np.argsort(-scores, kind="stable").tolist(), estimate_confidence(reranker, judged)


def _follow_first(table: Keys, order: Keys, scores: Scores, index: Index, weights: Weights) -> Keys:
    """Return the chunks in a new order: the first ranks stay, and later chunks that are similar to the best move up.

    In merger agreements, where an answer extends over many chunks, this raises R@64 from 90.0% to 92.6%.
    """
    if not weights.likeness or len(order) <= _SETTLED_RANKS:
        return order
    models = index.store("chunk").vectors(table[order[:_MODEL_CHUNKS], KEY])
    if not len(models):
        return order
    near = _compare_vectors(models, table[:, KEY], index).max(axis=0)
    alike = scores + weights.likeness * standardise(near, np.zeros(1, np.int64))
    behind = np.argsort(-add_context(alike, table, weights), kind="stable")
    settled = order[:_SETTLED_RANKS]
    return np.concatenate([settled, behind[~np.isin(behind, settled)][: len(order) - _SETTLED_RANKS]])


def make_weigher(terms: Sequence[str], rarity: Scores) -> Callable[[str], float]:
    weights: dict[str, float] = dict(zip(terms, rarity.tolist(), strict=True))
    parted = any(term.startswith(PART) for term in terms)

    def weigh(text: str) -> float:
        held = {*search_terms(text), *(list_word_parts(text) if parted else ())}
        # in a fixed order, so that the sum of floats is always the same
        return sum(weight for term, weight in weights.items() if term in held)

    return weigh


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
    """Choose documents by the best and mean scores of their first candidates; return the chosen documents' chunks."""
    candidates: dict[int, list[float]] = defaultdict(list)
    owners = index.table[index.find_rows(keys), DOCUMENT]
    for number, score in zip(owners[: CANDIDATES_PER_K * config.k].tolist(), scores.tolist(), strict=False):
        candidates[number].append(score)
    judged = {
        number: _BEST_SHARE * max(cosines) + _MEAN_SHARE * float(np.mean(cosines))
        for number, cosines in candidates.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    if config.layer_documents or config.layer_sections:  # search no chunks that the upper layers have excluded
        inside = np.isin(owners, best)
        return keys[inside], scores[inside]
    [scores], [within] = index.store("chunk").search(vector[None], len(keys), within=index.chunk_keys(best))
    return within[within >= 0], scores[within >= 0]


def _select_chunks(query: Query, scores: Scores, keys: Keys, parts: Parts) -> Retrieved:
    """Return the chunks as hits, some of them selected for the answer; the reranker, if any, sorts the first hits."""
    index = parts.index
    hits = make_hits(index, make_chunk_passages(index, index.find_rows(keys), scores.tolist()))
    if parts.reranker is None:
        return _select(query, hits, parts)
    head = hits[: parts.config.rerank]
    order, confidence = rerank(query.question, [hit.text for hit in head], scores.tolist(), parts.reranker)
    # a hit that moves gets the score of its new rank, so that scores decrease from first to last
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
    """Select the passages for the answer; if the confidence is below `refuse_below`, only for a reader."""
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
