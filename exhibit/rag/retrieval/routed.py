"""Routed retrieval: the names in a question select documents, and the search covers only these documents.

The other words of the question are the search query.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from exhibit.evidence import Span
from exhibit.law.language import language_of, list_asked_terms
from exhibit.models.llms import LLM, Prompt
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.rerankers import find_retrieval_weight
from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.lexicon.documents import Choice
from exhibit.rag.protocols import Chunk, Hit, Keys, make_section_key, make_section_keys
from exhibit.rag.questions import Query, understand
from exhibit.rag.retrieval.families import add_contracts
from exhibit.rag.retrieval.passages import DOCUMENT, KEY, PAGE, START, Library, RankedPassage, SecondLook, rank_passages
from exhibit.rag.retrieval.stages import Parts, Retrieved, SearchState, choose_documents, finish
from exhibit.rag.retrieval.statutes import Route, route

_SYSTEM = (
    "You draft legal texts. Write one short passage, as it would stand in the document itself, that would answer the "
    "question. Invent no names and no figures; write only the passage."
)
_MOST_TOKENS = 160
"""The tokens of a passage of 500 characters, with some more to end its sentence."""


def embed_imagined(
    questions: Sequence[str], vectors: Vectors, llm: LLM, embedder: Embedder, *, share: float
) -> tuple[Vectors, list[str]]:
    """Return the questions' vectors moved towards passages that a language model imagines (HyDE), and these passages.

    A question whose request fails keeps its own vector and has no passage, so that an unavailable model makes retrieval
    no worse than without HyDE.
    """
    replies = llm.complete(
        [Prompt(question, _SYSTEM) for question in questions], max_tokens=_MOST_TOKENS, temperature=0.0
    )
    imagined = ["" if reply.error else reply.text.strip() for reply in replies]
    rows = [row for row, passage in enumerate(imagined) if passage]
    moved = vectors.copy()
    if rows:
        passages = embedder.embed([imagined[row] for row in rows], role="passage")
        mixed = (1 - share) * vectors[rows] + share * passages
        length = np.linalg.norm(mixed, axis=1, keepdims=True)
        # two opposite vectors have no mean: such a question keeps its own vector
        moved[rows] = np.where(length > 1e-6, mixed / np.maximum(length, 1e-6), vectors[rows])
    return moved, imagined


_HELD = 0.5
"""The least probability that the searched documents have together: one of them is then more likely meant than not. None
of LegalBench-RAG-mini's 776 questions is below it, as published or reworded. Without the documents' names 156 are
below it, and for 127 of these the answer was in none of the eight searched documents.
"""

_ENOUGH = 0.99
"""The probability of the searched documents above which no further document is searched: where one document is certain,
seven searches are saved. From 0.5 to 0.999 the figures on LegalBench-RAG-mini are the same, so it is not a setting.
"""


_NAMES_APART, _WORDS_APART = 1.0, 0.2
"""Weights of a document's names and of its best chunk's BM25 score, where the question names a document apart.
With 0.2 the names of all 776 questions on LegalBench-RAG-mini still choose the right document, with 0.3 of 774."""
_NAMES_WITHIN, _WORDS_WITHIN = 0.6, 0.6
"""The same weights where words of the question only look like a name. They were fitted to questions of training/people
on 132 documents: the right document comes first for 0.90 of 794 instead of 0.85. Where no document is named all are
searched: a library of clauses has many that answer."""
_WORDED = 2048
"""Chunks whose BM25 scores are compared: in a larger collection the others say too little of what is asked."""

_WORDS_ALONE = {"lexical": 20.0, "likeness": 0.0, "neighbours": 0.0, "section": 0.0, "heading": 0.0}
"""Weights for a question in another language than English, where documents are not chosen by names. The default
embedder knows English alone, and a capital does not mark a name in German, since all nouns have one.
"""

_TILES: WeakKeyDictionary[Index, tuple[Keys, int, dict[int, list[Span]]]] = WeakKeyDictionary()
"""A cache of the pieces of chunks of each open index, with the table of chunks and the greatest length of passages."""


def retrieve_routed(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return the retrieved passages of each question, in order, from the documents that the question means."""
    carried = partial(parts.index.lexicon.documents.has_rare_name, filenames=parts.config.filenames)
    queries = [understand(question, carried) for question in questions]
    asks = [query.asks for query in queries]
    vectors = parts.embedder.embed(asks, role="query")
    imagined = [""] * len(queries)
    if parts.config.hyde_weight and parts.llm is not None:
        vectors, imagined = embed_imagined(asks, vectors, parts.llm, parts.embedder, share=parts.config.hyde_weight)
    results = []
    library = library_of(parts.index, parts.config.passage_size)
    for query, vector, passage in zip(queries, vectors, imagined, strict=True):
        trace: dict[str, Any] = {"query": {"names": query.names, "asks": query.asks, "kind": query.kind}}
        if passage:
            trace["imagined"] = passage
        law = route(query.question, parts.index)
        hits, confidence, before = _rank(query, vector, library, parts, trace, law)
        # paragraphs that the question cites by number rank first, and are not reranked
        reranked = choose_second_look(parts) is not None or law is not None
        result = finish(query.question, hits, parts, trace, reranked=reranked, confidence=confidence, before=before)
        if law is not None:
            selected = () if law.nothing else result.selected
            result = replace(result, selected=selected, note=law.note, named=len(law.passages))
        results.append(result)
    return results


