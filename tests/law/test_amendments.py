"""Amendments say which contract they amend, from which day, and what they change in which section."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from exhibit.evidence import Span
from exhibit.law.amendments import ContractName, find_amended_contract, find_changes, is_amendment, read_amendment
from exhibit.law.families import Family, FamilyMember, link_families
from tests.law.contracts import CONTRACT, FIRST, SECOND

PARTIES = ("Quillfeather Systems, Inc.", "Marrowdale Clinics LLC")
NAMES = [
    ContractName("ours", "hosting.pdf", "Hosting Agreement", PARTIES, "March 1, 2018"),
    ContractName("other", "hosting2.pdf", "Hosting Agreement", ("Osprey Data Corp.", "Tern Ltd"), "April 3, 2016"),
    ContractName("lease", "lease.pdf", "Lease Agreement", PARTIES, "May 9, 2017"),
]


def member(key: str, text: str) -> FamilyMember[str]:
    return FamilyMember(key, f"{key}.pdf", text, read_amendment(text) if is_amendment(text) else None)


FAMILY = Family(member("contract", CONTRACT), [member("second", SECOND), member("first", FIRST)])


@pytest.mark.parametrize(
    ("text", "day", "number"), [(FIRST, date(2019, 6, 1), 1), (SECOND, date(2021, 1, 15), 2)], ids=["first", "second"]
)
def test_an_amendment_has_its_own_day_and_number(text, day, number):
    assert is_amendment(text)
    amendment = read_amendment(text)
    assert (amendment.day, amendment.number) == (day, number)
    assert amendment.contract_days == {"2018-03-01"}


@pytest.mark.parametrize(
    "text",
    [
        CONTRACT,
        "LEASE\n\nThis Lease, as amended from time to time, is made on 3 May 2010. No amendment is valid unless …",
        "AMENDMENT NO. 2 TO FORM S-1\n\nLEASE\n\nThis Lease is made between Fen Ltd and Moor Ltd.",
    ],
    ids=["contract", "a clause on amendments", "the form of a filing"],
)
def test_a_contract_is_no_amendment(text):
    assert not is_amendment(text)


def test_changes_are_told_apart_by_what_they_change():
    first, law = find_changes(FIRST)
    assert (first.section, first.kind) == ("2.1", "replaced")
    assert FIRST[slice(*first.new)].startswith("2.1 Monthly Fee. Customer shall pay")
    assert FIRST[slice(*first.new)].endswith("for the hosting services.")
    assert (law.section, law.kind, law.old_words, law.new_words) == ("4.1", "words", "Ohio", "Vermont")
    assert [(one.section, one.kind) for one in find_changes(SECOND)] == [
        ("2.1", "replaced"),
        ("2.2", "deleted"),
        ("3.1", "part"),
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Clause 12 (Delivery) shall be deleted and replaced by the following: The goods go by sea.", "12 replaced"),
        ("Section 2(c) is amended and restated to read: The rent is €900.", "2(c) replaced"),
        ('Section 7.3 is amended by replacing "ten (10) days" with "twenty (20) days".', "7.3 words"),
        ("The definition of “Goods” in Section 1 shall be deleted and replaced with: Goods means ore.", "1 part"),
        ("Article IV is hereby deleted in its entirety.", "IV deleted"),
        ("Sections 3.1 and 3.2 are hereby deleted.", "3.1 deleted, 3.2 deleted"),
        ("The Tenant shall comply with Section 5 of the Agreement.", ""),
    ],
)
def test_the_sentences_of_several_drafters_are_read(sentence, expected):
    changes = find_changes(f"This Amendment is made today. {sentence}")
    assert ", ".join(f"{one.section} {one.kind}" for one in changes) == expected


def test_an_amendment_belongs_to_the_contract_of_its_title_parties_and_date():
    amendment = read_amendment(FIRST)
    assert find_amended_contract(amendment, "amendment.pdf", NAMES) == "ours"
    assert find_amended_contract(amendment, "amendment.pdf", NAMES[1:]) is None
    later = [ContractName("late", "hosting.pdf", "Hosting Agreement", PARTIES, "June 9, 2022")]
    assert find_amended_contract(amendment, "amendment.pdf", later) is None
    twins = [NAMES[0], replace(NAMES[0], key="twin")]
    assert find_amended_contract(amendment, "amendment.pdf", twins) is None


@pytest.mark.parametrize(
    ("amendment", "contract", "expected"),
    [
        ("lease - Amendment No. 1.pdf", "lease.pdf", True),
        ("Lease_second_amendment.docx", "Lease.pdf", True),
        ("lease 2 - Amendment No. 1.pdf", "lease.pdf", False),
        ("leasehold amendment.pdf", "lease.pdf", False),
        ("lease - Annex.pdf", "lease.pdf", False),
    ],
)
def test_an_amendment_belongs_to_the_contract_whose_file_name_it_repeats(amendment, contract, expected):
    names = [ContractName("ours", contract, "IP Agreement", (), ""), ContractName("other", "x.pdf", "Lease", (), "")]
    assert (find_amended_contract(read_amendment(FIRST), amendment, names) == "ours") is expected


def test_amendments_of_an_absent_contract_are_one_family():
    members = [
        FamilyMember(name, f"quillfeather-{name}.pdf", text, read_amendment(text))
        for name, text in (("one", FIRST), ("two", SECOND))
    ]
    assert link_families(members, NAMES[1:]) == {"one": "one", "two": "one"}
    assert link_families(members, NAMES) == {"one": "ours", "two": "ours"}


@pytest.mark.parametrize(
    ("section", "day", "source", "words"),
    [
        ("2.1", date(2019, 5, 31), "contract", "$4,000"),
        ("2.1", date(2019, 6, 1), "first", "$5,500"),
        ("2.1", date(2021, 1, 14), "first", "$5,500"),
        ("2.1", date(2026, 11, 17), "second", "$7,250"),
        ("4.1", date(2019, 1, 1), "contract", "State of Ohio"),
        ("4.1", date(2020, 1, 1), "first", "State of Vermont"),
    ],
)
def test_a_section_reads_as_the_newest_amendment_in_force_has_it(section, day, source, words):
    version = FAMILY.find_version(section, day)
    assert version is not None
    assert (version.source.key, words in version.text) == (source, True)
    assert bool(version.note) == (source != "contract")


def test_a_deleted_section_is_deleted_from_its_day_on():
    before, after = (FAMILY.find_version("2.2", day) for day in (date(2020, 1, 1), date(2022, 1, 1)))
    assert before and not before.is_deleted and "five percent" in before.text
    assert after and after.is_deleted
    assert after.note == "Section 2.2 was deleted by second.pdf, in force from 15 January 2021"


def test_a_change_of_a_part_leaves_the_section():
    version = FAMILY.find_version("3.1", date(2022, 1, 1))
    assert version and version.source.key == "contract"
    [part] = FAMILY.find_changed_parts("3.1", date(2022, 1, 1))
    assert "by courier" in part.text
    assert FAMILY.find_changed_parts("3.1", date(2020, 1, 1)) == []


def test_a_restated_contract_supersedes_what_came_before():
    title = "Amended and Restated Hosting Agreement"
    text = f"{title.upper()}\n\nThis agreement is made and is effective as of May 2, 2022 between the parties."
    restated = FamilyMember("restated", "restated.pdf", text, read_amendment(text, title))
    family = Family(member("contract", CONTRACT), [restated])
    assert is_amendment(text, title)
    assert [family.is_superseded("contract", date(year, 1, 1)) for year in (2022, 2023)] == [False, True]
    assert not family.is_superseded("restated", date(2023, 1, 1))


LISTED = """AMENDMENT N° 2

