"""Whole runs in which one stage loses the gold, and the same runs in which no stage does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from exhibit.evaluation.evaluate import EvaluatedRun
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.results import main as results
from tests.evaluation.ferry import (
    ANSWERS,
    CLAUSES,
    FARES,
    QUESTIONS,
    TEXT,
    Reply,
    halves,
    honest,
    nothing_told,
    run_ferry,
    write_chunks,
)
from tests.rag.bundles import rows_of

Run = Callable[..., EvaluatedRun]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return partial(run_ferry, tmp_path)


def rows(done: EvaluatedRun) -> list[dict[str, Any]]:
    return rows_of(done.folder / "ferry" / "eval_results.jsonl")


def losses(done: EvaluatedRun) -> list[str | None]:
    return [row["lost_at"] for row in rows(done)]


def reasons(done: EvaluatedRun) -> list[str]:
    return [gold["reason"] for row in rows(done) for gold in row["gold_stages"]]


# ---------------------------------------------------------------- the parser


@pytest.fixture
def parsed(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        folder = tmp_path / "parsed"
        folder.mkdir()
        (folder / "tack.md").write_text(text, encoding="utf-8")
        return folder

    return write


def test_table_missing_from_parsed_text_is_lost_at_text_stage(run: Run, parsed: Callable[[str], Path]) -> None:
    # the passages are unknown: else a list that has the table proves that the parser did not lose it
    done = run(function=lambda question: {"answer": honest(question)["answer"]}, parsed=parsed(TEXT.replace(FARES, "")))
    assert losses(done) == [None, "text", None, None]
    assert rows(done)[1]["gold_stages"][0]["text"] == {"share": 0.0}
    assert reasons(done)[1] == "absent from the text"
    assert done.summary["ceiling_text"].mean == 0.75


def test_parsed_folder_of_other_bundle_stops_run_before_start(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "lease.md").write_text("A lease.", encoding="utf-8")
    with pytest.raises(ToolkitError, match="has the name of a document of the bundle"):
        run(parsed=tmp_path / "other")
    assert not (tmp_path / "results" / "run").exists()


# ---------------------------------------------------------------- the chunker


def test_gold_cut_by_every_chunk_or_in_no_chunk_is_lost_at_chunks_stage(run: Run, tmp_path: Path) -> None:
    notes: list[str] = []
    strange = "Nobody in any tack has ever written a sentence about the tariffs of balloons over Vienna."
    chunks = write_chunks(tmp_path / "chunks.jsonl", *halves(CLAUSES[0]), *CLAUSES[1:3], strange)
    done = run(function=nothing_told, chunks=chunks, notes=notes)
    assert losses(done) == ["chunks", None, None, "chunks"]
    assert reasons(done) == ["cut", "", "", "in no chunk"]
    assert done.summary["ceiling_chunks"].mean == 0.5
    assert any("1 of 5 chunks" in note for note in notes)


def test_chunks_are_matched_to_parsed_text_when_both_are_given(
    run: Run, tmp_path: Path, parsed: Callable[[str], Path]
) -> None:
    short = TEXT.replace(" of not less than twenty feet", "")
    chunks = write_chunks(tmp_path / "chunks.jsonl", *(part.strip() for part in short.split("\n\n")))
    done = run(function=nothing_told, parsed=parsed(short), chunks=chunks)
    stages = rows(done)[2]["gold_stages"][0]
    assert 0.5 < stages["text"]["share"] < 1
    assert stages["chunks"]["share"] == 1.0  # the chunk has all that the text has
    assert losses(done) == [None] * 4


# ---------------------------------------------------------------- the lists and the answer


def told(**fields: Any) -> Callable[[str], Reply]:
    """Return a system that replies honestly with these fields added and cites nothing.

    A citation would prove that the passage reached the model.
    """
    return lambda question: {**honest(question), "answer": ANSWERS[QUESTIONS.index(question)], **fields}


# ---------------------------------------------------------------- the built-in pipeline


def test_builtin_pipeline_reports_every_gold_stage(run: Run) -> None:
    done = run(function=None, preset="routed", reranker="legal")
    known = {stage for row in rows(done) for gold in row["gold_stages"] for stage in gold}
    assert {"page", "text", "chunks", "retrieved", "reranked", "context", "cited"} <= known
    for one in rows(done):
        (gold,) = one["gold_stages"]
        assert ("answered" in gold) == (one["outcome"] in ("right", "wrong"))
        assert gold["text"] == {"share": 1.0}
        assert "before" in gold["reranked"]
    assert {"ceiling_text", "ceiling_chunks", "ceiling_retrieved", "ceiling_reranked", "ceiling_context"} <= set(
        done.summary
    )


def test_context_budget_is_named_as_reason_for_lost_gold(run: Run) -> None:
    done = run(function=None, preset="naive", chunk_size=160, budget_tokens=40, embedder="hashing:256")
    cut = [gold["reason"] for row in rows(done) for gold in row["gold_stages"] if gold["lost_at"] == "context"]
    assert cut and set(cut) == {"cut by the budget"}
    wide = run("wide", function=None, preset="naive", chunk_size=160, budget_tokens=4000, embedder="hashing:256")
    assert not any(gold["lost_at"] == "context" for row in rows(wide) for gold in row["gold_stages"])


# ---------------------------------------------------------------- two runs


def test_diff_reports_regression_when_a_stage_loses_more_gold(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = run("before", function=told(reranked=[1, 2, 3, 4]))
    after = run("after", function=told(reranked=[1, 2]))
    folders = [str(before.folder), str(after.folder)]
    assert results(["diff", *folders, "--fail-on-regression"]) == 1
    out = capsys.readouterr().out
    assert "ceiling_reranked" in out
    assert "reranked: 0 questions lost gold there before, 2 after" in out
    assert results(["diff", *reversed(folders), "--fail-on-regression"]) == 0
