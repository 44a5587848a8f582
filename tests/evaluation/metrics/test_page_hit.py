"""Gold that is a page is scored by page, in addition to the passage metrics if the passage is also known.

Ambiguous gold is in no metric.
"""

from __future__ import annotations

import json

import pytest

from exhibit.evaluation.ambiguity import settle_ambiguous
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.documents import Documents
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.missing import notes_on
from exhibit.evidence import Span
from exhibit.viewer.results import format_gold


def hit(gold: GoldPassage, *passages: Passage, k: int = 2) -> float | None:
    case = Case(0, "?", "!", (gold,), filename="a.pdf", reply=Reply("!", passages))
    return measure([case], names=[f"page_hit@{k}"])[f"page_hit@{k}"][0]


PAGE = GoldPassage("a.pdf", None, pages=(7,))


@pytest.mark.parametrize(
    ("passages", "value"),
    [
        ([Passage("x", "a.pdf", Span(0, 9), pages=(7,))], 1.0),
        ([Passage("x", "a.pdf", Span(0, 9), pages=(6, 7))], 1.0),
        ([Passage("x", "a.pdf", Span(0, 9), pages=(6,), told_page=7)], 0.0),  # the words decide, not the system
        ([Passage("x", "a.pdf", told_page=7)], 1.0),  # nothing but its page is known
        ([Passage("x", "b.pdf", Span(0, 9), pages=(7,))], 0.0),
        ([Passage("x", "a.pdf")], None),
        ([Passage("x", "b.pdf")], 0.0),
        ([Passage("x", "b.pdf"), Passage("x", "b.pdf"), Passage("x", "a.pdf", Span(0, 9), pages=(7,))], 0.0),
        ([], 0.0),
    ],
)
def test_a_page_is_hit_by_a_passage_whose_words_stand_on_it(passages, value):
    assert hit(PAGE, *passages) == value


def test_gold_without_pages_has_no_page_hit():
    assert hit(GoldPassage("a.pdf", "words"), Passage("x", "a.pdf", Span(0, 9), pages=(7,))) is None


# ---------------------------------------------------------------- ambiguous gold

SEAT = "The parties submit to the courts of the State of Orkney for all disputes under this deed."
DEED = "\n\n".join(
    [f"{n}. Works {n}. The pier of the State of Orkney numbered {n} is kept in repair." for n in range(1, 8)]
    + [SEAT, "Notices go to the office of the State of Orkney."]
)


@pytest.fixture
def bundle(tmp_path):
    (tmp_path / "deeds" / "corpus").mkdir(parents=True)
    (tmp_path / "deeds" / "corpus" / "deed.txt").write_text(DEED, encoding="utf-8")
    contexts = [["State of Orkney"], ["submit to the courts of the State", "State of Orkney"], [SEAT]]
    rows = [
        {"id": n, "question": f"Question {n}?", "answer": "Orkney", "is_impossible": False,
         "contexts": [{"filename": "deed.txt", "text": text} for text in texts]}
        for n, texts in enumerate(contexts)
    ]  # fmt: skip
    (tmp_path / "deeds" / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    return tmp_path / "deeds"


def test_few_words_on_many_places_are_in_no_passage_metric_unless_a_neighbour_tells_the_place(bundle):
    [dataset], _ = load_datasets([bundle], Selection())
    alone, beside, whole = dataset.cases
    assert alone.gold[0].ambiguous and not alone.gold[0].located and not whole.gold[0].ambiguous
    wrong = Passage("3. Works 3. The pier of the State of Orkney numbered 3 is kept in repair.", "deed.txt")

    def figures(case: Case) -> dict[str, float | None]:
        placed = dataset.documents.place(wrong, case.gold)
        answered = Case(case.id, "?", "!", case.gold, filename="deed.txt", reply=Reply("!", (placed,)))
        if case is alone:
            assert "gold of few words stands on many places, and is in no passage metric" in notes_on(answered)
        names = ["recall@10", "char_recall@8", "document_hit@1"]
        return {name: column[0] for name, column in measure([answered], names=names).items()}

    assert figures(alone) == {"recall@10": None, "char_recall@8": None, "document_hit@1": 1.0}
    assert figures(beside)["recall@10"] == 0.0 and figures(whole)["recall@10"] == 0.0
    text = dataset.documents.get("deed.txt").text
    [place] = beside.gold[1].places
    assert text[slice(*place[0])] == SEAT, "widened to its sentence"
    assert any("1 have few words that occur at many places" in line for line in format_gold(dataset, listed=1))


def test_two_places_that_are_as_near_tell_nothing(bundle):
    documents = Documents({"deed.txt": bundle / "corpus" / "deed.txt"})
    places = tuple((Span(at, at + 5),) for at in (100, 200, 900, 1900))
    between = GoldPassage("deed.txt", "a clause of its own, long enough to tell", ((Span(140, 165),),))
    [marked, _] = settle_ambiguous([GoldPassage("deed.txt", "Works", places), between], documents)
    assert marked.ambiguous and marked.places == places
