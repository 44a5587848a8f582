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
def test_says_contrary_detects_refused_rights_and_permitted_acts(question, clause, contrary):
    assert says_contrary(question, clause) is contrary
