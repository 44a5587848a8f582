"""Reviewers' corrections in a conversion: applied to exactly what they name, counted, listed in bundle.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhibit.converters import Benchmark, Item, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.documents import Task, materialise
from exhibit.converters.core.patches import CORRECTED, ELSEWHERE, UNFIT, apply_patches
from exhibit.converters.maud import INFO as MAUD
from exhibit.schemas.errors import SourceError
from exhibit.schemas.review import digest_gold
from exhibit.schemas.validate import validate
from tests.conversion import chosen

FIRST = (("a.pdf", "The rent is due."),)


def benchmark() -> Benchmark:
    """Three documents with a question each, the last impossible."""
    documents = [RawDocument(f"{name}.pdf", name, items=(Item("files", f"{name}.txt"),)) for name in "abc"]
    rows = [
        RawRow(0, "What of the rent?", "It is due.", (Quote("a.pdf", "The rent is due."),), "a.pdf", labels={"n": 1}),
        RawRow(1, "What of the roof?", "It leaks.", (Quote("b.pdf", "The roof leaks."),), "b.pdf"),
        RawRow(2, "What of the dog?", "", (), "c.pdf", is_impossible=True),
    ]
    return Benchmark(documents, rows, {})


def fix(id: int, was: tuple[tuple[str, str], ...], **told: object) -> dict[str, object]:
    return {"id": id, "was": digest_gold(was), "contexts": [], "reviewers": ["Ada"], **told}


def write(path: Path, **told: object) -> str:
    content = {"format": "exhibit-patch/1", "dataset": "maud", "about": "A test.", **told}
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def context(text: str, *spans: list[int], filename: str = "a.pdf") -> dict[str, object]:
    return {"filename": filename, "spans": list(spans), "text": text}


def test_gold_is_replaced_where_it_is_what_was_reviewed(tmp_path):
    better = context("The rent is due on the first.", [3, 32])
    told = write(tmp_path / "p.json", corrections=[fix(0, FIRST, contexts=[better], reason="the day counts")])
    tally = Tally()
    made = apply_patches(benchmark(), MAUD, [told], tally)
    row = made.rows[0]
    assert row.quotes == (Quote("a.pdf", "The rent is due on the first.", marked=((3, 32),)),)
    assert (row.answer, row.labels, made.rows[1:]) == ("It is due.", {"n": 1}, benchmark().rows[1:])
    assert tally.noted == {CORRECTED: ["question 0: by Ada: the day counts"]} and not tally.left_out
    [entry] = made.patches
    assert (entry.name, entry.corrections, entry.documents, entry.questions) == ("p.json", 1, 0, 0)


def test_a_question_can_become_impossible_and_possible(tmp_path):
    dog = context("No dogs.", filename="c.pdf")
    told = write(tmp_path / "p.json", corrections=[fix(0, FIRST, is_impossible=True), fix(2, (), contexts=[dog])])
    first, _, last = apply_patches(benchmark(), MAUD, [told], Tally()).rows
    assert first.is_impossible and not first.quotes and first.filename == "a.pdf"
    assert not last.is_impossible and (last.answer, last.filename) == ("No dogs.", "c.pdf")


def test_gold_that_changed_since_the_review_is_left_and_counted(tmp_path):
    other = (("a.pdf", "The rent was due."),)
    told = write(tmp_path / "p.json", corrections=[fix(0, other, is_impossible=True)])
    tally = Tally()
    made = apply_patches(benchmark(), MAUD, [told], tally)
    assert made.rows == benchmark().rows and tally.noted == {UNFIT: ["question 0"]} and made.patches[0].corrections == 0
    with pytest.raises(SourceError, match="the gold has changed since the review"):
        apply_patches(benchmark(), MAUD, [told], Tally(strict=True))


def test_documents_and_questions_are_set_aside_for_their_reason(tmp_path):
    told = write(
        tmp_path / "p.json",
        documents=[{"filename": "b.pdf", "reason": "it is a draft"}, {"filename": "z.pdf", "reason": "gone"}],
        questions=[{"id": 2, "reason": "it is a joke"}, {"id": 9, "reason": "gone"}],
    )
    tally = Tally()
    tally.take(item for raw in benchmark().documents for item in raw.items)
    made = apply_patches(benchmark(), MAUD, [told], tally)
    assert [raw.filename for raw in made.documents] == ["a.pdf", "c.pdf"] and [row.id for row in made.rows] == [0]
    assert tally.left_out == {
        "set aside by a patch: it is a draft": ["b.txt", "question 1"],
        "set aside by a patch: it is a joke": ["question 2"],
    }
    assert tally.noted == {ELSEWHERE: ["p.json: z.pdf", "p.json: question 9"]}
    kept = chosen(made, tally)
    account = tally.account(item for raw in kept.documents for item in raw.items)
    assert (account["files"].given, account["files"].kept) == (3, 2)


def test_patches_are_applied_in_their_order(tmp_path):
    second = context("The rent is overdue.")
    one = write(tmp_path / "1.json", corrections=[fix(0, FIRST, contexts=[context("Rent is due.")])])
    two = write(tmp_path / "2.json", corrections=[fix(0, (("a.pdf", "Rent is due."),), contexts=[second])])
    made = apply_patches(benchmark(), MAUD, [one, two], Tally())
    assert made.rows[0].quotes[0].text == "The rent is overdue." and [p.name for p in made.patches] == [
        "1.json",
        "2.json",
    ]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"dataset": "cuad"}, "is a patch for cuad, but this is maud"),
        ({"more": 1}, "more: Extra inputs"),
        ({"questions": [{"id": 1, "reason": "a"}, {"id": 1, "reason": "b"}]}, "the question 1 occurs more than once"),
        ({"documents": [{"filename": "../a", "reason": "b"}]}, "plain file name"),
        ({"corrections": [fix(0, FIRST)]}, "must have contexts if is_impossible is false"),
        ({"corrections": [fix(0, FIRST, contexts=[context("a", [5, 2])])]}, "the start must be before the end"),
    ],
)
def test_a_patch_that_does_not_hold_is_refused(tmp_path, told, message):
    with pytest.raises(SourceError, match=message):
        apply_patches(benchmark(), MAUD, [write(tmp_path / "p.json", **told)], Tally())


# ---------------------------------------------------------------- places


def placed(tmp_path: Path, quote: Quote):
    path = tmp_path / "a.txt"
    path.write_text("Rent is due. Rent is due.\n", encoding="utf-8")
    raw = RawDocument("a.txt", "a", path=path)
    return materialise(Task(raw, (quote,), path, tmp_path / "out.txt")).places[quote]


def test_of_words_that_stand_twice_the_marked_place_is_the_gold(tmp_path):
    place = placed(tmp_path, Quote("a.txt", "Rent is due.", marked=((13, 25),)))
    assert (place.spans, place.alternatives, place.how) == ([(13, 25)], [], "exact")


@pytest.mark.parametrize("found", [((11, 23),), ((90, 102),)])
def test_words_that_moved_are_looked_for(tmp_path, found):
    place = placed(tmp_path, Quote("a.txt", "Rent is due.", marked=found))
    assert (place.spans, place.alternatives) == ([(0, 12)], [[(13, 25)]])


# ---------------------------------------------------------------- what ships


def test_mauds_known_bad_agreements_are_set_aside(convert, samples):
    folder = convert("maud", "--source", samples / "maud", "--patch", "shipped")
    info = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    assert validate(folder) == []
    assert "contract_88.pdf" not in {document["filename"] for document in info["documents"]}
    reason = "set aside by a patch: the text ends early: it is about a quarter of the agreement"
    assert "contract_88.pdf" in info["left_out"][reason] and len(info["left_out"][reason]) == 4
    assert info["noted"][ELSEWHERE] == ["maud.json: contract_149.pdf"]  # none of its excerpts stands in it
    [entry] = info["patches"]
    assert (entry["name"], entry["documents"], entry["questions"]) == ("maud.json", 1, 3)
    assert reason in (folder / "README.md").read_text(encoding="utf-8")
