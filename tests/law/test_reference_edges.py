"""Boundaries of references: where each begins and ends in the text, and which parts belong together."""

from __future__ import annotations

import pytest

from exhibit.evidence import Span
from exhibit.law.references import Reference, ReferenceCorpus, find_references
from exhibit.law.references.corpus import list_own_places
from exhibit.law.references.courts import guide_name
from exhibit.law.references.reference import blank_spans
from exhibit.law.references.statutes import Instruments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # rules
        ("rule 11(1), rule 11 and rule 12", ["rule 11(1) = CPR 11.1"]),
        ("Part 99 and Part 100", ["Part 99 = CPR Part 99"]),
        ("rule 99.1, rule 100.1", ["rule 99.1 = CPR 99.1"]),
        ("CPR 100.1", ["CPR 100.1 = CPR 100.1"]),
        ("rule 3. It is", []),
        ("rule 3.4. It is", ["rule 3.4 = CPR 3.4"]),
        ("pt. 36 and Pts. 3 and 4", ["Pts. 3 and 4 = CPR Part 3", "Pts. 3 and 4 = CPR Part 4"]),
        ("r. 3.4 and rr. 3.4 and 3.5", ["r. 3.4 = CPR 3.4", "rr. 3.4 and 3.5 = CPR 3.4", "rr. 3.4 and 3.5 = CPR 3.5"]),
        (
            "Parts 3, 4 and 5 apply",
            ["Parts 3, 4 and 5 = CPR Part 3", "Parts 3, 4 and 5 = CPR Part 4", "Parts 3, 4 and 5 = CPR Part 5"],
        ),
        ("Part 3 and 4 of the Rules", ["Part 3 and 4 = CPR Part 3", "Part 3 and 4 = CPR Part 4"]),
        ("Part 3 and 4 days", ["Part 3 = CPR Part 3"]),
        (
            "rules 3.4 to 3.6",
            ["rules 3.4 to 3.6 = CPR 3.4", "rules 3.4 to 3.6 = CPR 3.5", "rules 3.4 to 3.6 = CPR 3.6"],
        ),
        ("Parts 1 to 62", ["Parts 1 to 62 = CPR Part 1", "Parts 1 to 62 = CPR Part 62"]),
        ("Parts 3 - 5", ["Parts 3 - 5 = CPR Part 3", "Parts 3 - 5 = CPR Part 4", "Parts 3 - 5 = CPR Part 5"]),
        ("rule 3.4 and (2)", ["rule 3.4 = CPR 3.4"]),
        ("rule 3.4(1) and (2)", ["rule 3.4(1) and (2) = CPR 3.4(1)", "rule 3.4(1) and (2) = CPR 3.4(2)"]),
        (
            "rule 3.4(1)(a) and (b)",
            ["rule 3.4(1)(a) and (b) = CPR 3.4(1)(a)", "rule 3.4(1)(a) and (b) = CPR 3.4(1)(b)"],
        ),
        ("rule 3.4(1)(a) and (2)", ["rule 3.4(1)(a) and (2) = CPR 3.4(1)(a)", "rule 3.4(1)(a) and (2) = CPR 3.4(2)"]),
        (
            "rule 3.4(1), (3) to (5)",
            [
                "rule 3.4(1), (3) to (5) = CPR 3.4(1)",
                "rule 3.4(1), (3) to (5) = CPR 3.4(3)",
                "rule 3.4(1), (3) to (5) = CPR 3.4(4)",
                "rule 3.4(1), (3) to (5) = CPR 3.4(5)",
            ],
        ),
        ("rule 3.4(1)(a)-(c)", ["rule 3.4(1)(a)-(c) = CPR 3.4(1)(a)", "rule 3.4(1)(a)-(c) = CPR 3.4(1)(c)"]),
        ("rule 3.4(1) to 3.5(2)", ["rule 3.4(1) to 3.5(2) = CPR 3.4(1)", "rule 3.4(1) to 3.5(2) = CPR 3.5(2)"]),
        ("rules 3.4 to 5.6", ["rules 3.4 to 5.6 = CPR 3.4", "rules 3.4 to 5.6 = CPR 5.6"]),
        ("rule 3.4 per cent", []),
        ("rules 3.4 and 5 days", ["rules 3.4 = CPR 3.4"]),
        ("rule 3.4 or 3.5 days", ["rule 3.4 = CPR 3.4"]),
        ("CPR Parts 3 and 4", ["CPR Parts 3 and 4 = CPR Part 3", "CPR Parts 3 and 4 = CPR Part 4"]),
        ("C.P.R. 3.4", ["C.P.R. 3.4 = CPR 3.4"]),
        ("rule 3.4A and 3.4B", ["rule 3.4A and 3.4B = CPR 3.4A", "rule 3.4A and 3.4B = CPR 3.4B"]),
        # provisions
        (
            "sections 33 and 35 of the Limitation Act 1980",
            [
                "sections 33 and 35 of the Limitation Act 1980 = limitation act 1980 33",
                "sections 33 and 35 of the Limitation Act 1980 = limitation act 1980 35",
            ],
        ),
        (
            "section 33 and section 35 of the Limitation Act 1980",
            ["section 33 = limitation act 1980 33", "section 35 of the Limitation Act 1980 = limitation act 1980 35"],
        ),
        (
            "section 33, regulation 5 and section 35 of the Limitation Act 1980",
            ["section 35 of the Limitation Act 1980 = limitation act 1980 35"],
        ),
        ("s.33 Limitation Act 1980", ["s.33 Limitation Act 1980 = limitation act 1980 33"]),
        ("Limitation Act 1980, s 33", ["s 33 = limitation act 1980 33"]),
        ("Limitation Act 1980 (c. 58), s 33", ["s 33 = limitation act 1980 33"]),
        ("Limitation Act 1980 s 33, and s 35", ["s 33 = limitation act 1980 33", "s 35 = limitation act 1980 35"]),
        ("Limitation Act 1980, rule 3", ["Limitation Act 1980 = limitation act 1980"]),
        ("The Limitation Act 1980 applies. Under section 33 it may.", ["section 33 = limitation act 1980 33"]),
        ("The Limitation Act 1980 applies.\n\nUnder section 33 it may.", ["Limitation Act 1980 = limitation act 1980"]),
        ("The Limitation Act 1980 applies. Under section 3.3 it may.", ["Limitation Act 1980 = limitation act 1980"]),
        (
            "The Limitation Act 1980 applies. Under section 33 of it we may.",
            ["Limitation Act 1980 = limitation act 1980"],
        ),
        (
            "paragraph 6 of Schedule 18 to the Finance Act 1998",
            ["paragraph 6 of Schedule 18 to the Finance Act 1998 = finance act 1998 sch 18.6"],
        ),
        (
            "paragraphs 6 and 7 of Schedule 18 to the Finance Act 1998",
            [
                "paragraphs 6 and 7 of Schedule 18 to the Finance Act 1998 = finance act 1998 sch 18.6",
                "paragraphs 6 and 7 of Schedule 18 to the Finance Act 1998 = finance act 1998 sch 18.7",
            ],
        ),
        ("Part II of the Finance Act 1998", ["Part II of the Finance Act 1998 = finance act 1998 part II"]),
        (
            "Chapter 3 of Part II of the Finance Act 1998",
            ["Chapter 3 of Part II of the Finance Act 1998 = finance act 1998 part II.chapter 3"],
        ),
        ("section III of the Finance Act 1998", ["Finance Act 1998 = finance act 1998"]),
        (
            "Schedule 2 to the 1998 Act and the Finance Act 1998",
            ["Schedule 2 to the 1998 Act = finance act 1998 sch 2", "Finance Act 1998 = finance act 1998"],
        ),
        ("the 1998 Act; section 3 of the Act", ["section 3 of the Act = act 1998 3"]),
        (
            "article 3 of the Sale Order 2001 and regulation 4 of the Sale Regulations 2002",
            [
                "article 3 of the Sale Order 2001 = sale order 2001 3",
                "regulation 4 of the Sale Regulations 2002 = sale regulations 2002 4",
            ],
        ),
        ("Sale Order 2001, article 3", ["article 3 = sale order 2001 3"]),
        ("Sale Order 2001, section 3", ["Sale Order 2001 = sale order 2001"]),
        ("rule 5 of the Finance Act 1998", ["Finance Act 1998 = finance act 1998"]),
        ("FPR 12.3 and FPR r 12.3", ["FPR 12.3 = family procedure rules 12.3", "r 12.3 = family procedure rules 12.3"]),
        (
            "FPR 12.3 and 12.4",
            ["FPR 12.3 and 12.4 = family procedure rules 12.3", "FPR 12.3 and 12.4 = family procedure rules 12.4"],
        ),
        ("IR 2016, rule 4.5", ["rule 4.5 = insolvency rules 4.5"]),
        ("Insolvency rule 4.5", ["rule 4.5 = insolvency rules 4.5"]),
        ("IR 2016, section 4", []),
        ("section 3 of the LRA 2002", ["section 3 of the LRA 2002 = lra 2002 3"]),
        ("section 3 of the LRA 2002/4", []),
        (
            "§§ 3 and 4 of the Finance Act 1998",
            [
                "§§ 3 and 4 of the Finance Act 1998 = finance act 1998 3",
                "§§ 3 and 4 of the Finance Act 1998 = finance act 1998 4",
            ],
        ),
        # instruments
        ("Senior Courts Act 19811", ["Senior Courts Act 1981 = senior courts act 1981"]),
        ("Acts 1980", []),
        ("section 3 of the Limitation Acts 1980", ["section 3 of the Limitation Acts 1980 = limitation act 1980 3"]),
        ("Civil Procedure Rules 1998", []),
        (
            "Access to Justice Act 1999 (Destination of Appeals) Order 2016",
            [
                "Access to Justice Act 1999 (Destination of Appeals) Order 2016 = "
                "access to justice act 1999 (destination of appeals) order 2016"
            ],
        ),
        (
            "Access to Justice Act 1999 Destination Order 2016",
            [
                "Access to Justice Act 1999 = access to justice act 1999",
                "Destination Order 2016 = destination order 2016",
            ],
        ),
        ("In London, Senior Courts Act 1981", ["Senior Courts Act 1981 = senior courts act 1981"]),
        ("Under the Senior Courts Act 1981", ["Senior Courts Act 1981 = senior courts act 1981"]),
        (
            "Legal Aid, Sentencing and Punishment of Offenders Act 2012",
            [
                "Legal Aid, Sentencing and Punishment of Offenders Act 2012 = "
                "legal aid sentencing and punishment of offenders act 2012"
            ],
        ),
        (
            "“the Act” means the Finance Act 1998. See section 3 of the Act.",
            ["Finance Act 1998 = finance act 1998", "section 3 of the Act = finance act 1998 3"],
        ),
        (
            "the Finance Act 1998 (“the FA”). See section 3 of the FA Act.",
            ["Finance Act 1998 = finance act 1998", "section 3 of the FA Act = fa act 3"],
        ),
        (
            "the Finance Act 1998 (“the 1998 Act”) and the Land Act 1998; section 3 of the 1998 Act",
            [
                "Finance Act 1998 = finance act 1998",
                "Land Act 1998 = land act 1998",
                "section 3 of the 1998 Act = finance act 1998 3",
            ],
        ),
        (
            "the Land Act 1998 and the Finance Act 1998; section 3 of the 1998 Act",
            [
                "Land Act 1998 = land act 1998",
                "Finance Act 1998 = finance act 1998",
                "section 3 of the 1998 Act = finance act 1998 3",
            ],
        ),
        (
            "section 3 of the 1998 Act, the Finance Act 1998 and the Land Act 1998",
            [
                "section 3 of the 1998 Act = finance act 1998 3",
                "Finance Act 1998 = finance act 1998",
                "Land Act 1998 = land act 1998",
            ],
        ),
        (
            "the Land Act 1998 and the Sale Order 1998; section 3 of the Act and article 4 of the Order",
            [
                "Land Act 1998 = land act 1998",
                "Sale Order 1998 = sale order 1998",
                "section 3 of the Act = land act 1998 3",
                "article 4 of the Order = sale order 1998 4",
            ],
        ),
        ("section 3 of the Act", []),
        ("section 3 of the Rules", []),
        # guides
        (
            "Commercial Court Guide section D7.1 and section D7.2",
            ["section D7.1 = commercial court D.7.1", "section D7.2 = commercial court D.7.2"],
        ),
        ("section C.2 of the Chancery Guide", ["section C.2 = chancery C.2"]),
        ("the Chancery Guide, 12.3", ["12.3 = chancery 12.3"]),
        ("the Chancery Guide\n12.3", []),
        ("the King’s Bench Guide 2025 (5th ed), para 3.4", ["para 3.4 = kings bench 3.4"]),
        ("TCC Guide at 5.1", ["5.1 = technology and construction court 5.1"]),
        ("Appendix B", ["Appendix B = unnamed appendix B"]),
        ("Annex A to the Chancery Guide", ["Annex A = chancery annex A"]),
        ("Annex (A) to the Chancery Guide", ["Annex (A) = chancery annex A"]),
        ("Annexes 212", []),
        ("Annex 21", ["Annex 21 = unnamed annex 21"]),
        ("Annexes A and B", ["Annexes A and B = unnamed annex A", "Annexes A and B = unnamed annex B"]),
        ("paragraph 3.4 of that Guide", ["paragraph 3.4 = unnamed 3.4"]),
        ("the Chancery Guide and the Patents Guide; section C.2 of this Guide", ["section C.2 = chancery C.2"]),
        ("the Chancery Guide and the Patents Guide; section C.2 of the Guide", ["section C.2 = patents court C.2"]),
        ("Chapter 12 of the Chancery Guide", ["Chapter 12 = chancery 12"]),
        ("section C.2", []),
        ("section C.2 of the lease", []),
        ("The Chancery Guide; section C.2 of the lease", []),
        ("The Chancery Guide; para C.2 and para 4.2", ["para C.2 = chancery C.2"]),
        ("The Chancery Guide; section 4", []),
        ("Chancery Guide section D7; section D7", ["section D7 = chancery D.7", "section D7 = chancery D.7"]),
        ("see section 3.2. The Chancery Guide", []),
        (
            "Chancery Guide section D7.1. Patents Guide section D8.1. Section D7.2",
            ["section D7.1 = chancery D.7.1", "section D8.1 = patents court D.8.1", "Section D7.2 = chancery D.7.2"],
        ),
        # directions
        ("paragraph 2.1 of PD 53B", ["paragraph 2.1 of PD 53B = PD 53B 2.1"]),
        (
            "Practice Directions 4A and 4B, paragraph 3",
            ["Practice Directions 4A and 4B = PD 4A", "Practice Directions 4A and 4B, paragraph 3 = PD 4B 3"],
        ),
        ("PD 4A and PD 4B", ["PD 4A = PD 4A", "PD 4B = PD 4B"]),
        ("PD 4A, Annex A", ["PD 4A, Annex A = PD 4A annex A"]),
        ("Appendix 2 to PD 4A", ["Appendix 2 to PD 4A = PD 4A appendix 2"]),
        (
            "Annexes 2 and 3 to PD 4A",
            ["Annexes 2 and 3 to PD 4A = PD 4A annex 2", "Annexes 2 and 3 to PD 4A = PD 4A annex 3"],
        ),
        ("PD 4A 1.2", ["PD 4A = PD 4A"]),
        (
            "paragraphs 2.1 and 2.2 of Practice Direction 4A",
            [
                "paragraphs 2.1 and 2.2 of Practice Direction 4A = PD 4A 2.1",
                "paragraphs 2.1 and 2.2 of Practice Direction 4A = PD 4A 2.2",
            ],
        ),
        (
            "PD 4A applies; paragraph 3.1 of the Practice Direction says",
            ["PD 4A = PD 4A", "paragraph 3.1 of the Practice Direction = PD 4A 3.1"],
        ),
        (
            "PD 4A and PD 5B apply; paragraph 3.1 of the PD says",
            ["PD 4A = PD 4A", "PD 5B = PD 5B", "paragraph 3.1 of the PD = PD 5B 3.1"],
        ),
        (
            "PD 4A applies; paragraph 3.1 of the Practice Direction supplementing Part 7",
            ["PD 4A = PD 4A", "Part 7 = CPR Part 7"],
        ),
        ("paragraph 3.1 of the Practice Direction; PD 4A", ["PD 4A = PD 4A"]),
        ("PD 3 section 4", ["PD 3 section 4 = PD 3 4"]),
        ("Practice Direction No. 5, para 3", ["Practice Direction No. 5, para 3 = PD 5 3"]),
        ("PDs 3 and 4", ["PDs 3 and 4 = PD 3", "PDs 3 and 4 = PD 4"]),
        ("PD 4A, paragraph 2 of PD 4B", ["PD 4A = PD 4A", "paragraph 2 of PD 4B = PD 4B 2"]),
        # cases
        ("[2024] EWCA 12 (Civ)", ["[2024] EWCA 12 = [2024] EWCA 12"]),
        ("[2024] ewca civ 012", ["[2024] ewca civ 012 = [2024] EWCA Civ 12"]),
        ("[2024] EWHC 12 (ch)", ["[2024] EWHC 12 (ch) = [2024] EWHC 12 (Ch)"]),
        ("[2024] EWHC 12 (Xyz)", ["[2024] EWHC 12 = [2024] EWHC 12"]),
        ("[1899] UKSC 5", []),
        ("[2024] EWHC 123456", []),
        ("[2024] NIQB 5 and [2024] ScotSC 6", ["[2024] NIQB 5 = [2024] NIQB 5", "[2024] ScotSC 6 = [2024] ScotSC 6"]),
    ],
)
def test_each_reference_with_its_words(text: str, expected: list[str]) -> None:
    assert [f"{text[r.span.start : r.span.end]} = {r}" for r in find_references(text)] == expected


