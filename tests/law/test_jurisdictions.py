"""References beyond the courts of England: the European Union, employment, family, Scotland and Northern Ireland."""

from __future__ import annotations

import pytest

from exhibit.law.references import credit, find_references


def found(text: str, *, context: str = "") -> list[str]:
    """Return the references in a text, each in its normal form."""
    return [str(reference) for reference in find_references(text, context=context)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Regulation (EU) 2016/679", ["eu regulation 2016/679"]),
        ("Regulation (EU) 2016/679 of the European Parliament and of the Council", ["eu regulation 2016/679"]),
        ("Regulation 2016/679", ["eu regulation 2016/679"]),
        ("the General Data Protection Regulation", ["eu regulation 2016/679"]),
        ("CELEX 32016R0679; CELEX:31995L0046", ["eu regulation 2016/679", "eu directive 1995/46"]),
        ("Directive 95/46/EC", ["eu directive 1995/46"]),
        ("Directive 95/46", ["eu directive 1995/46"]),
        ("Directive 2006/123/EC and Directive (EU) 2019/790", ["eu directive 2006/123", "eu directive 2019/790"]),
        ("Council Directive 93/13/EEC", ["eu directive 1993/13"]),
        ("Directives 2002/21/EC and 2002/22/EC", ["eu directive 2002/21", "eu directive 2002/22"]),
        ("Council Regulation (EC) No 44/2001", ["eu regulation 2001/44"]),
        ("Regulation 44/2001", ["eu regulation 2001/44"]),
        ("Regulation (EU) No 1215/2012", ["eu regulation 2012/1215"]),
        ("Regulation (EEC) No 1408/71", ["eu regulation 1971/1408"]),
        ("Regulations (EC) Nos 883/2004 and 987/2009", ["eu regulation 2004/883", "eu regulation 2009/987"]),
        ("Regulation (EU, Euratom) 2018/1046", ["eu regulation 2018/1046"]),
        ("Council Regulation (Euratom, EC) No 2185/96", ["eu regulation 1996/2185"]),
        ("Commission Delegated Regulation (EU) 2017/565", ["eu regulation 2017/565"]),
        ("Commission Implementing Decision (EU) 2021/914", ["eu decision 2021/914"]),
        ("Commission Decision 2010/87/EU", ["eu decision 2010/87"]),
        ("Decision No 1313/2013/EU", ["eu decision 2013/1313"]),
        ("Council Framework Decision 2002/584/JHA", ["eu decision 2002/584"]),
        ("the Rome I Regulation and Rome II", ["eu regulation 2008/593", "eu regulation 2007/864"]),
        ("Brussels I Recast, unlike the Brussels I Regulation", ["eu regulation 2012/1215", "eu regulation 2001/44"]),
    ],
)
def test_european_acts(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Article 6(1)(f) of Regulation (EU) 2016/679", ["eu regulation 2016/679 6.1.f"]),
        ("point (f) of Article 6(1) of Regulation (EU) 2016/679", ["eu regulation 2016/679 6.1.f"]),
        ("Regulation (EU) 2016/679, Article 6(1)(f)", ["eu regulation 2016/679 6.1.f"]),
        (
            "Directive 95/46/EC (the Data Protection Directive), art 7",
            ["eu directive 1995/46 7"],
        ),
        ("Art. 17 GDPR", ["eu regulation 2016/679 17"]),
        ("GDPR art 17(1)", ["eu regulation 2016/679 17.1"]),
        ("Articles 5 and 6 of Directive 95/46/EC", ["eu directive 1995/46 5", "eu directive 1995/46 6"]),
        ("Article 3 and Article 5 of Directive 2006/123/EC", ["eu directive 2006/123 3", "eu directive 2006/123 5"]),
        ("Articles 13 to 15 of the GDPR", [f"eu regulation 2016/679 {n}" for n in (13, 14, 15)]),
        ("recital 47 of Regulation (EU) 2016/679", ["eu regulation 2016/679 recital 47"]),
        ("Annex III to Directive 2014/24/EU", ["eu directive 2014/24 annex III"]),
        ("Articles 101 and 102 TFEU; Article 6 TEU", ["tfeu 101", "tfeu 102", "teu 6"]),
        ("Article 8 ECHR, Article 47 of the Charter of Fundamental Rights", ["echr 8", "eu charter 47"]),
        ("Article 6 of the European Convention on Human Rights", ["echr 6"]),
        ("Article 22 of the UK GDPR", ["uk gdpr 22"]),
        (
            "Directive 2003/88/EC limits working time. Article 7 of the Directive gives leave.",
            ["eu directive 2003/88", "eu directive 2003/88 7"],
        ),
        (
            "section 3 of the Data Protection Act 2018 and Article 4 of the GDPR",
            ["data protection act 2018 3", "eu regulation 2016/679 4"],
        ),
    ],
)
def test_articles_of_european_acts(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UKEAT/0123/20/LA", ["UKEAT/0123/20"]),
        ("UKEAT/0123/20", ["UKEAT/0123/20"]),
        ("(UKEATS/0012/19/SS)", ["UKEATS/0012/19"]),
        ("UKEATPA/1234/11/RN", ["UKEATPA/1234/11"]),
        ("EAT/1234/98", ["UKEAT/1234/98"]),
        ("[2018] UKEAT 0163_17_1204", ["UKEAT/0163/17"]),
        ("EA-2019-000876-BA", ["EA-2019-000876"]),
        ("EA-2021-SCO-000077-SH", ["EA-2021-SCO-000077"]),
        ("[2021] EAT 12 and [2023] EAT 105", ["[2021] EAT 12", "[2023] EAT 105"]),
        ("[2013] ICR 525; [1978] IRLR 379", ["[2013] ICR 525", "[1978] IRLR 379"]),
        ("section 98(4) of the Employment Rights Act 1996", ["employment rights act 1996 98.4"]),
    ],
)
def test_employment(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2020] EWFC 12", ["[2020] EWFC 12"]),
        ("[2020] EWFC 12 (B)", ["[2020] EWFC 12 (B)"]),
        ("[2019] EWHC 1234 (Fam)", ["[2019] EWHC 1234 (Fam)"]),
        ("[2020] EWCOP 23; [2024] EWCOP 64 (T3)", ["[2020] EWCOP 23", "[2024] EWCOP 64 (T3)"]),
        ("section 25(2)(a) of the Matrimonial Causes Act 1973", ["matrimonial causes act 1973 25.2.a"]),
        ("FPR 9.14", ["family procedure rules 9.14"]),
    ],
)
def test_family(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2019] CSIH 12", ["[2019] CSIH 12"]),
        ("[2019] CSOH 45 and [2020] HCJAC 3", ["[2019] CSOH 45", "[2020] HCJAC 3"]),
        ("[2021] SAC (Civ) 8", ["[2021] SAC (Civ) 8"]),
        ("[2019] SAC (Crim) 3", ["[2019] SAC (Crim) 3"]),
        ("[2019] SC EDIN 12; [2020] SC GLA 27", ["[2019] SC EDIN 12", "[2020] SC GLA 27"]),
        ("[2020] UT 31", ["[2020] UT 31"]),
        ("section 29 of the Scotland Act 1998", ["scotland act 1998 29"]),
        ("Housing (Scotland) Act 2014 (asp 14)", ["housing (scotland) act 2014"]),
        ("2014 asp 14, s 3", ["asp 2014/14 3"]),
        ("section 6 of the Prescription and Limitation (Scotland) Act 1973",
         ["prescription and limitation (scotland) act 1973 6"]),
        ("SSI 2011/141", ["ssi 2011/141"]),
        ("S.S.I. 2015 No. 446", ["ssi 2015/446"]),
        ("Public Contracts (Scotland) Regulations 2015 (SSI 2015/446)",
         ["public contracts (scotland) regulations 2015"]),
    ],
)  # fmt: skip
def test_scotland(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2020] NICA 3", ["[2020] NICA 3"]),
        ("[2021] NIQB 11; [2023] NIKB 4", ["[2021] NIQB 11", "[2023] NIKB 4"]),
        ("[2019] NICh 5, [2017] NIFam 2", ["[2019] NICh 5", "[2017] NIFam 2"]),
        ("[2018] NIMag 1 and [2019] NIMaster 7", ["[2018] NIMag 1", "[2019] NIMaster 7"]),
        ("[2016] NICoroner 2", ["[2016] NICoroner 2"]),
        ("Article 50 of the Limitation (Northern Ireland) Order 1989", ["limitation (northern ireland) order 1989 50"]),
        ("art 50 of the Limitation (NI) Order 1989", ["limitation (northern ireland) order 1989 50"]),
        ("section 8 of the Justice Act (Northern Ireland) 2015", ["justice (northern ireland) act 2015 8"]),
        ("Interpretation Act (NI) 1954, s 39", ["interpretation (northern ireland) act 1954 39"]),
        (
            "regulation 4 of the Employment Equality (Age) Regulations (Northern Ireland) 2006",
            ["employment equality (age) (northern ireland) regulations 2006 4"],
        ),
        ("SR 2006/261, reg 4", ["nisr 2006/261 4"]),
        ("S.R. 2012 No. 110", ["nisr 2012/110"]),
        ("SI 1981/1675 (N.I. 26)", ["si 1981/1675"]),
    ],
)
def test_northern_ireland(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
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
def test_what_is_no_reference(text: str) -> None:
    assert found(text) == []


def test_one_act_in_many_forms_is_one_reference() -> None:
    [expected] = find_references("Article 6(1) of Regulation (EU) 2016/679")
    for form in ("Art. 6(1) GDPR", "Article 6(1) of the General Data Protection Regulation", "Art 6(1) of 32016R0679"):
        [given] = find_references(form)
        assert credit(expected, given) == 1.0, form
    assert credit(expected, find_references("Article 6 GDPR")[0]) == 0.5
    assert credit(expected, find_references("Article 6(1) of the UK GDPR")[0]) == 0.0