def _rank(
    query: Query, vector: Vectors, library: Library, parts: Parts, trace: dict[str, Any], law: Route | None
) -> tuple[list[Hit], float | None, list[Hit] | None]:
    """Return the passages, the probability that they answer, and the passages in their order before reranking.

    The second and third value are None if there is no reranker that scores chunks.
    """
    index, config = parts.index, parts.config
    choice = index.lexicon.documents.score(query, filenames=config.filenames)
    foreign = language_of(query.question) != "en"
    likely = None if foreign else choose_likely_documents(choice, config)
    if likely is not None:
        choice = add_content(choice, query, library)
        likely = choose_likely_documents(choice, config)
    if likely is not None:
        likely = add_contracts(likely, query, index)
    documents = dict.fromkeys(law.documents, 0.0) if law and law.documents else likely
    if parts.only is not None:
        weights = dict(zip(choice.numbers.tolist(), choice.log_weights.tolist(), strict=True))
        documents = {number: weights.get(number, 0.0) for number in parts.only}
    ranking = rank_passages(
        query.question if foreign else query.asks,
        vector,
        library,
        documents=documents,
        depth=max(config.depth, config.candidates * config.k),
        limit=config.passage_size,
        candidate_chunks=config.candidate_chunks,
        trim_first=config.trim_first and not foreign,
        weights=config.weights.model_copy(update=_WORDS_ALONE) if foreign else config.weights,
        second=choose_second_look(parts),
    )
    trace["documents"] = explain_choice(choice, index) | {"kept": len(documents) if documents else "any"}
    trace["passages"] = ranking.trace
    named = law.passages if law else ()
    if law is not None:
        trace["law"] = {"versions": len(law.documents), "version": law.note, "nothing": law.nothing}
    hits = to_hits(index, _put_first(named, ranking.passages), library.text)
    before = None if ranking.before is None else to_hits(index, _put_first(named, ranking.before), library.text)
    return hits, ranking.confidence, before


def add_content(choice: Choice, query: Query, library: Library) -> Choice:
    """Return the documents' probabilities (`choice`), updated by the words of the query.

    The new signal for a document is the BM25 score of its best chunk.
    """
    scores, keys = library.words.search(list_asked_terms(query.asks), _WORDED)
    if not len(keys):
        return choice
    owners = library.table[np.searchsorted(library.table[:, KEY], keys), DOCUMENT]
    best = np.full(len(choice.numbers), scores[-1] if len(keys) == _WORDED else 0.0)
    np.maximum.at(best, np.searchsorted(choice.numbers, owners), scores)
    names, words = (_NAMES_APART, _WORDS_APART) if query.apart else (_NAMES_WITHIN, _WORDS_WITHIN)
    return choice.add_signal("words", words * (best - best.max()) + (names - 1) * choice.log_weights)


