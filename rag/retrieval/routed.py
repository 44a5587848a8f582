"""Questions to passages by way of documents: what is named chooses them, what is asked is looked for in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evidence import Span
from rag.config import Config
from rag.index import Index
from rag.retrieval.documents import Choice
from rag.retrieval.passages import DOCUMENT, PAGE, SECTION, START, Library, Passage, Weights, rank_passages
from rag.retrieval.stages import Tokens, select
from rag.retrieval.state import Retrieved
from rag.retrieval.understand import Query, understand
from rag.seams import Chunk, Embedder, Hit, Vectors


def retrieve_routed(
    questions: Sequence[str], index: Index, embedder: Embedder, config: Config, *, tokens: Tokens
) -> list[Retrieved]:
    """Return what is found for each question, in order; a blank question finds nothing."""
    queries = [understand(question) for question in questions]
    asked = [position for position, question in enumerate(questions) if question.strip()]
    results = [Retrieved(question, (), (), {"route": "blank question"}) for question in questions]
    if not asked or not len(index):
        return results
    vectors = embedder.embed([queries[position].asks for position in asked], role="query")
    for vector, position in zip(vectors, asked, strict=True):
        results[position] = _retrieve(queries[position], vector, index, config, tokens)
    return results


def _retrieve(query: Query, vector: Vectors, index: Index, config: Config, tokens: Tokens) -> Retrieved:
    choice = index.lexicon.documents.score(query, filenames=config.filenames)
    documents = _likely(choice, config)
    found = rank_passages(
        query.asks,
        vector,
        library_of(index),
        documents=documents,
        depth=max(config.depth, config.k),
        limit=config.limit,
        weights=_weights(config),
    )
    hits = [_hit(index, passage) for passage in found.passages]
    selected, told = select(hits, config, tokens)
    trace = {
        "query": {"names": query.names, "asks": query.asks, "kind": query.kind},
        "documents": _named(choice, index) | {"kept": len(documents) if documents else "any"},
        "passages": found.trace,
        "selected": told,
    }
    return Retrieved(query.question, tuple(hits[: config.depth]), tuple(selected), trace)


def library_of(index: Index) -> Library:
    """Return what passages are looked for in."""
    return Library(
        table=index.table,
        store=index.store("chunk"),
        words=index.lexicon.chunks,
        text=lambda number: index.document_text(index.entries[number].filename),
        headings=index.lexicon.headings,
    )


def _weights(config: Config) -> Weights:
    return Weights(
        lexical=config.weight_lexical,
        heading=config.weight_heading,
        neighbours=config.weight_neighbours,
        section=config.weight_section,
        document=config.weight_document,
        pool=config.pool,
    )


def _likely(choice: Choice, config: Config) -> dict[int, float] | None:
    """Return the log-weights of the documents worth looking into; None when one is as likely as another."""
    if not len(choice.log_weights) or np.ptp(choice.log_weights) < 1e-9:
        return None
    weights = dict(zip(choice.numbers.tolist(), choice.log_weights.tolist(), strict=True))
    return {number: weights[number] for number in choice.best(config.mass, config.most_documents)}


def _named(choice: Choice, index: Index) -> dict[str, object]:
    """Return why documents were chosen, by the names of their files."""
    told = choice.trace()
    shown = {index.entries[number].filename: why for number, why in told["documents"].items()}
    return {"sure": told["sure"], "likeliest": shown}


def _hit(index: Index, passage: Passage) -> Hit:
    """Return a passage with the page and the headings of the place where it begins."""
    entry = index.entries[passage.document]
    row = passage.row
    table = index.table
    while row and table[row - 1, DOCUMENT] == passage.document and table[row, START] > passage.span.start:
        row -= 1
    section = int(table[row, SECTION])
    path = entry.sections[section][0] if 0 <= section < len(entry.sections) else ""
    span = Span(*passage.span)
    chunk = Chunk(entry.filename, span, path, int(table[row, PAGE]) or None)
    return Hit(chunk, passage.score, index.text(chunk))
