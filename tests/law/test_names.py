"""Months, company forms and the names of rules, each defined in one module."""

from __future__ import annotations

import re

import pytest

from exhibit.law.casing import to_title_case
from exhibit.law.figures import MONTH, MONTHS
from exhibit.law.names import FORM, ends_in_form, keep_letters, make_file_key, normalise_name, without_ending
from exhibit.law.opening import parties_of
from exhibit.law.sentences import split_sentences


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
    assert to_title_case("BOLT PLC AND VOGEL NV") == "Bolt PLC and Vogel NV"
    assert parties_of("This Agreement is between Bolt plc and Vogel N.V., of Delft.") == ["Bolt plc", "Vogel N.V."]
    text = "Acme Ltd. Bolt pays. The Company. Vogel pays."
    assert [text[slice(*span)] for span in split_sentences(text)] == [
        "Acme Ltd. Bolt pays.",
        "The Company.",
        "Vogel pays.",
    ]


@pytest.mark.parametrize(
    "name", ["PD 34A", "Practice Direction 34 A", "the CPR Practice Direction 34A", "PRACTICE DIRECTION 34A."]
)
def test_one_practice_direction_however_it_is_written(name: str) -> None:
    assert normalise_name(name) == "practice direction 34a"


def test_letters_survive_broken_words() -> None:
    assert keep_letters("Wit-\nnesses & Évidence") == keep_letters("WITNESSES AND EVIDENCE") == "witnessesandevidence"


@pytest.mark.parametrize("name", ["Lease.pdf", "Lease.PDF ", "Lease.htm", "Lease.docx", "Lease.md", " Lease.json"])
def test_a_document_s_ending_is_no_part_of_its_name(name: str) -> None:
    assert without_ending(name) == "Lease"


@pytest.mark.parametrize("name", ["Lease.pdf.sig", "pdf", "Lease No. 3", "Lease.xpdf"])
def test_another_ending_stays(name: str) -> None:
    assert without_ending(name) == name


def test_files_are_compared_by_what_renaming_leaves() -> None:
    assert make_file_key("A&B Société (2).PDF") == make_file_key("a_b-societe-2.txt") == "absociete2"
    assert make_file_key("Lease 1.pdf") != make_file_key("Lease 2.pdf")
    assert make_file_key("Straße.pdf") == "strasse"


def test_names_in_another_script_keep_their_own_letters() -> None:
    assert make_file_key("契約書.pdf") == "契約書" != make_file_key("協定.pdf")
    assert make_file_key("Договор 7.pdf") == "договор7" != make_file_key("Приложение 7.pdf")
    assert make_file_key("10-7.pdf") == "107"
    assert make_file_key("Lease Договор.pdf") == make_file_key("lease_______.pdf"), (
        "what a renaming makes of other letters"
    )
