"""Parts of a verdict, computed by hand: bounds, bands, missing evidence, tables in a terminal."""

from __future__ import annotations

import pytest

from exhibit.evaluation.bands import Bands, Bound, Scale, read_scale
from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.missing import Evidence, notes_on
from exhibit.evaluation.outcomes import find_cited
from exhibit.evaluation.statistics import Estimate
from exhibit.evaluation.text_tables import format_cell
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError


def answered(answer: str | None, *passages: Passage, question: str = "?", truth: str = "", **fields) -> Case:
    return Case(0, question, truth, reply=Reply(answer, passages=tuple(passages)), **fields)


# ---------------------------------------------------------------- what is lacking


def test_evidence_reports_only_frequent_gaps():
    evidence = Evidence()
    foreign = [Passage("x", "a.pdf", told_filename=f"{n}.doc", span=Span(0, 1)) for n in range(5)]
    evidence.add([answered("a", *foreign), answered("a"), Case(0, "?", "", reply=Reply(error="x"))])
    told = evidence.as_json("d")
    assert (told["questions"], told["passages"], told["passages_lacking"]) == (2, 5, {"foreign": 5})
    assert told["examples"] == ["0.doc", "1.doc", "2.doc"] and told["lacking"] == {"passages": 1}
    assert told["lines"][0].startswith("d: 5 of 5 passages ") and told["lines"][0].endswith(": 0.doc, 1.doc, 2.doc")
    assert "(1 of 2 questions)" in told["lines"][1] and len(told["lines"]) == 2
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


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [("> 0.8", 0.8, False), (">= 0.8", 0.8, True), ("< 0.5", 0.5, False), (" <= -1 ", -1.0, True), ("<0.5", 0.4, True)],
)
def test_bound_rejects_invalid_text(text, value, holds):
    assert Bound.parse(text, where="x").holds(value) is holds
    for wrong in ("0.8", "=> 1", 3, "> .8"):
        with pytest.raises(ToolkitError, match="is not a bound"):
            Bound.parse(wrong, where="x")


def test_bands_rate_values_good_acceptable_or_poor(tmp_path):
    bands = Bands(Bound(">", 0.8), Bound("<", 0.5))
    assert [bands.band(value) for value in (0.9, 0.8, 0.5, 0.4)] == ["Good", "Acceptable", "Acceptable", "Poor"]
    own = Bands(Bound(">", 0.1), Bound("<", 0.05))
    scale = Scale({"recall": bands}, {"cuad": {"recall@8": own}})
    assert scale.of("cuad", "recall@8") is own and scale.of("cuad", "recall@4") is bands and scale.of("x", "f1") is None
    path = tmp_path / "b.toml"
    for text, words in {
        "datasets = 3": "must be tables",
        '[recall]\ngood = "> 0.8"': "and nothing else",
        '[recall]\ngood = "> 0.8"\npoor = "> 0.5"': "have the same direction",
    }.items():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ToolkitError, match=words):
            read_scale(path)
    path.write_text('\ufeff[datasets.cuad.answer_f1]\ngood = ">= 0.8"\npoor = "< 0.5"', encoding="utf-8")
    assert str(read_scale(path).own["cuad"]["answer_f1"].good) == ">= 0.8" and read_scale().general


def test_format_cell_shows_mean_interval_counts_and_band():
    bands = Bands(Bound(">", 0.8), Bound("<", 0.5))
    assert (
        format_cell("answer_f1", None) == "–" and format_cell("answer_f1", Estimate(None, 0, errors=3)) == "–, 3 failed"
    )
    whole = Estimate(0.9, 7, errors=2, ci95=(0.8, 1.0), std=0.1)
    assert format_cell("answer_f1", whole, bands) == "0.900 [0.800, 1.000] SD 0.100 (n 7, 2 failed) good"
