"""Outcomes of questions, passages that support an answer, labels in replies, faults of replies, and outcome columns."""

import json

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Case, GoldPassage, Passage, with_choices, without_choices
from exhibit.evaluation.datasets import offers_of
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.outcomes import (
    describe_choices,
    describe_result,
    find_chosen_label,
    find_cited,
    find_outcome,
    find_support,
    make_outcome_columns,
)
from exhibit.evaluation.scoring import Evidence
from exhibit.evaluation.statistics import Table
from exhibit.evidence import Span
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import Outcome
from tests.evaluation.metrics.build import at, case, gold
from tests.rag.bundles import rows_of

HIT, NEAR, OFF = at(0, 50), at(500, 600), at(0, 50, "other.pdf")
RENT = (gold((10, 30), text="the rent is due"),)
REFUSED = "Not found in provided documents."


def make_case(answer: str | None, *passages: Passage, **fields) -> Case:
    return case(passages=passages, answer=answer, **{"truth": "30 days", "gold": RENT, **fields})


@pytest.mark.parametrize(
    ("outcome", "case", "given"),
    [
        ("right", make_case("In 30 days.", HIT), {}),
        ("right", make_case("In thirty (30) days [1].", OFF), {}),
        ("wrong", make_case("In 60 days.", HIT), {}),
        ("wrongly refused", make_case(REFUSED, HIT), {}),
        ("wrongly refused", make_case("", HIT), {}),
        ("wrongly refused", make_case(None, HIT), {}),
        ("failed", make_case("In 30 days.", HIT, error="HTTP 500"), {}),
        ("invented", make_case("In 30 days.", HIT, is_impossible=True), {}),
        ("rightly refused", make_case(REFUSED, HIT, is_impossible=True), {}),
        ("rightly refused", make_case(None, is_impossible=True), {}),
        ("failed", make_case(None, is_impossible=True, error="HTTP 500"), {}),
        ("found", make_case(None, OFF, HIT), {"answers": False}),
        ("missed", make_case(None, OFF, NEAR), {"answers": False}),
        ("missed", make_case(None, *[NEAR] * 10, HIT), {"answers": False}),
        ("missed", make_case(None), {"answers": False}),
        ("not judged", make_case(None, HIT, gold=()), {"answers": False}),
        ("not judged", make_case(None, HIT, is_impossible=True), {"answers": False}),
        ("not judged", make_case(None, Passage("words of a summary", unplaced=True)), {"answers": False}),
        ("not judged", make_case("In 30 days.", truth=" "), {}),
        ("right", make_case("At the end of the month.", HIT), {"mark": 5.0}),
        ("wrong", make_case("In 30 days.", HIT), {"mark": 3.0}),
        ("wrongly refused", make_case(REFUSED, HIT), {"mark": 1.0}),
        ("right", make_case("Yes: it may.", choices=("Yes", "No"), label="Yes"), {}),
        ("wrong", make_case("Yes: it may.", choices=("Yes", "No"), label="No"), {}),
        ("rightly refused", make_case("NotMentioned", is_impossible=True, choices=("Yes", "NotMentioned"),
                                      label="NotMentioned"), {}),
        ("invented", make_case("Yes", is_impossible=True, choices=("Yes", "NotMentioned"), label="NotMentioned"), {}),
    ],
)  # fmt: skip
def test_find_outcome_returns_expected_outcome_with_reason(outcome, case, given):
    finding = find_outcome(case, **given)
    assert finding.outcome == outcome and finding.reason


def test_outcome_reason_names_a_mark_an_error_or_a_gold_passage():
    assert find_outcome(make_case("x", HIT), mark=5.0).reason == "The judge gave 5 of 5."
    assert find_outcome(make_case("x", error="HTTP 500")).reason == "HTTP 500"
    found = find_outcome(make_case(None, OFF, HIT), answers=False)
    assert found.reason == "The passages up to number 2 contain at least half of a gold passage."


@pytest.mark.parametrize(
    ("supported", "case"),
    [
        (True, make_case("Soon [1].", HIT, OFF)),
        (False, make_case("Soon [2].", HIT, OFF)),
        (True, make_case("Soon.", OFF, HIT)),
        (False, make_case("Soon.", OFF)),
        (True, make_case("Soon [1].", Passage("the rent is due"), gold=(GoldPassage(None, "rent is due"),))),
        (None, make_case("Soon.")),
        (None, make_case("Soon.", HIT, gold=())),
        (None, make_case("Soon.", HIT, is_impossible=True)),
    ],
)  # fmt: skip
def test_find_support_searches_all_passages_if_no_passage_is_cited(supported, case):
    assert find_support(case) is supported


def test_find_cited_returns_only_existing_passage_numbers():
    assert find_cited(make_case("Norway [2][1]. And so [2, 3] it is [0].", Passage("a"), Passage("b"))) == [2, 1]


def test_evidence_reports_a_fault_only_if_more_than_a_tenth_of_replies_have_it():
    evidence, tenth = Evidence(), Evidence()
    foreign = [Passage("x", "a.pdf", told_filename=f"{n}.doc", span=Span(0, 1)) for n in range(5)]
    for given in (make_case("a", *foreign), make_case("a")):
        evidence.add(given)
    assert evidence.add(make_case("", error="x")) == []
    lines = evidence.lines("d")
    assert lines[0] == "d: 5 of 5 passages name files that the bundle lacks: 0.doc, 1.doc, 2.doc"
    assert lines[1].endswith("the reply has no passages (1 of 2 questions)") and len(lines) == 2
    for given in [make_case("a", HIT)] * 9 + [make_case("a")]:
        tenth.add(given)
    assert tenth.lines("d") == [], "exactly a tenth is not reported"
    tenth.add(make_case("a"))
    assert len(tenth.lines("d")) == 1
    assert tenth.add(make_case("a", Passage(" ", "a.pdf"), HIT))[-1].startswith("1 of 2 passages ")


