"""Classification labels: offered in the question, read from a reply, and scored."""

from __future__ import annotations

import json

import pytest

import evaluate_rag
from exhibit.evaluation.cases import with_choices, without_choices
from exhibit.evaluation.datasets import offers_of
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.outcomes import describe_choices, find_chosen_label
from exhibit.evaluation.text_tables import describe_labels
from exhibit.schemas.errors import BundleError
from tests.evaluation.metrics.build import case
from tests.rag.bundles import rows_of

NLI = ("Contradiction", "Entailment", "NotMentioned")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Entailment. The Recipient may keep a copy [1].", "Entailment"),
        ("The label is: CONTRADICTION", "Contradiction"),
        ("Not mentioned, rather than Entailment", "NotMentioned"),
        ("Not found in provided documents.", "NotMentioned"),
        ("The Recipient may keep a copy.", None),
    ],
)
def test_find_chosen_label_reads_label_from_reply(answer, label):
    assert find_chosen_label(answer, NLI) == label
    row = case(answer=answer, choices=NLI, label="Entailment")
    assert measure([row], names=["label-accuracy"]) == {"label_accuracy": [float(label == "Entailment")]}


def test_label_accuracy_is_none_without_choices():
    assert measure([case(answer="Entailment")], names=["label_accuracy"]) == {"label_accuracy": [None]}
    assert with_choices("May it?", ()) == "May it?" and with_choices("May it?", NLI).endswith("NotMentioned.")
    with pytest.raises(BundleError, match="it has 1 different values, but must have 2 to 12"):
        offers_of("label", {0: {"label": "x"}}, where="nda")


def test_offers_of_returns_choices_for_each_subquestion_of_a_compound_label():
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
    told = describe_choices([("h1", "Yes", "Yes"), ("h1", "No", "Yes"), ("h2", "No", "No"), ("h2", "No", "")])
    assert (
        told["accuracy"] == 0.5
        and told["majority"] == 0.75
        and "commonest label: accuracy 0.750" in describe_labels("x", told)
    )
    assert told["macro_f1"] == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert told["confusion"] == {"h1": {"Yes": {"Yes": 1}, "No": {"Yes": 1}}, "h2": {"No": {"No": 1, "none": 1}}}


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
