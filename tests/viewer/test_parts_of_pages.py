"""Parts of the pages, without a browser: positions in texts, outcomes, list lines, axes, gates, messages."""

from __future__ import annotations

import argparse
import base64
import json
import zlib
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from exhibit.evaluation.bands import Bands, Bound, Scale
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import Difference, Estimate
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.drawing import (
    Wanted,
    choose_pages,
    cut_windows,
    find_best_place,
    find_gold_ranges,
    mark_spans,
    meets,
)
from exhibit.viewer.listing import (
    Catalogue,
    Inlined,
    fields_of,
    find_gold_recall,
    labels_of,
    make_brief,
    number_value,
    pack,
    write_piece,
)
from exhibit.viewer.matching import (
    Facet,
    Outcomes,
    cut,
    explain_outcome,
    find_change,
    find_error_kind,
    find_nearest,
    find_outcome,
    is_right,
)
from exhibit.viewer.metric_tables import Cell, compare_cell, make_breakdowns, make_cell, make_metric_rows
from exhibit.viewer.plots import BOTTOM, LEFT, RIGHT, TOP, compute_x, compute_y, format_outline, plot_latency
from exhibit.viewer.question_export import filter_records, write_table
from exhibit.viewer.report import Tile, choose_worth_looking_at, make_tiles
from exhibit.viewer.review.source import agree, compute_kappa, compute_weights, draw_sample, stratify
from exhibit.viewer.trend.changes import Fall, Regression
from exhibit.viewer.trend.gates import check_gates, parse_gate
from exhibit.viewer.trend.index import draw
from exhibit.viewer.trend.summary import (
    ChangedSetting,
    Explanation,
    FallenGroup,
    fall_in_words,
    format_metric_title,
    format_value,
    sentences,
    shorten_digest,
    write_headline,
)


def row(verdict: str = "answered", *, reply: dict | None = None, **told) -> RunQuestion:
    given = {"id": 1, "question": "q?", "truth": "t", "verdict": verdict, "reply": {"error": "", **(reply or {})}}
    return RunQuestion.model_validate({**given, **told})


# ---------------------------------------------------------------- places


def test_of_several_places_the_one_best_retrieved_is_shown():
    places = [[(0, 10)], [(20, 30), (40, 50)]]
    assert find_best_place(places, []) == [Span(0, 10)] and find_best_place(places, [Span(25, 45)]) == [
        Span(20, 30),
        Span(40, 50),
    ]
    assert find_best_place(places, [Span(5, 10), Span(45, 50)]) == [Span(0, 10)], "the first of equals"
    passages = [{"text": "x", "filename": "a", "span": (25, 45)}, {"text": "y", "filename": None, "span": None}]
    one = row(reply={"passages": passages}, gold=[{"filename": "a", "text": "g", "places": places}])
    at = mark_spans(one)
    assert (
        at["a"].passages == {1: [Span(25, 45)]} and at["a"].gold == [Span(20, 30), Span(40, 50)] and list(at) == ["a"]
    )


def test_characters_of_a_passage_that_are_gold_are_counted_from_its_beginning():
    assert find_gold_ranges(Span(10, 30), [Span(0, 12), Span(12, 15), Span(20, 25), Span(24, 40)]) == [(0, 5), (10, 20)]
    assert find_gold_ranges(Span(10, 30), [Span(0, 10), Span(30, 40)]) == []
    assert meets(Span(0, 5), [Span(4, 9)]) and not meets(Span(0, 5), [Span(5, 9)]) and not meets(Span(0, 5), [])


def test_a_text_is_shown_around_its_marks_with_no_word_cut():
    text = "one two three four five six seven"
    assert cut_windows(text, [Span(8, 13)], around=0) == [[8, "three"]]
    assert cut_windows(text, [Span(8, 13)], around=2) == [[4, "two three four"]]
    assert cut_windows(text, [Span(0, 3), Span(28, 33)], around=1) == [[0, "one two"], [24, "six seven"]]
    assert cut_windows(text, [Span(0, 3), Span(4, 7)], around=0) == [[0, "one"], [4, "two"]]
    assert cut_windows(text, [Span(0, 3), Span(4, 7)], around=1) == [[0, "one two three"]]
    assert cut_windows(text, [Span(0, 33), Span(4, 7)], around=0) == [[0, text]] and cut_windows(text, []) == []
    three = [Span(0, 3), Span(19, 23), Span(22, 23)]
    assert cut_windows(text, three, around=0) == [[0, "one"], [19, "five"]], "the last is joined with the one before it"