def told(text: str) -> list[str]:
    return list(map(str, find_references(text)))


@pytest.mark.parametrize("text", ["Chapter Xyz of it", "Section A party may", "Annex XYZ", "para B-side"])
def test_a_word_after_a_unit_is_no_number(text: str) -> None:
    assert told(text) == []


def test_numbers_with_letters_make_no_range() -> None:
    assert told("rules 3.4A to 3.6") == ["CPR 3.4A", "CPR 3.6"] and told("rules 3.4 to 3.6A") == ["CPR 3.4", "CPR 3.6A"]


def test_a_range_of_sixty_between_its_ends_is_only_its_ends() -> None:
    assert len(told("Parts 1 to 61")) == 61 and told("Parts 1 to 62") == ["CPR Part 1", "CPR Part 62"]


def test_a_part_of_a_schedule_is_no_part_of_the_rules_up_to_forty_characters_before() -> None:
    for spaces, expected in ((29, []), (30, ["CPR Part 3"])):
        assert told("Schedule 2," + " " * spaces + "Part 3") == expected


@pytest.mark.parametrize(("distance", "whole"), [(400, False), (401, True)])
def test_a_bare_section_is_of_the_act_four_hundred_characters_before(distance: int, whole: bool) -> None:
    text = f"Finance Act 1998{'.' * (distance - 1)} section 3"
    assert told(text) == (["finance act 1998"] if whole else ["finance act 1998 3"])


