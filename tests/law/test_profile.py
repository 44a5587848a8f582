"""Profiles: a document's title, its kind, its parties and its date."""

import pytest

from exhibit.evidence import Document
from exhibit.law.profile import Profile, parties_of, read_profile, title_of


def profile(text: str, name: str = "a.txt") -> Profile:
    return read_profile(Document(name, text))


def test_read_profile_reads_contract_filed_as_exhibit():
    text = (
        "Exhibit 10.19\nCONFIDENTIAL TREATMENT REQUESTED\nMANUFACTURING AND SUPPLY AGREEMENT\n"
        "This Manufacturing and Supply Agreement (this “Agreement”) is entered into as of this 3rd day of May, 2021\n"
        "by and between Alder Mills, Inc., a Delaware corporation having offices in Dover (“Alder”), and Birch\n"
        "Foods LLC, a limited liability company having its principal place of business in Austin, Texas (“Birch”).\n"
        "1. Supply. Alder shall supply flour to Birch.\n"
    )
    assert profile(text, "ALDER_05_10_2021-EX-10.19-SUPPLY.pdf") == Profile(
        "Manufacturing and Supply Agreement", "contract", ("Alder Mills, Inc.", "Birch Foods LLC"), "3 May 2021"
    )


BOILERPLATE = (
    "\n\n1. Term\n\nThe term is three years from the date above.\n\n2. Entire Agreement\n\nThis Agreement contains the "
    "entire agreement between the parties and supersedes all others.\n\n3. Law\n\nThe laws of Norway govern."
)
BETWEEN = 'between Harbour Estates Ltd (the "Landlord") and Jon Berg (the "Tenant")'
OPENINGS = {
    "Commercial Lease": f"COMMERCIAL LEASE\n\n{BETWEEN}\n\nThe landlord lets the premises at 4 Quay Street.",
    "Boat Lease": "Boat Lease between Harbour Estates Ltd and Ostrander Boats Inc.\n\nThe landlord lets a boat.",
    "Durable Power of Attorney": "DURABLE POWER OF ATTORNEY\n\nI, Maria Lindqvist, appoint Jon Berg.",
    "Promissory Note": "PROMISSORY NOTE\n\n$50,000.00\nBergen, 3 May 2024\n\nFor value received, I promise to pay",
    "Loan Agreement": "LOAN AGREEMENT\n\nThis Loan Agreement is made on 3 May 2024 between Nord Bank ASA and Berg Ltd.",
    "Employment Contract": f"Employment Contract\n\n{BETWEEN}",
    "Whistleblowing Policy": "Ostrander Boats Inc.\n\nWhistleblowing Policy\n\nThis policy applies to all staff.",
    "Staff Handbook": "STAFF HANDBOOK\n\nWelcome to Ostrander Boats. This handbook describes your work with us.",
    "Offer Letter": "OFFER LETTER\n\nDear Maria,\n\nWe are pleased to offer you the position of engineer.",
    "Letter Agreement": "Ostrander Boats Inc.\n4 Quay Street\n\nDear Maria,\n\nIt sets out the terms of our work.",
    "Last Will and Testament": "LAST WILL AND TESTAMENT\n\nof Maria Lindqvist\n\nI revoke all earlier wills.",
    "Residential Tenancy Agreement": f"RESIDENTIAL TENANCY AGREEMENT\n\n{BETWEEN}",
    "Guaranty": "GUARANTY\n\nThis Guaranty is given by Berg Ltd to Nord Bank ASA.",
    "Terms of Sale": "TERMS OF SALE\n\nThese terms apply to all goods sold by Ostrander Boats Inc.",
    "First Amendment to Lease": "FIRST AMENDMENT TO LEASE\n\nThis First Amendment is made on 3 May 2024.",
    "Memorandum of Understanding": "MEMORANDUM OF UNDERSTANDING\n\nbetween Nord Bank ASA and Berg Ltd",
    "Statement of Work": "STATEMENT OF WORK\n\nunder the Master Services Agreement dated 1 March 2023",
}


@pytest.mark.parametrize("title", OPENINGS)
def test_read_profile_finds_title_near_beginning_and_not_in_boilerplate(title):
    assert profile(OPENINGS[title] + BOILERPLATE, "file-7.txt").title == title


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (" Rent – ", "Rent"),
        ("PRACTICE DIRECTION 7 A", "Practice Direction 7A"),
        ("OAK Ltd", "Oak Ltd"),
        ("OAk ltd", "OAk ltd"),
        ("x" * 100 + " " + "y" * 19, "x" * 100 + " " + "y" * 19),
        ("x" * 100 + " " + "y" * 20, "x" * 100),
    ],
)
def test_title_of_long_heading_is_cut_at_a_word(line, short):
    assert title_of(f"{line}\n", "rules", "") == short


@pytest.mark.parametrize(
    ("text", "parties"),
    [
        ("between Alder Mills, Inc. and Birch Foods LLC, made today.", ["Alder Mills, Inc.", "Birch Foods LLC"]),
        ("between Alder, Inc., 5 High Road, and Birch Foods LLC, of York.", ["Alder, Inc.", "Birch Foods LLC"]),
        ("between Alder (“A”) and Birch (“B”).", ["Alder", "Birch"]),
        ("between the Company (“A”) and Birch plc, of York.", ["Birch plc"]),
        ("between The Alder Trust (the “Trust”) and Birch plc, of York.", ["Alder Trust", "Birch plc"]),
        (
            "between Ministry of Health and Care (the “Ministry”) and Birch plc, of York.",
            ["Ministry of Health and Care", "Birch plc"],
        ),
        ("between ALDER MILLS LIMITED and BIRCH PLC, of York.", ["Alder Mills Limited", "Birch PLC"]),
        ("between JEA OAK LTD and Birch plc, of York.", ["Jea Oak Ltd", "Birch plc"]),
        ("between ALDER AG (“A”) and Birch plc, of York.", ["Alder AG", "Birch plc"]),
        ("between JEA (“J”) and SAP AG (“S”).", ["JEA", "SAP AG"]),
        ("BETWEEN:\n(1) Alder Mills; and\n(2) Birch Foods\n", ["Alder Mills", "Birch Foods"]),
        ("\nParties\n(1) Alder Mills, of York\n(2) Birch Foods, of Hull\n", ["Alder Mills", "Birch Foods"]),
        ("between 3M Inc. and Birch plc, of York.", ["3M Inc.", "Birch plc"]),
        ("between 300 Inc. and Birch plc, of York.", ["Birch plc"]),
        ("between AB (“A”) and Birch plc, of York.", ["Birch plc"]),
        ("between ABC (“A”) and Birch plc, of York.", ["ABC", "Birch plc"]),
        ("nobody is named.", []),
    ],
)
def test_parties_are_read_from_the_opening(text, parties):
    assert parties_of(f"This Agreement is made {text}") == parties


def test_parties_are_read_from_a_later_between_clause():
    assert parties_of("the time between today and then.\nmade between Alder plc and Birch plc, of York.") == [
        "Alder plc", "Birch plc",
    ]  # fmt: skip
