"""References to UK and EU law: each form, and texts that only resemble a reference."""

import pytest

from exhibit.law.references import Reference, ReferenceCorpus, credit, find_references, list_own_places
from exhibit.law.references.reference import read_numbers


def read_references(text: str, *, context: str = "") -> list[str]:
    """Return the references in a text, each in its normal form."""
    return [str(reference) for reference in find_references(text, context=context)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # civil procedure rules
        ("CPR 3.4(2)(a)", "CPR 3.4(2)(a)"),
        ("under r.24.2 and r 24.2(3)", "CPR 24.2 | CPR 24.2(3)"),
        ("Rule 3.4; rules 3.4 and 3.5", "CPR 3.4 | CPR 3.4 | CPR 3.5"),
        ("rr 3.4-3.6", "CPR 3.4 | CPR 3.5 | CPR 3.6"),
        ("CPR Part 36, Parts 36 and 44", "CPR Part 36 | CPR Part 36 | CPR Part 44"),
        ("Parts 44 to 47", "CPR Part 44 | CPR Part 45 | CPR Part 46 | CPR Part 47"),
        ("CPR22 and CPR 31", "CPR Part 22 | CPR Part 31"),
        ("Part 63.1(3) and CPR Part 30.2(4)", "CPR 63.1(3) | CPR 30.2(4)"),
        ("CPR 44.3 (5) and rule 5.4C(4)", "CPR 44.3(5) | CPR 5.4C(4)"),
        ("Rules 25.2(2) and (4) and 25.8(2)", "CPR 25.2(2) | CPR 25.2(4) | CPR 25.8(2)"),
        ("rule 31.5(3)-(5)", "CPR 31.5(3) | CPR 31.5(4) | CPR 31.5(5)"),
        ("Part 3 of the Rules, Part 23 of the Civil Procedure Rules 1998", "CPR Part 3 | CPR Part 23"),
        ("a part 36 offer", "CPR Part 36"),
        ("rule 73.10 A(3) as exported; rule 3.4 A party may", "CPR 73.10A(3) | CPR 3.4"),
        ("rule 3.4 or 28 days", "CPR 3.4"),
        # practice directions
        ("PD 28", "PD 28"),
        ("Practice Direction 53B para 2.1", "PD 53B 2.1"),
        ("PD 57AD, PD 51ZG3 and PD51O", "PD 57AD | PD 51ZG3 | PD 51O"),
        ("paragraph 2.1 of Practice Direction 53B", "PD 53B 2.1"),
        ("PD 28, paragraph 2.1 of Practice Direction 53B", "PD 28 | PD 53B 2.1"),
        ("PD58 §1 and PD32 §1.4(1) and 1.6", "PD 58 1 | PD 32 1.4.1 | PD 32 1.6"),
        ("PD63.5", "PD 63 5"),
        ("PD 57, paragraphs 1 to 3", "PD 57 1 | PD 57 2 | PD 57 3"),
        ("Practice Directions 31A and 31B", "PD 31A | PD 31B"),
        ("Practice Direction 5 A sets out", "PD 5A"),
        ("Annex 3 to Practice Direction 32", "PD 32 annex 3"),
        ("PD 3D applies. See paragraph 4 of the Practice Direction.", "PD 3D | PD 3D 4"),
        ("the table in PD52D (see paragraph 18.33 above)", "PD 52D"),
        ("PD 28 applies to Part 28", "PD 28 | CPR Part 28"),
        # statutes
        ("point (a) of section 5 of the Housing Act 1985", "housing act 1985 5.a"),
        ("the County Courts Order 1991 (S.I. 1991/724), article 2(7)", "county courts order 1991 2.7"),
        ("ss 1-3 of the Limitation Act 1980", "limitation act 1980 1 | limitation act 1980 2 | limitation act 1980 3"),
        ("sections 51(1) and 51(3) of the Housing Act 1985", "housing act 1985 51.1 | housing act 1985 51.3"),
        ("section 215 or 217 of the Pensions Act 2004", "pensions act 2004 215 | pensions act 2004 217"),
        ("section 33 and section 35 of the Limitation Act 1980", "limitation act 1980 33 | limitation act 1980 35"),
        ("regulation 3 of the Whiplash Injury Regulations 2021", "whiplash injury regulations 2021 3"),
        ("article 38 of the Nursing and Midwifery Order 2001", "nursing and midwifery order 2001 38"),
        ("rule 50(1) of the Non-Contentious Probate Rules 1987", "non-contentious probate rules 1987 50.1"),
        ("rule 7.3 of the Insolvency Rules", "insolvency rules 7.3"),
        ("IR 2016 rule 12.39(12)", "insolvency rules 12.39.12"),
        ("regulation 2(1) of the Public Contracts Regulations 2015", "public contracts regulations 2015 2.1"),
        ("FPR 3.4, FPR Part 12", "family procedure rules 3.4 | family procedure rules part 12"),
        ("paragraph 6 of Schedule 18 to the Housing Act 1985", "housing act 1985 sch 18.6"),
        ("S.I. 2000/1119 regulation 37(3), Schedule 4", "si 2000/1119 37.3"),
        ("Limitation Act 1980 section 33, Schedule 4", "limitation act 1980 33"),
        (
            "Part 1 of the Legal Aid, Sentencing and Punishment of Offenders Act 2012",
            "legal aid sentencing and punishment of offenders act 2012 part 1",
        ),
        (
            "article 6 of the Access to Justice Act 1999 (Destination of Appeals) Order 2016",
            "access to justice act 1999 (destination of appeals) order 2016 6",
        ),
        ("Under the Limitation Act 1980 time runs.", "limitation act 1980"),
        ("the Arbitration Act 1996. Section 69 of the Act", "arbitration act 1996 | arbitration act 1996 69"),
        ("sections 67 or 68 of the 1996 Act, and section 69 of the Act", "act 1996 67 | act 1996 68 | act 1996 69"),
        ("'the 1996 Act' means the Tax Act 1996; section 9 of the 1996 Act", "tax act 1996 | tax act 1996 9"),
        ("the Bills of Sale Act 1878 (Search)\n\nParagraph 11 A", "bills of sale act 1878"),
        ("Part 2 of the Housing Act 1985 and Part 36", "housing act 1985 part 2 | CPR Part 36"),
        # court guides
        ("Commercial Court Guide section O.5.1", "commercial court O.5.1"),
        ("section 14.1 of the Patents Court Guide", "patents court 14.1"),
        ("CCG section 6.1.1. Section 6.1.2 says", "commercial court 6.1.1 | commercial court 6.1.2"),
        ("King's Bench Division Guide section 26.1", "kings bench 26.1"),
        ("the King’s Bench Guide 2025, paragraph 26.1", "kings bench 26.1"),
        ("Annex E of the Patents Court Guide", "patents court annex E"),
        ("Appendix 5 to the CCG", "commercial court appendix 5"),
        ("Annex G", "unnamed annex G"),
        (
            "The Patents Court Guide. See section 3.2 of the Chancery Guide and Annex C to this Guide.",
            "chancery 3.2 | patents court annex C",
        ),
        (
            "Circuit Commercial Court Guide section D7.1, Sub Section D13 of the CCG does not apply. Section D7.2 says",
            "circuit commercial court D.7.1 | commercial court D.13 | circuit commercial court D.7.2",
        ),
        ("According to the TCC Guide, a reply is not always necessary.", ""),
        # neutral citations
        ("[2024] EWCA Civ 123", "[2024] EWCA Civ 123"),
        ("[2024] EWCA Crim 456 at [12]", "[2024] EWCA Crim 456"),
        ("[2024] EWHC 789 (Ch)", "[2024] EWHC 789 (Ch)"),
        ("[2019] UKSC 5, [2001] UKHL 1, [2024] UKPC 1", "[2019] UKSC 5 | [2001] UKHL 1 | [2024] UKPC 1"),
        ("[2020] UKUT 12 (TCC); [2022] EWFC 9", "[2020] UKUT 12 (TCC) | [2022] EWFC 9"),
        ("[2012] \nEWHC 63 (Ch)", "[2012] EWHC 63 (Ch)"),
        ("[2013] EWHC 933 (see above)", "[2013] EWHC 933"),
        # european acts
        ("Regulation (EU) 2016/679", "eu regulation 2016/679"),
        ("Regulation (EU) 2016/679 of the European Parliament and of the Council", "eu regulation 2016/679"),
        ("Regulation 2016/679", "eu regulation 2016/679"),
        ("the General Data Protection Regulation", "eu regulation 2016/679"),
        ("Directive 95/46/EC", "eu directive 1995/46"),
        ("Directive 95/46", "eu directive 1995/46"),
        ("Directive 2006/123/EC and Directive (EU) 2019/790", "eu directive 2006/123 | eu directive 2019/790"),
        ("Council Directive 93/13/EEC", "eu directive 1993/13"),
        ("Directives 2002/21/EC and 2002/22/EC", "eu directive 2002/21 | eu directive 2002/22"),
        ("Council Regulation (EC) No 44/2001", "eu regulation 2001/44"),
        ("Regulation 44/2001", "eu regulation 2001/44"),
        ("Regulation (EU) No 1215/2012", "eu regulation 2012/1215"),
        ("Regulation (EEC) No 1408/71", "eu regulation 1971/1408"),
        ("Regulations (EC) Nos 883/2004 and 987/2009", "eu regulation 2004/883 | eu regulation 2009/987"),
        ("Regulation (EU, Euratom) 2018/1046", "eu regulation 2018/1046"),
        ("Council Regulation (Euratom, EC) No 2185/96", "eu regulation 1996/2185"),
        ("Commission Delegated Regulation (EU) 2017/565", "eu regulation 2017/565"),
        ("Commission Implementing Decision (EU) 2021/914", "eu decision 2021/914"),
        ("Commission Decision 2010/87/EU", "eu decision 2010/87"),
        ("Decision No 1313/2013/EU", "eu decision 2013/1313"),
        ("Council Framework Decision 2002/584/JHA", "eu decision 2002/584"),
        ("the Rome I Regulation and Rome II", "eu regulation 2008/593 | eu regulation 2007/864"),
        ("Brussels I Recast, unlike the Brussels I Regulation", "eu regulation 2012/1215 | eu regulation 2001/44"),
        # articles of european acts
        ("Article 6(1)(f) of Regulation (EU) 2016/679", "eu regulation 2016/679 6.1.f"),
        ("point (f) of Article 6(1) of Regulation (EU) 2016/679", "eu regulation 2016/679 6.1.f"),
        ("Regulation (EU) 2016/679, Article 6(1)(f)", "eu regulation 2016/679 6.1.f"),
        ("Directive 95/46/EC (the Data Protection Directive), art 7", "eu directive 1995/46 7"),
        ("Art. 17 GDPR", "eu regulation 2016/679 17"),
        ("GDPR art 17(1)", "eu regulation 2016/679 17.1"),
        ("Articles 5 and 6 of Directive 95/46/EC", "eu directive 1995/46 5 | eu directive 1995/46 6"),
        ("Article 3 and Article 5 of Directive 2006/123/EC", "eu directive 2006/123 3 | eu directive 2006/123 5"),
        ("Articles 13 to 15 TFEU", "tfeu 13 | tfeu 14 | tfeu 15"),
        ("recital 47 of Regulation (EU) 2016/679", "eu regulation 2016/679 recital 47"),
        ("Annex III to Directive 2014/24/EU", "eu directive 2014/24 annex III"),
        ("Articles 101 and 102 TFEU; Article 6 TEU", "tfeu 101 | tfeu 102 | teu 6"),
        ("Article 8 ECHR, Article 47 of the Charter of Fundamental Rights", "echr 8 | eu charter 47"),
        ("Article 6 of the European Convention on Human Rights", "echr 6"),
        ("Article 22 of the UK GDPR", "uk gdpr 22"),
        ("Directive 2003/88/EC; Article 7 of the Directive", "eu directive 2003/88 | eu directive 2003/88 7"),
        ("section 3 of the Tax Act 2018 and Article 4 of the GDPR", "tax act 2018 3 | eu regulation 2016/679 4"),
        # employment citations
        ("UKEAT/0123/20/LA", "UKEAT/0123/20"),
        ("UKEAT/0123/20", "UKEAT/0123/20"),
        ("(UKEATS/0012/19/SS)", "UKEATS/0012/19"),
        ("UKEATPA/1234/11/RN", "UKEATPA/1234/11"),
        ("EAT/1234/98", "UKEAT/1234/98"),
        ("[2018] UKEAT 0163_17_1204", "UKEAT/0163/17"),
        ("EA-2019-000876-BA", "EA-2019-000876"),
        ("EA-2021-SCO-000077-SH", "EA-2021-SCO-000077"),
        ("[2021] EAT 12 and [2023] EAT 105", "[2021] EAT 12 | [2023] EAT 105"),
        ("[2013] ICR 525; [1978] IRLR 379", "[2013] ICR 525 | [1978] IRLR 379"),
        ("section 98(4) of the Employment Rights Act 1996", "employment rights act 1996 98.4"),
        # family law citations
        ("[2020] EWFC 12", "[2020] EWFC 12"),
        ("[2020] EWFC 12 (B)", "[2020] EWFC 12 (B)"),
        ("[2019] EWHC 1234 (Fam)", "[2019] EWHC 1234 (Fam)"),
        ("[2020] EWCOP 23; [2024] EWCOP 64 (T3)", "[2020] EWCOP 23 | [2024] EWCOP 64 (T3)"),
        ("section 25(2)(a) of the Matrimonial Causes Act 1973", "matrimonial causes act 1973 25.2.a"),
        ("FPR 9.14", "family procedure rules 9.14"),
        # scottish citations
        ("[2019] CSIH 12", "[2019] CSIH 12"),
        ("[2019] CSOH 45 and [2020] HCJAC 3", "[2019] CSOH 45 | [2020] HCJAC 3"),
        ("[2021] SAC (Civ) 8", "[2021] SAC (Civ) 8"),
        ("[2019] SAC (Crim) 3", "[2019] SAC (Crim) 3"),
        ("[2019] SC EDIN 12; [2020] SC GLA 27", "[2019] SC EDIN 12 | [2020] SC GLA 27"),
        ("[2020] UT 31", "[2020] UT 31"),
        ("section 29 of the Scotland Act 1998", "scotland act 1998 29"),
        ("Housing (Scotland) Act 2014 (asp 14)", "housing (scotland) act 2014"),
        ("2014 asp 14, s 3", "asp 2014/14 3"),
        ("section 6 of the Limitation (Scotland) Act 1973", "limitation (scotland) act 1973 6"),
        ("SSI 2011/141", "ssi 2011/141"),
        ("S.S.I. 2015 No. 446", "ssi 2015/446"),
        ("Public Contracts (Scotland) Regulations 2015 (SSI 2015/446)", "public contracts (scotland) regulations 2015"),
        # northern irish citations
        ("[2020] NICA 3", "[2020] NICA 3"),
        ("[2021] NIQB 11; [2023] NIKB 4", "[2021] NIQB 11 | [2023] NIKB 4"),
        ("[2019] NICh 5, [2017] NIFam 2", "[2019] NICh 5 | [2017] NIFam 2"),
        ("[2018] NIMag 1 and [2019] NIMaster 7", "[2018] NIMag 1 | [2019] NIMaster 7"),
        ("[2016] NICoroner 2", "[2016] NICoroner 2"),
        ("Article 50 of the Limitation (Northern Ireland) Order 1989", "limitation (northern ireland) order 1989 50"),
        ("art 50 of the Limitation (NI) Order 1989", "limitation (northern ireland) order 1989 50"),
        ("section 8 of the Justice Act (Northern Ireland) 2015", "justice (northern ireland) act 2015 8"),
        ("Interpretation Act (NI) 1954, s 39", "interpretation (northern ireland) act 1954 39"),
        ("reg 4 of the Age Regulations (Northern Ireland) 2006", "age (northern ireland) regulations 2006 4"),
        ("SR 2006/261, reg 4", "nisr 2006/261 4"),
        ("S.R. 2012 No. 110", "nisr 2012/110"),
        ("SI 1981/1675 (N.I. 26)", "si 1981/1675"),
        ("rules 3.4A to 3.6 and rules 3.4 to 3.6A", "CPR 3.4A | CPR 3.6 | CPR 3.4 | CPR 3.6A"),
        ("Article 5 of the Directive is old. Directive 95/46/EC repealed it.", "eu directive 1995/46"),
    ],
)
def test_find_references_reads_each_form(text: str, expected: str) -> None:
    assert " | ".join(read_references(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        # text that resembles reference
        "The time is extended for 28 days.",
        "Part 1 of the Act applies.",
        "Part 1 of the Schedule; Part 2 of Schedule 3; Schedule 4, Part 1",
        "on 3.4.2020 the sum of £3.40 was paid (page 36, 3.4% of £10,000,000)",
        "Rule 10b-5 and Rule 144A under the Exchange Act",
        "Rules 3, 4 and 5 of the club",
        "Section 5.2 of the Agreement, Article 3 and Section 4",
        "Document: Costs\nPart 1 of 3\n====",
        "in part 28 days later",
        "Section 36 of the relevant legislation",
        "[1974] AC 133, [2] and (2020) 4 WLR 12",
        "rule 12 of the Ardmoor Tribunal",
        "COSTS PAYABLE UNDER PART 1 OF THE LEGAL AID SCHEME",
        # similar text outside england
        "Directive 3 of the order; a directive 95 pages long",
        "Decision 12/2019 of the Board was reversed",
        "by regulation 12/2019 of the club's handbook",
        "Regulation 9/11 is a joke, and Regulation 3/4 a fraction",
        "the report of 44/2001 and no regulation",
        "Article 5 of the Agreement, Annex III to this Agreement, recital 4",
        "Art 17 was shown in the gallery",
        "model EAT/12, part UKEAT-0123 and file UKEAT/0123/20/LA/7",
        "[2019] SC 12 and [2019] SLT 3 are pages of law reports",
        "[2013] ICR reports; [ICR 525]",
        "EA-2019 is a game, EA-19-000876 another",
        "SI units 2002 618; SR 71; version SI2002",
        "in case C-3 of the plan",
        "2014 aspects 14, an ASP file of 2014",
        "the ROME I visited; gdprs",
    ],
)
def test_find_references_ignores_text_that_only_resembles_a_reference(text: str) -> None:
    assert read_references(text) == []