# ---------------------------------------------------------------- outcomes and lines


@pytest.mark.parametrize(
    ("verdict", "told", "name"),
    [
        ("answered", {"is_impossible": True}, "rightly refused"),
        ("answered", {}, "right passage used"),
        ("answered", {"scores": {"answered_rightly": 1.0}}, "answered rightly"),
        ("answered", {"scores": {"answered_rightly": 0.0}}, "right passage, another answer"),
        ("expected answer given", {}, "answered rightly"),
        ("wrong document", {}, "wrong document"),
        ("failed", {}, "failed"),
        ("what nobody knows", {}, "cannot be judged"),
    ],
)
def test_what_became_of_a_question(verdict, told, name):
    assert find_outcome(row(verdict, **told)) == name


def test_a_reply_is_right_by_the_first_metric_that_tells():
    assert is_right(row()) is None and is_right(row(scores={"answered_rightly": None})) is None
    failed = row("failed", reply={"error": "HTTP 500"})
    assert explain_outcome(failed)[1:] == ["The error:", "HTTP 500"] and explain_outcome(row("failed"))[2] == "unknown"
    told = explain_outcome(row("wrong document", stage="retrieval", evidence="a.pdf"))
    assert len(told) == 3 and told[-1] == "a.pdf" and explain_outcome(row("wrong document"))[0] == told[1]


def test_a_line_of_the_list_has_its_fields():
    assert fields_of(["a"]) == ["id", "question", "file", "error", "found", "answer"]
    assert fields_of(["a", "b"])[4:] == ["found: a", "found: b", "answer: a", "answer: b"]
    one = row(question="q" * 501, reply={"answer": "w" * 241}, scores={"char_recall@8": 0.12345}, filename="f")
    two = row(reply={"error": "e" * 301})
    told = make_brief([one, None, two])
    assert told[:2] == [1, f"{'q' * 500} …"] and told[3] == f"{'e' * 300} …"
    assert told[4:7] == [0.123, None, None] and told[7:] == [f"{'w' * 240} …", "", ""]
    assert find_gold_recall(two) is None and cut("abc", 3) == "abc" and cut("abcd", 3) == "abc …"


def test_labels_and_errors_are_short():
    assert labels_of(row(labels={"a": 1, "b": "", "c": [1], "d": "x" * 201, "e": None})) == {
        "a": "1",
        "d": f"{'x' * 200} …",
    }
    errors = [row(reply={"error": "first"}), row(reply={"error": f"HTTP 500  at 10.0.0.1 {'y' * 100}"}), None, row()]
    assert find_error_kind(errors) == f"HTTP … at ….….….… {'y' * 72} …" and find_error_kind([row(), None]) == ""
    numbers: dict[str, int] = {}
    assert [number_value(numbers, name) for name in ("a", "b", "a")] == [0, 1, 0]


def test_a_metric_is_taken_at_the_depth_that_is_nearest():
    scores = {"recall@1": 0.1, "recall@4": 0.4, "recall@16": 0.9, "recall": 0.5}
    assert (
        find_nearest(scores, "recall") == 0.4
        and find_nearest(scores, "recall", depth=11) == 0.9
        and find_nearest(scores, "map") is None
    )


# ---------------------------------------------------------------- pictures


def test_places_of_a_picture():
    assert (compute_x(0), compute_x(1), compute_y(0), compute_y(1)) == (LEFT, RIGHT, BOTTOM, TOP) and compute_x(
        0.5
    ) == (LEFT + RIGHT) / 2
    assert format_outline([(0, 1, 2), (3, 4, 5)]) == "0.0,1.0 3.0,4.0 3.0,5.0 0.0,2.0"


def test_times_are_told_by_their_middle_and_their_end():
    assert plot_latency([]) is plot_latency([0.5]) is None, "one reply has no middle"
    two = plot_latency([0.5, 1.0])
    assert two is not None and two.note == "median 750 ms, 95% under 1.0 s"
    late = plot_latency([0.5] * 99 + [50.0])
    assert late is not None and late.ticks[-1].label == "500 ms", "one in a hundred may take as long as it likes"
    assert late.bars[-1].label.startswith("100 replies ")
    plot = plot_latency([0.1] * 18 + [0.5, 2.0])
    assert plot is not None and plot.note == "median 100 ms, 95% under 500 ms"
    assert sum(int(bar.label.split()[0]) for bar in plot.bars) == 20
    assert [tick.label for tick in plot.ticks] == ["0 ms", "1.0 s", "2.0 s"] and plot.bars[0].height == BOTTOM - TOP


