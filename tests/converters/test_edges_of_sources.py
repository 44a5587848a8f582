"""Edge cases of raw sources: reports of changed pages, exports and pages of court rules, and table cells."""

from __future__ import annotations

import pytest

from exhibit.converters.civil_procedure.parsing import (
    IndexExport,
    blocks_of,
    cut_body,
    heading_of,
    make_document_key,
    read_string,
)
from exhibit.converters.fetching.refresh import Change, PageState, Touched, as_json, find_changes, format_states
from exhibit.converters.raw.cells import label, list_cell_values, read_cell_field, read_cell_words


def a_state(changes: int = 0, questions: int = 0, state: str = "changed", reason: str = "") -> PageState:
    made = [Change(f"old {n}.", f"new {n}." if n else "", ("old",), ("new", "x") if n else ()) for n in range(changes)]
    touched = [
        Touched(n, "moved" if n % 2 else "gone", f"quote {n}", (2, 3) if n == 1 else ()) for n in range(questions)
    ]
    return PageState("a.html.pdf", "https://x/a", state, reason, made, touched)  # type: ignore[arg-type]


def test_a_page_that_changed_is_told_with_five_changes_and_five_questions():
    assert format_states([a_state(5, 5)]) == [
        "changed: a.html.pdf (https://x/a)",
        "  5 words removed, 8 added",
        "  - old 0.", "  - old 1.", "  + new 1.", "  - old 2.", "  + new 2.", "  - old 3.", "  + new 3.",
        "  - old 4.", "  + new 4.",
        "  question 0: its gold is gone: quote 0", "  question 1: its gold moved to page 2, 3: quote 1",
        "  question 2: its gold is gone: quote 2", "  question 3: its gold moved: quote 3",
        "  question 4: its gold is gone: quote 4",
        "1 pages: 0 as they were, 1 changed, 0 gone; questions whose gold is gone: 3, moved: 2",
    ]  # fmt: skip
    more = format_states([a_state(6, 7)])
    assert "  … and 1 more changes (--changes)" in more and "  … and 2 more questions (--changes)" in more
    assert sum(line.startswith("  question ") for line in more) == sum(line.startswith("  - ") for line in more) == 5
    assert not any("more" in line for line in format_states([a_state(5, 5)]))


def test_pages_are_counted_by_what_became_of_them():
    states = [a_state(state="same"), a_state(state="gone", reason="HTTP 404"), a_state(state="unknown", reason="away")]
    lines = format_states(states)
    assert lines[:4] == [
        "gone: a.html.pdf (https://x/a)", "  HTTP 404", "unknown: a.html.pdf (https://x/a)", "  away",
    ]  # fmt: skip
    assert lines[4].startswith("3 pages: 1 as they were, 0 changed, 1 gone, 1 not had today; ")
    assert as_json(a_state(1))["changes"] == [
        {"removed": "old 0.", "added": "", "words_removed": ("old",), "words_added": ()}
    ]  # fmt: skip


def test_long_words_are_told_in_a_line():
    long = "word " * 40
    [_, _, told, _] = format_states([PageState("a", "u", "changed", changes=[Change(long, "", ("word",), ())])])
    assert len(told) <= 104 and told.endswith(" …")


@pytest.mark.parametrize(("count", "few"), [(3000, True), (3001, False)])
def test_of_a_passage_of_many_words_all_count_as_changed(count, few):
    old = " ".join(["word"] * count)
    [change] = find_changes(old, f"{old[:-4]}deed")
    assert (len(change.words_removed), len(change.words_added)) == ((1, 1) if few else (count, count))


# ---------------------------------------------------------------- court rules


@pytest.mark.parametrize(
    ("id", "order"), [("a_chunk_7", 7), ("a_chunk_123456789", 123456789), ("a_chunk_1234567890", 0), ("a", 0)]
)
def test_a_chunk_stands_at_its_number_where_it_is_one(id, order):
    export = IndexExport("a")
    export.add({"id": id, "content": "words"})
    assert export.pieces == [(order, "words")] and export.records == 1


