"""The BEIR format with passages: chunks of about 1,000 characters, and the relevant chunks of each query.

A chunk with at least half of a gold passage is relevant with score 2, a chunk with a smaller part with score 1.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export, write_lines, write_qrels, write_queries
from exhibit.schemas.models import Gold

CHUNK_CHARS = 1000
"""Most characters of a chunk: one or two clauses, about the length that passage retrievers are trained on."""
_BREAKS = ("\n\n", "\n", ". ", " ")  # the strings after which a chunk may end, the best first

Chunks = dict[str, list[tuple[int, int]]]


def write(export: Export, folder: Path) -> None:
    """Write the bundle in the BEIR format, with the chunks of the documents as the corpus."""
    chunks: Chunks = {}
    write_lines(folder / "corpus.jsonl", make_corpus(export, chunks))
    write_queries(export, folder)
    relevant = {
        str(question.id): {} if question.is_impossible else score_chunks(export.gold[question.id], chunks)
        for question in export.bundle.questions
    }
    write_qrels(export, folder, relevant)


def make_corpus(export: Export, chunks: Chunks) -> Iterator[dict[str, Any]]:
    for filename, text in export.documents():
        chunks[filename] = list(tile(text))
        for start, end in chunks[filename]:
            name = f"{filename}#{start}-{end}"
            yield {"_id": name, "title": export.title_of(filename), "text": text[start:end], "metadata": {}}


def tile(text: str, size: int = CHUNK_CHARS) -> Iterator[tuple[int, int]]:
    """Yield the start and end of consecutive chunks that cover the text."""
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            breaks = ((text.rfind(mark, start + size // 2, end), mark) for mark in _BREAKS)
            end = next((at + len(mark) for at, mark in breaks if at >= 0), end)
        yield start, end
        start = end


def score_chunks(lines: list[Gold], chunks: Chunks) -> dict[str, int]:
    """Return the relevance of each chunk that overlaps the gold, by chunk name."""
    scores: dict[str, int] = {}
    for line in lines:
        whole = sum(end - start for start, end in line.spans)
        for start, end in chunks.get(line.filename or "", ()):
            shared = sum(max(0, min(end, b) - max(start, a)) for a, b in line.spans)
            if shared:
                name = f"{line.filename}#{start}-{end}"
                scores[name] = max(scores.get(name, 0), 2 if 2 * shared >= whole else 1)
    return scores
