"""The funnel of a report: one bar per stage with its reasons, the questions lost there, and a case's details."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.stage_losses import StageCounts
from exhibit.viewer.comparison import write_comparison
from exhibit.viewer.funnel import describe_case_stages, make_funnel_rows
from exhibit.viewer.report import write_report
from tests.evaluation.ferry import CLAUSES, FARES, TEXT, halves, honest, nothing_told, run_ferry, write_chunks
from tests.viewer.report_data import opened


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A run whose parser dropped the table, and whose chunker cut two clauses."""
    (tmp_path / "parsed").mkdir()
    (tmp_path / "parsed" / "tack.txt").write_text(TEXT.replace(FARES, ""), encoding="utf-8")
    pieces = [*halves(CLAUSES[0]), *halves(CLAUSES[2]), CLAUSES[3]]
    chunks = write_chunks(tmp_path / "chunks.jsonl", *pieces)
    return run_ferry(tmp_path, "lossy", nothing_told, parsed=tmp_path / "parsed", chunks=chunks).folder


def counts_of(folder: Path) -> StageCounts:
    counts = StageCounts()
    for row in RunResults(folder).rows:
        counts.add(row)
    return counts


def test_each_stage_has_a_bar_and_its_reasons(lossy: Path) -> None:
    rows = make_funnel_rows(counts_of(lossy), RunResults(lossy).means)
    assert [(row.stage, row.left, row.lost) for row in rows] == [
        ("page", 4, 0), ("text", 3, 1), ("chunks", 1, 2), ("answered", 1, 0),
    ]  # fmt: skip
    text, chunks = rows[1], rows[2]
    assert [(part.reason, part.questions) for part in text.parts] == [("absent from the text", 1)]
    assert {part.reason for part in chunks.parts} == {"cut", "cut before its proviso"}
    # a bar ends where that of the stage before ended
    assert chunks.share + sum(part.width for part in chunks.parts) == pytest.approx(text.share)
    assert text.ceiling.startswith("75.0%") and chunks.ceiling.startswith("25.0%")


def test_a_run_that_loses_nothing_has_full_bars(tmp_path: Path) -> None:
    folder = run_ferry(tmp_path, "whole", honest).folder
    assert {row.share for row in make_funnel_rows(counts_of(folder), {})} == {100.0}


def test_a_case_tells_ranks_dropped_words_and_the_chunks_of_a_cut(lossy: Path) -> None:
    rows = {row.id: describe_case_stages(row.gold_stages)[0] for row in RunResults(lossy).rows}
    assert rows[1]["missing"] == [" ".join(FARES.split())] and rows[1]["lost"] == "text"
    assert (
        rows[2]["cut"]["before"] == halves(CLAUSES[2])[0] and rows[2]["cut"]["after"] == halves(CLAUSES[2])[1].strip()
    )
    assert rows[3]["cut"] is None and rows[3]["lost"] is None
    told = dict(rows[2]["stages"])
    assert told["text"] == "whole" and told["chunks"].startswith("cut, ")


def test_a_bar_opens_the_questions_that_are_lost_there(lossy: Path, browser) -> None:  # type: ignore[no-untyped-def]
    complaints: list[str] = []
    page = opened(browser, write_report(lossy, single_file=True).as_uri(), complaints)
    bar = page.locator("button[data-pick=chunks]")
    assert "2 lost here" in bar.inner_text()
    bar.click()
    page.wait_for_function("document.querySelectorAll('.line .question').length === 2")
    assert bar.get_attribute("aria-pressed") == "true"
    page.locator("#lines .line").first.click()
    stages = page.locator("section.stages")
    assert "One chunk ends:" in stages.inner_text() and stages.locator("mark.gold").count() == 2
    page.locator("button[data-pick=text]").click()
    page.wait_for_function("document.querySelectorAll('.line .question').length === 1")
    page.locator("#lines .line").first.click()
    page.wait_for_selector("mark.dropped")
    assert page.locator("mark.dropped").inner_text() == " ".join(FARES.split())
    assert complaints == []


def test_a_comparison_names_the_stage_that_moved(tmp_path: Path, lossy: Path) -> None:
    chunks = write_chunks(tmp_path / "whole.jsonl", *CLAUSES)
    better = run_ferry(tmp_path, "better", nothing_told, chunks=chunks).folder
    page = write_comparison([lossy, better], pages=0).read_text(encoding="utf-8")
    assert "better: chunks: gold lost there 0.500 before, 0.000 after" in page
    assert page.count('class="funnel"') == 2
