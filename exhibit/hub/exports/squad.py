"""The SQuAD 2.0 format: each document is one paragraph with its questions and the offsets of their answers."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Cut, Export, Words
from exhibit.schemas.bundle import Question
from exhibit.schemas.models import Gold


def write(export: Export, folder: Path) -> None:
    """Write one paragraph per document; a question on several documents is repeated for each, with a numbered id."""
    gold = export.gold()
    words: Words = {}
    texts = {filename: len(text) for filename, text in export.documents(words)}
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in export.bundle.questions:
        for filename, entry in _make_entries(export, question, gold[question.id], words):
            asked[filename].append(entry)
    with (folder / "squad.json").open("w", encoding="utf-8", newline="\n") as out:
        separator = '{"version": "v2.0", "data": [\n'
        # read each text again: a corpus may be larger than the memory
        for filename, text in export.documents({}):
            paragraphs = [{"context": text, "qas": asked[filename]}]
            out.write(separator + json.dumps({"title": filename, "paragraphs": paragraphs}, ensure_ascii=False))
            separator = ",\n"
        out.write("\n]}\n" if texts else '{"version": "v2.0", "data": []}\n')


def _make_entries(
    export: Export, question: Question, lines: list[Gold], words: Words
) -> list[tuple[str, dict[str, Any]]]:
    """Return a `(filename, entry)` pair for each document that a question is about.

    If no document is known, record the question as left out and return an empty list.
    """
    cuts = [] if question.is_impossible else export.cut_gold(question, lines, words)
    about = dict.fromkeys(cut.filename for cut in cuts)
    if question.is_impossible:
        about = dict.fromkeys(line.filename for line in lines if line.filename)
        if not about:
            export.leave_out("impossible question that names no document", question.id)
    elif not about:
        export.leave_out("question without a located passage", question.id)
    if len(about) > 1:
        export.note("question on several documents, repeated for each", question.id)
    return [
        (filename, _make_entry(question, number if len(about) > 1 else 0, [c for c in cuts if c.filename == filename]))
        for number, filename in enumerate(about, 1)
    ]


def _make_entry(question: Question, number: int, cuts: list[Cut]) -> dict[str, Any]:
    # SQuAD lists alternative correct answers; we list the pieces of an interrupted passage in the same way
    answers = [{"text": cut.text, "answer_start": cut.start} for cut in dict.fromkeys(cuts)]
    return {
        "id": f"{question.id}-{number}" if number else str(question.id),
        "question": question.question,
        "answers": answers,
        "is_impossible": question.is_impossible,
    }
