"""Edge cases of the pages' plots, tables and sentences, as numbers and text."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from exhibit.evaluation.bands import Bands, Bound, Scale
from exhibit.evaluation.statistics import Estimate
from exhibit.schemas.run import RunQuestion
from exhibit.viewer import report
from exhibit.viewer.matching import Outcomes
from exhibit.viewer.metric_tables import (
    MetricRow,
    group_rows,
    make_breakdowns,
    make_cell,
    make_metric_rows,
    run_columns,
)
from exhibit.viewer.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Bar,
    Plot,
    PlotLine,
    Point,
    make_plots,
    plot_by_dataset,
    plot_confidence,
    plot_latency,
    plot_over_k,
    stack_shares,
)
from exhibit.viewer.report import choose_worth_looking_at, format_start, headline_of, write_headlines
from exhibit.viewer.trend.index import draw

SCALE = Scale({}, {})


def rounded(value: object) -> object:
    """Return a plot's data with numbers rounded to a tenth and empty values left out."""
    if isinstance(value, dict):
        return {key: rounded(held) for key, held in value.items() if held not in ([], None, False, "")}
    if isinstance(value, list | tuple):
        return [rounded(held) for held in value]
    return round(value, 1) if isinstance(value, float) else value


def told(plot: Plot | None) -> object:
    assert plot is not None
    return {**rounded(asdict(plot)), "paths": [line.path for line in plot.lines], "summary": plot.summary}  # type: ignore[dict-item]


class FakeRun(SimpleNamespace):
    """A run whose values are given as attributes."""

    def means_of(self, name: str) -> dict[str, Estimate]:
        return self.own.get(name, {})

    def means_by_label(self, name: str) -> dict[str, dict[str, dict[str, Estimate]]]:
        return self.labelled

    def confidence(self, name: str) -> SimpleNamespace:
        return self.sure[name]


def run_of(**own: dict[str, Estimate]) -> FakeRun:
    config = SimpleNamespace(
        target=None, datasets={name: SimpleNamespace(headline=None, files=3, draft=None) for name in own}
    )
    started = SimpleNamespace(started="2026-03-04T05:06:00+00:00")
    means = next(iter(own.values()), {})
    return FakeRun(datasets=list(own), own=own, means=means, config=config, settings={}, provenance=started, name="r")


def row(verdict: str = "answered", **given) -> RunQuestion:
    reply = {"error": "", **given.pop("reply", {})}
    return RunQuestion.model_validate(
        {"id": 1, "question": "q?", "truth": "t", "verdict": verdict, "reply": reply, **given}
    )


# ---------------------------------------------------------------- pictures


def test_pictures_are_drawn_as_ever(golden):
    means = {
        f"char_recall@{k}": Estimate(share, 9, ci95=(share - 0.1, share + 0.05))
        for k, share in ((1, 0.2), (2, 0.4), (8, 0.55))
    } | {
        "char_precision@8": Estimate(0.3, 9),
        "char_precision@1": Estimate(None, 0),
        "document_hit@1": Estimate(1.0, 9),
    }
    run = run_of(
        cuad=means,
        maud={"char_recall@8": Estimate(0.75, 9)},
        none={"answer_f1": Estimate(0.5, 2)},
        **{f"d{n}": {"char_recall@8": Estimate(n / 10, 9)} for n in range(9)},
    )
    counted = {"cuad": Counter({"answered rightly": 3, "failed": 1}), "none": Counter(), "maud": Counter({"failed": 2})}
    pictures = {
        "depths": told(plot_over_k(means, ["char_recall", "char_precision", "drm"], "Title", "note")),
        "datasets": told(plot_by_dataset(run)),
        "few": told(plot_by_dataset(run_of(cuad={"answer_f1": Estimate(0.5, 9, ci95=(0.4, 0.6))}))),
        "times": told(plot_latency([0.1, 0.2, 0.2, 0.9, 1.5])),
        "shares": rounded(stack_shares(counted)),
    }
    golden("viewer/small_plots.json", json.dumps(pictures, ensure_ascii=False, indent=1) + "\n")
    assert (LEFT, RIGHT, TOP, BOTTOM) == (34, 330, 14, 176) and (WIDTH, HEIGHT) == (340, 210)
    assert plot_over_k({"char_recall@1": Estimate(0.5, 1)}, ["char_recall"], "t", "n") is None, "one depth is no line"
    assert plot_by_dataset(run_of(cuad={"latency": Estimate(0.5, 2), "drm@8": Estimate(0.5, 2)})) is None


def test_what_cannot_be_seen_is_told_in_words():
    assert Plot("T", "n", bars=[Bar(0, 0, 1, 1, "a", "a 5%")]).summary == "T. a 5%"
    line = PlotLine("x", [Point(1.04, 2, "one"), Point(3, 4.25, "two")])
    assert (
        Plot("T", "n", lines=[line, line]).summary == "T. x: one, two; x: one, two" and line.path == "1.0,2.0 3.0,4.2"
    )
    assert plot_latency([0.0, 0.0]).note == "median 0 ms, 95% under 0 ms"  # type: ignore[union-attr]
    assert plot_latency([0.999, 1.0]).ticks[-1].label == "1.0 s"  # type: ignore[union-attr]