def test_names_of_instruments_are_read_back_and_definitions_looked_for_at_a_distance() -> None:
    [long] = Instruments("Big " * 50 + "Act 1998").named
    assert long.name == "big " * 40 + "act 1998"
    for words, name in ((33, "finance act 1998"), (34, "")):
        text = f"‘{'A' * words} Act’ means the Finance Act 1998; section 3 of the {'A' * words} Act"
        assert (f"{name} 3" in told(text)) is bool(name), words


def test_what_is_read_is_blanked_and_overlaps_count_once() -> None:
    assert blank_spans("abcdefgh", []) == "abcdefgh"
    assert blank_spans("abcdefgh", [Span(4, 6), Span(1, 3)]) == "a\0\0d\0\0gh"
    assert blank_spans("abcdefgh", [Span(1, 4), Span(2, 4), Span(3, 5)]) == "a\0\0\0\0fgh"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Queen's Bench Division Guide 2025", "kings bench"),
        ("the CCG Guide", "commercial court"),
        ("both the TCC Guide", "technology and construction court"),
        ("see under the Patents Guide", "patents court"),
        ("Admiralty and Commercial Courts Guide", "commercial court"),
        ("Guide", ""),
    ],
)
def test_a_guide_has_one_name(text: str, name: str) -> None:
    assert guide_name(text) == name