def _put_first(named: Sequence[RankedPassage], others: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the paragraphs that a question cites (`named`), then the other passages that do not overlap them."""
    best = max((passage.score for passage in others), default=0.0)
    first = [replace(passage, score=best + len(named) - at) for at, passage in enumerate(named)]
    return first + [other for other in others if not any(_is_inside(other, passage) for passage in named)]


def _is_inside(one: RankedPassage, other: RankedPassage) -> bool:
    return one.document == other.document and one.span.start < other.span.end and other.span.start < one.span.end


def choose_second_look(parts: Parts) -> SecondLook | None:
    """Return the reranker as a `SecondLook`, which rescores chunks before passages are formed from them.

    None if there is no reranker, or if its scores cannot be added to the retrieval scores.
    """
    weight = find_retrieval_weight(parts.reranker) if parts.reranker is not None else None
    if parts.reranker is None or weight is None:
        return None
    return SecondLook(parts.reranker, parts.config.rerank, weight)


def library_of(index: Index, limit: int) -> Library:
    """Return the searchable data of an index: its table of chunks, their vectors and words, and the texts.

    `limit` is the maximum length of a passage in characters. The sentences of chunks, from which passages are
    formed, stay cached until the index or the limit changes.
    """
    known = _TILES.get(index)
    if known is None or known[0] is not index.table or known[1] != limit:
        known = _TILES[index] = index.table, limit, {}
    return Library(
        table=index.table,
        store=index.store("chunk"),
        words=index.lexicon.chunks,
        text=index.text_of,
        headings=index.lexicon.headings,
        summaries=index.store("document") if "document" in index.layers else None,
        gists=index.store("section") if "section" in index.layers else None,
        is_whole=not index.missing,
        tiles=known[2],
    )


def choose_likely_documents(choice: Choice, config: Config) -> dict[int, float] | None:
    """Return the documents to search, by number, with their log-weights; None if all documents must be searched.

    All documents must be searched if the question names no document, or if the likeliest documents together
    have a probability below 50%. For example, a word such as `IP` or a kind such as `nda` makes hundreds of
    documents a little likelier, and a choice of a few of them would be arbitrary.
    """
    if not len(choice.log_weights) or np.ptp(choice.log_weights) < 1e-9:
        return None
    weights = dict(zip(choice.numbers.tolist(), choice.log_weights.tolist(), strict=True))
    likely = {number: weights[number] for number in choice.choose_best(config.most_documents, share=_ENOUGH)}
    return likely if np.exp(list(likely.values())).sum() >= _HELD else None


def explain_choice(choice: Choice, index: Index) -> dict[str, object]:
    """Return the likeliest documents by file name, each with its probability and the weight of each signal."""
    trace = choice.trace()
    shown = {index.document(number).filename: why for number, why in trace["documents"].items()}
    return {"sure": trace["sure"], "likeliest": shown}


def to_hits(index: Index, passages: Sequence[RankedPassage], text: Callable[[int], str]) -> list[Hit]:
    """Return passages as hits; each hit has the headings and the page at its start.

    A hit also lists the positions inside the passage at which the headings or the page change.
    """
    numbers = {passage.document for passage in passages}
    starts = {number: [start for _, start, _ in index.document(number).sections] for number in numbers}
    return [_make_hit(index, passage, starts[passage.document], text(passage.document)) for passage in passages]


def _make_hit(index: Index, passage: RankedPassage, starts: Sequence[int], text: str) -> Hit:
    entry, span, table, row = index.document(passage.document), Span(*passage.span), index.table, passage.row
    words = text[slice(*span)]
    # a passage may begin with the break before it, which still belongs to the previous section
    begins = span.end - len(words.lstrip())
    while row and table[row, START] > span.start and table[row - 1, DOCUMENT] == passage.document:
        row -= 1
    pages = {int(table[row, START]): int(table[row, PAGE])}
    while row + 1 < len(table) and table[row + 1, DOCUMENT] == passage.document and table[row + 1, START] < span.end:
        row += 1
        pages[int(table[row, START])] = int(table[row, PAGE])
    first, last = max(bisect_right(starts, begins) - 1, 0), bisect_left(starts, span.end)
    headings = {start: path for path, start, _ in entry.sections[first:last]}
    path, page = "", 0
    places: list[tuple[int, str, int | None]] = [(0, "", None)]
    for start in sorted(headings.keys() | pages.keys()):
        path, page = headings.get(start, path), pages.get(start, page)
        places.append((start, path, page or None))
    here = bisect_right(places, begins, key=itemgetter(0)) - 1
    return Hit(Chunk(entry.filename, span, *places[here][1:], tuple(places[here + 1 :])), passage.score, words)


# ---------------------------------------------------------------- ranking by one kind of evidence


def retrieve_dense(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return the retrieved passages of each question, in order, for a pipeline with routing off.

    The passages are ranked by their vectors if the config's `method` is `dense`, otherwise by their words.
    """
    config = parts.config
    depth = max(config.depth, config.candidates * config.k)
    if config.method != "dense":
        return [_search_words(question, depth, parts) for question in questions]
    vectors = parts.embedder.embed(questions, role="query")
    if config.layer_documents or config.layer_sections:
        found = [_search_layers(vector, depth, parts) for vector in vectors]
    else:
        found = list(
            zip(
                *parts.index.store("chunk").search(vectors, depth, within=parts.chunk_keys),
                [{}] * len(vectors),
                strict=True,
            )
        )
    results = []
    for question, vector, (scores, keys, trace) in zip(questions, vectors, found, strict=True):
        state = SearchState(question, vector, keys[keys >= 0], scores[keys >= 0], {**trace})
        state.trace["search"] = {"layer": "chunk", "depth": depth, "found": len(state.keys)}
        choose_documents(state, parts.index, config)
        results.append(_finish_state(state, parts))
    return results


def _search_words(question: str, depth: int, parts: Parts) -> Retrieved:
    words = parts.index.lexicon.chunks
    terms, within = list_asked_terms(question), parts.chunk_keys
    scores, keys = words.search(terms, depth if within is None else len(words), method=parts.config.method)
    if within is not None:
        kept = np.isin(keys, within)
        scores, keys = scores[kept][:depth], keys[kept][:depth]
    state = SearchState(question, np.zeros(0, np.float32), keys, scores)
    state.trace["search"] = {"method": parts.config.method, "depth": depth, "found": len(keys)}
    return _finish_state(state, parts)


def _search_layers(vector: Vectors, depth: int, parts: Parts) -> tuple[Vectors, Keys, dict[str, object]]:
    """Return the scores and keys of the chunks nearest to a vector, and a trace of the search.

    The search is limited to the nearest documents, and in these to the nearest sections, as the config sets.
    """
    index, config = parts.index, parts.config
    numbers = np.array(index.numbers if parts.only is None else parts.only, np.int64)
    trace: dict[str, object] = {}
    if config.layer_documents:
        _, [near] = index.store("document").search(vector[None], config.layer_documents, within=numbers)
        numbers = near[near >= 0]
        trace["documents layer"] = [index.document(int(number)).filename for number in numbers]
    keys = index.chunk_keys(numbers)
    if config.layer_sections:
        keys = _search_sections(vector, numbers, keys, index, config)
        trace["sections layer"] = {"chunks": len(keys)}
    [scores], [nearest] = index.store("chunk").search(vector[None], depth, within=keys)
    return scores, nearest, trace


def _search_sections(vector: Vectors, numbers: Keys, keys: Keys, index: Index, config: Config) -> Keys:
    """Return the keys of the chunks in the sections that are nearest to the question's vector.

    `numbers` are the documents to search, and `keys` are the keys of all their chunks.
    """
    every = [make_section_keys(int(number), len(index.document(int(number)).sections)) for number in np.sort(numbers)]
    within = np.concatenate([np.zeros(0, np.int64), *every])
    _, [near] = index.store("section").search(vector[None], config.layer_sections, within=within)
    rows = index.table[np.searchsorted(index.table[:, 0], keys)]
    chosen: Keys = keys[np.isin(make_section_key(rows[:, 1], np.maximum(rows[:, 5], 0)), near)]
    return chosen


def _finish_state(state: SearchState, parts: Parts) -> Retrieved:
    chunks = map(parts.index.chunk, state.keys.tolist())
    pairs = zip(chunks, state.scores.tolist(), strict=True)
    hits = [Hit(chunk, score, parts.index.text(chunk)) for chunk, score in pairs]
    return finish(state.question, hits, parts, state.trace)


# ---------------------------------------------------------------- both kinds of retrieval

_BATCH = 256
"""The number of questions in one batch: enough for matrix products, few enough that scores need little memory."""


def retrieve(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return the retrieved passages of each question, in order; none for a blank question."""
    results = [Retrieved(question, (), (), {"search": "blank question"}) for question in questions]
    asked = [position for position, question in enumerate(questions) if question.strip()]
    if not len(parts.index) or parts.only == ():
        return results
    way = retrieve_routed if parts.config.routing else retrieve_dense
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        for position, one in zip(batch, way([questions[position] for position in batch], parts), strict=True):
            results[position] = one
    return results
