"""Headings: which lines are headings, their extent and their rank; each threshold at its exact value."""

from __future__ import annotations

import pytest

from exhibit.evidence import Document
from exhibit.law.structure.headings import find_headings
from exhibit.law.structure.labels import is_prose, is_shout, is_title, is_title_case, run_in

WORDS = "The Supplier shall deliver the goods to the Buyer at the agreed place and the Buyer shall pay for them.\n"


def headings(text: str) -> list[str]:
    """Return each heading as `'text' → title; style rank kind`."""
    return [
        f"{text[h.start : h.end]!r} → {h.text}; {h.style} {h.rank:g} {h.kind}"
        for h in find_headings(Document("a.txt", text))
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ARTICLE I\nDEFINITIONS", ["'ARTICLE I\\nDEFINITIONS' → ARTICLE I DEFINITIONS; article 4 definitions"]),
        ("ARTICLE I\nGlossary:", ["'ARTICLE I\\nGlossary:' → ARTICLE I Glossary; article 4 definitions"]),
        ("ARTICLE I", ["'ARTICLE I' → ARTICLE I; article 4 article"]),
        ("ARTICLE I\nTerm. It is one year.", ["'ARTICLE I\\nTerm.' → ARTICLE I Term; article 4 article"]),
        ("Section 2.01\nTheir use", ["'Section 2.01\\nTheir use' → Section 2.01 Their use; decimal 7 section"]),
        ("4. Supply of\nthe Goods", ["'4. Supply of\\nthe Goods' → 4. Supply of the Goods; 1. 6 section"]),
        ("4. Sale of\n5. Fee", ["'4. Sale of' → 4. Sale of; 1. 6 section", "'5. Fee' → 5. Fee; 1. 6 section"]),
        ("(a) Term of Lease", ["'(a) ' → (a); (a) 9 clause"]),
        ("(a)\nTerm of Lease\n", ["'(a)' → (a); (a) 9 clause"]),
        ("Background:", ["'Background:' → Background; recitals 6 recitals"]),
        ("Premises of the Parties", ["'Premises of the Parties' → Premises of the Parties; recitals 6 recitals"]),
        ("WHEREAS, they trade;", ["'WHEREAS' → WHEREAS; recitals 6 recitals"]),
        ("IN CONSIDERATION OF the rent", ["'IN CONSIDERATION OF' → IN CONSIDERATION OF; agreement 6 agreement"]),
        ("EXECUTED as a DEED", ["'EXECUTED as a DEED' → EXECUTED as a DEED; signature 2.5 signature"]),
        ("SIGNED by Alder", ["'SIGNED by' → SIGNED by; signature 2.5 signature"]),
        ("SIGNATURE PAGE", ["'SIGNATURE PAGE' → SIGNATURE PAGE; signature 2.5 signature"]),
        ("LIMITATION\nOF LIABILITY", ["'LIMITATION\\nOF LIABILITY' → LIMITATION OF LIABILITY; shout 6 title"]),
        ("GLOSSARY", ["'GLOSSARY' → GLOSSARY; shout 6 definitions"]),
        ("TRADE\n1. Two", ["'TRADE' → TRADE; shout 5.5 title", "'1. Two' → 1. Two; 1. 6 section"]),
        ("TRADE\n1.1 Two", ["'TRADE' → TRADE; shout 6.5 title", "'1.1 Two' → 1.1 Two; decimal 7 section"]),
        ("TRADE\n(x) two", ["'TRADE' → TRADE; shout 6 title", "'(x) ' → (x); (a) 9 clause"]),
        ("Term of Lease", ["'Term of Lease' → Term of Lease; title 6 title"]),
        ("The rent\n1. Two", ["'The rent' → The rent; title 5.5 title", "'1. Two' → 1. Two; 1. 6 section"]),
        ("The rent\nA. Two", ["'The rent' → The rent; title 5 title", "'A. Two' → A. Two; A. 5.5 section"]),
        ("Glossary\n1. Two", ["'Glossary' → Glossary; title 5.5 definitions", "'1. Two' → 1. Two; 1. 6 section"]),
        ("The rent\n(a) two", ["'(a) ' → (a); (a) 9 clause"]),
        ("The rent\n30.1", ["'The rent\\n30.1' → 30.1 The rent; decimal 7 section"]),
        ("Alder Mills Inc.\n1. Two", ["'1. Two' → 1. Two; 1. 6 section"]),
        ("term of lease\n1. Two", ["'1. Two' → 1. Two; 1. 6 section"]),
    ],
)  # fmt: skip
def test_a_heading_between_two_paragraphs(lines, expected):
    assert headings(f"{WORDS}\n{lines}\n{WORDS}") == expected