class FakeRun(SimpleNamespace):
    def data_version(self, dataset):
        return self.data

    def means_of(self, dataset):
        return self.own


def series_of(*means: Estimate | None, data: str = ""):
    runs = [FakeRun(name=f"r{n}", data=(data or "x" * len(means))[n], own={}) for n in range(len(means))]
    return SimpleNamespace(runs=runs, dataset="d", title="d", list_means=lambda _: list(means), tables=[])


def ends(plot):
    return [point.label for point in plot.sides]


@pytest.mark.parametrize(
    ("means", "sides"),
    [
        ([0.42, 0.58], ["40.0%", "50.0%", "60.0%"]),
        ([0.5, 0.5], ["30.0%", "40.0%", "50.0%"]),
        ([0.0, 0.05], ["0.0%", "10.0%", "20.0%"]),
        ([0.1, 0.9], ["10.0%", "50.0%", "90.0%"]),
    ],
)
def test_the_axis_of_a_share_has_tenths_and_some_room(means, sides):
    plot = draw(series_of(*(Estimate(mean, 9) for mean in means)), "answer_f1", {"r0": 1, "r1": 2}, [], None)
    assert plot is not None and [label.replace(" %", "%") for label in ends(plot)] == sides


def test_a_picture_of_runs_has_points_breaks_zones_and_marks():
    means = [Estimate(0.5, 9, ci95=(0.4, 0.6)), None, Estimate(0.7, 9)]
    bands = Bands(Bound(">", 0.6), Bound("<", 0.45))
    worse = SimpleNamespace(at=2, falls=[SimpleNamespace(metric="answer_f1")])
    plot = draw(series_of(*means, data="aab"), "answer_f1", {"r0": 1, "r1": 2, "r2": 3}, [worse], bands)
    assert plot is not None
    [line] = plot.lines
    assert [point.x for point in line.points] == [LEFT, RIGHT] and [zone.name for zone in plot.zones] == [
        "good",
        "poor",
    ]
    assert [point.x for point in plot.breaks] == [RIGHT] and [tick.label for tick in plot.ticks] == ["1", "2", "3"]
    many = draw(
        series_of(*(Estimate(0.5, 9) for _ in range(21))), "answer_f1", {f"r{n}": n for n in range(21)}, [], None
    )
    assert many is not None and [tick.label for tick in many.ticks] == [str(n) for n in range(0, 21, 3)]
    alone = draw(series_of(Estimate(0.5, 9)), "answer_f1", {"r0": 1}, [], None)
    assert alone is not None and alone.lines[0].points[0].x == (LEFT + RIGHT) / 2
    assert draw(series_of(None), "answer_f1", {}, [], None) is None
    ends = draw(series_of(Estimate(0.5, 9, ci95=(0.4, 0.6))), "answer_f1", {"r0": 1}, [], None)
    assert ends is not None and repr(ends.lines[0]).count("179.0,") == 2 and repr(ends.lines[0]).count("185.0,") == 2


# ---------------------------------------------------------------- words and gates


def test_a_digest_is_as_short_as_it_is_told_apart():
    assert shorten_digest("a" * 40) == "a" * 8 and shorten_digest("a" * 40 + "+") == "a" * 8 + "+"
    assert shorten_digest("a" * 39) == "a" * 39 and shorten_digest("v1.2+") == "v1.2+"


