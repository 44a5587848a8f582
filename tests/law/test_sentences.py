"""Names, sentences, and questions that expect the answer yes or no."""

import pytest

from exhibit.evidence import Span
from exhibit.law.names import keep_letters, make_file_key
from exhibit.law.questions import asks_yes_or_no, says_contrary
from exhibit.law.sentences import extend_to_sentences


def test_keep_letters_removes_case_accents_and_line_end_hyphens() -> None:
    assert keep_letters("Wit-\nnesses & Évidence") == keep_letters("WITNESSES AND EVIDENCE") == "witnessesandevidence"


def test_make_file_key_ignores_case_accents_and_separators_but_not_other_scripts() -> None:
    names = ("A&B Société (2).PDF", "a_b-societe-2.txt", "Straße.pdf", "契約書.pdf", "Договор 7.pdf", "10-7.pdf")
    assert list(map(make_file_key, names)) == ["absociete2", "absociete2", "strasse", "契約書", "договор7", "107"]
    assert make_file_key("Lease Договор.pdf") == make_file_key("lease_______.pdf"), "a renamed file has the same key"


@pytest.mark.parametrize(
    ("words", "widest", "extended"),
    [
        ("sell", 900, "The Buyer may sell the boat."),
        ("The Buyer may sell the boat.", 900, "The Buyer may sell the boat."),
        ("boat. She", 900, "The Buyer may sell the boat. She bears: (a) freight; (b) duties."),
        ("bears", 900, "She bears: (a) freight; (b) duties."),
        ("freight", 20, "(a) freight; (b)"),
        ("The Buyer may sell the boat.", 10, "The Buyer may sell the boat."),
        ("may sell", 17, "may sell the"),
    ],
)
def test_extend_to_sentences_completes_sentences_within_the_given_width(words, widest, extended):
    text = "It is so. The Buyer may sell the boat. She bears: (a) freight; (b) duties. The rest is the Seller's."
    at = text.index(words)
    assert text[slice(*extend_to_sentences(text, Span(at, at + len(words)), widest=widest))] == extended


def test_extend_to_sentences_includes_list_after_colon_up_to_limit():
    items = [f"\n({letter}) the costs of work {letter} on the quay;" for letter in "abcdefghijklmnopqrstuvwxyz"]
    text = f"The Tenant bears the following:{''.join(items)}"
    extended = text[slice(*extend_to_sentences(text, Span(4, 10), widest=900))]
    assert extended.startswith("The Tenant bears the following:\n(a) the costs") and 500 < len(extended) <= 600
    assert extended.endswith("on the quay;")


@pytest.mark.parametrize(
    "question",
    [
        "When may the tenant sublet?",
        "Under the lease, how long is the term?",
        "If the buyer defaults, what is the rate of interest?",
        "Which law governs, and is it exclusive?",
        "notice address of the licensor?",
        "List every fee that is due.",
        "",
    ],
)
def test_asks_yes_or_no_is_false_for_questions_that_expect_more_than_yes_or_no(question):
    assert not asks_yes_or_no(question)


@pytest.mark.parametrize(
    ("question", "clause", "contrary"),
    [
        ("is there a grant?", "The Licensor does not grant the Dealer a licence.", True),
        ("is there a duty?", "The Tenant shall not be required to keep books.", True),
        ("is there a right?", "Neither party may terminate this Lease on notice.", True),
        ("is there a limit?", "The Tenant may assign this Lease without the consent of the Landlord.", True),
        ("is there a limit?", "The Tenant may not assign this Lease without the consent of the Landlord.", False),
        ("may he?", "The Tenant shall not assign this Lease, but may assign it without consent to its heirs.", False),
        ("is there a duty?", "The Tenant shall keep books.", False),
        ("does a party deal exclusively with the other?", "The Licensor grants a non-exclusive right.", True),
        ("is the distributor exclusive?", "Oakhurst appoints the Dealer on a nonexclusive basis.", True),
        ("is the distributor exclusive?", "The right is exclusive in Ohio and non‑exclusive elsewhere.", False),
        ("may the licensee sublicense it?", "a non-transferable, non-sublicensable licence", True),
        ("may the licensee sublicense it?", "a non-exclusive licence, which it may sublicense", False),
        ("is the licensee limited in sublicensing it?", "a non-sublicensable licence", False),
        ("is the licence non-exclusive?", "The Licensor grants a non-exclusive right.", False),
    ],
)
def test_says_contrary_is_true_if_a_clause_denies_what_the_question_asks_about(question, clause, contrary):
    assert says_contrary(question, clause) is contrary
