"""Months, company forms and the names of rules, each defined in one module."""

from __future__ import annotations

from exhibit.law.names import keep_letters, make_file_key


def test_keep_letters_ignores_case_accents_and_line_end_hyphens() -> None:
    assert keep_letters("Wit-\nnesses & Évidence") == keep_letters("WITNESSES AND EVIDENCE") == "witnessesandevidence"


def test_make_file_key_ignores_case_accents_separators_and_suffix() -> None:
    assert make_file_key("A&B Société (2).PDF") == make_file_key("a_b-societe-2.txt") == "absociete2"
    assert make_file_key("Lease 1.pdf") != make_file_key("Lease 2.pdf")
    assert make_file_key("Straße.pdf") == "strasse"


def test_make_file_key_keeps_letters_of_other_scripts() -> None:
    assert make_file_key("契約書.pdf") == "契約書" != make_file_key("協定.pdf")
    assert make_file_key("Договор 7.pdf") == "договор7" != make_file_key("Приложение 7.pdf")
    assert make_file_key("10-7.pdf") == "107"
    assert make_file_key("Lease Договор.pdf") == make_file_key("lease_______.pdf"), (
        "what a renaming makes of other letters"
    )