@pytest.mark.parametrize(
    "gate", ["regression", "band", "answer_f1 < 0.5", "cuad: char-recall@8<= 0.6", "failed > 0.02"]
)
def test_a_gate_is_a_word_or_a_bound(gate):
    assert parse_gate(gate) == gate
    for wrong in ("answer_f1", "answer_f1 = 0.5", "< 0.5", "answer_f1 < x"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_gate(wrong)


def table(ids, failed=()):
    return Table("d", list(ids), ["a.pdf"] * len(ids), {}, list(failed) or [0] * len(ids), [{}] * len(ids))


def test_gates_hold_or_not_on_the_newest_run():
    newest = FakeRun(name="r1", data="x", own={"answer_f1": Estimate(0.5, 4), "map": Estimate(None, 0)})
    newest.tables = {"d": table([1, 2, 3, 4], [1, 0, 0, 0])}
    series = SimpleNamespace(runs=[newest], dataset="d", title="d")

    def checked(*gates, regressions=(), scale=Scale({}, {})):  # noqa: B008
        return [(check.name, check.holds) for check in check_gates(gates, [series], regressions, scale)]

    gates = {"answer_f1 < 0.5": True, "answer_f1 <= 0.5": False, "failed > 0.25": True, "failed >= 0.25": False}
    assert checked(*gates) == [(f"not {gate}", holds) for gate, holds in gates.items()]
    assert checked("d: failed > 0.25") == [("not failed > 0.25", True)]
    for empty in ("other: answer_f1 < 1", "map < 1", "band"):
        with pytest.raises(ToolkitError, match="the newest runs have no such figure"):
            checked(empty)
    bands = Scale({"answer_f1": Bands(Bound(">", 0.8), Bound("<", 0.6))}, {})
    assert checked("band", scale=bands) == [("answer_f1 is not poor", False)]
    fallen = SimpleNamespace(series=series, stands=True, run="r1", before="r0")
    assert checked("regression", regressions=[fallen]) == [("no regression", False)]
    assert checked("regression", regressions=[SimpleNamespace(**{**vars(fallen), "stands": False})]) == [
        ("no regression", True)
    ]


def test_what_is_known_of_a_regression_is_told_in_sentences():
    runs = [FakeRun(name=f"r{n}", data="x", own={}) for n in range(2)]
    series = SimpleNamespace(runs=runs, dataset="d", title="d", tables=[table([1, 2, 3]), table([1, 2, 3])])
    step = Difference(0.7, 0.5, 3, (-0.3, -0.1))
    falls = (Fall("answer_f1", step, None), Fall("char_recall@8", Difference(0.5, 0.6, 3), 0.1))
    regression = Regression(series, 1, 0, falls, 2, True)
    shares = [
        FallenGroup("a.pdf", 2, 3),
        FallenGroup("b.pdf", 1, 1),
        FallenGroup("c.pdf", 2, 2),
        FallenGroup("e.pdf", 2, 2),
    ]
    changed = [ChangedSetting(f"s{n}", "x" * 61, "y") for n in range(4)]
    told = Explanation(regression, "answer_f1", [object(), object()], shares, [FallenGroup("kind: x", 2, 2)], changed)
    words = sentences(told)
    assert words[0] == "2 of 3 questions got worse: 2 of 3 about a.pdf, 2 of 2 about c.pdf, 2 of 2 with kind: x."
    assert (
        words[1] == "2 more questions failed than before."
        and words[2] == f"Also worse: {format_metric_title('char_recall@8')}."
    )
    listed = ", ".join(f"s{n} from {'x' * 59}… to y" for n in range(3))
    assert words[3] == f"Changed since the run before: {listed} and 1 more."
    assert words[4] == "It persists in the newest run." and len(words) == 5, "the usual step of one is known"
    assert write_headline(told).startswith("r1 is worse than r0 on d: ") and " fell from " in fall_in_words(falls[0])
    assert " rose from " in fall_in_words(falls[1]) and ", 95% interval " not in fall_in_words(falls[1])
    alone = Explanation(Regression(series, 1, 0, (), 2, False), "", [object()], [FallenGroup("a.pdf", 1, 3)], [], [])
    assert write_headline(alone) == "r1 is worse than r0 on d: 2 more questions failed"
    assert sentences(alone) == [
        "1 of 3 questions got worse.",
        "No recorded property was changed: settings, commit, data and machine are the same.",
        "It was corrected since.",
    ]
    assert format_value("answer_f1", None) == "–" and format_metric_title("char_recall@8").endswith(", k = 8")


# ---------------------------------------------------------------- questions drawn for review, and changes


def asked(**confidences: float | None) -> dict:
    return {
        ("d", name): row(id=name, reply={"confidence": told}, labels={"kind": name[0]}, filename=f"{name[0]}.pdf")
        for name, told in confidences.items()
    }


def test_questions_are_sorted_by_what_they_are_or_by_a_label():
    rows = asked(a1=None, a2=0.33, b1=0.34, b2=0.66, b3=0.67)
    assert stratify(rows, ["confidence"]) == {
        ("middling",): [("d", "b1"), ("d", "b2")], ("no confidence",): [("d", "a1")], ("sure",): [("d", "b3")],
        ("unsure",): [("d", "a2")],
    }  # fmt: skip
    assert [len(keys) for keys in stratify(rows, ["kind"]).values()] == [2, 3] and len(stratify(rows, [])) == 1
    with pytest.raises(ToolkitError, match="--by x: no question has such a label; the labels are .*kind"):
        stratify(rows, ["kind", "x"])


def test_kinds_take_turns_in_a_sample_and_each_question_stands_for_its_kind():
    rows = asked(**dict.fromkeys([f"a{n}" for n in range(8)] + ["b0", "b1"]))
    sample = draw_sample(rows, by=["kind"], size=4, seed=1)
    assert sorted(name[0] for _, name in sample) == ["a", "a", "b", "b"] and sample == draw_sample(
        rows, by=["kind"], size=4, seed=1
    )
    assert len(draw_sample(rows, by=["kind"], size=99, seed=1)) == 10 and draw_sample(rows, by=[], size=0, seed=1) == []
    told = compute_weights(rows, sample, ["kind"])
    assert sorted(told.values()) == [1.0, 1.0, 4.0, 4.0] and set(told) == set(sample)


def test_kappa_is_what_is_agreed_beyond_chance():
    assert compute_kappa([]) is None and compute_kappa([("a", "a")] * 3) is None
    assert compute_kappa([("a", "a"), ("b", "b")]) == 1.0 and compute_kappa([("a", "b"), ("b", "a")]) == -1.0
    assert compute_kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")]) == pytest.approx((0.75 - 0.5) / 0.5)


def test_two_raters_agree_over_what_both_judged():
    one = {("d", n): "right" if n % 2 else "wrong" for n in range(6)}
    other = {("d", n): "right" for n in range(1, 9)}
    told = agree("A", one, "B", other, "gold", {("d", n): str(n) for n in range(9)})
    assert (told.n, told.same, told.kappa) == (5, 3, 0.0)
    alone = agree("A", one, "B", other, "gold", dict.fromkeys(one, "same.pdf"))
    assert alone.ci95 is None, "one document cannot be drawn anew"


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        ({}, {"reply": {"error": "x"}}, "failed"),
        ({"verdict": "wrong document"}, {}, "won"),
        ({}, {"verdict": "wrong document"}, "lost"),
        ({"verdict": "wrong document"}, {"verdict": "gold not located"}, "another fault"),
        ({}, {"verdict": "expected answer given"}, "same"),
        ({"scores": {"char_recall@8": 0.5}}, {"scores": {"char_recall@8": 0.6}}, "better"),
        ({"scores": {"char_recall@8": 0.5}}, {"scores": {"char_recall@8": 0.4}}, "worse"),
        ({"scores": {"char_recall@8": 0.5}}, {"scores": {"char_recall@8": 0.5 + 1e-12}}, "same"),
        ({"scores": {"char_recall@8": 0.5}}, {}, "same"),
    ],
)
def test_how_a_question_changed_from_one_run_to_another(first, second, change):
    assert find_change([row(**first), row(**second)]) == change
    assert find_change([row(), None]) == find_change([None, row()]) == "not asked by all"
    assert find_change([row(), row(), row("wrong document")]) == "lost", "the worst counts"


