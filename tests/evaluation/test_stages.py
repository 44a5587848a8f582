"""Each stage at which a gold passage can be lost: a case that keeps the passage and a case that loses it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.stages import (
    GOLD_STAGES,
    GoldStages,
    InChunks,
    InText,
    SystemLists,
    compute_gold_left,
    find_in_chunks,
    find_in_text,
    follow_gold,
)
from exhibit.evidence import Document, Span
from exhibit.evidence.place import blank_markup

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


def passage(words: str) -> Passage:
    start = PORT.index(words)
    return Passage(words, "harbour.txt", Span(start, start + len(words)))


# ---------------------------------------------------------------- the page and the text


def test_follow_gold_reports_loss_on_page_when_gold_is_absent_from_document() -> None:
    absent = GoldPassage("harbour.txt", "No such words stand in these rules at all.", absent=True)
    assert follow_gold(absent).lost_at == "page"
    assert follow_gold(gold(LIGHTS)).lost_at is None
    assert follow_gold(GoldPassage("harbour.txt", None)).page is None


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
    found = find_in_text(gold(LIGHTS), DOCUMENT, parsed(form))
    assert (found.how, found.share, found.missing) == ("whole", 1.0, ())
    assert follow_gold(gold(LIGHTS), text=found).lost_at is None


@pytest.mark.parametrize("dropped", ["both", "each evening", "640", "closed by ice"])
def test_find_in_text_lists_words_dropped_by_parser(dropped: str) -> None:
    clause = LIGHTS if dropped in LIGHTS else BERTH + PROVISO
    found = find_in_text(gold(clause), DOCUMENT, parsed(PORT.replace(f" {dropped}", "")))
    assert found.how == "part"
    assert " ".join(found.missing).strip(" .,") == dropped
    assert 0.5 < found.share < 1
    assert follow_gold(gold(clause), text=found).lost_at is None  # most of it is there


def test_find_in_text_is_absent_when_clause_is_dropped() -> None:
    found = find_in_text(gold(LIGHTS), DOCUMENT, parsed(PORT.replace(LIGHTS, "")))
    assert found == InText("absent", 0.0, (LIGHTS,))
    assert follow_gold(gold(LIGHTS), text=found).lost_at == "text"


def test_find_in_text_identifies_short_gold_by_neighbouring_text() -> None:
    short = gold("north quay")
    twice = PORT + "\n\nThe north quay is of stone."
    assert find_in_text(short, DOCUMENT, parsed(twice)).how == "whole"  # type: ignore[union-attr]
    # the words stand in the text, but not where the gold is: nothing tells
    assert find_in_text(short, DOCUMENT, parsed("The north quay is of stone. " + LIGHTS)) is None
    assert find_in_text(short, DOCUMENT, parsed(LIGHTS)).how == "absent"  # type: ignore[union-attr]


def test_find_in_text_chooses_repeated_clause_at_same_position() -> None:
    text = "\n\n".join((LIGHTS, BERTH, "x " * 900, LIGHTS, "The end."))
    second = text.rindex(LIGHTS)
    last = GoldPassage("harbour.txt", LIGHTS, ((Span(second, second + len(LIGHTS)),),))
    found = find_in_text(last, Document("harbour.txt", text), parsed(text))
    assert found.places == ((Span(second, second + len(LIGHTS)),),)


# ---------------------------------------------------------------- the chunks


def halves(words: str, text: str = PORT) -> list[tuple[Span, ...]]:
    """Return two chunks that split a text in the middle of these words."""
    middle = text.index(words) + len(words) // 2
    return [(Span(0, middle),), (Span(middle, len(text)),)]


@pytest.mark.parametrize("words", [LIGHTS, BERTH + PROVISO, TOLL])
def test_find_in_chunks_reports_gold_cut_by_every_chunk(words: str) -> None:
    found = find_in_chunks(gold(words).places, halves(words), PORT)
    assert found.how == "cut"
    assert found.share == pytest.approx(0.5, abs=0.06)
    assert found.cut is not None
    assert found.cut.at == PORT.index(words) + len(words) // 2
    assert follow_gold(gold(words), chunks=found).lost_at == "chunks"
    whole = find_in_chunks(gold(words).places, [*halves(words), (Span(0, len(PORT)),)], PORT)
    assert whole == InChunks("whole", 1.0, 2)
    assert follow_gold(gold(words), chunks=whole).lost_at is None


def test_find_in_chunks_reports_gold_in_no_chunk() -> None:
    found = find_in_chunks(gold(LIGHTS).places, [(Span(0, 40),)], PORT)
    assert found == InChunks("none", 0.0)
    assert follow_gold(gold(LIGHTS), chunks=found).lost_at == "chunks"


def test_find_in_chunks_ignores_missing_punctuation_at_edge() -> None:
    start, end = gold(LIGHTS).places[0][0]
    found = find_in_chunks(gold(LIGHTS).places, [(Span(start, end - 1),)], PORT)
    assert found.how == "whole"


def test_find_in_chunks_requires_both_spans_of_gold_in_same_chunk() -> None:
    place = (*gold(BERTH).places[0], *gold(TOLL).places[0])
    both = find_in_chunks([place], [place], PORT)
    one = find_in_chunks([place], [place[:1]], PORT)
    assert both.how == "whole"
    assert one.how == "cut"


# ---------------------------------------------------------------- the lists, the citations and the answer


LIST = [passage(BERTH), passage("Signed at Skerryvoe by the Reeve."), passage(LIGHTS), passage(TOLL)]


def test_follow_gold_names_first_stage_that_loses_gold() -> None:
    one = gold(LIGHTS)
    assert follow_gold(one, SystemLists(LIST[:2], LIST[:2], LIST[:1])).lost_at == "retrieved"
    assert follow_gold(one, SystemLists([], None, [])).lost_at == "retrieved"
    assert follow_gold(one, SystemLists(LIST, LIST, LIST[:2])).lost_at == "context"
    assert follow_gold(one, SystemLists(LIST, LIST, LIST, LIST[:1])).lost_at == "cited"
    assert follow_gold(one, SystemLists(LIST, LIST, LIST, LIST[2:3]), answered="wrong").lost_at == "answered"
    assert follow_gold(one, SystemLists(LIST, LIST, LIST, LIST[2:3]), answered="right").lost_at is None


def test_follow_gold_ignores_earlier_loss_when_gold_is_retrieved() -> None:
    cut = find_in_chunks(gold(LIGHTS).places, halves(LIGHTS), PORT)
    middle = len(LIGHTS) // 2
    both = [passage(LIGHTS[:middle]), passage(LIGHTS[middle:])]
    assert follow_gold(gold(LIGHTS), SystemLists(both), chunks=cut).lost_at is None
    assert follow_gold(gold(LIGHTS), SystemLists(LIST[:2]), chunks=cut).lost_at == "chunks"
    # a right answer may come from elsewhere
    assert follow_gold(gold(LIGHTS), SystemLists(LIST[:2]), answered="right").lost_at == "retrieved"


def test_follow_gold_leaves_unreported_stages_unknown() -> None:
    stages = follow_gold(gold(LIGHTS), SystemLists(LIST))
    assert [stage for stage in GOLD_STAGES if stages.is_kept(stage) is not None] == ["page", "retrieved"]
    unplaced = replace(Passage("words of nobody knows where"), unplaced=True)
    assert follow_gold(gold(LIGHTS), SystemLists([unplaced])).retrieved is None


def test_compute_gold_left_falls_from_stage_to_stage() -> None:
    stages = [
        follow_gold(gold(LIGHTS), SystemLists(LIST, LIST)),
        follow_gold(gold(TOLL), SystemLists(LIST, LIST[:3])),
        follow_gold(gold(BERTH), SystemLists(LIST[1:], LIST[1:])),
        GoldStages(page=False),
    ]
    assert compute_gold_left(stages, "page") == 0.75
    assert compute_gold_left(stages, "retrieved") == pytest.approx(2 / 3)
    assert compute_gold_left(stages, "reranked") == pytest.approx(1 / 3)


def test_gold_stages_row_omits_unknown_stages() -> None:
    cut = find_in_chunks(gold(BERTH + PROVISO).places, halves(BERTH + PROVISO), PORT)
    row = follow_gold(gold(BERTH + PROVISO), SystemLists(LIST[1:3]), chunks=cut, answered="wrong").as_row()
    assert row["lost_at"] == "chunks"
    assert row["retrieved"] == {"rank": None}
    assert row["answered"] == "wrong"
    assert "text" not in row