def test_chunks_of_a_record_stand_for_it_and_what_was_said_first_counts():
    export = IndexExport("a")
    export.add({"content": "first", "chunks": [{"content": "one"}, "no chunk", {"content": " "}, {"content": "two"}]})
    export.add({"content": "three", "chunks": [], "sourcefile": "Part 3", "url": "u", "sourcepage": "3.1"})
    export.add({"content": "four", "document": "Part 4", "storageUrl": "v", "sourcepage": "3.1"})
    assert export.text == "one\n\ntwo\n\nthree\n\nfour"
    assert (export.sourcefile, export.url, list(export.sections), export.records) == ("Part 3", "u", ["3.1"], 3)


def test_a_documents_key_is_what_its_chunks_share():
    assert make_document_key({"id": "part-3_chunk_12", "sourcefile": "51Z"}) == "part-3"
    assert make_document_key({"parent_id": "part-3", "id": "x_chunk_1"}) == "part-3"
    assert make_document_key({"sourcefile": " 51Z "}) == "51Z" and make_document_key({"id": 7}) == ""
    assert read_string({"a": " ", "b": 7, "c": " x "}, "a", "b", "c", "d") == "x"
    assert cut_body("Document: Part 3\nSection: A\nB\nPart 1 of 2\n====\n\nThe words.\n") == "The words."
    assert cut_body("Document: of words") == "Document: of words"


@pytest.mark.parametrize(("length", "title"), [(300, True), (301, False)])
def test_a_first_line_is_a_title_where_it_is_short(length, title):
    line = "w" * length
    assert heading_of(f"\n{line}\n\nMore.") == (line if title else "") and heading_of("a\nb\n\nc") == ""


@pytest.mark.parametrize(
    ("paragraph", "after", "kind"),
    [
        ("W" * 150, False, "h2"), ("W" * 151, False, "p"), ("SHORT ON", False, "p"), ("SHORT ONE", False, "h2"),
        ("Costs", True, "h2"), ("Costs", False, "p"), ("Costs and", True, "p"), ("Costs:", True, "p"),
        ("3.1 Costs", True, "p"), ("(a) Costs", True, "p"), ("Costs\nof it", True, "p"),
    ],
)  # fmt: skip
def test_a_paragraph_is_a_heading_by_its_look_or_after_a_mark(paragraph, after, kind):
    text = f"Body.\n\n{'---' if after else 'Middle.'}\n\n{paragraph}"
    title, *_, last = blocks_of("Title", text)
    assert (title.text, last.style) == ("Title", kind)


# ---------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ("[1, 2]", [1, 2]), ("['a', 'b']", ["a", "b"]), ("[a]", ["[a]"]), (" [1] ", [1]), ("[1", ["[1"]),
        ({"text": ["x", " "]}, ["x"]), ({"text": "x"}, [{"text": "x"}]), (("a", None), ["a"]), (None, []), ("", []),
        (float("nan"), []), (2.0, [2.0]), ('{"a": 1}', [{"a": 1}]),
    ],
)  # fmt: skip
def test_a_cell_is_a_list_of_what_it_holds(cell, held):
    assert list_cell_values(cell) == held


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (2**63 - 1, 2**63 - 1), (2**63, str(2**63)), (-(2**63), str(-(2**63))), (True, True), (None, None),
        (1.5, 1.5), (float("inf"), None), ({"ä": 1}, '{"ä": 1}'), ([1], "[1]"), (b"x", "b'x'"),
    ],
)  # fmt: skip
def test_a_label_is_what_gold_can_hold(cell, told):
    assert label(cell) == told


def test_words_of_a_cell():
    assert [read_cell_words(cell) for cell in (2.0, 2.5, " x ", None, float("nan"), 0)] == [
        "2",
        "2.5",
        "x",
        "",
        "",
        "0",
    ]
    assert read_cell_field({"File-Name": "a.pdf", "filename": "b.pdf"}, "document") == "a.pdf"
    assert read_cell_field({"nothing": 1}, "document") == ""
