"""Plots as geometry."""

from __future__ import annotations

import json

from exhibit.evaluation.confidence import describe
from exhibit.evaluation.runs import RunResults
from exhibit.viewer.plots import plot_confidence, plot_latency


def run_with(folder, **confidences) -> RunResults:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"datasets": {name: {} for name in confidences}}))
    for name, told in confidences.items():
        (folder / name).mkdir()
        if told:
            (folder / name / "confidence.json").write_text(json.dumps(describe(told)))
    return RunResults(folder)


def test_the_report_draws_what_the_confidence_is_worth(tmp_path):
    told = [(0.05, False), (0.15, False), (0.45, True), (0.95, True)]
    calibration, risk = plot_confidence(run_with(tmp_path / "first", cuad=told, leases=None))
    assert calibration.note.endswith("AUROC cuad 1.00")
    (line,) = calibration.lines
    # from the left edge to the right, and from the bottom to the top
    places = [(round(point.x, 1), round(point.y, 1)) for point in line.points]
    assert places == [(48.8, 176), (78.4, 176), (167.2, 14), (315.2, 14)]
    assert "100% answerable at 95% confidence" in calibration.summary
    assert risk.lines[0].points[0].y == 176 and risk.lines[0].points[-1].y == 176 - 0.5 * 162


def test_where_there_is_nothing_to_tell_apart_nothing_is_drawn(tmp_path):
    assert plot_confidence(run_with(tmp_path / "one", maud=[(0.5, True), (0.9, True)])) == []
    assert plot_confidence(run_with(tmp_path / "none", leases=None)) == []


def test_the_time_to_reply_is_told_by_its_middle_and_by_what_nineteen_in_twenty_take():
    told = plot_latency([number / 10 for number in range(40, 0, -1)])
    assert told is not None and told.note == "median 2.0 s, 95% under 3.8 s"
    assert [tick.label for tick in told.ticks] == ["0 ms", "2.0 s", "4.0 s"]
    assert plot_latency([1.0]) is None
