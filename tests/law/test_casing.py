"""Names in capitals are converted to title case."""

from __future__ import annotations

import pytest

from exhibit.law.casing import tidy, to_title_case


@pytest.mark.parametrize(
    ("shouted", "name"),
    [
        ("THE BANK OF NORWAY", "The Bank of Norway"),
        ("NCC OLDCO LLC", "NCC Oldco LLC"),
        ("TV X B CDE LTD.", "TV X B Cde Ltd."),
        ("ALDER S.P.A.", "Alder S.P.A."),
        ("MR. JONES OF U.S. CORP.", "Mr. Jones of U.S. Corp."),
        ("OF COUNSEL", "Of Counsel"),
        ("E.U. LAW OF S.P.A. AND A.", "E.U. Law of S.P.A. and A."),
        ("II AND USA LTD", "II and USA Ltd"),
    ],
)
def test_words_get_a_capital_and_initials_keep_theirs(shouted, name):
    assert to_title_case(shouted) == name == tidy(shouted)


def test_a_name_is_tidied_and_mixed_case_is_left_alone():
    assert tidy("  Alder\n Holding AG, T") == "Alder Holding AG"
    assert tidy("eBay Inc. (") == "eBay Inc."
    assert to_title_case("X") == "X" and to_title_case("Q4") == "Q4"