def test_questions_are_counted_and_the_surest_mistake_is_kept():
    tally = Outcomes()
    sure = row(
        "wrong document", id=2, dataset="d", reply={"confidence": 0.9, "seconds": 2.0}, scores={"recall@10": 0.0}
    )
    for one in (
        row("wrong document", id=1, dataset="d", reply={"confidence": 0.5}), sure,
        row("wrong document", id=3, dataset="d", reply={"confidence": 0.9}, scores={"recall@10": 0.0}),
        row(dataset="d", scores={"recall@10": 1.0, "answered_rightly": 1.0}),
        row(dataset="e", is_impossible=True, scores={"answered_rightly": 1.0}),
        row("failed", dataset="e", reply={"error": "x"}),
    ):  # fmt: skip
        tally.add(one)
    assert tally.questions == 6 and tally.failed("e") == 1 and tally.failed("d") == tally.failed("none") == 0
    assert (
        tally.worst == {"wrong document": sure}
        and list(tally.seconds) == [2.0]
        and tally.count_total()["wrong document"] == 3
    )
    counts = {name: tally.counts[name] for name in ("answerable", "impossible", "judged_found", "found", "right")}
    assert counts == {"answerable": 4, "impossible": 1, "judged_found": 3, "found": 1, "right": 1}
    assert tally.counts["judged_right"] == 1 and tally.counts["failed"] == 1


# ---------------------------------------------------------------- cells, tiles and tables


SCALE = Scale({"answer_f1": Bands(Bound(">", 0.8), Bound("<", 0.5))}, {})


