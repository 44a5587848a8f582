"""Questions that rules make from a document's own text."""

import json

import pytest

from exhibit.drafting.drafts import construct_questions, word_question
from exhibit.evidence import Document, Span, read_document
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from tests.drafting.test_draft import CONTRACT

LEASE = """LEASE AGREEMENT

This Lease Agreement is made on May 4, 2021 between Fir Estates Ltd and Gorse Mills plc.

1. Definitions

“Premises” means the mill that stands at the ford of the river, with its yard. “Term” means the five years from the day
on which the keys are given. “Rent” shall mean $1,200 a month. “Deposit” (also the “Sum”) refers to two months of Rent.

2. Rent

2.1 The Rent is paid in advance on the first of each month, and Section 3.2 says what follows where it is late.

2.2 A further €350 falls due on 1 June 2022, and $10, $20, $30 and $40 on other days that the parties agree.

3. Default

3.1 Where the Tenant is in default for thirty days, the Landlord may end this Lease as clause 4 lays down.

3.2 Interest of 4% a year falls due on what is late, from the day after it was due until the day on which it is paid.

4. End

This Lease ends on 3 May 2026, or 30 days after a notice under Section 3.1. Section 9.9 is left out on purpose.
"""


@pytest.mark.parametrize("name", ["lease", "contract"])
def test_construct_questions_matches_golden_file(tmp_path, golden, name):
    text = LEASE if name == "lease" else CONTRACT.format(party="Alder", law="Norway")
    (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    document = read_document(tmp_path / f"{name}.txt")
    made = construct_questions(document, read_structure(document), read_profile(document))
    drafts = [
        [draft.kind, draft.status, draft.name, word_question(draft, "Paper"), [list(span) for span in draft.spans]]
        for draft in made
    ]
    golden(f"drafting/{name}.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in drafts))


def construct(text: str, *sections: Section, parties: tuple[str, ...] = ()) -> dict[tuple[str, str], list[str]]:
    root = Section(Span(0, len(text)), kind="document", children=sections)
    drafts = construct_questions(Document("a.txt", text), root, Profile(parties=parties))
    return {(d.kind, d.name): [text[s.start : s.end] for s in d.spans] for d in drafts if d.status == "sure"}


LONG = "which the parties to this Agreement have agreed upon in good faith."


def test_construct_questions_skips_a_term_defined_twice():
    once, twice = f"“Goods” means planks {LONG}", f"“goods” is not “Goods” and “GOODS” means nails {LONG}"
    assert construct(once) == {("definition", "Goods"): [once]} and construct(f"{once} {twice}") == {}
    inside = f"In this Agreement “Base  Rent” (the “Sum”) shall mean the rent {LONG}"
    assert construct(inside) == {("definition", "Base Rent"): [inside[18:]]}, "the gold begins at the defined term"


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Tax", "Tax"),
        ("§ 12. Tax", "Tax"),
        ("Section 4.2  Late  payment.", "Late payment"),
        ("(a) TAX AND DUTY", "Tax and Duty"),
        ("one two three four five six seven eight nine ten", None),
        ("To be or", None),
        ("4.", None),
    ],
)
def test_construct_questions_asks_for_a_section_by_the_words_of_its_heading(heading, name):
    assert construct("w" * 80, Section(Span(0, 80), heading)) == ({("heading", name): ["w" * 80]} if name else {})


def test_construct_questions_skips_repeated_headings_and_headings_with_subheadings():
    text = "w" * 160
    parts = Section(Span(0, 80), "1. Tax"), Section(Span(80, 160), "2. TAX")
    assert construct(text, *parts) == {} and construct(text, parts[0]) == {("heading", "Tax"): ["w" * 80]}
    assert construct(text, Section(Span(0, 160), "Duty", children=parts[:1])) == {("heading", "Tax"): ["w" * 80]}
    assert construct(f"  {text}\n", Section(Span(0, 163), "Tax")) == {("heading", "Tax"): [text]}, "without white space"


def test_construct_questions_asks_for_parties_when_sentences_name_both_parties():
    text = f"Alder Ltd supplies planks {LONG} Birch plc pays for them {LONG}"
    first = text[: text.index(" Birch")]
    assert construct(text, parties=("Alder Ltd",)) == {} and construct(text, parties=("Alder Ltd", "Cedar AG")) == {}
    assert construct(text, parties=("Alder Ltd", "Birch plc")) == {
        ("parties", "parties"): [first, text[len(first) + 1 :]]
    }
    assert construct(first, parties=("Alder Ltd", "planks")) == {("parties", "parties"): [first]}, (
        "the gold is the sentence that names both"
    )
    assert construct(f"{text} Cedar AG.", parties=("Alder Ltd", "Cedar AG")) == {}, "a signature line is not an answer"


def test_construct_questions_asks_at_most_3_questions_of_each_kind():
    text = " ".join(f"“Thing{n}” means a thing {LONG}" for n in "ABCDE")
    drafts = construct_questions(Document("a.txt", text), Section(Span(0, len(text))), Profile())
    assert [draft.status for draft in drafts] == ["sure"] * 3 + ["absent"] * 3
    assert construct_questions(Document("a.txt", LONG * 9), Section(Span(0, 9)), Profile()) == [], "no definition"
    [named] = {d.name for d in drafts if d.status == "absent"} - {
        d.name
        for d in construct_questions(Document("a.txt", text + drafts[3].name.upper()), Section(Span(0, 9)), Profile())
        if d.status == "absent"
    }
    assert named == drafts[3].name


LETTER = """We act for your landlord. The rent that was due on 1 May 2024, altogether £4,000, has not been paid.
Please telephone our office before 28 June 2024 so that payment by instalments can be discussed with our client."""


def test_construct_questions_asks_for_dates_and_amounts_of_a_letter_without_headings():
    written = construct_questions(Document("a.txt", LETTER), Section(Span(0, len(LETTER))), Profile())
    asked = {draft.asks: LETTER[slice(*draft.spans[0])][:6] for draft in written}
    sums = {"Why does 1 May 2024 matter?": "The re", "What is the sum of £4,000 for?": "The re"}
    assert asked == {**sums, "Why does 28 June 2024 matter?": "Please"}
