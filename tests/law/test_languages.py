"""References, provisions, numbers and dates in other languages."""

from datetime import date

import pytest

from exhibit.law.language import choose_system, language_of
from exhibit.law.provisions import Edition, LawName, find_provisions, find_units, read_edition
from exhibit.law.references import ReferenceCorpus, find_references
from exhibit.law.values import find_days, read_statement, write_day

LAWS = [
    LawName("oz", ("89/2012 Sb.",), "občanský zákoník"),
    LawName("bgb", ("BGB",), "Bürgerliches Gesetzbuch"),
    LawName("cf", (), "Constituição Federal"),
]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("cs", "podle § 2079 odst. 1 občanského zákoníku", ("§ 2079", ("1",), "oz")),
        ("cs", "podle § 5 písm. b) zákona č. 89/2012 Sb.", ("§ 5", ("b",), "oz")),
        ("cs", "podle čl. II odst. 3", ("čl. II", ("3",), None)),
        ("de", "nach § 433 Abs. 1 Satz 2 BGB", ("§ 433", ("1", "2"), "bgb")),
        ("de", "nach § 75 Abs. 1 nach Bundesrecht", ("§ 75", ("1",), None)),
        ("pt", "o art. 5º, XXXV, da Constituição Federal", ("art. 5º", ("XXXV",), "cf")),
    ],
)
def test_find_provisions_reads_the_label_the_subdivisions_and_the_law(language, text, expected):
    [found] = find_provisions(text, choose_system(language), LAWS)
    assert (found.label, found.below, found.law) == expected


def test_dates_are_read_and_written_in_many_languages():
    text = (
        "k 1. 7. 2018, on 1 July 2018, am 1.7.2018, 1. července 2018, em 1º de julho de 2018, July 1, 2018, 2018-07-01"
    )
    assert find_days(text) == [date(2018, 7, 1)] * 7
    assert find_days("31. 2. 2018") == []
    written = [write_day(date(2018, 7, 1), choose_system(language)) for language in ("cs", "de", "en")]
    assert written == ["1. 7. 2018", "1.7.2018", "1 July 2018"]


def test_read_edition_ignores_judgment_that_cites_paragraphs():
    judgment = "Tenor\nDie Klage wird abgewiesen, die Kosten trägt er nach\n§ 91 ZPO\nGründe\n§ 5 Satz 1 gilt.\n"
    judgment += "§ 812 BGB\nDer Anspruch ist in der Sache nicht begründet und wird von dem Senat nicht zuerkannt.\n"
    assert read_edition(judgment) is None
    assert find_units("", choose_system("de")) == []
    law = "Hafengesetz (HafG)\n§ 1 Begriff\nDer Hafen ist ein Ort an der See.\n"
    law += "§ 2 Gebühr\nDie Gebühr ist an die Gemeinde zu zahlen.\n"
    assert read_edition(law) == Edition("Hafengesetz (HafG)")


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wann werden Gebühren für einen Liegeplatz fällig?", "de"),
        ("Kdo musí zaplatit poplatek za stání lodi a kdy je splatný?", "cs"),
        ("What is the term of the lease in per diem payments?", "en"),
        ("Does Fiverr share data?", "en"),
        ("BGB § 433", "en"),
        ("Darf der Hafenmeister Gebühren verlangen?", "de"),
        ("Qui doit payer la redevance du port?", "fr"),
        ("Quem paga a taxa pela amarração do navio?", "pt"),
        ("Chi paga la tassa per l'ormeggio della nave?", "it"),
        ("¿Quién paga la tasa por el amarre del buque?", "es"),
        ("Kto płaci opłatę za postój statku w porcie?", "pl"),
        ("Kto platí poplatok za státie lode v prístave?", "sk"),
    ],
)
def test_language_of_a_question_is_recognised(question, language):
    assert language_of(question) == language


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.500,50 EUR", "1500.50"), ("1 500,50 Kč", "1500.50"), ("2.500.000 Kč", "2500000"), ("1,500.50", "1500.50")],
)
def test_read_statement_normalises_thousands_and_decimal_separators(text, number):
    assert read_statement(text).numbers == {number}
    assert read_statement("section 5.10 of 2020").numbers == {"5.10", "2020"}, "a section number is not an amount"


def test_reference_corpus_contains_provisions_of_german_law():
    law = "Hafengesetz (HafG)\n§ 1 Begriff\n(1) Der Hafen ist ein Ort an der See.\n(2) Er hat\na) ein Becken und\n"
    law += "b) einen Kai.\n§ 2 Gebühr\nDie Gebühr ist an die Gemeinde zu zahlen.\n"
    corpus = ReferenceCorpus.of([law])
    asked = find_references("Nach § 1 Abs. 2 Buchst. b HafG und § 2 HafG, nicht nach § 7 HafG oder § 1 Abs. 3 HafG.")
    assert [corpus.contains(reference) for reference in asked] == [True, True, False, False]


def test_find_units_returns_an_empty_list_for_english_law():
    assert find_units("SECRECY ACT\n\nSection 1. Secrets\n\nSection 2. Ends\n", choose_system("en")) == []


def test_law_name_is_found_after_a_longer_word_that_begins_with_the_name():
    law = LawName("bgb", ("BGB",), "Bürgerliches Gesetzbuch")
    text = "siehe BGBl. I S. 42, BGB"
    assert law.find_end(text) == len(text) and law.find_end("siehe BGBl. I S. 42") == 0
