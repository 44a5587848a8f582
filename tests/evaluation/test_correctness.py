"""Correctness: pairs of expected and given answers, the kinds of error, and answers that are not judged."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from bench.answer_pairs import LEAST, main, measure_accuracies, measure_recognised, read_pairs
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.correctness import decide, decide_case
from exhibit.evaluation.judgement import prefer_judge
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.verdicts import examine
from exhibit.models.llms import Completion

PARTS = {"written on": False, "held out": True}


@pytest.mark.parametrize("part", PARTS)
def test_the_decision_on_660_pairs_keeps_its_floors(part):
    pairs = read_pairs(held_out=PARTS[part])
    assert len(pairs.cases) == (200 if PARTS[part] else 460) and pairs.right.count(True) == len(pairs.right) / 2
    by_name = {one.metric: one for one in measure_accuracies(part, pairs, Options())}
    decision = by_name["answered_rightly"]
    assert decision.judged >= 0.7 and decision.accuracy >= 0.95 and decision.near_misses_called_right <= 0.02
    assert by_name["answer_contained"].near_misses_called_right > 0.1, "containing the words is not being right"
    assert by_name["answer_f1"].near_misses_called_right > 0.9
    assert set(by_name) == set(LEAST) - {"answer_correctness"}


class _Lenient:
    """A stub judge that always gives the highest mark."""

    name = "lenient"

    def complete(self, prompts, *, max_tokens, temperature):
        return [Completion('{"score": 5}') for _ in prompts]


def test_a_judge_is_held_against_the_same_pairs():
    found = {one.metric: one for one in measure_accuracies("x", read_pairs(held_out=False), Options(judge=_Lenient()))}
    judged = found["answer_correctness"]
    assert (judged.judged, judged.accuracy, judged.near_misses_called_right) == (1.0, 0.5, 1.0)


def test_the_bench_prints_both_tables(capsys):
    assert main(["--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["metric"] for row in record["pairs"]] == ["answered_rightly", "answer_contained", "answer_f1"] * 2
    assert [row["replies"] for row in record["refusals"]] == [320, 100]
    assert main([]) == 0 and "near misses called right" in capsys.readouterr().out


def test_refusals_keep_their_floor():
    assert measure_recognised("held out", held_out=True).accuracy >= 0.97
    assert measure_recognised("written on", held_out=False).accuracy >= 0.97


QUESTION = "How much notice must the tenant of the Elmsworth lease give?"
EXPECTED = "The tenant must give the landlord 30 days' written notice."


@pytest.mark.parametrize(
    ("expected", "reply"),
    [
        (EXPECTED, "The tenant must not give the landlord 30 days' written notice."),  # the opposite
        (EXPECTED, "The landlord must give the tenant 30 days' written notice."),  # the other party
        (EXPECTED, "The tenant must give the landlord 30 business days' written notice."),
        (EXPECTED, "The tenant must give the landlord 30 days' oral notice."),
        (EXPECTED, "The tenant may give the landlord 30 days' written notice."),
        (EXPECTED, QUESTION),  # an echo
        (EXPECTED, f"{EXPECTED} The tenant must not give the landlord 30 days' written notice."),  # both
        (EXPECTED, f"It is not true that {EXPECTED}"),
        (EXPECTED, ""),
        (EXPECTED, "The lease does not say."),
        (EXPECTED, f"{EXPECTED} " + "Rent is due monthly and in advance. " * 400),  # the whole document
        ("A deposit of €900", "A deposit of $900"),
        ("2,000 shares of Class A stock", "2,000 shares of Class B stock"),
        ("The licence is exclusive.", "The licence is non-exclusive."),
        ("Section 14 applies.", "Section 15 applies."),
        ("At least 40 units", "At most 40 units"),
        ("Paper, glass and metal", "Paper and glass"),
        ("It begins on 3 March 2020.", "It begins on 3 May 2020."),
        ("The tenant waives its claims.", "The tenant does not waive its claims."),
    ],
)
def test_a_reply_that_differs_in_one_thing_is_wrong(expected, reply):
    decision = decide(QUESTION, expected, reply)
    assert decision.right is False and decision.reason.endswith((".", "?"))
    assert decide(QUESTION, expected, expected).right


@pytest.mark.parametrize(
    ("question", "expected", "reply"),
    [
        (QUESTION, EXPECTED, "Thirty (30) days in writing, to the landlord (Section 4.2, page 7)."),
        (QUESTION, "24 months", "Two years [1]."),
        (QUESTION, "Two weeks", "14 days, see footnote 3"),
        ("What was revenue (in millions)?", "$1577.00", "$1,577 million"),
        ("What was capital spending in billions of dollars?", "$8.70", "$8.7 billion"),
        ("What did it cost?", "$2,500,000", "2.5 mn dollars"),
        ("What did it cost?", "EUR 40 bn", "€40,000,000,000"),
        ("What did it cost?", "$75k", "$75 thousand"),
        ("What is the rate?", "12.5%", "12.5 percent"),
        ("When does it end?", "5 January 2024", "2024-01-05"),
        ("Is sublicensing allowed?", "No", "Sublicensing is not allowed."),
        ("Is the bond secured?", "The bond is secured.", "Yes, it is secured."),
        ("What is the cap?", "The lease does not specify a cap.", "I cannot find a cap in the lease."),
    ],
)
def test_a_right_reply_in_another_form_is_right(question, expected, reply):
    assert decide(question, expected, reply).right


def test_units_that_the_question_does_not_state_are_compared():
    assert decide("What was revenue in millions?", "$1577.00", "$1,577 thousand").right is False
    assert decide("What was revenue?", "$8.7 billion", "$8.7 million").right is False


def test_what_rules_cannot_decide_is_not_judged():
    decision = decide("Why was the claim dismissed?", "The limitation period had run.", "It came too late.")
    assert decision.right is None and "other words" in decision.reason


def _case(answer: str | None, *, truth: str = EXPECTED, passage: str = EXPECTED, impossible: bool = False) -> Case:
    gold = () if impossible else (GoldPassage("lease.pdf", EXPECTED),)
    return Case(1, QUESTION, truth, gold, impossible, reply=Reply(answer, (Passage(passage, "lease.pdf"),)))


def test_the_metric_is_none_where_nothing_is_judged():
    cases = [
        _case(EXPECTED),
        _case("Sixty days."),
        _case("As agreed between them."),
        _case(None),
        _case("x", impossible=True),
    ]
    values = measure(cases, names=["answered_rightly", "answer_contained"])
    assert values["answered_rightly"] == [1.0, 0.0, None, None, None]
    assert values["answer_judged"] == [1.0, 1.0, 0.0, None, None]
    assert decide_case(cases[3]).right is None and decide_case(cases[3]).reason


def test_a_judge_decides_before_a_label_and_a_label_before_rules():
    chosen = replace(_case("Entailment"), choices=("Entailment", "Contradiction"), label="Contradiction")
    cases = [_case("Sixty days."), _case("As agreed between them."), chosen, _case("x", impossible=True)]
    values = measure(cases, Options(judge=_Lenient()), names=["answer_correctness", "answered_rightly"])
    assert values["answered_rightly"] == [0.0, None, 0.0, None], "the label of the third is the other one"
    values["answer_correctness"][2] = None
    decided = prefer_judge(values)
    assert decided["answered_rightly"] == [1.0, 1.0, 0.0, None] and next(iter(decided)) == "answered_rightly"
    assert decided["answer_judged"] == [1.0, 1.0, 1.0, None]
    assert prefer_judge({"recall@10": [1.0]}) == {"recall@10": [1.0]}


def test_a_right_answer_with_a_section_or_in_another_unit_has_no_invented_figures():
    assert (
        examine(_case("Thirty days' written notice to the landlord, see Section 17.3 on page 94.")).verdict
        == "answered"
    )
    assert examine(_case("About 720 hours, that is 30 days, by letter; Section 44.")).verdict == "answered"
    assert examine(_case("The tenant must give 75 days' notice.")).verdict == "figures that no passage has"


def test_an_invented_amount_before_a_refusal_is_no_refusal():
    cases = [_case("The fee is $5 million. Not found in the provided documents.", impossible=True)]
    cases += [_case("I don't know.", impossible=True), _case("There is no such clause.")]
    values = measure(cases, names=["abstention"])
    assert values["abstention_accuracy"] == [0.0, 1.0, None] and values["false_refusal_rate"] == [None, None, 1.0]
    assert values["refusal_unsure"] == [0.0, 0.0, 0.0]
    assert [examine(case).verdict for case in cases] == [
        "answered though impossible", "answered", "refused though answerable",
    ]  # fmt: skip


def test_where_the_rule_for_refusals_is_not_sure_it_says_so():
    unsure = _case("I could not find it. The tenant pays rent to the landlord every month.")
    assert measure([unsure], names=["refusal_unsure"])["refusal_unsure"] == [1.0]


def test_a_reply_of_many_dates_is_scored_in_linear_time():
    def seconds(count: int) -> float:
        answer = "".join(f"{1 + day % 28} March {1000 + day % 9000}, " for day in range(count))
        case, began = _case(answer), time.process_time()
        examine(case)
        measure([case], names=["answered_rightly", "answer_contained", "answer_f1"])
        return time.process_time() - began

    seconds(100)  # what is compiled once
    few, many = seconds(5_000), seconds(40_000)
    assert many < 24 * few, "eight times the text takes eight times as long, and 64 times where time is quadratic"


@pytest.mark.parametrize(
    ("gold", "reply", "right"),
    [
        ("The Owner shall keep insurance of at least £3,000,000.", "at least £3,000,000", True),
        ("The Owner shall keep insurance of £3,000,000.", "at least £3,000,000", False),
        ("The Owner shall keep insurance of at least £3,000,000.", "at most £3,000,000", False),
        ("The Owner shall keep insurance of at least £3,000,000.", "£3,000,000", True),
    ],
)
def test_a_bound_of_the_gold_passage_may_be_stated_with_the_expected_figure(gold, reply, right):
    for said in (reply, f"{reply}: “The Owner shall keep insurance of {reply}.” [3]"):
        decision = decide("What insurance must the Owner keep?", "£3,000,000", said, [gold])
        assert (decision.right is True) is right, decision.reason
