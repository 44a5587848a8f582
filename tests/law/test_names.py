"""Names of rules and files in a form for comparison."""

from exhibit.law.names import keep_letters, make_file_key


def test_keep_letters_ignores_case_accents_and_line_end_hyphens() -> None:
    assert keep_letters("Wit-\nnesses & Évidence") == keep_letters("WITNESSES AND EVIDENCE") == "witnessesandevidence"


def test_make_file_key_ignores_case_accents_and_separators_but_keeps_other_scripts() -> None:
    names = ("A&B Société (2).PDF", "a_b-societe-2.txt", "Straße.pdf", "契約書.pdf", "Договор 7.pdf", "10-7.pdf")
    assert list(map(make_file_key, names)) == ["absociete2", "absociete2", "strasse", "契約書", "договор7", "107"]
    assert make_file_key("Lease Договор.pdf") == make_file_key("lease_______.pdf"), "as a file may be renamed"