@pytest.mark.parametrize(
    ("expected", "given", "worth"),
    [
        ("CPR 3.4(2)(a)", "rule 3.4(2)(a)", 1.0),
        ("CPR 3.4", "CPR 3.4(2)", 1.0),  # more exact than expected
        ("CPR 3.4(2)", "Part 3", 0.5),
        ("CPR 3.4(2)", "CPR 3.4(6)", 0.0),  # another paragraph is wrong, not only less exact
        ("CPR 3.4", "CPR 3.40", 0.0),
        ("Part 3", "Part 36", 0.0),
        ("PD 53B para 2.1", "PD 53B", 0.5),
        ("PD 53B", "PD 53A", 0.0),
        ("Part 36", "PD 36", 0.0),
        ("section 33 of the Limitation Act 1980", "the Limitation Act 1980", 0.5),
        ("section 33 of the Limitation Act 1980", "section 33 of the Limitation Act 1939", 0.0),
        ("section 67 of the 1996 Act", "section 67 of the Arbitration Act 1996", 1.0),
        ("section 51 of the Senior Courts Act 1981", "s 51 SCA 1981", 1.0),
        ("section 51 of the Senior Courts Act 1981", "section 51 of the County Courts Act 1984", 0.0),
        ("TCC Guide section 6.1.1", "Technology and Construction Court Guide, section 6.1", 0.5),
        ("Commercial Court Guide section B.1", "Circuit Commercial Court Guide section B.1", 0.0),
        ("[2024] EWHC 789 (Ch)", "[2024] EWHC 789 (Admin)", 0.0),
        ("[2024] EWHC 789 (Ch)", "[2024] EWHC 789", 0.0),
        ("[2020] UKSC 38", "[2020] UKSC 38", 1.0),
        ("[2020] UKSC 38", "[2020] UKSC 39", 0.0),
        ("Article 6(1) of Regulation (EU) 2016/679", "Art. 6(1) GDPR", 1.0),
        ("Article 6(1) GDPR", "Article 6(1) of the General Data Protection Regulation", 1.0),
        ("Article 6(1) GDPR", "Article 6 GDPR", 0.5),
        ("Article 6(1) GDPR", "Article 6(1) of the UK GDPR", 0.0),
    ],
)
def test_credit_of_a_reference_is_full_partial_or_zero(expected: str, given: str, worth: float) -> None:
    assert credit(find_references(expected)[0], find_references(given)[0]) == worth