to the Catering Services Agreement dated 4 May 2015

This Amendment N° 2 is entered into on 11 October 2017 between Quillfeather Systems, Inc. and Marrowdale Clinics LLC.

1. AMENDED CLAUSES

The following Clauses of the Agreement are hereby amended and restated to read as follows:
(a) Clause 4.2 (Price of a Meal): "The Caterer shall charge EUR 9.40 for each meal."
(b) Clause 7.1: “This Agreement ends on 31 December 2020.”
6.3 Deliveries. The Caterer shall deliver before 11:00 on each working day.
2. DELETED CLAUSES
The following Sections shall be deleted in their entirety: Sections 8.2, 9 and 11.4(b).
3. EXHIBITS
The following provisions of the Agreement are amended as follows:
3.1 Clause 12 - INVOICES
(i) Clause 12.1(ii) of the Agreement shall be cancelled and substituted as follows:
Invoices are due within forty days.
(ii) Any other provision of Clause 12 shall remain in force.
3.2 Exhibit 3 - MENUS
(i) Clause 2.4 of the Exhibit 3 shall be cancelled and substituted as follows:
Each menu has two dishes.
4. All other terms remain unchanged.
"""


def test_a_list_of_sections_is_read_item_by_item():
    changes = {change.section: change for change in find_changes(LISTED)}
    assert list(changes) == ["4.2", "7.1", "6.3", "8.2", "9", "11.4(b)", "12.1(ii)", "exhibit3/2.4"]
    replaced = {section: LISTED[slice(*one.new)] for section, one in changes.items() if one.kind == "replaced"}
    assert {section: words.strip() for section, words in replaced.items()} == {
        "4.2": "The Caterer shall charge EUR 9.40 for each meal.",
        "7.1": "This Agreement ends on 31 December 2020.",
        "6.3": "6.3 Deliveries. The Caterer shall deliver before 11:00 on each working day.",
        "12.1(ii)": "Invoices are due within forty days.",
        "exhibit3/2.4": "Each menu has two dishes.",
    }
    assert {section for section, one in changes.items() if one.kind == "deleted"} == {"8.2", "9", "11.4(b)"}


def test_a_section_of_an_exhibit_is_no_section_of_the_contract_with_the_same_number():
    contract = """CATERING SERVICES AGREEMENT

2.4 Staff. The Caterer shall employ four cooks.

4.2 Price of a Meal. The Caterer shall charge EUR 7.00 for each meal.
"""
    family = Family(member("contract", contract), [member("listed", LISTED)])
    day = date(2019, 1, 1)
    cooks = contract.index("The Caterer shall employ")
    assert (
        family.find_changed_places("contract", Span(cooks, cooks + 10)) == []
        and family.find_version("2.4", day) is None
    )
    assert family.find_version("4.2", day).source.key == "listed" and "9.40" in family.find_version("4.2", day).text
    assert "7.00" in family.find_version("4.2", date(2017, 1, 1)).text
