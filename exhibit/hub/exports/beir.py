"""The BEIR format: documents, queries, and the relevant documents of each query."""

from pathlib import Path

from exhibit.hub.exports import Export, write_lines, write_qrels, write_queries


def write(export: Export, folder: Path) -> None:
    """Write a bundle in the BEIR format; each document as a whole is one entry of the corpus."""
    corpus = (
        {"_id": name, "title": export.title_of(name), "text": text, "metadata": {}} for name, text in export.documents()
    )
    write_lines(folder / "corpus.jsonl", corpus)
    write_queries(export, folder)
    relevant = {
        str(question.id): {
            context.filename: 1 for context in question.contexts if context.filename and not question.is_impossible
        }
        for question in export.bundle.questions
    }
    write_qrels(export, folder, relevant)
