"""The BEIR format: documents, queries, and the relevant documents of each query."""

import csv
from pathlib import Path

from exhibit.hub.exports import Export, write_lines


def write(export: Export, folder: Path) -> None:
    """Write a bundle in the BEIR format; each document as a whole is one entry of the corpus."""
    corpus = (
        {"_id": name, "title": export.title_of(name), "text": text, "metadata": {}} for name, text in export.documents()
    )
    write_lines(folder / "corpus.jsonl", corpus)
    questions = export.bundle.questions
    queries = (
        {
            "_id": str(question.id),
            "text": question.question,
            "metadata": {"answer": question.answer, "is_impossible": question.is_impossible},
        }
        for question in questions
    )
    write_lines(folder / "queries.jsonl", queries)
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="") as out:
        # a name with a quotation mark needs quotes around it; BEIR's reader removes them again
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(["query-id", "corpus-id", "score"])
        for question in questions:
            names = [] if question.is_impossible else dict.fromkeys(c.filename for c in question.contexts if c.filename)
            table.writerows([question.id, name, 1] for name in names)
            if not names:
                export.noted["query without a relevant text"].append(str(question.id))