def test_a_mean_is_printed_with_what_it_is_taken_over():
    assert (
        make_cell("answer_f1", None, SCALE) == Cell("–")
        and make_cell("answer_f1", Estimate(None, 0, errors=2), SCALE).errors == 2
    )
    whole = Estimate(0.9, 1234, ci95=(0.8, 1.0), std=0.1, errors=1)
    told = make_cell("answer_f1", whole, SCALE, "d")
    assert told.details.endswith("SD 10.0 · n 1,234") and (told.errors, told.share, told.band) == (1, 0.9, "good")
    assert make_cell("answer_f1", whole, SCALE).band == "", "over all datasets there is no band"
    several = make_cell("answer_f1", Estimate(0.9, 9, datasets=2, std=0.1, spread=0.02, repeats=3), SCALE, "d")
    assert several.details == "±2.0 over 3 runs · mean of 2 benchmarks"
    assert (
        make_cell("answer_f1", Estimate(1.5, 9), SCALE).share == 1.0
        and make_cell("latency", Estimate(1.5, 9), SCALE).share is None
    )


def test_all_families_are_in_the_table_and_the_short_ones_where_questions_are_told_apart():
    means = {"answer_f1": Estimate(0.5, 4), "answer_length": Estimate(90.0, 4), "char_recall@8": Estimate(None, 4)}
    assert [one.metric for one in make_metric_rows({"d": means}, None, SCALE)] == ["answer_f1", "answer_length"]
    assert [one.metric for one in make_metric_rows({"d": means}, ["answer_f1"], SCALE)] == ["answer_f1"]


@pytest.mark.parametrize(
    ("values", "rows", "shown"), [(1, 9, False), (2, 1, True), (2, 9, True), (3, 1, False), (3, 2, True)]
)
def test_a_label_with_a_value_for_every_other_question_is_a_name(values, rows, shown):
    means = {f"v{n}": {"answer_f1": Estimate(0.5, rows), "answer_length": Estimate(9.0, rows)} for n in range(values)}
    run = SimpleNamespace(datasets=["d"], means_by_label=lambda name: {"kind": means})
    found = make_breakdowns(run, SCALE)
    assert [(one.label, [row.metric for row in one.metrics]) for one in found] == [("kind", ["answer_f1"])] * shown


@pytest.mark.parametrize(
    ("difference", "words", "kind"),
    [
        (Difference(0.5, 0.7, 9, (0.1, 0.3)), "better", "better"),
        (Difference(0.7, 0.5, 9, (-0.3, -0.1)), "worse", "worse"),
        (Difference(0.7, 0.5, 9, (-0.3, 0.1)), "within chance", ""),
        (Difference(0.7, 0.7, 9, (-0.1, 0.1)), "no change", ""),
    ],
)
def test_a_change_is_better_worse_or_within_chance(difference, words, kind):
    told = compare_cell("answer_f1", Cell("70"), difference)
    assert told.change.endswith(words) and told.kind == kind and (" to " in told.change) is (words != "no change")
    assert (
        compare_cell("answer_f1", Cell("70"), None)
        == compare_cell("answer_f1", Cell("70"), Difference(None, 0.5, 0))
        == Cell("70")
    )


def test_a_count_is_told_in_per_cent_and_what_cannot_be_told_is_left_out():
    assert Tile("x", 1, 3).share == "33%" and Tile("x", 0, 0).share == "–"
    tally = Outcomes()
    tally.add(row(dataset="d", scores={"recall@10": 1.0, "answered_rightly": 1.0, "false_refusal_rate": 0.0}))
    tally.add(row(dataset="d", scores={"recall@10": 0.0}))
    assert [(tile.words, tile.number, tile.of) for tile in make_tiles(tally)] == [
        ("answered rightly", 1, 1), ("gold passage found", 1, 2), ("wrongly refused", 0, 1),
        ("answers not judged", 1, 2),
    ]  # fmt: skip
    tally.add(row("failed", dataset="d", reply={"error": "x"}))
    assert make_tiles(tally)[-1][:3] == ("failed", 1, 3)


def test_three_mistakes_are_worth_looking_at():
    tally = Outcomes()
    for number, verdict in enumerate(
        ("wrong document", "refused though answerable", "answered though impossible", "figures that no passage has")
    ):
        tally.add(row(verdict, id=number, dataset="d", is_impossible=verdict == "answered though impossible"))
    looks = choose_worth_looking_at(tally)
    assert [look.outcome for look in looks] == ["invented figures", "answered without a source", "wrongly refused"]
    assert looks[0].key == "d/3" and looks[0].why