# ---------------------------------------------------------------- what a text is itself


def places(text: str) -> list[str]:
    return list(map(str, list_own_places(text)))


def test_the_rules_of_a_part() -> None:
    text = (
        "PART 4 - SERVICE\n4.1\n(1) A document may be served -\n(a) by post; or(b) by hand.\n(i) no\n(2) x\n"
        "4.2 (1)(a)(i) one (ii) two\n5.1 other\n4 bare\nAnnex A\n"
    )
    assert places(text) == [
        "CPR Part 4", "CPR 4.1", "CPR 4.1", "CPR 4.1(1)", "CPR 4.1", "CPR 4.1(1)(a)", "CPR 4.1(1)(b)", "CPR 4.1",
        "CPR 4.1(1)(b)(i)", "CPR 4.1", "CPR 4.1(2)", "CPR 4.2", "CPR 4.2(1)", "CPR 4.2(1)(a)", "CPR 4.2(1)(a)(i)",
        "CPR 4.2", "CPR 4.2", "CPR 4.2", "CPR 4.2",
    ]  # fmt: skip


def test_letters_after_h_are_letters() -> None:
    assert places("PRACTICE DIRECTION 4A\n1.1 (h) eight; (i) nine\n1.2 (g) seven; (i) one")[1:] == [
        "PD 4A 1.1", "PD 4A 1.1.h", "PD 4A 1.1.i", "PD 4A 1.2", "PD 4A 1.2.g", "PD 4A 1.2.g.i",
    ]  # fmt: skip


