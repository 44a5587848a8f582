"""Rules that judge answers, marks of the judge, and refusals."""

import json
from collections import Counter
from pathlib import Path

import pytest

from exhibit.evaluation.judging.kernel import judge_answer
from exhibit.evaluation.metrics.answers import read_mark
from exhibit.law.refusals import is_refusal

FOLDER = Path(__file__).parent
NAMES = {True: "right", False: "wrong", None: "not judged"}


def read_lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def decide(question: str, expected: str, reply: str) -> str:
    return "refused" if is_refusal(reply) else NAMES[judge_answer(question, expected, reply).right]


@pytest.mark.parametrize("name", ["judging_pairs.jsonl", "judging_campaign.jsonl"])
def test_judge_answer_never_contradicts_the_labels_of_answer_pairs(name):
    allowed = {
        "wrong": {"wrong", "not judged", "refused"},
        "undecided": {"right", "not judged"},
        "refused": {"refused"},
        "right": {"right", "not judged"},
    }
    pairs = read_lines(name)
    decided = [decide(pair["question"], pair["expected"], pair["reply"]) for pair in pairs]
    assert [pair for pair, own in zip(pairs, decided, strict=True) if own not in allowed[pair["is"]]] == []
    agreed = Counter(own == pair["is"] for pair, own in zip(pairs, decided, strict=True) if pair["is"] == "right")
    assert agreed[True] >= 0.75 * agreed.total(), "at least 75% of right replies are judged"


QUOTED = "This Agreement shall be governed by the laws of the State of Delaware, without regard to its conflict rules."
RENEWED = "It renews for periods of one (1) year unless a party gives ninety (90) days' notice of non-renewal."


@pytest.mark.parametrize(
    ("expected", "reply", "verdict"),
    [
        ("Delaware", f"the State of Delaware: “{QUOTED}” [1]", "right"),
        ("Delaware", f"the State of Nevada: “{QUOTED}” [1]", "wrong"),
        ("90 days", f"ninety (90) days: “{RENEWED}” [2]", "right"),
        ("90 days", f"one (1) year: “{RENEWED}” [2]", "wrong"),
        ("4/1/16", "April 1, 2016: “‘Effective Date’ means April 1, 2016.” [1]", "right"),
        ("4/1/16", "May 1, 2016: “‘Effective Date’ means April 1, 2016.” [1]", "wrong"),
    ],
)
def test_judge_answer_judges_the_answer_before_a_quotation(expected, reply, verdict):
    decision = judge_answer("Which value does the agreement state?", expected, reply, (QUOTED, RENEWED))
    assert NAMES[decision.right] == verdict, decision.reason


@pytest.mark.parametrize("held_out", [False, True])
def test_judge_answer_errs_on_at_most_2_percent_of_near_miss_pairs(held_out):
    rows = [row for row in read_lines("answer_pairs.jsonl") if row["held_out"] is held_out]
    wrong = [decide(row["question"], row["expected"], reply) for row in rows for reply in row["wrong"]]
    right = [decide(row["question"], row["expected"], reply) for row in rows for reply in row["right"]]
    assert wrong.count("right") <= 0.02 * len(wrong) and right.count("wrong") <= 0.02 * len(right)
    assert wrong.count("wrong") + right.count("right") > 0


@pytest.mark.parametrize(("expected", "reply"), [
    ("B", "C"), ("(a)", "(b)"), ("A$40,000", "C$40,000"), ("EUR 2.5 million", "EUR 2.5 billion"),
    ("Clause 5(a)", "Clause 5(b)"), ("Tranche A", "Tranche B"), ("§ 536a", "§ 536b"),
    ("USD 5 million", "NOK 5 million"), ("USD 5,000,000", "HK$5,000,000"), ("USD 5 million", "5 million shares"),
    ("Yes", "Yes. No."), ("10 business days", "10 days"), ("5 January 2024", "6 January 2024"),
    ("Class A", "Class B"), ("Schedule 2", "Schedule 3"), ("30%", "30 days"),
])  # fmt: skip
def test_judge_answer_rejects_value_that_only_resembles_the_expected_value(expected, reply):
    assert decide("What is agreed?", expected, reply) in {"wrong"} | ({"not judged"} if expected == "30%" else set())


