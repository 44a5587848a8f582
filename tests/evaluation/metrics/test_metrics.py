"""Metrics are found by file name and asked for by any of their names."""

from __future__ import annotations

import pytest

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.metrics import (
    KS,
    Options,
    check_names,
    find_headline,
    import_metrics,
    list_metrics,
    measure,
)
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.metrics.build import apply, at, case, gold

CASES = [
    case([gold((0, 10), text="the rent is £900")], [at(0, 10)], answer="£900 [1]", seconds=0.5, truth="£900"),
    case([gold((0, 10), text="the rent is £900")], [at(5, 10)], answer="£900 [1]", truth="£900", error="timed out"),
    case(answer="Not found in provided documents", truth="Not found in provided documents", is_impossible=True),
]


def test_every_file_is_a_metric_and_every_name_of_the_results_is_there():
    found = import_metrics()
    assert {"characters", "drm", "recall", "ndcg"} <= set(found)
    assert not any(name.startswith("_") for name in found)
    names = list_metrics()
    assert len(names) == len(set(names))
    assert set(names) >= {
        "char_precision@1", "char_recall@64", "drm@8", "document_hit@1", "recall@10", "ndcg@10", "exact_match",
        "span_f1", "answer_f1", "abstention_accuracy", "false_refusal_rate", "answer_length", "latency", "any_citation",
    }  # fmt: skip


@pytest.mark.parametrize("file", import_metrics())
def test_a_metric_has_one_value_a_case_none_for_a_failure_and_keeps_to_its_names(file):
    module = import_metrics()[file]
    values = apply(module, CASES, Options())
    assert set(values) <= set(module.NAMES)
    for column in values.values():
        assert len(column) == len(CASES)
        assert column[1] is None
        assert all(value is None or isinstance(value, float) for value in column)
    assert all(column == [] for column in apply(module, [], Options()).values())


RETRIEVAL = [
    "characters", "drm", "document_hit", "recall", "ndcg", "exact_match", "span_f1", "chunk_economy",
]  # fmt: skip


@pytest.mark.parametrize("file", RETRIEVAL)
def test_retrieval_does_not_apply_to_an_impossible_row(file):
    row = case([gold((0, 10), text="the rent")], [at(0, 10)], is_impossible=True)
    assert {value for column in apply(import_metrics()[file], [row], Options()).values() for value in column} == {None}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["drm@8"], ["drm@8"]),
        (["document_hit"], [f"document_hit@{k}" for k in KS]),
        (["characters"], [f"char_{kind}@{k}" for kind in ("precision", "recall") for k in KS]),
        (["char_recall@2", "latency"], ["char_recall@2", "latency"]),
        (["abstention"], ["abstention_accuracy", "false_refusal_rate", "refusal_unsure"]),
        (["ndcg@20", "drm@3"], ["drm@3", "ndcg@20"]),
        (["ndcg(cutoff=20)", "mrr(cutoff=3)"], ["mrr@3", "ndcg@20"]),
        (["recall(cutoff=7)", "recall"], ["recall@10", "recall@7"]),
        (["char_recall(cutoff=3)"], ["char_recall@3"]),
    ],
)
def test_a_metric_is_asked_for_by_file_family_or_name(asked, found):
    assert list(measure(CASES, names=asked)) == found


def test_depths_are_the_run_s():
    assert list(measure(CASES, Options(ks=(3,), k=5), names=["drm", "recall", "ndcg"])) == [
        "drm@3",
        "ndcg@5",
        "recall@5",
    ]
    with pytest.raises(ToolkitError, match=r"drm@65: its cutoff is too large: only 64 passages are ranked"):
        measure(CASES, names=["drm@65"])


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("ndcg(cutoff=0)", r"ndcg\(cutoff=0\): cutoff: Input should be greater than or equal to 1"),
        ("ndcg(depth=3)", r"ndcg\(depth=3\): no parameter 'depth'; the parameters are cutoff"),
        ("latency@3", r"latency\(cutoff=3\): no parameter 'cutoff'; the parameters are none"),
        ("ndcg(3)", "'3' is not parameter=value, such as cutoff=20"),
        ("ndcg(cutoff=3", r"write NAME, NAME@K or NAME\(parameter=value\)"),
    ],
)
def test_a_wrong_parameter_is_named_with_those_there_are(asked, complaint):
    with pytest.raises(ToolkitError, match=complaint):
        measure(CASES, names=[asked])


def test_a_parameter_changes_what_is_measured():
    sure = [Case(1, "?", "", reply=Reply("a", confidence=0.4)), Case(2, "?", "", reply=Reply("a", confidence=0.6))]
    assert measure(sure, names=["flagged(below=0.5)"]) == {"flagged": [1.0, 0.0]}
    assert measure(sure, names=["flagged(below=0.3)"]) == {"flagged": [0.0, 0.0]}


def test_every_metric_has_one_name_that_stands_for_it():
    told = {file: find_headline(file) for file in import_metrics()}
    assert told["ndcg"] == "ndcg@10" and told["characters"] == "char_recall@8" and told["latency"] == "latency"
    assert all(name in import_metrics()[file].NAMES for file, name in told.items())


def test_names_that_no_metric_has_are_named_together():
    with pytest.raises(
        ToolkitError, match=r"no metric 'rouge', 'bleu@4'; the metrics are abstention_accuracy, .*span_f1"
    ):
        check_names(["drm", "rouge", "bleu@4"])


@pytest.mark.parametrize("wrong", [{"ks": ()}, {"ks": (2, 1)}, {"ks": (0, 1)}, {"ks": (1, 1)}, {"k": 0}])
def test_depths_must_make_sense(wrong):
    with pytest.raises(ToolkitError, match="must be"):
        Options(**wrong)


@pytest.mark.parametrize("name", ["acord", "contractnli", "cpr", "cuad", "legalbenchrag", "maud", "privacyqa"])
def test_every_benchmark_names_a_metric_that_there_is(name):
    module, _ = load_plugin("exhibit.converters", name)
    check_names([module.INFO.headline])