def test_part_eleven_has_one_rule_with_no_point() -> None:
    assert places("PART 11\n11 (1) The court") == ["CPR Part 11", "CPR Part 11", "CPR 11.1"]
    assert places("PART 12\n12 (1) The court") == ["CPR Part 12"]


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("PART 36 – OFFERS", "CPR Part 36"),
        ("Part 36 OFFERS", "CPR Part 36"),
        ("Part 36", "CPR Part 36"),
        ("CPR Part 36: Offers", "CPR Part 36"),
        ("Document: Part 36 Offers to settle", "CPR Part 36"),
        ("PRACTICE DIRECTION 51 ZG3 - PILOT", "PD 51ZG3"),
        ("PART 36 - " + "x" * 189, "CPR Part 36"),
    ],
)
def test_titles(title: str, place: str) -> None:
    assert places(title) == [place]


@pytest.mark.parametrize("line", ["Part 36 applies where", "Part 36.1 Offers", "PART 36 - " + "x" * 190, "Parts 36"])
def test_no_titles(line: str) -> None:
    assert places(line) == []


def test_a_guide_says_so_in_its_first_fifteen_hundred_characters_and_before_any_other_title() -> None:
    section = "\nC.2 Estimates\nAppendix 3\nForms\nSection C.3.1 Agree\n"
    assert places(f"The Harbour Court Guide{section}") == [
        "harbour court C.2", "harbour court appendix 3", "harbour court appendix 3", "harbour court C.3.1",
        "harbour court C.3.1",
    ]  # fmt: skip
    name = "The Harbour Court Guide"
    assert places("." * (1499 - len(name)) + f"\n{name}{section}")
    assert places("." * (1500 - len(name)) + f"\n{name}{section}") == []
    assert places(f"PRACTICE DIRECTION 5\n{name}\n1.1 x") == ["PD 5", "PD 5 1.1"]


def test_a_corpus_counts_its_places_and_knows_no_half_of_a_case() -> None:
    corpus = ReferenceCorpus(find_references("rule 3.4(2) and [2019] UKSC 5"))
    assert len(corpus) == 5, "the rules, Part 3, rule 3.4, its paragraph, and the case"
    assert corpus.contains(Reference("rule", "CPR", ("3",))) and corpus.contains(Reference("rule", "CPR", ()))
    assert not corpus.contains(Reference("case", "UKSC", ("2019",)))
