"""Labels: choices in the question, the one that a reply makes, and what evidence alone chooses."""

from __future__ import annotations

import json

import pytest

import evaluate_rag
from exhibit.evaluation.choices import choices_of, choose, chosen, describe_choices, with_choices
from exhibit.evaluation.metrics import measure
from exhibit.schemas.errors import BundleError
from tests.evaluation.metrics.build import case

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
def test_the_label_that_a_reply_chooses(answer, label):
    assert chosen(answer, NLI) == label
    row = case(answer=answer, choices=NLI, label="Entailment")
    assert measure([row], names=["label-accuracy"]) == {"label_accuracy": [float(label == "Entailment")]}


def test_where_nothing_was_asked_for_there_is_no_label():
    assert measure([case(answer="Entailment")], names=["label_accuracy"]) == {"label_accuracy": [None]}
    assert with_choices("May it?", ()) == "May it?" and with_choices("May it?", NLI).endswith("NotMentioned.")
    with pytest.raises(BundleError, match="1 different values; 2 to 12"):
        choices_of("label", [{"label": "x"}], where="nda")


def test_accuracy_macro_f1_and_confusions_by_hypothesis():
    told = describe_choices([("h1", "Yes", "Yes"), ("h1", "No", "Yes"), ("h2", "No", "No"), ("h2", "No", "")])
    assert told["accuracy"] == 0.5 and told["macro_f1"] == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert told["confusion"] == {"h1": {"Yes": {"Yes": 1}, "No": {"Yes": 1}}, "h2": {"No": {"No": 1, "none": 1}}}


def test_without_a_model_confidence_and_the_reranker_choose():
    def score(question, passages):
        return [float("Entailment" in question) for _ in passages]

    assert choose(case(answer="x", choices=NLI, confidence=0.2), ["p"], score) == "NotMentioned"
    assert choose(case(answer="x", choices=NLI, confidence=0.9), ["p"], score) == "Entailment"
    assert choose(case(answer="x", choices=NLI, confidence=0.9), ["p"], None) is None


def test_the_pipeline_is_asked_for_contractnli_s_labels(converted, tmp_path, capsys):
    bundle = converted("contractnli")
    flags = ["--dataset-paths", str(bundle), "--ask-label", "label", "--limit", "17", "--embedder", "hashing"]
    flags += ["--output-dir", str(tmp_path), "--run-name", "r", "--report-cases", "0", "--metrics", "label-accuracy"]
    assert evaluate_rag.main(flags) == 0
    told = json.loads((tmp_path / "r" / "contractnli" / "labels.json").read_text(encoding="utf-8"))
    assert told["questions"] == 17 and 0 <= told["macro_f1"] <= 1 and len(told["confusion"]) == 17
    assert "label_accuracy" in capsys.readouterr().out