RECORDS = [
    {"id": 1, "question": "=1+1", "found": 0.5, "labels": {"kind": "a"}},
    {"id": 2, "question": "b", "found": None, "labels": {}},
]


def test_records_are_those_whose_fields_or_labels_are_as_asked():
    assert (
        list(filter_records(RECORDS, {"id": "2"})) == RECORDS[1:]
        and list(filter_records(RECORDS, {"kind": "a"})) == RECORDS[:1]
    )
    assert (
        list(filter_records(RECORDS, {})) == RECORDS and list(filter_records(RECORDS, {"kind": "a", "id": "2"})) == []
    )


def test_a_table_is_written_as_its_ending_says(tmp_path):
    assert write_table(RECORDS, tmp_path / "t.jsonl") == 2
    assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()] == RECORDS
    assert write_table(iter(RECORDS), tmp_path / "t.CSV") == 2
    lines = (tmp_path / "t.CSV").read_bytes().decode("utf-8-sig").splitlines()
    assert (tmp_path / "t.CSV").read_bytes().startswith(b"\xef\xbb\xbf")
    assert lines == ["id,question,found,labels", '1,\'=1+1,0.5,"{""kind"": ""a""}"', "2,b,,{}"]
    assert write_table(RECORDS, tmp_path / "t.parquet") == 2
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [
        {"id": "1", "question": "=1+1", "found": 0.5, "labels": '{"kind": "a"}'},
        {"id": "2", "question": "b", "found": None, "labels": "{}"},
    ]
    write_table([{"labels": {"Gericht": "Münster"}}], tmp_path / "u.csv")
    assert "Münster" in (tmp_path / "u.csv").read_text(encoding="utf-8-sig"), "letters, not their codes"
    with pytest.raises(ToolkitError, match=r"unknown format; use a name that ends in .csv, .jsonl, .parquet"):
        write_table(RECORDS, tmp_path / "t.xls")


# ---------------------------------------------------------------- which pages are drawn, and what a list is narrowed by


def told_passage(number: int, page: int, filename: str = "a.pdf") -> dict:
    return {"text": "x", "filename": filename, "span": (100 * number, 100 * number + 50), "page": page}


def pages_of(gold: list[dict], passages: list[dict], citations: list[int], **given) -> list[tuple[str, int]]:
    one = row(gold=gold, reply={"passages": passages, "citations": citations}, dataset="d")
    return choose_pages(one, mark_spans(one), **given)


def test_pages_of_gold_leave_room_for_what_was_cited_and_came_first():
    gold = [{"filename": "a.pdf", "text": "g", "places": [[(0, 9)]], "pages": [1, 2, 3, 4, 5]}]
    passages = [told_passage(n, 10 + n) for n in range(1, 7)]
    assert pages_of(gold, [], []) == [("a.pdf", n) for n in (1, 2, 3, 4)]
    assert pages_of(gold, passages, [5]) == [("a.pdf", n) for n in (1, 2, 15, 11)], "cited ones before the first three"
    assert pages_of(gold, passages[:1], []) == [("a.pdf", n) for n in (1, 2, 3, 11)]
    assert pages_of([], passages, []) == [("a.pdf", n) for n in (11, 12, 13)]
    nowhere = {"filename": "b.pdf", "text": "g", "places": [], "pages": [7]}
    assert pages_of([nowhere, *gold], [], [], most=2) == [("a.pdf", 1), ("a.pdf", 2)], (
        "gold without a place has no page"
    )
    assert pages_of([], passages, [9, 0], most=2) == [("a.pdf", 11), ("a.pdf", 12)]
    assert pages_of([], [{**told_passage(1, 3), "span": None}, {**told_passage(2, 0), "page": None}], []) == [
        ("a.pdf", 0)
    ]
    moved = [{"filename": "a.pdf", "text": "g", "places": [[(0, 9)], [(110, 120)]], "pages": [1]}]
    assert pages_of(moved, passages[:1], []) == [("a.pdf", 11)], "the place that was retrieved"


