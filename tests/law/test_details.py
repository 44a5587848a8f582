"""Small guarantees that are easy to break: which of two values, how far, and boundary values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evidence import Document
from exhibit.law.citations import find_citations
from exhibit.law.opening import parties_of
from exhibit.law.profile import title_of
from exhibit.law.references import credit, find_references
from exhibit.law.sentences import split_sentences
from exhibit.law.structure.headings import Heading, find_headings
from exhibit.law.structure.labels import run_in
from exhibit.law.structure.lines import read_lines
from exhibit.law.structure.tree import as_roman


def told(text: str) -> list[str]:
    return [str(reference) for reference in find_references(text)]


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


def headings(text: str) -> list[str]:
    return [heading.text for heading in find_headings(Document("a.txt", text))]


# ---------------------------------------------------------------- references


def test_a_paragraph_before_several_directions_is_of_the_first():
    assert told("Paragraph 4 of Practice Directions 29 and 31B applies.") == ["PD 29 4"]


def test_the_directive_is_one_that_was_named_before():
    assert told("Article 5 of the Directive is old. Directive 95/46/EC repealed it.") == ["eu directive 1995/46"]
    assert "eu directive 1995/46 5" in told("Directive 95/46/EC is old. Article 5 of the Directive applies.")


def test_a_number_after_a_guide_that_counts_something_is_no_place():
    assert told("The Chancery Guide 4.3 million copies of it.") == []
    assert told("The Chancery Guide 4.3 says so.") == ["chancery 4.3"]


def test_a_reference_ends_where_the_code_s_name_does():
    text = "rule 3.3 of the CrimPR applies"
    [reference] = find_references(text)
    assert text[slice(*reference.span)] == "rule 3.3 of the CrimPR"


def test_a_bare_section_is_of_the_act_named_last():
    filler = "Nothing else was said of it at the trial. " * 12
    text = f"The Fraud Act 2006 came later. {filler}The Theft Act 1968 came first; section 3 of it"
    assert "theft act 1968 3" in told(f"{text[:-6]} applies")


def test_a_bare_section_at_a_sentence_s_end_has_no_point():
    assert "limitation act 1980 33" in told("The Limitation Act 1980 is old. The court applied section 33.")


def test_a_range_of_sections_has_those_between():
    assert told("section 215 to 218 of the Companies Act 2006") == [
        f"companies act 2006 {number}" for number in (215, 216, 217, 218)
    ]


def test_another_case_of_the_same_court_earns_nothing():
    one, other, again = find_references("[2020] UKSC 38, [2020] UKSC 39 and [2020] UKSC 38")
    assert (credit(one, again), credit(one, other)) == (1.0, 0.0)


def test_two_citations_of_judgments_are_none_of_passages():
    text = f"[2020] EWHC {'1' * 20} (Comm) paragraphs [4] and [2019] UKSC 3 at [5], but [6]"
    assert [citation.numbers for citation in find_citations(text)] == [(6,)]


# ---------------------------------------------------------------- sentences, parties, titles


def test_a_form_that_no_stop_ends_ends_its_sentence():
    assert cut("It was a SAS. Marten signed.") == ["It was a SAS.", "Marten signed."]
    assert cut("It was Oak Pte. Marten signed.") == ["It was Oak Pte. Marten signed."]


def test_a_number_with_a_letter_belongs_to_the_word_before_it():
    assert cut("See para. 3A of it. Then stop.") == ["See para. 3A of it.", "Then stop."]


def test_a_party_ends_with_its_form():
    text = 'This Agreement is between Bolt Ltd 12 High Street, and Vogel N.V. ("Vogel").'
    assert parties_of(text)[0] == "Bolt Ltd"


@pytest.mark.parametrize(
    ("rest", "title"),
    [
        ("Rights Duties Powers Claims Costs Fees early partial final. The term is long.", True),
        ("Some odd small words here. The term is long.", False),
        ("Term and length. The term is long.", True),
    ],
)
def test_a_title_that_runs_in_has_few_small_words(rest, title):
    assert bool(run_in(rest)[0]) is title


def test_a_long_title_is_cut_at_a_word():
    line = " ".join(["word"] * 40)
    assert title_of(line[:150], "rules", "") == " ".join(["word"] * 24)
    assert len(title_of("x" * 130, "rules", "")) in (119, 129, 130)


# ---------------------------------------------------------------- headings

WIDE = "The parties have agreed that each of them shall bear its own costs of this and\n"


def test_a_heading_right_after_a_paragraph_s_last_line_is_seen():
    text = (
        WIDE * 3 + "of nothing else at all.\nGOVERNING LAW\nThe law of Kent applies to all of this and to what comes.\n"
    )
    assert headings(text) == ["GOVERNING LAW"]


def test_a_heading_right_after_capitals_that_are_none_is_seen():
    text = "Preface.\n\nX1\n\nGOVERNING LAW\n\nThe law of Kent applies to all of this and to what comes later.\n"
    assert headings(text) == ["GOVERNING LAW"]


def test_a_list_s_first_item_at_the_very_end_of_a_line_is_not_cut_off():
    text = "4.1 Conduct of Business. (a) The Company shall trade.\n4.2 Nothing. (a)\n"
    assert [line.text for line in read_lines(Document("a.txt", text))] == [
        "4.1 Conduct of Business.", "(a) The Company shall trade.", "4.2 Nothing.", "(a)",
    ]  # fmt: skip


def test_a_title_that_goes_on_takes_one_line_more_and_not_two():
    text = "7. Limits of\nLiability\n8. Costs\nEach party bears its own costs of this and of all that comes of it.\n"
    assert headings(text) == ["7. Limits of Liability", "8. Costs"]


def test_a_title_under_its_number_takes_one_line_and_not_two():
    text = "ARTICLE I\nDEFINITIONS\nSection 1.01 Certain Terms. In this Agreement words have their usual meaning.\n"
    assert headings(text) == ["ARTICLE I DEFINITIONS", "Section 1.01 Certain Terms"]


def test_a_line_that_goes_on_at_the_margin_is_no_title_of_the_number_above_it():
    before = "The parties have agreed that each of them bears its own costs\n" * 9 + "of it.\n4.1\n"
    assert headings(f"{before}The Tenant May Assign The Lease To Any Company Of Its Group\nif asked.\n") == ["4.1"]
    titled = f"{before}Assignment\nThe tenant may assign the lease to any company of its\ngroup.\n"
    assert headings(titled) == ["4.1 Assignment"]


def test_two_letters_that_are_no_roman_number_stay_letters():
    heading = Heading(0, 4, "(aa)", "", "(a)", (27,), 9, "clause")
    assert as_roman([], heading, None) is heading
    counted = as_roman([], replace(heading, label="(ii)", value=(35,)), None)
    assert (counted.style, counted.value) == ("(i)", (2,))
    section = Heading(0, 2, "ii", "", "decimal", (2,), 6, "section")
    assert as_roman([], section, None) is section
