"""Logs of questions, replies and thumbs become rows that a person completes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exhibit.conversion import main as exhibit_convert
from exhibit.converters import Tally, log
from exhibit.schemas.errors import SourceError
from tests.conversion import options_of

ASK = "Who pays for the berth?"
EXPORTS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"query": ASK, "response": "The tenant.", "sources": ["lease.txt"], "thumb": "👎"}],
    "Langfuse": [
        {
            "id": "t",
            "input": {"question": ASK},
            "output": {"answer": "The tenant."},
            "scores": [{"name": "user", "value": 0}],
        }
    ],
    "LangSmith": [
        {"inputs": {"input": ASK}, "outputs": {"output": "The tenant."}, "feedback_stats": {"user_score": {"avg": 0.0}}}
    ],
    "Phoenix": [
        {"attributes": {"input": {"value": ASK}, "output": {"value": "The tenant."}}, "annotations": [{"label": "bad"}]}
    ],
    "a chat": [
        {
            "messages": 1,
            "input": [{"role": "user", "content": ASK}],
            "output": [{"role": "assistant", "content": "The tenant."}],
            "feedback": "thumbs_down",
        }
    ],
    "inputs as text": [{"input": json.dumps({"question": ASK}), "output": "The tenant.", "rating": -1}],
}


def read(path: Path, *flags: str | Path, tally: Tally | None = None):
    return log.read(path, options_of(log, "--jobs", 1, *flags), tally or Tally())


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("shape", EXPORTS)
def test_question_reply_and_thumb_are_found_in_every_export(shape, tmp_path):
    (row,) = read(written(tmp_path / "log.jsonl", *EXPORTS[shape])).rows
    assert (row.question, row.answer, row.labels["feedback"]) == (ASK, "The tenant.", "down")
    assert row.labels["draft"] == "unsure" and row.quotes == ()


def test_the_sample_waits_for_a_person_and_questions_with_the_same_words_are_one(samples, tmp_path):
    out = tmp_path / "bundle"
    assert exhibit_convert(["log", str(samples / "log" / "log.jsonl"), "--out", str(out), "--mask"]) == 0
    rows = [json.loads(line) for line in (out / "drafts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["answer"] for row in rows] == ["Thirty days.", "The tenant."], "the complaint stands for both"
    assert rows[0]["gold"][0]["labels"] | {"asked": 2, "complaints": 1} == rows[0]["gold"][0]["labels"]
    assert "[e-mail]" in rows[1]["question"] and "[telephone]" in rows[1]["question"]
    assert "jo@" not in (out / "drafts.jsonl").read_text(encoding="utf-8")


def test_complaints_alone_and_rows_that_say_nothing_are_counted(tmp_path):
    tally = Tally()
    rows = [
        {"question": "a b c", "answer": "x", "feedback": "down"},
        {"question": "d e f", "answer": "y", "feedback": "up"},
        {"question": "g h i"},
    ]
    path = written(tmp_path / "log.jsonl", *rows)
    assert len(read(path, "--complaints", tally=tally).rows) == 1
    assert tally.left_out == {
        "no complaint (--complaints)": ["line 2"],
        "row of the log without a question or a reply": ["line 3"],
    }


def test_the_files_a_reply_names_are_its_documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "lease.txt").write_text("The tenant pays.", encoding="utf-8")
    path = written(
        tmp_path / "log.jsonl",
        {"question": ASK, "answer": "x", "documents": [{"metadata": {"source": "/srv/lease.txt"}}]},
    )
    benchmark = read(path, "--documents", folder)
    assert [quote.filename for quote in benchmark.rows[0].quotes] == ["lease.txt.pdf"]
    assert [document.filename for document in benchmark.documents] == ["lease.txt.pdf"]


def test_different_numbers_are_different_questions(tmp_path):
    rows = [{"question": f"What does clause {n} of the harbour lease say?", "answer": "x"} for n in (3, 4)]
    assert len(read(written(tmp_path / "log.jsonl", *rows)).rows) == 2


def test_a_log_without_rows_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="not JSON"):
        read(written(tmp_path / "log.json"))


def feedback_of(path: Path, *told: dict[str, Any]) -> list[str]:
    """Write a log of these rows; return the feedback label of each reply."""
    rows = [{"question": f"What does clause {n} say?", "answer": "x", **one} for n, one in enumerate(told)]
    return [str(row.labels["feedback"]) for row in read(written(path, *rows)).rows]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([{"thumb": 1}, {"thumb": -1}, {"thumb": 0}], ["up", "down", "down"]),
        ([{"liked": True}, {"liked": False}], ["up", "down"]),
        ([{"rating": 1.0}, {"rating": "0"}, {"rating": "1"}, {"rating": "-1"}], ["up", "down", "up", "down"]),
        ([{"rating": 1}, {"rating": 5}, {"rating": "1"}, {"rating": 0}], ["", "", "", "down"]),
        ([{"rating": "1/5"}, {"rating": "4 of 5"}, {"rating": "3 out of 5"}], ["down", "up", ""]),
        ([{"rating": 2, "max_rating": 5}, {"rating": 9, "max_rating": "10"}], ["down", "up"]),
        ([{"feedback": {"timestamp": 1718000000, "score": 0}}], ["down"]),
        ([{"feedback": {"timestamp": 1718000000, "score": 1}}], ["up"]),
        ([{"feedback": {"timestamp": 1718000000, "rating": 2, "scale": 5}}], ["down"]),
        ([{"scores": [{"name": "user", "value": 1}, {"name": "seconds", "value": 7}]}], ["up"]),
        ([{"feedback_stats": {"user_score": {"n": 3, "avg": 0.0}}}], ["down"]),
        ([{"feedback": {"created": 1718000000, "comment": "bad"}}], ["down"]),
        ([{"rating": 0.6}], [""]),
    ],
)
def test_a_number_is_a_thumb_or_needs_its_scale(told, expected, tmp_path):
    assert feedback_of(tmp_path / "log.jsonl", *told) == expected
