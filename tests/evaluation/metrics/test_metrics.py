"""Metrics are found by file name and asked for by any of their names."""

from __future__ import annotations

import pytest

from exhibit.evaluation.metrics import KS, Options, check_names, measure, metric_modules, metric_names
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.metrics.build import at, case, gold

CASES = [
    case([gold((0, 10), text="the rent is £900")], [at(0, 10)], answer="£900 [1]", seconds=0.5, truth="£900"),
    case([gold((0, 10), text="the rent is £900")], [at(5, 10)], answer="£900 [1]", truth="£900", error="timed out"),
    case(answer="Not found in provided documents", truth="Not found in provided documents", is_impossible=True),
]


def test_every_file_is_a_metric_and_every_name_of_the_results_is_there():
    found = metric_modules()
    assert {"characters", "drm", "recall", "ndcg"} <= set(found)
    assert not any(name.startswith("_") for name in found)
    names = metric_names()
    assert len(names) == len(set(names))
    assert set(names) >= {
        "char_precision@1", "char_recall@64", "drm@8", "document_hit@1", "recall@10", "ndcg@10", "exact_match",
        "span_f1", "answer_f1", "abstention_accuracy", "false_refusal_rate", "answer_length", "latency", "any_citation",
    }  # fmt: skip


@pytest.mark.parametrize("file", metric_modules())
def test_a_metric_has_one_value_a_case_none_for_a_failure_and_keeps_to_its_names(file):
    module = metric_modules()[file]
    values = module.measure(CASES, Options())
    assert set(values) <= set(module.NAMES)
    for column in values.values():
        assert len(column) == len(CASES)
        assert column[1] is None
        assert all(value is None or isinstance(value, float) for value in column)
    assert all(column == [] for column in module.measure([], Options()).values())


RETRIEVAL = [
    "characters", "drm", "document_hit", "recall", "ndcg", "exact_match", "span_f1", "chunk_economy",
]  # fmt: skip


@pytest.mark.parametrize("file", RETRIEVAL)
def test_retrieval_does_not_apply_to_an_impossible_row(file):
    row = case([gold((0, 10), text="the rent")], [at(0, 10)], is_impossible=True)
    assert {value for column in metric_modules()[file].measure([row], Options()).values() for value in column} == {None}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["drm@8"], ["drm@8"]),
        (["document_hit"], [f"document_hit@{k}" for k in KS]),
        (["characters"], [f"char_{kind}@{k}" for kind in ("precision", "recall") for k in KS]),
        (["char_recall@2", "latency"], ["char_recall@2", "latency"]),
        (["abstention"], ["abstention_accuracy", "false_refusal_rate"]),
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
    with pytest.raises(ToolkitError, match=r"no drm@5: this run reads rankings at k = 1, 2, 4"):
        measure(CASES, names=["drm@5"])


def test_names_that_no_metric_has_are_named_together():
    with pytest.raises(ToolkitError, match=r"no metric 'rouge', 'bleu@4'; there are abstention_accuracy, .*span_f1"):
        check_names(["drm", "rouge", "bleu@4"])


@pytest.mark.parametrize("wrong", [{"ks": ()}, {"ks": (2, 1)}, {"ks": (0, 1)}, {"ks": (1, 1)}, {"k": 0}])
def test_depths_must_make_sense(wrong):
    with pytest.raises(ToolkitError, match="must be"):
        Options(**wrong)