def test_every_page_with_a_piece_of_a_shown_passage_is_shown():
    gold = [{"filename": "a.pdf", "text": "g", "places": [[(0, 9)]], "pages": [1, 2, 3, 4, 5]}]
    parted = {**told_passage(1, 7), "more": ((900, 950), (3000, 3040)), "pages": (7, 9, 30)}
    assert pages_of(gold, [parted], []) == [("a.pdf", n) for n in (1, 2, 3, 7, 9, 30)], "beyond the limit of pages"
    late = {**told_passage(6, 8), "more": ((2, 8),), "pages": (8, 1)}
    assert pages_of(gold[:0], [*[told_passage(n, 4) for n in range(1, 6)], late], [6]) == [
        ("a.pdf", n) for n in (8, 4, 1)
    ], "of a cited passage, too"
    assert pages_of(gold[:0], [*[told_passage(n, 4) for n in range(1, 6)], late], []) == [("a.pdf", 4)]
    whole = {**told_passage(1, 1), "pages": tuple(range(1, 90))}
    assert len(pages_of([], [whole], [])) == 13, "a passage may be a whole document"


def test_the_most_important_pages_are_drawn_and_each_span_once():
    wanted = Wanted()
    one = row(dataset="d", reply={"passages": [told_passage(1, 1), told_passage(2, 2, "b.pdf")]})
    assert wanted.ask(one, mark_spans(one), rank=5) == [[0, 1], [1, 2]] and wanted.ask(
        one, mark_spans(one), rank=None
    ) == [
        [0, 1],
        [1, 2],
    ]
    two = row(dataset="d", reply={"passages": [told_passage(3, 7, "b.pdf")]})
    wanted.ask(two, mark_spans(two), rank=1)
    assert wanted.pages == 3 and wanted.choose_pages(None) == {0: [1], 1: [2, 7]} and wanted.choose_pages(1) == {1: [7]}
    assert wanted.choose_pages(2) == {0: [1], 1: [7]} and wanted.choose_pages(0) == {}
    assert wanted.spans(1) == (Span(200, 250), Span(300, 350)) and wanted.number("d", "c.pdf") == 2
    many = row(dataset="e", reply={"passages": [told_passage(n, n) for n in range(1, 13)], "citations": [12]})
    wanted.ask(many, mark_spans(many), rank=0)
    assert len(wanted.spans(wanted.number("e", "a.pdf"))) == 11, "ten, and the one that is cited"


def test_a_list_is_narrowed_by_what_lines_have():
    facet = Facet("outcome", "Outcome", order=["bad", "good"])
    catalogue = Catalogue([facet])
    for held, labels in (("good", {"kind": "x"}), ("bad", {"kind": "y"}), ("other", {}), ("", {"kind": "x"})):
        catalogue.count([held], labels)
    assert facet.values() == ["bad", "good", "other"] and facet.as_json()["counts"] == [1, 1, 1]
    assert catalogue.make_line(["good"], ["f"], {"kind": "y", "new": "words"}) == [1, "f", [0, 1], "words"]
    assert catalogue.make_line([""], [], {})[0] == -1
    assert catalogue.as_json()["labels"] == [{"name": "kind", "title": "kind", "values": ["x", "y"], "counts": [2, 1]}]


def test_labels_with_too_many_values_and_too_many_labels_are_words_of_a_line(monkeypatch):
    monkeypatch.setattr("exhibit.viewer.listing._MOST_VALUES", 2)
    monkeypatch.setattr("exhibit.viewer.listing._MOST_LABELS", 2)
    catalogue = Catalogue([])
    for n in range(3):
        catalogue.count([], {"own": str(n), "kind": str(n % 2), "third": "z"})
    assert "own" not in [label["name"] for label in catalogue.as_json()["labels"]]
    assert catalogue.make_line([], [], {"own": "2", "kind": "1"})[-1] == "2"


def test_pieces_are_packed_and_as_many_are_in_the_page_as_its_budget_allows(tmp_path):
    for name, content in {"i0": [1], "c0": "a" * 50, "c1": "b" * 50, "c10": "c", "d0": "d"}.items():
        write_piece(tmp_path, name, content)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "0-1.png").write_bytes(b"x" * 300)
    assert json.loads(zlib.decompress(base64.b64decode(pack({"a": "é"})), -15)) == {"a": "é"}
    every = Inlined(tmp_path, budget=10_000)
    assert list(every.blocks) == ["piece-i0", "piece-c0", "piece-c1", "piece-c10", "piece-d0", "image-0-1.png"]
    assert (every.cases, every.pages_left_out) == (3, 0) and every.blocks["image-0-1.png"].startswith(
        "data:image/png;base64,"
    )
    exact = sum(map(len, list(every.blocks.values())[:2]))
    some = Inlined(tmp_path, budget=exact)
    assert list(some.blocks)[:2] == ["piece-i0", "piece-c0"] and some.cases == 1 and some.pages_left_out == 1
    assert Inlined(tmp_path, budget=exact - 1).cases == 0
