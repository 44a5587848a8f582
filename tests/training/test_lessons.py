"""The lessons: every passage is in its document, and every document has questions without an answer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import training

FOLDER = Path(training.__file__).parent / "lessons"
ROWS = [json.loads(line) for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / "documents").iterdir()}


def test_every_passage_stands_in_its_document_word_for_word() -> None:
    assert len(ROWS) > 1000
    for row in ROWS:
        assert row["impossible"] == (not row["text"]), row
        assert all(passage in TEXTS[row["document"]] for passage in row["text"]), row


def test_every_document_has_questions_with_and_without_an_answer() -> None:
    counts = Counter((row["document"], row["impossible"]) for row in ROWS)
    assert {name for name, _ in counts} == TEXTS.keys()
    for name in TEXTS:
        assert counts[name, False] >= 20, name
        assert counts[name, True] >= 5, name


def test_no_question_is_asked_twice_of_a_document() -> None:
    asked = [(row["document"], row["question"].casefold()) for row in ROWS]
    assert len(asked) == len(set(asked))