@pytest.mark.parametrize(
    "lines",
    [
        "The rent now", "Term of Lease:", "Term of Lease?", "Between", "Term ..... 4", "ALDER MILLS INC.",
        "ONE LINE\nTWO LINE\nTHREE LINE\nFOUR LINE", "THE FEES ARE DUE ON THE DAY THAT THEY ARE ASKED FOR",
    ],
)  # fmt: skip
def test_no_heading_between_two_paragraphs(lines):
    assert headings(f"{WORDS}\n{lines}\n{WORDS}") == []


def test_capitals_over_three_lines_are_one_heading_and_a_blank_line_parts_them():
    assert headings(f"{WORDS}\nFIRST\nSECOND\nTHIRD\n{WORDS}")[0].endswith("FIRST SECOND THIRD; shout 6 title")
    assert len(headings(f"{WORDS}\nFIRST\n\n{WORDS}\nSECOND\n{WORDS}")) == 2
    assert headings(f"{WORDS}\nFIRST\n\nSECOND\n{WORDS}") == ["'SECOND' → SECOND; shout 6 title"], "a cover's lines"


@pytest.mark.parametrize(
    ("before", "title", "after", "is_heading"),
    [
        ("It ends.\n", "Term of Lease", WORDS, True),
        ("It ends;\n", "Term of Lease", WORDS, True),
        ("it goes on\n", "Term of Lease", WORDS, False),
        ("it goes on\n\n", "Term of Lease", WORDS, True),
        (WORDS, "Term of Lease", f"“{WORDS}", True),
        (WORDS, "Term of Lease", f"({WORDS}", True),
        (WORDS, "Term of Lease", f"x{WORDS}", False),
        (WORDS, "Term of Lease", "", False),
        (WORDS, "Term of Lease", f"A{'b' * 59}\n", True),
        (WORDS, "Term of Lease", f"A{'b' * 58}\n", False),
        (WORDS, f"A{'b' * 59}", WORDS, True),
        (WORDS, f"A{'b' * 60}", WORDS, False),
        ("it goes on\n", "The rent", "1. Two\n", False),
        ("It ends:\n", "The rent", "1. Two\n", True),
        ("", "The rent", "1. Two\n", True),
        ("it goes on\n", "The rent", "30.1\n", False),
        ("It ends.\n", "The rent", "30.1\n", True),
    ],
)
def test_a_title_stands_apart_over_a_whole_paragraph(before, title, after, is_heading):
    assert any(title in heading for heading in headings(f"{before}{title}\n{after}{after and WORDS}")) is is_heading


@pytest.mark.parametrize(("length", "titled"), [(90, True), (91, False)])
def test_the_title_after_a_number_has_ninety_characters_at_most(length, titled):
    title = "Ab" + "c" * (length - 2)
    assert (f"→ 4. {title};" in headings(f"{WORDS}\n4. {title}\n\n{WORDS}")[0]) is titled


