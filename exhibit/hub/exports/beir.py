"""The BEIR format: documents, queries, and the relevant documents of each query."""

from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export, write_lines, write_qrels
from exhibit.schemas.bundle import Question


def write(export: Export, folder: Path) -> None:
    """Write a bundle in the BEIR format; each document as a whole is one entry of the corpus.

    An impossible question has no relevant document. The expected answers are metadata of the queries.
    """
    texts = export.documents({})
    corpus = ({"_id": name, "title": export.title_of(name), "text": text, "metadata": {}} for name, text in texts)
    write_lines(folder / "corpus.jsonl", corpus)
    write_lines(folder / "queries.jsonl", map(_make_query, export.bundle.questions))
    relevant: dict[str, dict[str, int]] = {}
    for question in export.bundle.questions:
        names = [] if question.is_impossible else [c.filename for c in question.contexts if c.filename]
        relevant[str(question.id)] = dict.fromkeys(names, 1)
        if not names:
            export.note("query without a relevant document", question.id)
    write_qrels(folder, relevant)


def _make_query(question: Question) -> dict[str, Any]:
    passages = [{"corpus-id": c.filename, "text": c.text} for c in question.contexts]
    metadata = {"answer": question.answer, "is_impossible": question.is_impossible, "passages": passages}
    return {"_id": str(question.id), "text": question.question, "metadata": metadata}
