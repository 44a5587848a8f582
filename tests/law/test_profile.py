"""Profiles: a document's title, its kind, its parties and its date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from exhibit.evidence import Document, read_document
from exhibit.law.profile import Profile, read_profile


def profile(text: str, name: str = "a.txt") -> Profile:
    return read_profile(Document(name, text))


def test_a_contract_filed_as_an_exhibit():
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


def test_an_nda():
    text = (
        "MUTUAL NON-DISCLOSURE AGREEMENT\nThis Agreement is made on March 1, 2019 between Alder Mills Limited "
        "(“Alder”) and Birch Foods plc (“Birch”).\n1. Purpose. The parties wish to talk.\n"
    )
    found = profile(text)
    assert (found.title, found.kind, found.date) == ("Mutual Non-Disclosure Agreement", "nda", "March 1, 2019")
    assert found.parties == ("Alder Mills Limited", "Birch Foods plc")


def test_a_merger_agreement_whose_cover_has_lost_its_line_ends():
    text = (
        "\ufeffExhibit 2.1   Execution Version   AGREEMENT AND PLAN OF MERGER   among   ALDER ENERGY, INC.,   "
        "OAK MERGER SUB, INC.   and   BIRCH OIL & GAS, INC.   Dated as of May 9, 2021   \n"
    )
    found = profile(text, "contract_7.txt")
    assert (found.title, found.kind, found.date) == ("Agreement and Plan of Merger", "merger agreement", "May 9, 2021")
    assert "Alder Energy, Inc." in found.parties


def test_a_privacy_policy_without_a_title_is_called_after_its_file():
    text = "At Larkspur we care about your privacy.\nThis Privacy Policy says what personal information we collect.\n"
    assert profile(text, "Larkspur.txt") == Profile("Larkspur Privacy Policy", "privacy policy")
    titled = "Larkspur Garden Privacy Policy\nLast updated: May 25, 2018\nWe collect your name.\n"
    assert profile(titled, "x.txt") == Profile("Larkspur Garden Privacy Policy", "privacy policy", (), "May 25, 2018")


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("PART 36 – OFFERS TO SETTLE\n\nContents of this Part\n\n36.1\n", "Part 36 – Offers to Settle", "rules"),
        (
            "PRACTICE DIRECTION 7 A - HOW TO START PROCEEDINGS\n\nThis supplements Part 7\n",
            "Practice Direction 7A - How to Start Proceedings",
            "practice direction",
        ),
        (
            "Document: Practice Direction 47 – Procedure for Costs\nPart 1 of 2\n=====\n1.1 For rule 47.1\n",
            "Practice Direction 47 – Procedure for Costs",
            "practice direction",
        ),
        (
            "Courts and \nTribunals Judiciary\nThe Orchard \nand Garden \nCourt Guide\nOctober 2022\n",
            "The Orchard and Garden Court Guide",
            "court guide",
        ),
        (
            "Orchards Act 1998\n1998 CHAPTER 12\nAn Act to make provision about orchards.\nBE IT ENACTED as follows:\n",
            "Orchards Act 1998",
            "legislation",
        ),
        (
            "Regulation (EU) 2016/1 of the Parliament on orchards\nArticle 1\nSubject matter\n",
            "Regulation (EU) 2016/1 of the Parliament on orchards",
            "legislation",
        ),
        ("Neutral Citation Number: [2024] EWHC 789 (Ch)\nJUDGMENT\n1. This is a claim.\n", None, "judgment"),
        ("Terms of Service\nYou may use the site.\n", None, "terms"),
        ("Nothing of note.\n", "a", ""),
    ],
)  # fmt: skip
def test_kinds_and_titles(text, title, kind):
    found = profile(text)
    assert found.kind == kind
    assert title is None or found.title == title


def test_a_guide_is_dated_by_its_month_and_rules_not_at_all():
    assert profile("The Orchard Court Guide\nIssued February 2025\n").date == "February 2025"
    assert profile("PART 36 – OFFERS\n36.1 On 1 April 2013 the rules changed.\n").date == ""


def test_a_role_is_no_party():
    text = "RESELLER AGREEMENT\nThis Agreement is between Alder Mills, Inc. (“Alder”) and Reseller (“Reseller”).\n"
    assert profile(text).parties == ("Alder Mills, Inc.",)


def test_the_name_of_a_filing_gives_the_title_where_the_text_does_not():
    name = "AlderInc_20190812_8-K_EX-10.1_117_EX-10.1_Reseller Agreement.pdf"
    assert profile("of the goods that were bought.\n", name).title == "Reseller Agreement"
    assert profile("", "Alder%20Terms.txt") == Profile("Alder Terms", "")


def test_samples_have_profiles(samples: Path):
    paths = sorted(samples.rglob("*.pdf")) + sorted((samples / "legalbenchrag").rglob("*.txt"))
    assert len(paths) >= 4
    for path in paths:
        found = read_profile(read_document(path))
        assert found.title and "\n" not in found.title and len(found.title) <= 200


def ends_at(words: str, place: int) -> str:
    """Return a text of long lines in which these words end at the offset `place`."""
    room = place - len(words)
    return ("x" * 99 + "\n") * (room // 100) + "y" * (room % 100 - 1) + "\n" * bool(room % 100) + words


def edge(words: str, place: int, read: Callable[[Profile], str], *, head: str = "") -> list[bool]:
    """Return whether words are read that end at an offset, and whether they are read one character later."""
    return [bool(read(profile(head + ends_at(words, at - len(head))))) for at in (place, place + 1)]


def test_how_far_each_thing_is_looked_for():
    assert edge("agreement and plan of merger", 1500, lambda found: found.kind == "merger agreement" or "") == [
        True,
        False,
    ]
    assert edge("privacy policy", 500, lambda found: found.kind) == [True, False]
    assert edge("terms of service", 500, lambda found: found.kind) == [True, False]
    guide = "Orchard Court Guide is here\n"
    assert [profile(f"{guide}{'x' * (at - len(guide) - 14)}\nFebruary 2025").date for at in (800, 801)] == [
        "February 2025", "",
    ]  # fmt: skip
    for words, place in (("3rd day of May, 2021", 3000), ("dated as of May 3,2021", 4000)):
        assert edge(words, place, lambda found: found.date) == [True, False], words
    assert profile("Orchard Act 1998\nBE IT ENACTED").title == "Orchard Act 1998"


def test_a_contracts_title_has_two_to_sixteen_words_or_is_the_files_name():
    for count, sound in ((1, False), (15, True), (16, False)):
        words = " ".join(["Word"] * count)
        assert (profile(f"{words} Agreement\n", "f.txt").title != "f") is (sound or count == 1)
    long = "Word" * 27 + " Of Agreement"
    assert len(long) == 121 and profile(f"{long}\n", "f.txt").title == "f"
    assert profile(f"{long[1:]}\n", "f.txt").title == long[1:]


def test_long_titles_are_cut_at_a_word():
    name = "Practice Direction 7A " + "word " * 25
    assert profile(f"{name}\n").title == ("Practice Direction 7A " + "word " * 19).strip()
    assert len(profile(f"{name}\n").title) <= 120


@pytest.mark.parametrize(("times", "kind"), [(6, "privacy policy"), (5, "")])
def test_six_words_on_personal_data_are_a_policy(times, kind):
    assert profile("We keep your data. " * times).kind == kind


def test_words_on_personal_data_are_counted_over_eight_pages():
    head = "We keep your data. " * 5
    for end, kind in ((24_000, "privacy policy"), (24_001, "")):
        text = head + ends_at("cookies", end - len(head)) + " are kept"
        assert text.index(" are kept") == end and profile(text).kind == kind


def test_lines_shorter_than_a_margin_stand_by_themselves():
    assert profile(f"{'x' * 59}\nand y\n").title == "a"
    policy = "Larkspur Garden Privacy Policy"
    assert profile(f"{policy}\nWe collect it.").title == policy
    assert profile("Our Privacy Policy\nWe collect it.", "Larkspur 2.txt").title == "Larkspur Privacy Policy"
    assert profile("Privacy Policy\nWe collect it.", "Oak Privacy Notice.txt").title == "Oak Privacy Notice"


@pytest.mark.data
@pytest.mark.slow
def test_real_documents_are_known_for_what_they_are(data: Path):
    def kinds(paths: list[Path]) -> list[str]:
        return [read_profile(read_document(path)).kind for path in paths]

    mergers = kinds(sorted((data / "maud" / "maud-main" / "data" / "contracts").glob("*.txt")))
    assert mergers.count("merger agreement") >= 0.9 * len(mergers)
    rules = kinds(sorted((data / "cpr" / "docs_json").glob("Part *.json")))
    assert rules.count("rules") >= 0.95 * len(rules)
    directions = kinds(sorted((data / "cpr" / "docs_json").glob("Practice Direction *.json")))
    assert directions.count("practice direction") >= 0.95 * len(directions)
    assert set(kinds(sorted((data / "cpr" / "court_guides_pdf").glob("*.pdf")))) == {"court guide"}
    contracts = kinds(sorted((data / "cuad" / "CUAD_v1" / "full_contract_pdf").rglob("*.pdf"))[:60])
    assert contracts.count("contract") >= 0.85 * len(contracts)
