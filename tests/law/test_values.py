"""Typed values are found in any spelling, are equal if they mean the same, and keep their format when rewritten."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.law.values import (
    find_days,
    find_values,
    keys_of,
    read_statement,
    read_words,
    states_answer,
    takes_an,
    write_digits,
    write_value,
    write_words,
)

DAY = date(2020, 1, 2).toordinal()


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("within thirty (30) days of", "period", "30 day"),
        ("a 30-day notice", "period", "30 day"),
        ("two weeks", "period", "14 day"),
        ("one (1) year", "period", "12 month"),
        ("twenty-four (24) consecutive months", "period", "24 month"),
        ("Five Million Dollars ($5,000,000)", "amount", "USD 5000000"),
        ("US$1.5 million", "amount", "USD 1500000"),
        ("€ 40,000", "amount", "EUR 40000"),
        ("2,500 euros", "amount", "EUR 2500"),
        ("fifty percent (50%)", "percentage", "50"),
        ("five (5%) percent", "percentage", "5"),
        ("99.70%", "percentage", "99.7"),
        ("March 14, 2016", "date", "2016-03-14"),
        ("the 14th day of March, 2016", "date", "2016-03-14"),
        ("3/14/16", "date", "2016-03-14"),
        ("14.3.2016", "date", "2016-03-14"),
        ("2016-03-14", "date", "2016-03-14"),
        ("the laws of the State of New\nYork", "place", "New York"),
        ("THE LAWS OF DELAWARE", "place", "Delaware"),
    ],
)
def test_equal_values_in_any_spelling_have_equal_keys(text, kind, key):
    assert keys_of(text) == {(kind, key)}


@pytest.mark.parametrize(
    "text", ["Section 5.2 of it", "thirty (40) days", "sixty 60 days", "February 30, 2016", "fine china", "one of them"]
)
def test_find_values_ignores_contradictory_numbers_and_text_that_only_resembles_a_value(text):
    assert find_values(text) == []


@pytest.mark.parametrize(
    ("text", "number", "written"),
    [
        ("thirty (30) days", 45, "forty-five (45) days"),
        ("THIRTY (30) DAYS", 45, "FORTY-FIVE (45) DAYS"),
        ("Twenty Five (25) days", 35, "Thirty Five (35) days"),
        ("Five Million Dollars ($5,000,000)", 7_500_000, "Seven Million Five Hundred Thousand Dollars ($7,500,000)"),
        ("$1.5 million", 2_500_000, "$2.5 million"),
        ("six percent (6%)", 8, "eight percent (8%)"),
        ("99.7%", Decimal("98.5"), "98.5%"),
        ("March 14, 2016", DAY, "January 2, 2020"),
        ("14th day of March, 2016", DAY, "2nd day of January, 2020"),
        ("MAR. 14, 2016", DAY, "JAN. 2, 2020"),
        ("3/14/16", DAY, "1/2/20"),
        ("03/14/2016", DAY, "01/2/2020"),
        ("2016-03-14", DAY, "2020-01-02"),
    ],
)
def test_write_value_formats_number_and_day_like_original_value(text, number, written):
    [value] = find_values(text)
    assert write_value(value, Decimal(number)) == written


@given(st.integers(min_value=0, max_value=2_000_000_000))
def test_read_words_inverts_write_words(number):
    assert read_words(write_words(number, "thirty")) == number


def test_read_words_returns_none_for_text_other_than_number():
    assert not any(map(read_words, ("", "123", "and", "hundred thousand and", "and five", "five dogs")))
    assert read_words("one hundred and five") == 105


@pytest.mark.parametrize(
    ("like", "written"), [("10000", "20000"), ("10,000", "20,000"), ("500", "20,000"), ("10000.00", "20000.00")]
)
def test_write_digits_uses_commas_and_decimals_like_the_original_number(like, written):
    assert write_digits(Decimal(20_000), like) == written


def test_takes_an_is_true_for_numbers_that_begin_with_a_vowel_sound():
    assert [number for number in (1, 8, 10, 11, 18, 80, 100, 800) if takes_an(number)] == [8, 11, 18, 80, 800]


def test_values_distinguish_business_days_from_calendar_days():
    assert keys_of("within ten (10) business days") == {("period", "10 business day")} != keys_of("ten (10) days")
    assert keys_of("10 working days") == keys_of("10 Business Days")
    assert states_answer("10 days", "within 10 business days") is False
    assert (
        states_answer("10 business days", "within ten (10) working days") is False
    )  # other words, with another result
    assert states_answer("10 days", "within ten (10) calendar days") is True


@pytest.mark.parametrize(
    "text", ["5 january 2024", "January 5, 2024", "5 JANUARY 2024", "5. Januar 2024", "5. 1. 2024", "5th January, 2024"]
)
def test_date_is_read_in_any_letter_case_and_language(text):
    assert keys_of(text) == {("date", "2024-01-05")}
    assert find_days(text) == [date(2024, 1, 5)]
    assert [{day.month for day in readings} for readings in read_statement(text).dates] == [{1}]
    assert states_answer("5 January 2024", f"It ends on {text}.") is True


@pytest.mark.parametrize(
    "text",
    ["2020-13-01", "2020-02-32", "2020-00-10", "32/13/2020", "0/0/2020", "0/5/2020", "2020-02-00", "may 5 times"],
)
def test_invalid_date_is_read_as_numbers(text):
    found = read_statement(text)
    assert found.dates == () and found.loose