PART = """PART 4 - SERVICE OF DOCUMENTS

Contents of this Part

How a document is served

4.1

(1) A document may be served -

(a) by post; or(b) at an address for electronic mail.

(2) Rule 9.5 does not apply.

4.2 A posted document is served on the third day.
"""
DIRECTION = "PRACTICE DIRECTION 4 A - SERVICE\n\nScope\n\n1.1 This applies to rule 4.1.\n\n1.2\n\n(1) Use form N1.\n"
GUIDE = "The Harbour Court Guide\nApril 2031\n\nC. Listing\nC.2 Estimates\nC.2.1 Agree one.\n\nAppendix B\nForms\n"


@pytest.mark.parametrize(
    ("reference", "there"),
    [
        ("Part 4", True),
        ("rule 4.1", True),
        ("CPR 4.1(1)(b)", True),
        ("rule 4.1(2)", True),
        ("rule 9.5", True),  # a rule that the text only refers to
        ("Part 9", True),
        ("rule 4.3", False),
        ("rule 4.1(3)", False),
        ("CPR 4.1(2)(a)", False),
        ("PD 4A", True),
        ("PD 4A para 1.2(1)", True),
        ("PD 4A para 1.3", False),
        ("PD 4B", False),
        ("Harbour Court Guide section C.2.1", True),
        ("Appendix B to the Harbour Court Guide", True),
        ("Harbour Court Guide section C.3", False),
        ("Annex B", False),
        ("section 1 of the Limitation Act 1980", False),
    ],
)
def test_reference_corpus_contains_provisions_of_documents_and_cited_provisions(reference: str, there: bool) -> None:
    corpus = ReferenceCorpus.of([PART, DIRECTION, GUIDE])
    assert corpus.contains(find_references(reference)[0]) is there


