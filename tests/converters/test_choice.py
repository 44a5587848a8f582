"""`--limit` and `--answerable-only` work for a converter that does not know them."""

from __future__ import annotations

from exhibit.converters import Benchmark, Item, Quote, RawDocument, RawRow, Tally
from tests import conversion

ROWS = [
    RawRow(0, "first?", "yes", (Quote("a.txt", "yes"),), "a.txt"),
    RawRow(1, "nowhere?", "", (), "a.txt", is_impossible=True, place="a.txt: nowhere"),
    RawRow(2, "second?", "yes", (Quote("a.txt", "yes"), Quote("b.txt", "no"))),
    RawRow(3, "none?", "", (), "b.txt", is_impossible=True, items=(Item("rows", "line 3"),)),
]


def chosen(limit: int | None = None, *, answerable_only: bool = False) -> tuple[list[str], list[int], dict]:
    documents = [
        RawDocument("a.txt", "a", text="yes", items=(Item("files", "a.txt"),)),
        RawDocument("b.txt", "b", text="no", items=(Item("files", "b.txt"),)),
    ]
    tally = Tally()
    tally.take(item for one in (*documents, *ROWS) for item in one.items)
    whole = Benchmark(documents, list(ROWS), {})
    kept = conversion.chosen(whole, tally, limit=limit, answerable_only=answerable_only)
    return [document.filename for document in kept.documents], [row.id for row in kept.rows], tally.left_out


def test_without_flags_everything_stays():
    assert chosen() == (["a.txt", "b.txt"], [0, 1, 2, 3], {})


def test_a_limit_keeps_the_first_documents_and_the_questions_about_them_alone():
    assert chosen(1) == (["a.txt"], [0, 1], {"beyond --limit": ["b.txt", "row 2", "line 3"]})


def test_answerable_only_leaves_out_the_impossible_and_counts_them():
    left = {"no answer in the document (--answerable-only)": ["a.txt: nowhere", "line 3"]}
    assert chosen(answerable_only=True) == (["a.txt", "b.txt"], [0, 2], left)
