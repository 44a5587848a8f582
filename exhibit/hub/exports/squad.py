"""The SQuAD 2.0 format: each document is one paragraph with its questions and the offsets of their answers."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export, write_json


def write(export: Export, folder: Path) -> None:
    """Write one paragraph per document; a question on several documents is repeated for each, with a numbered id."""
    texts = dict(export.documents())
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in export.bundle.questions:
        lines = export.gold[question.id]
        cuts = [] if question.is_impossible else export.cut_gold(question, texts)
        if question.is_impossible:
            filenames = list(dict.fromkeys(line.filename for line in lines if line.filename))
            reason = "impossible question that names no document"
        else:
            filenames = list(dict.fromkeys(cut.filename for cut in cuts))
            reason = "question without a located passage"
        if not filenames:
            export.left_out[reason].append(str(question.id))
        if len(filenames) > 1:
            export.noted["question on several documents, repeated for each"].append(str(question.id))
        for number, filename in enumerate(filenames, 1):
            # SQuAD lists alternative correct answers; pieces of an interrupted passage are listed in the same way
            answers = [{"text": c.text, "answer_start": c.start} for c in dict.fromkeys(cuts) if c.filename == filename]
            entries[filename].append(
                {
                    "id": f"{question.id}-{number}" if len(filenames) > 1 else str(question.id),
                    "question": question.question,
                    "answers": answers,
                    "is_impossible": question.is_impossible,
                }
            )
    data = [{"title": name, "paragraphs": [{"context": text, "qas": entries[name]}]} for name, text in texts.items()]
    write_json(folder / "squad.json", {"version": "v2.0", "data": data}, indent=None)
