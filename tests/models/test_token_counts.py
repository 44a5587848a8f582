"""The estimate of tokens: the fitted weight of each kind of piece."""

from __future__ import annotations

import pytest

from exhibit.models import llms
from exhibit.models.llms import estimate


@pytest.mark.parametrize(
    ("piece", "tokens"),
    [
        ("lease ", 10),
        ("tenants ", 10),  # seven letters are one piece
        ("premises ", 11),  # an eighth counts a seventh: 10 × 8/7
        ("ACT ", 10),  # three capitals are a word as any other
        ("RENT ", 11),  # four are a heading: 10 × 4/3.5
        ("Mieträume ", 40),  # ten bytes
        ("1 ", 10),
        ("1980 ", 20),
        ("123456 ", 20),
        ("1234567 ", 30),
        ("_", 1),  # ten of them are one line to sign on
        ("_ ", 10),
        ("________________ ", 20),
        (". ", 10),  # 9.5
        ("§ ", 15),
        ("\t", 1),  # ten in a row are one piece
        ("\n", 1),
        ("x\t", 20),
    ],
)
def test_pieces_count_what_they_were_fitted_to(piece, tokens):
    assert estimate(piece * 10) == tokens


def test_spaces_count_only_where_they_are_many():
    assert estimate("a b c d") == 4 and estimate("a  b  c  d  e") == round(5 + 4 * 0.75)


def test_what_is_remembered_is_forgotten_in_time(monkeypatch):
    monkeypatch.setattr(llms, "_MOST", 2)
    assert [estimate("one two three four") for _ in range(3)] == [4, 4, 4]
    assert len(llms._WEIGHTS) <= 4
