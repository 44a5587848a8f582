"""BEIR's format: documents, queries, and which document is relevant to which query."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export


def write(export: Export, folder: Path) -> None:
    """Write whole documents as the corpus; an impossible question has no relevant one, its answer is metadata."""
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for filename, text in export.documents({}):
            out.write(_line({"_id": filename, "title": export.title_of(filename), "text": text, "metadata": {}}))
    with (folder / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for question in export.bundle.questions:
            metadata = {
                "answer": question.answer,
                "is_impossible": question.is_impossible,
                "passages": [{"corpus-id": c.filename, "text": c.text} for c in question.contexts],
            }
            out.write(_line({"_id": str(question.id), "text": question.question, "metadata": metadata}))
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="") as out:
        # minimal quoting is what BEIR's own reader undoes, for names with a quotation mark
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(["query-id", "corpus-id", "score"])
        for question in export.bundle.questions:
            names = [] if question.is_impossible else [c.filename for c in question.contexts if c.filename]
            table.writerows([str(question.id), name, 1] for name in dict.fromkeys(names))
            if not names:
                export.note("query without a relevant document", question.id)


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