@pytest.mark.parametrize(("length", "lines"), [(59, 2), (60, 1)])
def test_a_title_that_breaks_off_goes_on_in_a_short_line(length, lines):
    [heading] = headings(f"{WORDS}\n4. Supply of\n{'x' * length}\n{WORDS}")
    assert heading.partition(" → ")[0].count("\\n") == lines - 1
    assert headings(f"{WORDS}\n4. Supply of") == ["'4. Supply of' → 4. Supply of; 1. 6 section"]


def test_a_title_that_runs_to_the_margin_is_no_title():
    wide = "Supply of all goods that the Buyer may ask for in the course of a year and at"
    assert headings(f"{WORDS}\nARTICLE I\n{wide}\nthe price\n{WORDS}") == ["'ARTICLE I' → ARTICLE I; article 4 article"]
    assert headings(f"{WORDS}4. {WORDS[:-2]}\ngoes on here. {WORDS}")[0].startswith("'4. ' → 4.;")


# ---------------------------------------------------------------- the headings of a whole document


@pytest.mark.parametrize(("before", "kind"), [(199, "title"), (200, "section")])
def test_any_first_heading_near_the_beginning_is_the_documents_name(before, kind):
    assert headings("x" * (before - 1) + f"\nSUPPLY OF GOODS\n{WORDS}")[0].endswith(kind)


@pytest.mark.parametrize(("before", "kind"), [(2999, "title"), (3000, "section")])
def test_what_calls_itself_an_agreement_may_come_later(before, kind):
    assert headings("x" * (before - 1) + f"\nSUPPLY AGREEMENT\n{WORDS}")[0].endswith(kind)


@pytest.mark.parametrize(("before", "count"), [(499, 0), (500, 1)])
def test_the_number_of_a_filed_exhibit_is_no_heading(before, count):
    assert len(headings("x" * (before - 1) + f"\nEXHIBIT 10.1\n{WORDS}")) == count
    assert len(headings("x" * (before - 1) + f"\nEXHIBIT 10\n{WORDS}")) == 1


@pytest.mark.parametrize(("after", "count"), [(2999, 1), (3000, 2)])
def test_no_shout_is_a_heading_for_three_thousand_characters_below_a_signature(after, count):
    signed = "IN WITNESS WHEREOF, they signed.\n"
    text = signed + "x" * (after - len(signed) - 1) + f"\nNEXT THING\n{WORDS}"
    assert text.index("NEXT") == after and len(headings(text)) == count


def titles(text: str) -> list[str]:
    return [heading.text for heading in find_headings(Document("a.txt", text))]


def test_lists_of_exhibits_and_terms_before_the_agreement_are_no_headings_but_its_name_and_recitals_are():
    listed = f"SUPPLY OF FLOUR\n{WORDS}\nSCHEDULE 2\n{WORDS}\nDEFINED TERMS\n{WORDS}\nRECITALS\nWHEREAS, x;\n{WORDS}"
    proper = ["1. Term", "SCHEDULE 1"]
    text = f"{listed}\n1. Term. {WORDS}\nSCHEDULE 1\n{WORDS}"
    assert titles(text) == ["SUPPLY OF FLOUR", "RECITALS", "WHEREAS", *proper]
    agreed = text.replace("1. Term.", "NOW, THEREFORE,")
    assert titles(agreed) == ["SUPPLY OF FLOUR", "RECITALS", "WHEREAS", "NOW, THEREFORE", "SCHEDULE 1"]
    article = text.replace("1. Term.", "ARTICLE I\nTERM\n")
    assert titles(article)[:4] == ["SUPPLY OF FLOUR", "RECITALS", "WHEREAS", "ARTICLE I TERM"]
    second = text.replace("1. Term.", "2. Term.")
    assert "SCHEDULE 2" in titles(second), "nothing says where the agreement begins"