def test_outcome_columns_count_refused_failed_and_unjudged_questions():
    outcomes = [Outcome.RIGHT, Outcome.WRONG, Outcome.NOT_JUDGED, Outcome.WRONGLY_REFUSED, Outcome.FAILED,
                Outcome.FAILED, Outcome.RIGHTLY_REFUSED, Outcome.INVENTED]  # fmt: skip
    columns = make_outcome_columns(outcomes, [False] * 5 + [True] * 3)
    assert columns == {
        "answered_rightly": [1, 0, 0, 0, 0, None, None, None],
        "answered_rightly_at_most": [1, 0, 1, 0, 0, None, None, None],
        "abstention_accuracy": [None] * 6 + [1, 0],
        "false_refusal_rate": [0, 0, 0, 1, None, None, None, None],
    }


R, N, W, FOUND, MISSED = Outcome.RIGHT, Outcome.NOT_JUDGED, Outcome.WRONG, Outcome.FOUND, Outcome.MISSED


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ([R] * 153 + [N] * 45 + [W] * 45, "153 to 198 of 243 answered correctly, 63 to 81%"),
        ([R] * 3 + [W, Outcome.RIGHTLY_REFUSED], "3 of 4 answered correctly, 75%"),
        ([FOUND] * 3 + [MISSED], "gold found for 3 of 4 questions, 75%"),
        ([Outcome.INVENTED], "no question was answered"),
    ],
)
def test_describe_result_states_counts_and_percentages(outcomes, words):
    ids = list(range(len(outcomes)))
    assert describe_result([Table("d", ids, ["a.pdf"] * len(ids), {}, outcomes=outcomes)]) == words


NLI = ("Contradiction", "Entailment", "NotMentioned")


@pytest.mark.parametrize(("answer", "label"), [
    ("Entailment. The Recipient may keep a copy [1].", "Entailment"),
    ("The label is: CONTRADICTION", "Contradiction"), ("Not mentioned, rather than Entailment", "NotMentioned"),
    ("Not found in provided documents.", "NotMentioned"), ("The Recipient may keep a copy.", None),
])  # fmt: skip
def test_find_chosen_label_reads_label_from_reply(answer, label):
    assert find_chosen_label(answer, NLI) == label
    row = case(answer=answer, choices=NLI, label="Entailment")
    assert measure([row], names=["label-accuracy"]) == {"label_accuracy": [float(label == "Entailment")]}


def test_label_accuracy_is_none_without_choices():
    assert measure([case(answer="Entailment")], names=["label_accuracy"]) == {"label_accuracy": [None]}
    assert with_choices("May it?", ()) == "May it?" and with_choices("May it?", NLI).endswith("NotMentioned.")
    with pytest.raises(BundleError, match="it has 1 different values, but must have 2 to 12"):
        offers_of("label", {0: {"label": "x"}}, where="nda")


def test_compound_label_offers_the_choices_of_each_subquestion():
    rows = {
        1: {"answers": "Consideration: Cash; MAE applies to: Target"},
        2: {"answers": "MAE applies to: Either party; Carve-outs: Yes"},
        3: {"answers": "Consideration: Cash"},
        4: {"answers": None},
    }
    offered = offers_of("answers", rows, where="maud")
    assert offered == {
        1: (("Either party", "Target"), "Target", "MAE applies to"),
        2: (("Either party", "Target"), "Either party", "MAE applies to"),
    }
    question = with_choices("What is a MAE?", *offered[1][::2])
    assert question.endswith("On 'MAE applies to' begin your reply with one of these labels: Either party; Target.")
    assert without_choices(case(question=question, choices=offered[1].choices)) == "What is a MAE?"


def test_describe_choices_computes_accuracy_macro_f1_and_confusion():
    description = describe_choices([("h1", "Yes", "Yes"), ("h1", "No", "Yes"), ("h2", "No", "No"), ("h2", "No", "")])
    assert description["accuracy"] == 0.5 and description["majority"] == 0.75
    assert description["macro_f1"] == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert description["confusion"] == {"h1": {"Yes": {"Yes": 1}, "No": {"Yes": 1}}, "h2": {"No": {"No": 1, "none": 1}}}


def test_ask_label_scores_contractnli_labels_of_replies(converted, tmp_path, capsys):
    bundle = converted("contractnli")
    gold = {line["id"]: line["labels"]["label"] for line in rows_of(bundle / "gold.jsonl")}
    replies = [{"id": id, "answer": f"{gold[id]}, because of clause 3." if id % 4 else "Perhaps."} for id in gold]
    (tmp_path / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    flags = [str(bundle), "--ask-label", "label", "--limit", "17", "--output-dir", str(tmp_path), "--run-name", "r"]
    target = ["--target", f"predictions:{tmp_path / 'replies.json'}", "--report-cases", "0"]
    assert evaluate_rag.main([*flags, *target, "--metrics", "label-accuracy"]) == 0
    labels = json.loads((tmp_path / "r" / "contractnli" / "labels.json").read_text(encoding="utf-8"))
    right = sum(bool(id % 4) for id in list(gold)[:17])
    assert labels["questions"] == 17 and labels["accuracy"] == right / 17 and len(labels["confusion"]) == 17
    assert "label_accuracy" in capsys.readouterr().out
    assert evaluate_rag.main(flags) == 1
    assert "ask_label: only a language model can choose a label" in capsys.readouterr().err
