"""Edge cases of functions that all converters use: columns, cells, file names, titles, positions of quotes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from exhibit.converters import Item, Quote, RawDocument, RawRow, Tally, format_points
from exhibit.converters.benchmark import read_source_text
from exhibit.converters.printing import press
from exhibit.converters.printing.press import (
    PAGE,
    check_printers,
    describe_printing,
    fix_dates,
    make_html,
    make_pdf_options,
    restore_order,
)
from exhibit.converters.raw import titles
from exhibit.converters.raw.cells import label, list_cell_values, read_cell_field, read_cell_words
from exhibit.converters.raw.columns import choose_columns, show_columns
from exhibit.converters.raw.titles import ask_titles, choose_unique_titles, join_names, pair_files
from exhibit.converters.steps.materialise import NOWHERE, QuotePlace, Task, find_marked_place, materialise
from exhibit.evidence import Document
from exhibit.models.llms import Completion
from exhibit.schemas.errors import BundleError, DocumentError, ServiceError, SourceError

# ---------------------------------------------------------------- columns and cells


def test_columns_are_those_named_or_those_with_common_names():
    table, seen = Path("t.csv"), ["Question", "ANSWER", "other", "file_name"]
    chosen = choose_columns(table, seen, {})
    assert (chosen["question"], chosen["answer"], chosen["text"]) == ("Question", "ANSWER", None)
    named = choose_columns(table, seen, {"question": "other", "answer": ""})
    assert (named["question"], named["answer"]) == ("other", None), "an empty name is none"
    with pytest.raises(
        SourceError, match=r"no column 'x' for --text \(its columns: Question, ANSWER, other, file_name\)"
    ):
        choose_columns(table, seen, {"text": "x"})


def test_what_columns_were_taken_for_is_shown_and_too_few_are_refused(capsys):
    table, tally = Path("t.csv"), Tally()
    seen = ["question", "answer"]
    chosen = choose_columns(table, seen, {"answer": "answer"})
    show_columns(table, seen, chosen, {"answer": "answer"}, tally)
    assert tally.noted == {"column guessed from its name or its cells": ["question = question"]}
    err = capsys.readouterr().err
    assert err == "columns: question = question (by its name), answer = answer\n"
    for columns, why in (
        (["answer"], "which column is the question"),
        (["question"], "no column of answers, passages, provisions or documents"),
    ):
        with pytest.raises(SourceError, match=why):
            show_columns(table, columns, choose_columns(table, columns, {}), {}, Tally())


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ('["a", " ", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("[a]", ["[a]"]),
        ('{"a": 1}', [{"a": 1}]),
        ({"text": ["a", "b"], "answer_start": [1, 2]}, ["a", "b"]),
        ({"text": "a"}, [{"text": "a"}]),
        (("a", None), ["a"]),
        (None, []),
        (" ", []),
        (0, [0]),
    ],
)
def test_a_cell_holds_one_value_or_several(cell, held):
    assert list_cell_values(cell) == held


def test_cells_are_words_and_labels():
    assert [read_cell_words(cell) for cell in (None, math.nan, 3.0, 3.5, " a ", True)] == [
        "",
        "",
        "3",
        "3.5",
        "a",
        "True",
    ]
    assert [label(cell) for cell in (None, "a", True, 3, 1.5, math.inf, [1])] == [None, "a", True, 3, 1.5, None, "[1]"]
    assert label(2**63 - 1) == 2**63 - 1 and label(2**63) == str(2**63) and label(Path("x")) == "x"
    assert (
        read_cell_field({"File Name": "a.pdf", "TEXT": "b"}, "document") == "a.pdf"
        and read_cell_field({}, "text") == ""
    )


# ---------------------------------------------------------------- names and titles


def paths(*names: str) -> list[Path]:
    return [Path("x") / name for name in names]


def test_names_are_tied_to_files_by_the_surest_rule_first():
    long = "the-northern-harbour-lease"
    pairs = pair_files(
        ["a.pdf", "A&B .PDF", f"{long}.pdf", f"{long[:-1]}x-of-1999.pdf", "gone.pdf", "a.pdf", "A_b.pdf"],
        paths("a.pdf", "A_B.pdf", f"{long}-of-1998.pdf", f"{long}-of-1999.pdf"),
    )
    names = {row: path.name for row, path in pairs.files.items()}
    assert (names[0], names[1], names[3]) == ("a.pdf", "A_B.pdf", f"{long}-of-1999.pdf")
    assert pairs.doubled == [5, 6] and 4 in pairs.missing


def test_a_name_is_matched_by_a_part_only_where_it_says_enough():
    twenty, nineteen = "a" * 20, "b" * 19
    found = pair_files([f"{twenty}.pdf", f"{nineteen}.pdf"], paths(f"{twenty}cd.pdf", f"{nineteen}cd.pdf"))
    assert list(found.files) == [0] and found.missing == [1] and found.similar == []
    two = pair_files([f"{twenty}.pdf"], paths(f"{twenty}x.pdf", f"{twenty}y.pdf"))
    assert two.missing == [0], "two files could be meant"
    ten = "abcdefghij" * 2
    near = pair_files([f"{ten}.pdf"], paths(f"x{ten[1:]}.pdf"))
    assert near.similar == [(f"{ten}.pdf", f"x{ten[1:]}.pdf")]
    assert pair_files([f"{ten}.pdf"], paths(f"xyz{ten[3:]}.pdf")).missing == [0]
    assert pair_files([f"{ten[1:]}.pdf"], paths(f"x{ten[2:]}.pdf")).missing == [0], "nineteen letters say too little"


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        ([], ""),
        (["A"], "A"),
        (["A", "B"], "A and B"),
        (["A", "B", "C"], "A, B and C"),
        (list("ABCD"), "A, B and 2 others"),
    ],
)
def test_names_are_joined_up_to_three(names, joined):
    assert join_names(names) == joined


def test_titles_are_as_plain_as_they_tell_documents_apart():
    assert choose_unique_titles({"a": ["Lease", "Lease 1"], "b": ["lease", "Lease 2"], "c": ["Deed"]}) == {
        "a": "Lease 1", "b": "Lease 2", "c": "Deed",
    }  # fmt: skip
    assert choose_unique_titles({"a": ["Lease"], "b": ["Lease", "Lease"]}) == {"a": "Lease (a)", "b": "Lease (b)"}
    assert choose_unique_titles({"a": ["X"], "b": ["X", "Y"]}) == {"a": "X", "b": "Y"}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('{"title": " A  Lease. "}', "A Lease"),
        ("“A Lease”", "A Lease"),
        ('{"title": 3}', '{"title": 3}'),
        ("w" * 201, "w" * 200),
    ],
)
def test_a_model_gives_titles(monkeypatch, tmp_path, text, title):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    asked = []

    class Model:
        def complete(self, prompts, *, max_tokens, temperature):
            asked.append((prompts[0].user, max_tokens, temperature))
            return [Completion(text)]

    class Module:
        @staticmethod
        def open(model, options):
            assert model == "gpt-4o-mini" and options["retries"] == 1
            return Model()

    monkeypatch.setattr(titles, "load_plugin", lambda *_: (Module, None))
    assert ask_titles({"a.pdf": lambda: "y" * 4001}) == {"a.pdf": title}
    [(prompt, most, temperature)] = asked
    assert prompt.count("y" * 4000) == 1 and "y" * 4001 not in prompt and (most, temperature) == (100, 0.0)


def test_a_model_that_gives_no_title_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    for reply, why in ((Completion(error="down"), "no title: down"), (Completion(' "" '), "gave an empty title")):
        model = type("Model", (), {"complete": lambda *_, reply=reply, **__: [reply]})()
        module = type("Module", (), {"open": staticmethod(lambda *_, model=model: model)})
        monkeypatch.setattr(titles, "load_plugin", lambda *_, module=module: (module, None))
        with pytest.raises(ServiceError, match=why):
            ask_titles({"a.pdf": lambda: "x"})


# ---------------------------------------------------------------- places of quotes


LEASE = "1. Rent. The rent is 500 crowns.\n2. Term. The rent is 500 crowns. It ends in May.\n"


def located(tmp_path, *quotes: Quote, text: str | None = None, text_path: bool = False) -> list[QuotePlace]:
    path = tmp_path / "lease.txt"
    path.write_text(LEASE, encoding="utf-8")
    raw = RawDocument("lease.txt", "Lease", path, text=text, text_path=path if text_path else None)
    done = materialise(Task(raw, quotes, path, tmp_path / "out.txt"))
    assert done.entry.characters == len(LEASE) and (tmp_path / "out.txt").read_text(encoding="utf-8") == LEASE
    return [done.places[quote] for quote in quotes]


def test_a_quote_stands_where_its_words_or_its_offsets_say(tmp_path):
    words_, ends, none, carried = located(
        tmp_path,
        Quote("lease.txt", "The rent is 500 crowns."),
        Quote("lease.txt", "It ends in May."),
        Quote("lease.txt", "Nobody wrote this sentence."),
        Quote("lease.txt", "The rent is 500 crowns.", spans=((42, 65),), alternatives=(((9, 32),),)),
        text=LEASE,
    )
    assert (words_.spans, words_.alternatives, words_.how) == ([(9, 32)], [[(42, 65)]], "exact")
    assert ends.spans == [(66, 81)] and none == NOWHERE
    assert (carried.spans, carried.alternatives, carried.how) == ([(42, 65)], [[(9, 32)]], "exact")
    other = LEASE.replace("1. Rent. ", "").upper()
    [second] = located(tmp_path, Quote("lease.txt", "The rent is 500 crowns.", spans=((33, 56),)), text=other)
    assert second.spans == [(42, 65)], "as far into the text as the source says"
    [parts] = located(tmp_path, Quote("lease.txt", "x", spans=((0, 8), (33, 41))), text=LEASE)
    assert parts.how == "parts" and parts.spans == [(0, 8), (33, 41)]
    [similar] = located(tmp_path, Quote("lease.txt", "x", spans=((0, 8),), score=0.9), text=LEASE)
    assert (similar.how, similar.score) == ("fuzzy", 0.9)


def test_an_answer_is_gold_where_it_stands_once_and_says_something(tmp_path):
    once, twice, short, section = located(
        tmp_path,
        Quote("lease.txt", "It ends in May.", answer=True),
        Quote("lease.txt", "500 crowns", answer=True),
        Quote("lease.txt", "May.", answer=True),
        Quote("lease.txt", "It ends in May.", section=True, score=0.8),
    )
    assert (once.how, twice, short) == ("answer", NOWHERE, NOWHERE) and (section.how, section.score) == ("section", 0.8)


def test_what_a_reviewer_marked_holds_while_the_words_are_there():
    document = Document("lease.txt", LEASE)
    assert find_marked_place("Rent.", [(3, 8)], document) == QuotePlace([], [(3, 8)], [], "exact", 1.0)
    assert find_marked_place("rent.", [(3, 8)], document).how == "folded"
    assert find_marked_place("Rent. Term.", [(3, 8), (36, 41)], document).how == "parts"
    assert find_marked_place("Term.", [(3, 8)], document) is None and find_marked_place("", [], document) is None
    assert find_marked_place("Rent.", [(3, 8), (len(LEASE), len(LEASE) + 1)], document) is not None


def test_a_document_without_words_says_why(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text(" \n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"empty.txt: no words in it"):
        materialise(Task(RawDocument("empty.txt", "x", path), (), path, tmp_path / "out.txt"))


# ---------------------------------------------------------------- what was read


def test_items_are_left_out_once_and_accounted_for():
    tally = Tally()
    one, two, three = (Item("rows", name) for name in "abc")
    tally.take([one, two, three])
    tally.leave_out("first", "a", item=one)
    tally.leave_out("second", "a", item=one)
    tally.leave_out_all("beyond", [two], more="why")
    tally.leave_out_all("beyond", [], name="itself")
    assert tally.left_out == {"first": ["a"], "beyond": ["b: why", "itself"]}
    account = tally.account([three])["rows"]
    assert (account.given, account.kept, account.left_out) == (3, 1, {"first": 1, "beyond": 1})
    with pytest.raises(BundleError, match="c: this item was neither kept nor left out"):
        tally.account([])
    with pytest.raises(SourceError, match=r"x: torn; fix the source, or remove --strict"):
        Tally(strict=True).fault("torn", "x")
    with pytest.raises(SourceError, match=r"c: torn; fix the source, or remove --strict"):
        Tally(strict=True).leave_out_all("torn", [three], fault=True)
    with pytest.raises(SourceError, match=r"itself: torn; fix the source, or remove --strict"):
        Tally(strict=True).leave_out_all("torn", [], name="itself", fault=True)
    strict = Tally(strict=True)
    strict.leave_out_all("beyond", [three])
    assert strict.left_out == {"beyond": ["c"]}, "a rule is no fault"
    assert format_points("a", "b") == "- a\n- b"


def test_a_row_is_about_its_files_each_once(tmp_path):
    row = RawRow(3, "q", "a", (Quote("b", "x"), Quote("a", "y"), Quote("b", "z")), "a")
    assert row.files == ["a", "b"] and row.name == "row 3" and RawRow(3, "q", "a", place="§ 1").name == "§ 1"
    (tmp_path / "t.txt").write_text("words", encoding="utf-8")
    assert read_source_text(RawDocument("a", "a", text_path=tmp_path / "t.txt")) == "words"
    assert read_source_text(RawDocument("a", "a", text="own", text_path=tmp_path / "t.txt")) == "own"
    assert read_source_text(RawDocument("a", "a")) == ""


# ---------------------------------------------------------------- printing, without a browser


def test_what_a_browser_is_told_of_a_print():
    told = make_pdf_options()
    assert told["display_header_footer"] is False and told["print_background"] is told["prefer_css_page_size"] is True
    assert (
        told["tagged"] is False
        and set(told["margin"].values()) == {"22mm"}
        and told["header_template"] == "<span></span>"
    )
    for given in ({"header": "h"}, {"footer": "f"}):
        assert make_pdf_options(**given)["display_header_footer"] is True
    assert (PAGE["offline"], PAGE["java_script_enabled"]) == (True, False)


def test_dates_of_a_print_are_fixed_in_as_many_bytes():
    data = b"/CreationDate (D:20240131121314+00'00') x /ModDate (D:2024) /Other (D:1)"
    fixed = fix_dates(data)
    assert len(fixed) == len(data) and b"/CreationDate (D:20000101000000+00'00')" in fixed
    assert b"/ModDate (D:2000)" in fixed and b"/Other (D:1)" in fixed
    assert restore_order(b"x", "plain") == restore_order(b"x", "“plain”") == b"x"


def test_what_was_printed_with_what_is_told():
    assert describe_printing([""]) is None
    told = describe_printing(["Chromium 1", "", "ReportLab 2", "Chromium 1"])
    assert told is not None and told.printer == "Chromium 1, ReportLab 2" and told.fonts


def test_a_text_becomes_a_page_as_it_stands():
    page = make_html("a < b\x00", title="T & U")
    assert "<h1>T &amp; U</h1>" in page and "<pre>a &lt; b </pre>" in page and "<h1>" not in make_html("x")


def test_documents_that_need_a_browser_are_named_where_there_is_none(monkeypatch):
    raws = [RawDocument(f"{n}.pdf", "t", original=Path(name)) for n, name in enumerate(("a.html", "b.txt", "c.docx"))]
    check_printers(raws)
    monkeypatch.setattr(press, "HERE", False)
    with pytest.raises(ServiceError, match=r"^a\.html and 1 more cannot be printed: "):
        check_printers(raws)
    with pytest.raises(ServiceError, match=r"^a\.html cannot be printed: "):
        check_printers(raws[:2])
    check_printers(raws[1:2])
