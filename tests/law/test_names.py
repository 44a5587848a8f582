"""Months, companies' forms and the names of rules, each said in one place."""

from __future__ import annotations

import re

import pytest

from law.casing import title_case
from law.companies import FORM, ends_in_form
from law.dates import MONTH, MONTHS
from law.names import letters, plain
from law.opening import parties_of
from law.sentences import sentences


def test_every_month_is_one() -> None:
    assert len(MONTHS) == 12
    assert re.findall(MONTH, "from March to May, or 1 december 2020") == ["March", "May"]


@pytest.mark.parametrize(
    "line", ["ACME CORP.", "Bolt L.L.C.,", "VOGEL GMBH", "Crane Holdings, Incorporated", "OAK LLP"]
)
def test_a_line_that_ends_as_a_company_does(line: str) -> None:
    assert ends_in_form(line)


@pytest.mark.parametrize("line", ["EXHIBIT AG", "COMPANY INFORMATION", "PRINCIPAL", "Scope"])
def test_a_line_that_ends_otherwise(line: str) -> None:
    assert not ends_in_form(line)


def test_forms_are_written_as_usual_or_in_capitals() -> None:
    assert re.findall(FORM, "Acme Inc., Bolt LLC, Vogel GMBH, inc of salt, Corporate") == ["Inc.", "LLC", "GMBH"]


def test_the_same_forms_serve_casing_parties_and_sentences() -> None:
    assert title_case("BOLT PLC AND VOGEL NV") == "Bolt PLC and Vogel NV"
    assert parties_of("This Agreement is between Bolt plc and Vogel N.V., of Delft.") == ["Bolt plc", "Vogel N.V."]
    text = "Acme Ltd. Bolt pays. The Company. Vogel pays."
    assert [text[slice(*span)] for span in sentences(text)] == ["Acme Ltd. Bolt pays.", "The Company.", "Vogel pays."]


@pytest.mark.parametrize(
    "name", ["PD 34A", "Practice Direction 34 A", "the CPR Practice Direction 34A", "PRACTICE DIRECTION 34A."]
)
def test_one_practice_direction_however_it_is_written(name: str) -> None:
    assert plain(name) == "practice direction 34a"


def test_letters_survive_broken_words() -> None:
    assert letters("Wit-\nnesses & Évidence") == letters("WITNESSES AND EVIDENCE")