def test_read_numbers_makes_listed_paragraphs_siblings_if_they_are_numbered_alike():
    def paths(text: str) -> list[str]:
        numbers = read_numbers(text, 0, plural=True)
        return [" ".join(path) for path in numbers.paths] if numbers else []

    assert paths("25.2(4)(2 A)") == ["25 2 4 2A"] and paths("25.2(2), (4 A)") == ["25 2 2", "25 2 4A"]
    assert paths("25.2(2), (4)") == ["25 2 2", "25 2 4"]
    assert paths("25.2(2)(a), (b)") == ["25 2 2 a", "25 2 2 b"]
    assert paths("25.2(2)(a), (4)") == ["25 2 2 a", "25 2 4"]
    assert paths("25.2, (4)") == ["25 2"] and paths("25.2(a), (4)") == ["25 2 a"]


def test_find_references_span_includes_name_of_code():
    text = "rule 3.3 of the CrimPR applies"
    [reference] = find_references(text)
    assert text[slice(*reference.span)] == "rule 3.3 of the CrimPR"


@pytest.mark.parametrize("line", ["Part 36 applies where", "Part 36.1 Offers", "PART 36 - " + "x" * 190, "Parts 36"])
def test_reference_corpus_ignores_a_sentence_that_resembles_a_part_title(line: str) -> None:
    assert list(list_own_places(line)) == []


def test_reference_corpus_contains_parents_of_a_provision_but_no_case_without_number() -> None:
    corpus = ReferenceCorpus(find_references("rule 3.4(2) and [2019] UKSC 5"))
    assert corpus.contains(Reference("rule", "CPR", ("3",))) and corpus.contains(Reference("rule", "CPR", ()))
    assert not corpus.contains(Reference("case", "UKSC", ("2019",)))
