"""Questions that expect yes or no."""

import pytest

from exhibit.law.questions import asks_yes_or_no, says_contrary


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
def test_asks_yes_or_no_is_false_for_other_questions(question):
    assert not asks_yes_or_no(question)


@pytest.mark.parametrize(
    ("clause", "contrary"),
    [
        ("The Licensor does not grant the Dealer a licence.", True),
        ("The Tenant shall not be required to keep books.", True),
        ("Neither party may terminate this Lease on notice.", True),
        ("The Tenant may assign this Lease without the consent of the Landlord.", True),
        ("The Tenant may not assign this Lease without the consent of the Landlord.", False),
        ("The Tenant shall not assign this Lease, but may assign it without consent to its heirs.", False),
        ("The Tenant shall keep books.", False),
    ],
)
def test_says_contrary_detects_refused_rights_and_permitted_acts(clause, contrary):
    assert says_contrary("is there such a clause?", clause) is contrary


@pytest.mark.parametrize(
    ("question", "clause", "contrary"),
    [
        ("does a party deal exclusively with the other?", "The Licensor grants a non-exclusive right.", True),
        ("is the distributor exclusive?", "Oakhurst appoints the Dealer on a nonexclusive basis.", True),
        ("is the distributor exclusive?", "The right is exclusive in Ohio and non‑exclusive elsewhere.", False),
        ("may the licensee sublicense it?", "a non-transferable, non-sublicensable licence", True),
        ("may the licensee sublicense it?", "a non-exclusive licence, which it may sublicense", False),
        ("is the licensee limited in sublicensing it?", "a non-sublicensable licence", False),
        ("is the licence non-exclusive?", "The Licensor grants a non-exclusive right.", False),
    ],
)
def test_says_contrary_detects_refusal_of_the_right_in_question(question, clause, contrary):
    assert says_contrary(question, clause) is contrary