@pytest.mark.parametrize(
    ("question", "expected", "reply"),
    [
        ("Which law governs?", "New York", "Delaware, New York, California, Texas or Nevada law."),
        ("Which law governs?", "New York", "Delaware. New York. Texas."),
        ("Which courts decide?", "the courts of Oslo", "any court but the courts of Oslo"),
        ("Who pays, the buyer or the seller?", "the seller", "Who pays, the buyer or the seller?"),
        ("Who pays?", "the seller", "The buyer and the seller."),
        ("Who pays?", "The seller pays the buyer.", "The buyer pays the seller."),
        ("Who pays?", "The seller pays the fee.", "The seller pays the fee. The seller does not pay the fee."),
        ("Who pays?", "The seller pays the fee.", "It is false that the seller pays the fee."),
        ("What is granted?", "an exclusive licence", "a non-exclusive licence"),
        ("What is due?", "The licensor must give notice.", "The licensee must give notice."),
        ("Must the supplier carry insurance?", "Yes", "Yes, it need not."),
        ("Must the supplier carry insurance?", "Yes", "Yes, but only if the customer asks."),
        ("Must the supplier carry insurance?", "Yes", "Yes, the supplier is free of any duty to carry insurance."),
        ("Must the supplier carry insurance?", "Yes", "Yes is what the first draft said."),
        ("Does the warranty survive closing?", "Yes", "Yes. It lapses at closing."),
        ("Does the warranty survive closing?", "Yes", "Yes, with consent."),
        ("Is the guarantor released?", "No", "No, it is released."),
        ("Is the lender obliged to advance?", "No", "No, it is."),
        ("What is the fine?", "EUR 900", "above EUR 900"),
        ("Which lot is sold?", "Lot 12", "Lot 12A"),
        ("Ist die Untervermietung erlaubt?", "Nein", "Nein, sie ist erlaubt."),
        ("Does the insurer waive subrogation?", "Yes", "Yes, the insured waives subrogation."),
        ("Who may terminate?", "the Customer", "the Customer of the Customer"),
        ("Who owns the improvements?", "the Client", "The Client of the Contractor"),
        ("Who owns the improvements?", "the Client", "The Client owns some of the improvements."),
        ("What is the term?", "five years", "up to five years"),
        ("How many directors form a quorum?", "four", "one in four"),
        ("Which exhibit has the form of note?", "Exhibit C-2", "Exhibit C-2-A"),
        ("What must the buyer keep?", "The buyer must keep complete records of all sales.",
         "It is a myth that the buyer must keep complete records of all sales."),
        ("What must the buyer keep?", "The buyer must keep complete records of all sales.",
         "The buyer must keep complete records of all sales. That was repealed."),
        ("What must the buyer keep?", "The buyer must keep complete records of all sales.",
         "The buyer must keep complete records of all sales, a duty waived in 2020."),
    ],
)  # fmt: skip
def test_judge_answer_never_accepts_enumerations_negations_exceptions_or_repeated_questions(question, expected, reply):
    assert decide(question, expected, reply) != "right"


@pytest.mark.parametrize(("expected", "reply"), [
    ("30 days", "Thirty (30) days, see [doc 42] and https://example.org/4711."), ("5 January 2024", "5 january 2024"),
    ("EUR 250,000", "250.000,00 €"), ("GBP 1 million", "One million pounds"), ("2 years", "24 months"),
    ("Yes", "Yes, it is."), ("The Supplier insures the timber", "“The Supplier insures the timber.” [1]"),
    ("Section 4.2", "That is section 4.2."), ("Harbour Estates Ltd", "Harbour Estates Limited"),
])  # fmt: skip
def test_judge_answer_accepts_expected_value_in_another_format(expected, reply):
    assert decide("What is agreed?", expected, reply) == "right"


