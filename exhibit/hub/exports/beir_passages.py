"""The BEIR format with passages: chunks of about 1,000 characters, and the relevant chunks of each query.

A chunk with at least half of a gold passage is relevant with score 2, a chunk with a smaller part with score 1.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export, write_lines, write_qrels
from exhibit.schemas.bundle import Question
from exhibit.schemas.models import Gold

_SIZE = 1000
"""Most characters of a chunk: one or two clauses, about the length that passage retrievers are trained on."""
_BREAKS = ("\n\n", "\n", ". ", " ")
"""The strings after which a chunk may end, the best first."""

Pieces = dict[str, list[tuple[int, int]]]


def write(export: Export, folder: Path) -> None:
    """Write the bundle in the BEIR format, with the chunks of the documents as the corpus.

    An impossible question has no relevant chunk. The expected answers are stored as metadata of the queries.
    """
    pieces: Pieces = {}
    write_lines(folder / "corpus.jsonl", _make_corpus(export, pieces))
    write_lines(folder / "queries.jsonl", map(_make_query, export.bundle.questions))
    gold = export.gold()
    relevant: dict[str, dict[str, int]] = {}
    for question in export.bundle.questions:
        scores = {} if question.is_impossible else score_pieces(gold[question.id], pieces)
        relevant[str(question.id)] = scores
        if not scores:
            export.note("query without a relevant passage", question.id)
    write_qrels(folder, relevant)


def _make_corpus(export: Export, pieces: Pieces) -> Iterator[dict[str, Any]]:
    for filename, text in export.documents({}):
        pieces[filename] = list(tile(text))
        title = export.title_of(filename)
        for start, end in pieces[filename]:
            yield {"_id": _name(filename, start, end), "title": title, "text": text[start:end], "metadata": {}}


def _make_query(question: Question) -> dict[str, Any]:
    metadata = {"answer": question.answer, "is_impossible": question.is_impossible}
    return {"_id": str(question.id), "text": question.question, "metadata": metadata}


def tile(text: str, size: int = _SIZE) -> Iterator[tuple[int, int]]:
    """Yield the start and end of consecutive chunks that cover the text.

    Each chunk ends in its second half: at the last paragraph break or, if there is none, at the last line end,
    sentence end or space. Without any of these, the chunk has `size` characters.
    """
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            breaks = ((text.rfind(mark, start + size // 2, end), mark) for mark in _BREAKS)
            end = next((place + len(mark) for place, mark in breaks if place >= 0), end)
        yield start, end
        start = end


def score_pieces(lines: list[Gold], pieces: Pieces) -> dict[str, int]:
    """Return the relevance of each chunk that overlaps the gold, by chunk name.

    The relevance is 2 if the chunk contains at least half of a gold passage, otherwise 1.
    """
    scores: dict[str, int] = {}
    for line in lines:
        whole = sum(end - start for start, end in line.spans)
        for start, end in pieces.get(line.filename or "", ()):
            shared = sum(max(0, min(end, b) - max(start, a)) for a, b in line.spans)
            if shared:
                name = _name(line.filename or "", start, end)
                scores[name] = max(scores.get(name, 0), 2 if 2 * shared >= whole else 1)
    return scores


def _name(filename: str, start: int, end: int) -> str:
    return f"{filename}#{start}-{end}"
