"""drafts.jsonl is checked like gold.jsonl and train.json: by its schema, its documents and its ids."""

import json
import os

import pytest

from exhibit.schemas.errors import BundleError
from exhibit.schemas.validate import read_drafts, validate
from tests.rag.bundles import gold_line

CONTEXT = {"filename": "a.pdf", "text": "The rent is due."}
GOLD = {**gold_line(7, 0, "a.pdf", [[0, 16]], {"draft": "unsure"}), "pages": [1]}
DRAFT = {"id": 7, "question": "What is due?", "answer": "Rent", "is_impossible": False, "contexts": [CONTEXT]}


def line(gold: dict[str, object] | None = None, **fields: object) -> str:
    return json.dumps({**DRAFT, "gold": [{**GOLD, **(gold or {})}], **fields})


def test_read_drafts_returns_rows_with_gold_spans(tmp_path):
    (tmp_path / "drafts.jsonl").write_text(f"{line()}\n{line({'id': 8}, id=8)}\n", encoding="utf-8")
    first, second = read_drafts(tmp_path, {"a.pdf"}, {1, 2})
    assert (first.row.question, first.gold[0].spans, second.id) == ("What is due?", [(0, 16)], 8)
    assert "gold" not in first.row.model_dump()
    (tmp_path / "drafts.jsonl").unlink()
    assert read_drafts(tmp_path, {"a.pdf"}, ()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: .*JSON"),
        ("[]", "line 1: "),
        (line() + "\n" + line(), "line 2: id: 7 is also the id of another question"),
        (line({"id": 1}, id=1), "line 1: id: 1 is also the id of another question"),
        (line(contexts=[{**CONTEXT, "filename": "b.pdf"}]), "line 1: filename: no file 'b.pdf' under corpus/"),
        (line(contexts=[{**CONTEXT, "filename": "../a.pdf"}]), "contexts.0.filename"),
        (line({"filename": "b.pdf"}), "line 1: filename: no file 'b.pdf'"),
        (line({"id": 9}), "line 1: gold: id: is row 9, context 0; expected row 7"),
        (line({"spans": [[5, 2]]}), "line 1: gold.0.spans"),
        (line(gold=None, question=" "), "line 1: question"),
        (line(id="7"), "line 1: id"),
        ("\n\n" + line(id="7"), "line 3: id"),
        (json.dumps({**DRAFT, "gold": "x"}), "line 1: gold"),
        (json.dumps(DRAFT), "line 1: gold"),
        (line(more=1), "line 1: more"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_read_drafts_names_the_line_of_a_malformed_draft(tmp_path, text, message):
    (tmp_path / "drafts.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BundleError, match=message):
        read_drafts(tmp_path, {"a.pdf"}, {1, 2})
    assert any(problem.startswith("drafts.jsonl: ") for problem in validate(tmp_path))


def test_read_drafts_refuses_a_pipe_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "drafts.jsonl")
    with pytest.raises(BundleError, match="not a file"):
        read_drafts(tmp_path, (), ())