def test_confidence_is_drawn_for_as_many_datasets_as_there_are_colours():
    curve = SimpleNamespace(
        auroc=0.755,
        calibration=[{"confidence": 0.25, "answerable": 0.5}],
        risk_at_coverage=[{"coverage": 0.5, "risk": 0.1}, {"coverage": 1.0, "risk": 0.2}],
    )
    run = run_of(a={}, b={}, c={}, d={})
    run.sure = {"a": SimpleNamespace(auroc=None), "b": curve, "c": curve, "d": curve}
    right, saved = plot_confidence(run)
    assert right.note == "share answerable, by confidence; AUROC b 0.76, c 0.76"
    assert [line.name for line in right.lines] == ["b", "c"] == [line.name for line in saved.lines]
    assert right.lines[0].points == [Point(108.0, 95.0, "50% answerable at 25% confidence")]
    assert saved.lines[0].points[1] == Point(330.0, 143.6, "20% without an answer among the surest 100%")
    assert (
        [tick.label for tick in right.ticks] == [side.label for side in right.sides] == ["0", "25", "50", "75", "100"]
    )
    assert [side.y for side in saved.sides] == [176, 135.5, 95, 54.5, 14]
    run.sure = dict.fromkeys("abcd", SimpleNamespace(auroc=None))
    assert make_plots(run, []) == []


def series_of(*means: Estimate | None, data: str = "") -> SimpleNamespace:
    versions = data or "x" * len(means)
    runs = [SimpleNamespace(name=f"r{n}", data_version=lambda _, n=n: versions[n]) for n in range(len(means))]
    return SimpleNamespace(runs=runs, dataset="d", title="d", list_means=lambda _: list(means))


def test_a_metric_over_runs_is_drawn_as_ever(golden):
    numbers = {f"r{n}": n + 1 for n in range(30)}
    worse = [SimpleNamespace(at=1, falls=[SimpleNamespace(metric="answer_f1")]), SimpleNamespace(at=2, falls=[])]
    share = series_of(
        Estimate(0.53, 9, ci95=(0.45, 0.61)), Estimate(0.41, 8), Estimate(0.72, 7, ci95=(0.6, 0.8)), data="abb"
    )
    pictures = {
        "share": told(draw(share, "answer_f1", numbers, worse, Bands(Bound(">", 0.6), Bound("<", 0.5)))),
        "low": told(draw(share, "drm@8", numbers, worse, Bands(Bound("<", 0.1), Bound(">", 0.9)))),
        "seconds": told(draw(series_of(Estimate(2.0, 9), Estimate(4.0, 9)), "latency", numbers, [], None)),
        "same": told(draw(series_of(Estimate(2.0, 9), None, Estimate(2.0, 9)), "latency", numbers, [], None)),
        "nothing": told(draw(series_of(Estimate(0.0, 9)), "latency", numbers, [], None)),
        "below": told(draw(series_of(Estimate(-2.0, 9), Estimate(1.0, 9)), "latency", numbers, [], None)),
        "many": told(draw(series_of(*[Estimate(0.5, 9)] * 11), "answer_f1", numbers, [], None)),
    }
    golden("viewer/small_trend.json", json.dumps(pictures, ensure_ascii=False, indent=1) + "\n")
    ten = draw(series_of(*[Estimate(0.5, 9)] * 10), "answer_f1", numbers, [], None)
    assert ten is not None and len(ten.ticks) == 10 and ten.breaks == []


# ---------------------------------------------------------------- tables


def test_columns_are_all_datasets_where_there_are_several():
    one = {"answer_f1": Estimate(0.5, 4)}
    assert run_columns(run_of(cuad=one)) == {"cuad": one}
    assert list(run_columns(run_of(cuad=one, maud=one))) == ["", "cuad", "maud"]


def test_rows_are_grouped_and_have_a_cell_for_each_column():
    columns = {
        "a": {"answer_f1": Estimate(0.5, 4), "char_recall@8": Estimate(0.5, 4)},
        "b": {"answer_f1": Estimate(None, 0)},
    }
    rows = make_metric_rows(columns, None, SCALE)
    assert [(row.metric, row.depth, [one.mean for one in row.cells]) for row in rows] == [
        ("char_recall@8", "8", ["50.0", "–"]), ("answer_f1", "", ["50.0", "–"])
    ]  # fmt: skip
    assert [(group, [row.metric for row in mine]) for group, mine in group_rows(rows[::-1])] == [
        ("Retrieval", ["char_recall@8"]), ("Answers", ["answer_f1"])
    ]  # fmt: skip
    assert make_metric_rows(columns, ["map", "answer_f1"], SCALE)[0][0] == "answer_f1" and group_rows([]) == []
    assert isinstance(rows[0], MetricRow)


