"""All metrics together: which are registered, which a run computes, and a user's own functions."""

import math
import sys

import pytest

from exhibit.evaluation import metrics
from exhibit.evaluation.metrics import (
    Metric,
    Options,
    choose_headlines,
    describe_metric,
    import_metrics,
    measure,
    metric,
    registered,
    shorten_metrics,
)
from exhibit.runtime import plugins
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.metrics.build import at, case, gold

ROW = case([gold((0, 9))], [at(0, 9)], answer="The rent is £900.", truth="£900")


@pytest.fixture(autouse=True)
def _restore():
    before = dict(import_metrics())
    yield
    metrics._registered.clear()
    metrics._registered.update(before)


def test_every_metric_is_described_and_scores_a_case():
    assert len(import_metrics()) <= 45
    for own in import_metrics().values():
        assert own.title[0].isupper() and own.meaning and own.group != "Other"
    assert {"char_recall@8", "recall@10", "answered_rightly", "document_hit@1"} <= measure([ROW]).keys()


@pytest.mark.parametrize(("name", "group", "better", "needs_judge"), [
    ("drm@8", "Retrieval", "less", False), ("groundedness", "Answers", "more", True),
    ("ceiling_chunks", "Stages", "more", False), ("from_elsewhere@3", "Other", "neither", False),
])  # fmt: skip
def test_describe_metric_states_group_direction_and_whether_metric_needs_a_judge(name, group, better, needs_judge):
    described = describe_metric(name)
    assert (described.group, described.better, "judge" in described.needs) == (group, better, needs_judge)


@pytest.mark.parametrize(
    ("names", "figures"),
    [(["ndcg"], ["ndcg@5", "ndcg@10"]), (["ndcg@20"], ["ndcg@20"]), (["recall@3", "span_f1"], ["recall@3", "span_f1"])],
)
def test_measure_computes_only_named_metrics(names, figures):
    assert list(measure([ROW], names=names)) == figures


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recal", r"no metric 'recal' \(did you mean recall\?\); the metrics are "),
        ("recall@99", "only 64 passages are ranked"),
        ("span_f1@3", "write NAME, or NAME@K"),
        ("recall@0", "write NAME, or NAME@K"),
    ],
)
def test_measure_rejects_unknown_metric_or_cutoff(name, message):
    with pytest.raises(ToolkitError, match=message):
        measure([ROW], names=[name])


def test_choose_headlines_returns_six_headline_metrics():
    names = list(measure([ROW]))
    headlines = choose_headlines(names)
    assert len(headlines) == 6 and headlines[0] == "answered_rightly"
    retrieval = choose_headlines(name for name in names if describe_metric(name).group == "Retrieval")
    assert retrieval[:3] == ["recall@10", "document_hit@1", "char_recall@8"]
    assert choose_headlines(["recall@3", "char_recall@4"]) == ["recall@3", "char_recall@4"]
    assert "exact_match" not in shorten_metrics(names) and "exact_match" in shorten_metrics(names, all_families=True)


@pytest.mark.parametrize(("unit", "value", "terminal", "report"), [
    ("share", 0.1234, "0.123", "12.3"), ("seconds", 1.234, "1.23", "1.23"),
    ("currency", 0.0001, "0.000100", "0.000100"), ("characters", 1234.5, "1,234", "1,234"), ("share", None, "–", "–"),
    ("share", math.nan, "–", "–"),
])  # fmt: skip
def test_metric_formats_value_for_terminal_and_report(unit, value, terminal, report):
    described = Metric("x", "X", "x", unit=unit)
    assert (described.figure(value), described.in_words(value)) == (terminal, report)


def test_function_is_a_metric_only_while_registered():
    def words(case):
        return len(case.reply.answer.split())

    with registered(["recall", words]) as names:
        assert names == ["recall", "words"]
        assert measure([ROW], names=["words"]) == {"words": [4.0]}
        assert describe_metric("words").higher_is_better is None
    assert "words" not in import_metrics() and "recall" in import_metrics(), "`words` is no longer registered"


def test_metric_decorator_passes_options_and_cutoff_and_gives_none_for_failed_question():
    @metric(title="Shorts", meaning="short passages", needs=("passages",), at=("k", 3))
    def shorts(case, options, k):
        return options.k + k

    assert measure([ROW, case(error="timed out")], Options(k=7), names=["shorts"]) == {
        "shorts@3": [10.0, None],
        "shorts@7": [14.0, None],
    }


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda case: math.nan, "returned nan for the question 0; it must return a finite number"),
        (lambda case: 1e308, "returned 1e+308 for the question 0; it must return a finite number of at most 1e+15"),
        (lambda case: math.inf, "returned inf"),
        (lambda case: "much", "returned 'much'"),
        (lambda case: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_measure_names_metric_that_fails_or_returns_invalid_value(function, message):
    function.__name__ = "faulty"
    with (
        registered([function]) as names,
        pytest.raises(ToolkitError, match="the metric faulty .*test_metrics.py") as error,
    ):
        measure([ROW], names=names)
    assert message in str(error.value)


def test_register_refuses_name_of_existing_metric():
    def recall(case):
        return 1.0

    with pytest.raises(ToolkitError, match="recall .*the name is taken by recall .*retrieval.py"), registered([recall]):
        pass


SOUND = """
from exhibit.evaluation.metrics import metric

@metric(title="Commas", meaning="commas")
def commas(case):
    return 0.5
"""


def test_metric_of_installed_distribution_is_measured_unless_its_name_is_taken(tmp_path, monkeypatch, request):
    def install(text):
        (tmp_path / "house_commas.py").write_text(text, encoding="utf-8")
        sys.modules.pop("house_commas", None)
        for cached in (plugins.points_of, plugins._load, metrics._load_plugins):
            cached.cache_clear()

    request.addfinalizer(lambda: install(""))
    (tmp_path / "house-1.dist-info").mkdir()
    (tmp_path / "house-1.dist-info" / "entry_points.txt").write_text("[exhibit.metrics]\ncommas = house_commas\n")
    (tmp_path / "house-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.setattr(sys, "dont_write_bytecode", True)  # bytecode is not renewed if size and second are the same
        install(SOUND)
        assert measure([ROW], names=["commas"]) == {"commas": [0.5]}
        install(SOUND.replace("def commas", "def recall"))
        with pytest.raises(ToolkitError, match="the metric recall .*house_commas.py.*the name is taken"):
            measure([ROW], names=["recall"])