GOLD = (
    "The Borrower shall pay the Lender a fee of USD 900 within 30 days after the Closing Date. The Guarantor shall "
    "not be liable for the fee, except where the Borrower is insolvent. Notice must be given to the Agent, and a copy "
    "to the Trustee."
)


@pytest.mark.parametrize(
    ("question", "expected", "reply"),
    [
        ("Who pays the fee?", "the Borrower", "The Guarantor shall pay the fee where the Borrower is insolvent."),
        ("Who pays the fee?", "the Borrower", "the Guarantor of the Borrower"),
        ("Who pays the fee?", "the Borrower", "The Trustee must pay the Borrower."),
        ("Who pays the fee?", "the Borrower", "The Agent, a copy of the Borrower"),
        ("To whom is notice given?", "the Agent", "to the Trustee, a copy to the Agent"),
        ("To whom is notice given?", "the Agent", "The Agent gives notice."),
        ("To whom is notice given?", "the Agent", "by the Agent to the Trustee"),
        ("What is the fee?", "USD 900", "a fee of USD 900 where the Borrower is insolvent"),
        ("What is the fee?", "USD 900", "USD 900 for the Guarantor"),
    ],
)
def test_judge_answer_never_accepts_reordered_gold_words(question, expected, reply):
    assert judge_answer(question, expected, reply, (GOLD,)).right is None
    assert judge_answer(question, expected, expected, (GOLD,)).right


def test_judge_answer_accepts_gold_sentence_with_expected_words():
    reply = "Notice must be given to the Agent, and a copy to the Trustee."
    assert judge_answer("How must notice be given?", "to the Agent", GOLD.partition("insolvent. ")[2], (GOLD,)).right
    assert (
        judge_answer("How must notice be given?", "to the Agent", reply.replace("copy", "draft"), (GOLD,)).right is None
    )


def test_judge_answer_accepts_quoted_gold_sentence_with_long_expected_answer():
    gold = "Subject to clause 9, the Carrier shall, at its cost, insure the whole cargo from the quay to the old mill."
    expected = "The Carrier shall insure the whole cargo from the quay to the old mill."
    assert judge_answer("Who insures the cargo?", expected, f"“{gold}” [1]", (gold,)).right
    other = gold.replace("at its cost", "unless it rains")
    assert judge_answer("Who insures the cargo?", expected, f"“{other}” [1]", (gold,)).right is None


def test_judge_answer_accepts_yes_or_no_with_a_quote_of_the_gold():
    gold = "The Supplier may not assign this Agreement, except to an affiliate."
    assert judge_answer("May the Supplier assign?", "No", f"No. “{gold}”", (gold,)).right
    assert judge_answer("May the Supplier assign?", "No", "No, the Supplier may not assign.").right
    assert judge_answer("Is there a limit on assignment?", "Yes", f"Yes. “{gold}”", (gold,)).right


@pytest.mark.parametrize("held_out", [False, True])
def test_is_refusal_recognises_97_percent_of_labelled_replies(held_out):
    rows = [row for row in read_lines("refusals.jsonl") if row["held_out"] is held_out]
    assert sum(is_refusal(row["text"]) == row["refusal"] for row in rows) >= 0.97 * len(rows)


@pytest.mark.parametrize(("text", "mark"), [
    ('{"score": 4}', 4.0), ('{"score": "4/5"}', 4.0), ('{"rating": 2}', 2.0), ("5", 5.0), ("4 out of 5", 4.0),
    ("**Score: 3**", 3.0), ('{"score": 4.5}', 4.5), ('{"score": true}', None), ('{"score": 9}', None), ("5%", None),
    ("Score 2, no, score 4", None), ("I like it.", None),
])  # fmt: skip
def test_read_mark_reads_common_mark_formats(text, mark):
    assert read_mark(text) == mark
