"""Boundary values: spans that touch, the largest allowed images, a checksum, a hidden sheet."""

from __future__ import annotations

from pathlib import Path

import pytest
from openpyxl import Workbook
from PIL import Image

from bench.unseen_font import _compute_checksum
from exhibit.evidence import Span
from exhibit.evidence.matches import Match, join_matches
from exhibit.evidence.readers import excel, picture
from exhibit.schemas.errors import DocumentError


def test_spans_that_overlap_are_one_and_those_that_touch_are_two():
    def spans_of(*spans: tuple[int, int]) -> list[tuple[int, int]]:
        chain = [Match((Span(*span),), "exact") for span in spans]
        return [tuple(span) for span in join_matches(chain).spans]

    assert spans_of((0, 3), (3, 5)) == [(0, 3), (3, 5)]
    assert spans_of((0, 4), (3, 5)) == [(0, 5)]
    assert spans_of((0, 9), (3, 5)) == [(0, 9)]


def test_a_picture_may_have_as_many_pixels_and_pages_as_are_said_and_no_more(monkeypatch):
    monkeypatch.setattr(picture, "_MOST_PIXELS", 6)
    picture.check_size(Path("a.png"), Image.new("L", (3, 2)))
    with pytest.raises(DocumentError, match="the image is too large"):
        picture.check_size(Path("a.png"), Image.new("L", (7, 1)))
    pages = Image.new("L", (1, 1))
    pages.n_frames = picture._MOST_FRAMES  # type: ignore[attr-defined]
    picture.check_size(Path("a.tiff"), pages)
    pages.n_frames += 1  # type: ignore[attr-defined]
    with pytest.raises(DocumentError, match="the image is too large"):
        picture.check_size(Path("a.tiff"), pages)


def test_a_tables_checksum_is_the_sum_of_its_words_the_last_filled_up():
    assert _compute_checksum(b"\0\0\0\1\xff\xff\xff\xff\1") == 0x01000000
    assert _compute_checksum(b"") == 0
    assert _compute_checksum(b"\1\2\3\4") == 0x01020304


def test_a_hidden_sheet_is_printed_and_told(tmp_path):
    book = Workbook()
    book.active.title = "Open"
    for title in ("Shut", "Deep"):
        book.create_sheet(title).append(["words of", title])
    book["Shut"].sheet_state = "hidden"
    book["Deep"].sheet_state = "veryHidden"
    book.save(tmp_path / "a.xlsx")
    made = excel.page(tmp_path / "a.xlsx")
    assert [note.split("'")[1] for note in made.notes] == ["Shut", "Deep"]
