"""For each stage that can lose a gold passage, one case keeps the passage and one case loses it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.stages import GoldStages, ceilings_of, find_in_chunks, find_in_text, follow_gold
from exhibit.evidence import Document, Span
from exhibit.evidence.place import blank_markup
from exhibit.schemas.run import Outcome

BERTH = "The Master shall berth the vessel at the north quay and pay harbour dues of 640 crowns a week"
PROVISO = ", provided that no dues are owed while the quay is closed by ice."
LIGHTS = "The Keeper trims the lamps of both lighthouses each evening and enters the hour in the book of lights."
TOLL = "Toll in crowns\nSloop 12\nBrig 30\nBarque 45"
PORT = "\n\n".join(("HARBOUR RULES OF SKERRYVOE", BERTH + PROVISO, LIGHTS, TOLL, "Signed at Skerryvoe by the Reeve."))
DOCUMENT = Document("harbour.txt", PORT)


def gold(words: str, text: str = PORT) -> GoldPassage:
    start = text.index(words)
    return GoldPassage("harbour.txt", words, ((Span(start, start + len(words)),),))


def parsed(text: str) -> Document:
    return Document("harbour.txt", blank_markup(text))


def follow(words: str, *lists: list[Passage] | None, **known: Any) -> GoldStages:
    """Follow a clause through the lists of the stages retrieved, reranked, context and cited."""
    names = ("retrieved", "reranked", "context", "cited")
    return follow_gold(gold(words), dict(zip(names, lists, strict=False)), **known)


def passage(words: str) -> Passage:
    start = PORT.index(words)
    return Passage(words, "harbour.txt", Span(start, start + len(words)))


# ---------------------------------------------------------------- the page and the text


def test_gold_absent_from_the_document_is_lost_at_the_page_stage() -> None:
    absent = GoldPassage("harbour.txt", "No such words stand in these rules at all.", absent=True)
    assert follow_gold(absent, {})["lost_at"] == "page"
    assert follow(LIGHTS)["lost_at"] is None
    assert follow_gold(GoldPassage("harbour.txt", None), {}) == {"lost_at": None, "reason": ""}


@pytest.mark.parametrize(
    "form",
    [
        PORT,
        PORT.replace(LIGHTS, f"**{LIGHTS}**").replace(" lamps ", " <b>lamps</b> "),
        PORT.replace("lighthouses", "light-\nhouses"),
        "Another parser puts this line in front.\n" + PORT,
    ],
)
def test_find_in_text_ignores_markup_and_line_breaks(form: str) -> None:
    assert find_in_text(gold(LIGHTS), DOCUMENT, parsed(form)).share == 1.0


@pytest.mark.parametrize("dropped", ["both", "each evening", "640", "closed by ice"])
def test_find_in_text_counts_words_dropped_by_parser(dropped: str) -> None:
    clause = LIGHTS if dropped in LIGHTS else BERTH + PROVISO
    share = find_in_text(gold(clause), DOCUMENT, parsed(PORT.replace(f" {dropped}", ""))).share
    whole, letters = (sum(map(str.isalnum, words)) for words in (clause, dropped))
    assert share == pytest.approx(1 - letters / whole, abs=0.02)
    assert follow(clause, in_text=share)["lost_at"] is None  # most of it is there


def test_find_in_text_returns_zero_for_a_dropped_clause() -> None:
    assert find_in_text(gold(LIGHTS), DOCUMENT, parsed(PORT.replace(LIGHTS, ""))) == (0.0, ())
    assert follow(LIGHTS, in_text=0.0)["lost_at"] == "text"


def test_find_in_text_returns_none_for_short_gold_unless_text_lacks_it() -> None:
    short = gold("north quay")
    assert find_in_text(short, DOCUMENT, DOCUMENT) is None
    assert find_in_text(short, DOCUMENT, parsed(LIGHTS)) == (0.0, ())


def test_find_in_text_chooses_repeated_clause_at_same_position() -> None:
    text = "\n\n".join((LIGHTS, BERTH, "x " * 900, LIGHTS, "The end."))
    second = text.rindex(LIGHTS)
    last = GoldPassage("harbour.txt", LIGHTS, ((Span(second, second + len(LIGHTS)),),))
    found = find_in_text(last, Document("harbour.txt", text), parsed(text))
    assert found.places == ((Span(second, second + len(LIGHTS)),),)


# ---------------------------------------------------------------- the chunks


def halves(words: str) -> list[tuple[Span, ...]]:
    """Return two chunks that split the rules in the middle of these words."""
    middle = PORT.index(words) + len(words) // 2
    return [(Span(0, middle),), (Span(middle, len(PORT)),)]


@pytest.mark.parametrize("words", [LIGHTS, BERTH + PROVISO, TOLL])
def test_find_in_chunks_reports_gold_cut_by_every_chunk(words: str) -> None:
    share = find_in_chunks(gold(words).places, halves(words), PORT)
    assert share == pytest.approx(0.5, abs=0.06)
    assert follow(words, in_chunks=share)["lost_at"] == "chunks"
    assert find_in_chunks(gold(words).places, [*halves(words), (Span(0, len(PORT)),)], PORT) == 1.0
    assert follow(words, in_chunks=1.0)["lost_at"] is None


def test_find_in_chunks_compares_letters_with_each_single_chunk() -> None:
    assert find_in_chunks(gold(LIGHTS).places, [(Span(0, 40),)], PORT) == 0.0
    assert follow(LIGHTS, in_chunks=0.0)["reason"] == "in no chunk"
    start, end = gold(LIGHTS).places[0][0]
    assert find_in_chunks(gold(LIGHTS).places, [(Span(start, end - 1),)], PORT) == 1.0, "only its full stop is cut"
    place = (*gold(BERTH).places[0], *gold(TOLL).places[0])
    assert find_in_chunks([place], [place], PORT) == 1.0
    assert find_in_chunks([place], [place[:1], place[1:]], PORT) < 1.0, "no chunk has both spans"


# ---------------------------------------------------------------- the lists, the citations and the answer


LIST = [passage(BERTH), passage("Signed at Skerryvoe by the Reeve."), passage(LIGHTS), passage(TOLL)]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.WRONG, "the answer is wrong"), (Outcome.WRONGLY_REFUSED, "the system refused"), (Outcome.NOT_JUDGED, "")],
)
def test_loss_at_answer_stage_has_reason_of_outcome(outcome: Outcome, reason: str) -> None:
    assert follow(LIGHTS, LIST, LIST, LIST, LIST[2:3], outcome=outcome)["reason"] == reason


def test_follow_gold_counts_loss_in_search_despite_right_answer() -> None:
    # the answer may come from elsewhere
    assert follow(LIGHTS, LIST[:2], outcome=Outcome.RIGHT)["lost_at"] == "retrieved"
    assert follow(LIGHTS, LIST, LIST, LIST, LIST[2:3], outcome=Outcome.RIGHT)["lost_at"] is None


def test_follow_gold_ignores_earlier_loss_when_gold_is_retrieved() -> None:
    middle = len(LIGHTS) // 2
    both = [passage(LIGHTS[:middle]), passage(LIGHTS[middle:])]
    assert follow(LIGHTS, both, in_chunks=0.5)["lost_at"] is None
    assert follow(LIGHTS, LIST[:2], in_chunks=0.5)["lost_at"] == "chunks"


def test_follow_gold_leaves_unreported_stages_unknown() -> None:
    assert [*follow(LIGHTS, LIST)] == ["lost_at", "reason", "page", "retrieved"]
    unplaced = replace(Passage("words of nobody knows where"), unplaced=True)
    assert "retrieved" not in follow(LIGHTS, [unplaced])


def test_ceilings_decrease_from_stage_to_stage() -> None:
    absent = {"lost_at": "page", "reason": "", "page": False}
    stages = [follow(LIGHTS, LIST, LIST), follow(TOLL, LIST, LIST[:3]), follow(BERTH, LIST[1:], LIST[1:]), absent]
    left = ceilings_of(stages)
    assert left["ceiling_page"] == 0.75
    assert left["ceiling_retrieved"] == pytest.approx(2 / 3)
    assert left["ceiling_reranked"] == pytest.approx(1 / 3)


def test_gold_stages_row_omits_unknown_stages() -> None:
    row = follow(BERTH + PROVISO, LIST[1:3], in_chunks=0.5, outcome=Outcome.WRONG)
    assert row == {
        "lost_at": "chunks", "reason": "cut", "page": True, "chunks": {"share": 0.5}, "retrieved": {"rank": None},
        "answered": "wrong",
    }  # fmt: skip