@pytest.mark.parametrize(("between", "count"), [(199, 3), (200, 6)])
def test_names_that_come_again_are_a_table_of_contents_where_they_stand_close(between, count):
    names = ["1. Term of agreement", "2. Price of goods", "3. Notices to parties"]
    listed = "".join(f"{name}\n\n{'x' * (between - len(name) - 3)}\n" for name in names)
    text = listed + "".join(f"{name}\n{WORDS * 3}\n" for name in names)
    assert len(titles(text)) == count
    once = f"1. Term\n2. Price\n{WORDS * 3}1. Term\n{WORDS * 3}"
    assert titles(once) == ["1. Term", "2. Price", "1. Term"], "one name alone is no table"


# ---------------------------------------------------------------- what reads as a title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Abc", True), ("Ab", False), ("A" * 110, True), ("A" * 111, False), ("abc", False), ("“Goods” now", True),
        ("'Goods' now", True), ("‘Goods’ now", True), ("Goods.", False), ("Goods;", False), ("Goods,", False),
        ("Goods!", True), ("A " * 15 + "B", True), ("A " * 16 + "B", False),
    ],
)  # fmt: skip
def test_a_title_is_short_and_begins_with_a_capital(text, title):
    assert is_title(text) is title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Term of the Lease", True), ("Term of the lease", False), ("of the Lease", False), ("12", False),
        ("A B C D E F G H I", True), ("A B C D E F G H I J", False),
    ],
)  # fmt: skip
def test_title_case(text, title):
    assert is_title_case(text) is title


@pytest.mark.parametrize(
    ("text", "shout"),
    [
        ("TERM", True), ("FEE", False), ("Term", False), ("TERM 123", False), ("TERM 12", True), ("TERM,", False),
        ("TERM;", False), ("T" * 110, True), ("T" * 111, False), ("ALDER MILLS LLC", False), ("PAGE", False),
        ("CONFIDENTIAL TREATMENT", False), ("THIS PAGE INTENTIONALLY LEFT BLANK", False),
    ],
)  # fmt: skip
def test_a_heading_in_capitals(text, shout):
    assert is_shout(text) is shout


def test_capitals_that_are_a_sentence():
    assert is_prose("A " * 76) and not is_prose("A " * 75)
    assert is_prose("THE FEES ARE DUE ON THE DAY") and not is_prose("THE FEES ARE DUE ON DEMAND")
    assert not is_prose("FEES DUE ON THE DAY OF DEMAND")


@pytest.mark.parametrize(
    ("rest", "title", "length"),
    [
        ("Term. The term is a year.", "Term", 5),
        ("Term: the term is a year.", "Term", 5),
        ("“Term”. The term is a year.", "Term", 7),
        ("Term – the term is a year.", "Term", 7),
        ("Term of lease and rent. The rest.", "Term of lease and rent", 23),
        ("Term whose words go small. The rest.", "", 0),
        ("Term for goods sold. The rest.", "Term for goods sold", 20),
        ("Any Term. The rest.", "Any Term", 9),
        ("Any term. The rest.", "", 0),
        ("term. The rest.", "", 0),
        ("Rent is due. The rest.", "", 0),
        ("A B C D E F G H I J K L. X", "A B C D E F G H I J K L", 24),
        ("A B C D E F G H I J K L M. X", "", 0),
        ("No stop at all", "", 0),
        ("", "", 0),
    ],
)
def test_a_title_that_runs_into_its_paragraph(rest, title, length):
    assert run_in(rest) == (title, length)


@pytest.mark.parametrize("line", ["Background checks are made by the Supplier", "Premises shall be kept in repair"])
def test_a_sentence_that_begins_with_the_name_of_the_recitals_is_none(line):
    assert headings(f"{WORDS}\n{line}\n{WORDS}") == []


def test_recitals_right_below_a_title_are_seen():
    lines = "Purpose of the Parties\nWHEREAS, Alder mills flour and wishes to sell it to Birch, a baker;"
    assert headings(f"{WORDS}\n{lines}\n{WORDS}") == [
        "'Purpose of the Parties' → Purpose of the Parties; title 6 title",
        "'WHEREAS' → WHEREAS; recitals 6 recitals",
    ]