def test_a_breakdown_has_the_largest_values_first_and_says_how_many_are_left_out():
    values = {f"v{n:02}": {"answer_f1": Estimate(0.5, 2 + n % 2)} for n in range(46)}
    run = run_of(cuad={})
    run.labelled = {"kind": values, "empty": {"x": {}, "y": {}}}
    [table] = make_breakdowns(run, SCALE)
    names = [name for name, _ in table.lines]
    assert (table.dataset, table.label, len(names), table.left_out) == ("cuad", "kind", 45, 1)
    assert names[:3] == ["v01", "v03", "v05"] and names[23:25] == ["v00", "v02"]
    run.labelled = {"kind": dict(list(values.items())[:45])}
    assert make_breakdowns(run, SCALE)[0].left_out == 0


@pytest.mark.parametrize(("mean", "share"), [(-0.5, 0.0), (0.0, 0.0), (0.5, 0.5), (1.5, 1.0)])
def test_a_bar_behind_a_number_is_within_its_cell(mean, share):
    assert make_cell("answer_f1", Estimate(mean, 9), SCALE).share == share
    assert make_cell("answer_f1", Estimate(0.5, 9, std=0.0), SCALE).details == "SD 0.0 · n 9"
    assert make_cell("answer_f1", Estimate(0.5, 9, ci95=(0.25, 0.75)), SCALE).details == "25.0–75.0 · n 9"
    assert make_cell("answer_f1", None, SCALE).errors == 0


# ---------------------------------------------------------------- sentences


def test_a_metric_sums_a_dataset_up():
    run = run_of(cuad={})
    known = {f"{name}@{k}": Estimate(0.5, 4) for name in ("ndcg", "char_recall") for k in (1, 4, 11, 16)}
    assert headline_of(run, "cuad", known) == "char_recall@11", "three from eight; four is further"
    assert headline_of(run, "cuad", {**known, "char_recall@11": Estimate(None, 0)}) == "char_recall@4"
    assert headline_of(run, "cuad", {"answer_f1": Estimate(0.5, 4), "ndcg@4": Estimate(0.5, 4)}) == "ndcg@4"
    assert headline_of(run, "cuad", {"answer_f1": Estimate(0.5, 4)}) is None, "it compares unlike things"
    assert headline_of(run, "cuad", {"latency": Estimate(0.5, 4)}) is None
    run.config.datasets["cuad"].headline = "latency"
    assert headline_of(run, "cuad", {"latency": Estimate(0.5, 4), **known}) == "latency"
    assert headline_of(run, "cuad", known) == "char_recall@11", "what is named and was not measured"


def test_headlines_are_a_sentence_a_metric():
    one, two = Estimate(0.5, 4, ci95=(0.4, 0.6)), Estimate(0.25, 4, ci95=(0.1, 0.3))
    run = run_of(cuad={"char_recall@8": one}, maud={"char_recall@8": two}, cpr={"answer_f1": Estimate(0.75, 4)}, x={})
    assert [line.partition(": ")[2] for line in write_headlines(run)] == [
        "50.0% (95% interval 40.0 to 60.0) for cuad; 25.0% (10.0 to 30.0) for maud.",
    ]
    assert " in the first 8 passages: " in write_headlines(run)[0]
    assert write_headlines(run_of(cuad={}, maud={})) == []


def test_what_was_tested_is_told_in_a_sentence():
    tally = Outcomes()
    for number in range(1200):
        tally.add(row(id=number, dataset="cuad"))
    run = run_of(cuad={}, maud={}, cpr={})
    when_ = "on 4 March 2026 at 05:06 UTC."
    assert report.describe_system(run, tally) == (
        f"The built-in pipeline was asked 1,200 questions about 9 documents of cuad, maud and cpr {when_}"
    )
    run.settings = {"preset": "sac"}
    run.config.datasets["maud"].files = None
    assert report.describe_system(run, tally) == (
        f"The built-in pipeline, preset sac, was asked 1,200 questions of cuad, maud and cpr {when_}"
    )
    alone = run_of(cuad={})
    alone.config.target = "http"
    assert (
        report.describe_system(alone, tally)
        == f"The target http was asked 1,200 questions about 3 documents of cuad {when_}"
    )
    alone.settings = {"target_url": "http://h/"}
    assert report.describe_system(alone, tally).startswith("The system at http://h/ was asked")
    alone.provenance.started = "then"
    assert format_start(alone) == "at an unknown time"


def test_failed_questions_are_not_worth_looking_at():
    tally = Outcomes()
    tally.add(row("failed", dataset="d", reply={"error": "x"}))
    tally.add(row("wrong document", id=7, dataset="d"))
    [look] = choose_worth_looking_at(tally)
    assert (look.key, look.question, look.outcome) == ("d/7", "q?", "wrong document") and look.why
