"""Parts of a verdict, computed by hand: missing evidence, cited passages, cells of a table in a terminal."""

from __future__ import annotations

from exhibit.evaluation.bands import Bands, Bound
from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.missing import Evidence, notes_on
from exhibit.evaluation.outcomes import find_cited
from exhibit.evaluation.statistics import Estimate
from exhibit.evaluation.text_tables import format_cell
from exhibit.evidence import Span


def answered(answer: str | None, *passages: Passage, question: str = "?", truth: str = "", **fields) -> Case:
    return Case(0, question, truth, reply=Reply(answer, passages=tuple(passages)), **fields)


# ---------------------------------------------------------------- what is lacking


def test_evidence_reports_only_frequent_gaps():
    evidence = Evidence()
    foreign = [Passage("x", "a.pdf", told_filename=f"{n}.doc", span=Span(0, 1)) for n in range(5)]
    evidence.add([answered("a", *foreign), answered("a"), Case(0, "?", "", reply=Reply(error="x"))])
    lines = evidence.lines("d")
    assert lines[0] == "d: 5 of 5 passages name files that the bundle lacks: 0.doc, 1.doc, 2.doc"
    assert lines[1].endswith("the reply has no passages (1 of 2 questions)") and len(lines) == 2
    tenth = Evidence()
    tenth.add([answered("a", Passage("x", "a.pdf", span=Span(0, 1)))] * 9 + [answered("a")])
    assert tenth.lines("d") == [], "a tenth is not much"
    tenth.add([answered("a")])
    assert len(tenth.lines("d")) == 1
    assert notes_on(answered("a", Passage(" ", "a.pdf"), Passage("x", "a.pdf", span=Span(0, 1))))[-1].startswith(
        "1 of 2 passages "
    )
    assert notes_on(Case(0, "?", "", reply=Reply(error="x"))) == []


def test_find_cited_returns_only_existing_passage_numbers():
    case = answered("Norway [2][1]. And so [2, 3] it is [0].", Passage("a"), Passage("b"))
    assert find_cited(case) == [2, 1]


# ---------------------------------------------------------------- the terminal


def test_format_cell_shows_mean_interval_counts_and_band():
    bands = Bands(Bound(">", 0.8), Bound("<", 0.5))
    assert (
        format_cell("answer_f1", None) == "–" and format_cell("answer_f1", Estimate(None, 0, errors=3)) == "–, 3 failed"
    )
    whole = Estimate(0.9, 7, errors=2, ci95=(0.8, 1.0), std=0.1)
    assert format_cell("answer_f1", whole, bands) == "0.900 [0.800, 1.000] SD 0.100 (n 7, 2 failed) good"
