"""Tables as records: detecting the header row and the delimiter, and handling rows that do not fit."""

from __future__ import annotations

import json

import pytest

from exhibit.converters import Item, Tally
from exhibit.converters.raw import records as module
from exhibit.converters.raw.records import Record, columns_of, decode_table, read_records, split_cells
from exhibit.schemas.errors import SourceError


def read(tmp_path, text, name="t.csv", **given):
    path = tmp_path / name
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    path.write_bytes(data)
    tally = Tally()
    return read_records(path, data, tally, **given), tally


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('a\t"b ""c"""', [["a", 'b "c"']]),
        ('a\tsays "x" y', [["a", 'says "x" y']]),
        ('"a\tb"\tc\nd\te', [["a\tb", "c"], ["d", "e"]]),
        ('"a\tb"\tc\nd\te\tf', [['"a', 'b"', "c"], ["d", "e", "f"]]),
        ('x "y\tz\n\n1\t2', [['x "y', "z"], [], ["1", "2"]]),
        ("a\tb", [["a", "b"]]),
    ],
)
def test_cells_parted_by_tabs_are_quoted_or_not(text, cells):
    assert split_cells(text, "\t") == cells


def test_cells_parted_by_other_marks_are_quoted(tmp_path):
    assert split_cells('a,"b\tc"', ",") == [["a", "b\tc"]] and split_cells('say "x",y', ",") == [['say "x"', "y"]]
    long = "x" * 200_000  # csv's own limit is 131,072
    assert split_cells(f"{long},b", ",") == [[long, "b"]]


@pytest.mark.parametrize(
    ("mark", "name"), [(",", "t.csv"), (";", "t.csv"), ("\t", "t.csv"), ("|", "t.csv"), ("\t", "t.tsv")]
)
def test_the_mark_that_makes_most_cells_parts_them(tmp_path, mark, name):
    words = "x, y" if mark != "," else "x; y"
    records, _ = read(tmp_path, f"a title\nid{mark}q{mark}z\n1{mark}{words}{mark}w\n", name)
    assert [record.cells for record in records] == [{"id": "1", "q": words, "z": "w"}]


def test_the_header_is_the_first_row_about_as_wide_as_the_others(tmp_path):
    records, tally = read(tmp_path, f"{'A title ' * 20}\n\nid,q,a\n1,x,y\n,,\n2,z,\n")
    assert [(r.index, r.place, r.cells) for r in records] == [
        (0, "row 4", {"id": "1", "q": "x", "a": "y"}),
        (1, "row 6", {"id": "2", "q": "z", "a": ""}),
    ]
    assert tally.noted == {"row above the header of the table": [f"t.csv: row 1: {('A title ' * 20).strip()[:80]}"]}
    narrow, tally = read(tmp_path, "q\nx\ny\n")
    assert [r.cells for r in narrow] == [{"q": "x"}, {"q": "y"}] and not tally.noted
    half, tally = read(tmp_path, "a,b\nid,q,r,s\n1,2,3,4\n1,2,3,4\n")
    assert list(half[0].cells) == ["id", "q", "r", "s"] and len(tally.noted) == 1, "half as wide is too narrow"
    three, _ = read(tmp_path, "a,b,c\n1,2,3\n1,2,3,4\n1,2,3,4\n1,2,3,4\n")
    assert list(three[0].cells) == ["a", "b", "c"]


@pytest.mark.parametrize(("above", "first"), [(19, "id"), (20, "note")])
def test_a_header_stands_in_the_first_twenty_rows(tmp_path, above, first):
    records, _ = read(tmp_path, "note\n" * above + "id,q\n" + "1,x\n" * 50)
    assert next(iter(records[0].cells), "note") == first if records else first == "note"


def test_rows_that_do_not_fit_are_counted_and_columns_named_twice_refused(tmp_path):
    records, tally = read(tmp_path, "id,,q\n1,x,y,z\n2,,w\n")
    assert [(r.index, r.cells) for r in records] == [(1, {"id": "2", "q": "w"})]
    assert tally.left_out == {"row with more cells than the header": ["t.csv: row 2"]}
    with pytest.raises(SourceError, match="two columns named 'q' in row 1; rename one"):
        read(tmp_path, "q,a,q\n1,2,3\n")
    assert read(tmp_path, "q,,\n1,2,\n")[0] == []
    assert read(tmp_path, "")[0] == []


def test_cells_that_rows_lack_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_MISSING", 2)
    assert len(read(tmp_path, "a,b,c\n1,2\n1,2\n1,2,3\n")[0]) == 3
    with pytest.raises(SourceError, match="row 1 has 3 columns, but rows below lack 3 cells; is it a header"):
        read(tmp_path, "a,b,c\n1,2\n1\n1,2,3\n")


def test_lines_of_json_keep_their_numbers(tmp_path):
    records, tally = read(tmp_path, '{"a": 1}\n\n[1]\nno\n{"a": "\u2028"}\n', "t.jsonl")
    assert records == [Record(0, "line 1", {"a": 1}), Record(3, "line 5", {"a": "\u2028"})]
    assert tally.left_out["line is not a JSON object"] == ["t.jsonl: line 3"]
    assert records[0].item == Item("rows", "line 1") and len(tally.left_out["line is not JSON"]) == 1
    assert tally.account([record.item for record in records])["rows"].given == 4


def test_json_is_a_list_or_holds_one(tmp_path):
    for text in ('[{"a": 1}, {"b": 2}]', '{"n": 3, "rows": [{"a": 1}, {"b": 2}]}'):
        records, _ = read(tmp_path, text, "t.json")
        assert [(r.index, r.place) for r in records] == [(0, "row 1"), (1, "row 2")] and columns_of(records) == [
            "a",
            "b",
        ]
    for text, why in {
        '{"a": [], "b": []}': "lists: a, b",
        '{"a": 1}': "lists: none",
        "[1]": "one per question",
        "3": "one per question",
        "[": "not JSON",
    }.items():
        with pytest.raises(SourceError, match=why):
            read(tmp_path, text, "t.json")


def test_rows_are_counted_only_where_they_are_accounted_for(tmp_path):
    text = json.dumps([{"a": 1}])
    kept, tally = read(tmp_path, text, "t.json", accounted=False)
    assert kept and not tally.account([]).get("rows")
    kept, tally = read(tmp_path, text, "t.json")
    assert tally.account([record.item for record in kept])["rows"].given == 1


def test_a_text_is_decoded_and_another_encoding_noted(tmp_path):
    tally = Tally()
    path = tmp_path / "t.csv"
    assert decode_table(path, "\ufeffä".encode(), tally) == "ä" and not tally.noted
    assert decode_table(path, "ä".encode("cp1250"), tally, encoding="cp1250") == "ä"
    assert tally.noted == {"table is not UTF-8": ["t.csv: read as cp1250"]}
    for encoding in ("utf-8", "no-such"):
        with pytest.raises(SourceError, match=f"cannot be read as {encoding}"):
            decode_table(path, b"\xff\xfe\xfa", tally, encoding=encoding)
