"""The first page of a contract: how much of it is read, and what counts as a kind, a party or a date."""

from __future__ import annotations

import pytest

from exhibit.law.opening import date_of, kind_of, parties_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SUPPLY AGREEMENT\n", "Supply Agreement"),
        ("Supply Agreement between Alder and Birch\n", "Supply Agreement"),
        ("Exhibit (d)(5) SUPPLY AGREEMENT\n", "Supply Agreement"),
        ("AN AGREEMENT OF SALE (the text)\n", "Agreement of Sale"),
        ("SUPPLY AND USE\nAGREEMENT\n", "Supply and Use Agreement"),
        ("AGREEMENT\n", ""),
        ("This Supply Agreement is made by Alder.\n", "Supply Agreement"),
        ("The parties sign this agreement\nDEED OF TRUST\n", "Deed of Trust"),
        ("Terms: the agreement\n", ""),
        ("Alder (“A”) agreement 12\nSALE CONTRACT2\n", "Sale Contract"),
        ("Dear Sirs,\nwe agree.\n", "Letter Agreement"),
        ("Nothing of note.\n", ""),
        ("ABC de AGREEMENT of sale\n", "Abc De Agreement of Sale"),
        ("ABC def AGREEMENT of sale here\n", "ABC def AGREEMENT of sale here"),
    ],
)
def test_what_a_document_calls_itself(text, kind):
    assert kind_of(text) == kind


def test_the_name_stands_in_the_first_forty_lines_before_the_text_begins():
    assert kind_of("x\n" * 39 + "SUPPLY AGREEMENT\n") == "Supply Agreement"
    assert kind_of("x\n" * 40 + "SUPPLY AGREEMENT\n") == ""
    assert kind_of("x" * 160 + "\nSUPPLY AGREEMENT\n") == "Supply Agreement"
    assert kind_of("x" * 161 + "\nSUPPLY AGREEMENT\n") == ""
    words = "This Supply Agreement"
    near = "x" * (3000 - len(words) - 1) + "\n"
    assert kind_of(near + words) == "Supply Agreement" and kind_of("x" + near + words) == ""


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
def test_the_parties_that_the_first_page_names(text, parties):
    assert parties_of(f"This Agreement is made {text}") == parties


def test_a_later_between_is_read_where_the_first_names_nobody():
    assert parties_of("the time between today and then.\nmade between Alder plc and Birch plc, of York.") == [
        "Alder plc", "Birch plc",
    ]  # fmt: skip


def test_the_parties_end_where_the_text_begins_or_after_seven_hundred_characters():
    listed = "BETWEEN:\n(1) Alder Mills; and\n"
    assert parties_of(f"{listed}WHEREAS\n(2) Birch Foods\n") == ["Alder Mills"]
    last = "(2) Birch Foods\n"
    filler = "x" * (700 - len(listed) - len(last) - 1) + "\n"
    assert parties_of(listed + filler + last) == ["Alder Mills", "Birch Foods"]
    assert parties_of(listed + "x" * 12 + filler + last) == ["Alder Mills"]


def test_one_paragraph_holds_the_parties_of_a_sentence():
    sentence = f"made between Alder plc, {'a company ' * 8}, and Birch plc, of York.\nand Crane plc of York."
    assert parties_of(sentence) == ["Alder plc", "Birch plc"]


def test_a_date_stands_in_the_first_thousand_characters():
    date = "May 3, 2021"
    near = "x " * ((1000 - len(date)) // 2)
    pad = "." * (1000 - len(date) - len(near) - 1)
    assert date_of(f"{near}{pad} {date}") == date
    assert date_of(f"x{near}{pad} {date}") == ""
    assert [date_of(text) for text in ("3rd May, 2021", "May 3rd , 2021", "may 3, 2021")] == [
        "3rd May, 2021", "May 3rd, 2021", "",
    ]  # fmt: skip
