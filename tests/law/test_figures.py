"""Numbers and dates, each scale, each spelling and each edge."""

from __future__ import annotations

import pytest

from exhibit.law.figures import Day, find_figures


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3 thousand", "3000"),
        ("3k", "3000"),
        ("3 million", "3000000"),
        ("3m", "3000000"),
        ("3 billion", "3000000000"),
        ("1.5bn", "1500000000"),
        ("5.00", "5"),
        ("5.10", "5.10"),
        ("007", "7"),
        ("0", "0"),
        ("1,250,000", "1250000"),
        ("zero", "0"),
        ("nineteen", "19"),
        ("twenty", "20"),
        ("ninety-nine", "99"),
        ("two hundred and forty-one", "241"),
        ("three hundred thousand", "300000"),
        ("four million", "4000000"),
        ("five billion", "5000000000"),
    ],
)
def test_a_number_is_the_same_however_it_is_written(text, number):
    assert find_figures(f"a sum of {text} euros").loose == {number}


def test_one_is_a_number_that_no_claim_is_held_to():
    found = find_figures("one of the parties")
    assert found.loose == frozenset() and found.numbers == {"1"}


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("2020-02-01", {Day(2020, 2, 1)}),
        ("2020-12-31", {Day(2020, 12, 31)}),
        ("1 February 2020", {Day(2020, 2, 1)}),
        ("the 3rd day of December, 1999", {Day(1999, 12, 3)}),
        ("January 31", {Day(None, 1, 31)}),
        ("March 2021", {Day(2021, 3, None)}),
        ("1/2/2020", {Day(2020, 1, 2), Day(2020, 2, 1)}),
        ("13/2/2020", {Day(2020, 2, 13)}),
        ("12/12/69", {Day(2069, 12, 12)}),
        ("12/12/70", {Day(1970, 12, 12)}),
        ("31.1.1999", {Day(1999, 1, 31)}),
        ("1/12/2020", {Day(2020, 1, 12), Day(2020, 12, 1)}),
        ("12.31.2020", {Day(2020, 12, 31)}),
        ("5 Sept. 2020", {Day(2020, 9, 5)}),
        ("Dec 2020", {Day(2020, 12, None)}),
        ("1/1/00", {Day(2000, 1, 1)}),
        ("1/1/99", {Day(1999, 1, 1)}),
    ],
)
def test_a_date_has_its_readings(text, readings):
    found = find_figures(f"made on {text} in Oslo")
    assert found.dates == (frozenset(readings),) and found.loose == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "2020-13-01",
        "2020-02-32",
        "2020-00-10",
        "32/13/2020",
        "0/0/2020",
        "0/5/2020",
        "2020-02-00",
        "may 5 times",
    ],
)
def test_what_is_no_date_is_numbers(text):
    found = find_figures(text)
    assert found.dates == () and found.loose


def test_a_date_that_says_less_is_within_one_that_says_more():
    assert Day(2020, 2, None).is_within(Day(2020, 2, 1)) and not Day(2020, 2, 1).is_within(Day(2020, 2, None))
    assert not Day(2020, 3, None).is_within(Day(2020, 2, 1))
