"""Reading and comparing runs: the same counts in every report and command, and which changes are regressions."""

import json
import re
from collections import Counter
from html import unescape

import pytest

from exhibit.evaluation import statistics
from exhibit.evaluation.compare import (
    NAMED,
    compare_runs,
    count_outcomes,
    describe_better,
    describe_regressions,
    explain_fall,
    find_regressions,
)
from exhibit.evaluation.outcomes import BAD, GOOD, describe_result, make_outcome_columns
from exhibit.evaluation.runs import RunResults, make_summary_json
from exhibit.evaluation.statistics import Difference, Table, summarise_run
from exhibit.schemas.errors import BundleError
from exhibit.schemas.review import Review, ReviewedCase
from exhibit.schemas.run import Outcome
from exhibit.viewer.report import write_report
from exhibit.viewer.results import main as results
from exhibit.viewer.review.reviews import compute_agreements

OUTCOMES = (
    [Outcome.RIGHT] * 9 + [Outcome.WRONG] * 4 + [Outcome.NOT_JUDGED] * 5 + [Outcome.WRONGLY_REFUSED] * 3
    + [Outcome.FAILED] * 2 + [Outcome.RIGHTLY_REFUSED] * 4 + [Outcome.INVENTED] * 3
)  # fmt: skip
SENTENCE = "9 to 14 of 23 answered correctly, 39 to 61%"


@pytest.fixture
def folder(tmp_path):
    """A run whose questions have every outcome of a system with answers; there are two questions on each document."""
    run = tmp_path / "first"
    (run / "leases").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"datasets": {"leases": {"groups": None}}}))
    write_rows(run)
    return run


def write_rows(run, **scores):
    lines = []
    for id, outcome in enumerate(OUTCOMES):
        impossible = outcome in (Outcome.RIGHTLY_REFUSED, Outcome.INVENTED)
        failed = outcome is Outcome.FAILED
        rightly = None if impossible else float(outcome is Outcome.RIGHT)
        lines.append(
            {
                "id": id, "question": f"Question {id}?", "truth": "30 days", "filename": f"{id // 2}.pdf",
                "is_impossible": impossible, "outcome": outcome, "reply": {"answer": "x", "error": "x" * failed},
                "scores": {"answered_rightly": rightly, "recall@10": None if failed else (id % 3) / 2} | scores,
            }
        )  # fmt: skip
    (run / "leases" / "eval_results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_summary(run):
    tables = list(RunResults(run).tables.values())
    (run / "summary.json").write_text(json.dumps(make_summary_json(summarise_run(tables))))
    (run / "leases" / "summary.json").write_text(json.dumps(make_summary_json(summarise_run([tables[0]]))))


def test_report_diff_trend_and_agreement_show_the_same_outcome_counts(folder, tmp_path, capsys):
    write_summary(folder)
    run, counts = RunResults(folder), Counter(map(str, OUTCOMES))
    assert count_outcomes(list(run.tables.values())) == counts
    assert describe_result(run.tables.values()) == SENTENCE

    report = write_report(folder).read_text(encoding="utf-8")
    assert SENTENCE in unescape(re.sub(r"<[^>]+>", " ", report))
    picks = re.findall(r'data-pick="([^"]+)"[^>]*>.*?<b>(\d+)</b>', report, re.DOTALL)
    assert {outcome: int(count) for outcome, count in picks if outcome in counts} == counts

    assert results(["diff", str(folder), str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["outcomes"] == {"before": counts, "after": counts} and record["worse"] == []
    assert results(["diff", str(folder), str(folder)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for outcome, count in counts.items():
        assert [*outcome.split(), str(count), str(count)] in lines

    assert results(["summary", str(folder)]) == 0 and SENTENCE in capsys.readouterr().out
    results(["index", str(tmp_path), "--out", str(tmp_path / "trend.html")])
    trend = unescape((tmp_path / "trend.html").read_text(encoding="utf-8"))
    assert f"{SENTENCE}<small>{', '.join(f'{n} {one}' for one, n in counts.most_common())}</small>" in trend

    cases = [ReviewedCase(dataset="leases", id=row.id, answer="right") for row in run.rows]
    review = Review.model_construct(run="first", reviewer="Ada", cases=cases)
    rows = {(row.dataset, row.id): row for row in run.rows}
    [agreement] = [one for one in compute_agreements([review], rows) if one.aspect == "answer"]
    good, bad = (sum(counts[outcome] for outcome in side) for side in (GOOD, BAD))
    assert (agreement.same, agreement.n) == (good, good + bad), "unjudged answers must not count as agreement"


def test_run_results_reads_stored_intervals_without_bootstrap(folder, monkeypatch):
    write_summary(folder)
    before = RunResults(folder).means["recall@10"]
    assert before.ci95 is not None

    def refuse(*_):
        raise AssertionError("a bootstrap was drawn")

    monkeypatch.setattr(statistics, "_bootstrap", refuse)
    assert RunResults(folder).means["recall@10"] == before


def test_run_results_rejects_summary_that_differs_from_rows(folder):
    write_summary(folder)
    write_rows(folder, **{"recall@10": 1.0})
    with pytest.raises(BundleError, match="does not match the rows of the run: recall@10"):
        RunResults(folder).means  # noqa: B018


@pytest.mark.parametrize("value", [2.0, -0.5])
def test_run_results_rejects_share_outside_0_to_1(folder, value):
    write_rows(folder, **{"recall@10": value})
    with pytest.raises(BundleError, match=r"recall@10 is .* but must be from 0 to 1"):
        RunResults(folder).tables  # noqa: B018


def make_table(outcomes: list[Outcome], *, documents: int = 12, **columns) -> Table:
    count = len(outcomes)
    values = make_outcome_columns(outcomes, [False] * count) | columns
    names = [f"{row % documents}.pdf" for row in range(count)]
    return Table("d", list(range(count)), names, values, outcomes=outcomes)


RIGHT = [Outcome.RIGHT] * 48


@pytest.mark.parametrize("documents", [4, 12])
@pytest.mark.parametrize("after", [
    [Outcome.WRONGLY_REFUSED] * 48, [Outcome.RIGHT, Outcome.WRONGLY_REFUSED] * 24,
    [Outcome.RIGHT, Outcome.FAILED] * 24, [Outcome.RIGHT, Outcome.NOT_JUDGED] * 24,
])  # fmt: skip
def test_find_regressions_reports_fewer_right_answers(after, documents):
    differences = compare_runs([make_table(RIGHT, documents=documents)], [make_table(after, documents=documents)])
    worse = find_regressions(differences)
    assert "answered_rightly" in worse and describe_regressions(differences, worse)
    assert (differences["answered_rightly"].ci95 is None) == (documents == 4)


def test_find_regressions_reports_more_wrong_answers():
    before = make_table([Outcome.RIGHT, Outcome.NOT_JUDGED] * 24)
    after = make_table([Outcome.RIGHT, Outcome.WRONG] * 24)
    worse = find_regressions(compare_runs([before], [after]))
    assert worse == ["outcome: wrong"]
    assert describe_better(["a", "b"], compare_runs([before], [after]), worse) == "b is worse than a: outcome: wrong."
    assert count_outcomes([after]) == {"right": 24, "wrong": 24}


def test_find_regressions_reports_metric_missing_from_second_run():
    before, after = make_table(RIGHT, **{"recall@10": [1.0] * 48}), make_table(RIGHT)
    worse = find_regressions(compare_runs([before], [after]))
    assert worse == ["recall@10"]
    assert find_regressions(compare_runs([before], [before])) == []


def test_find_regressions_ignores_chance_drop_among_many_metrics():
    falling = [0.5 - 0.11 * (row % 3 == 0) for row in range(48)]
    others = {f"answer_f1@{n}": [0.5] * 48 for n in range(60)}
    before = make_table(RIGHT, answer_f1=[0.5] * 48, **{name: list(column) for name, column in others.items()})
    noisy = [value + (0.2 if row % 2 else -0.235) for row, value in enumerate([0.5] * 48)]
    after = make_table(RIGHT, answer_f1=noisy, **others)
    differences = compare_runs([before], [after])
    assert differences["answer_f1"].p is not None and "answer_f1" not in find_regressions(differences)
    fallen = compare_runs([before], [make_table(RIGHT, answer_f1=falling, **others)])
    assert find_regressions(fallen, ["answer_f1"]) == ["answer_f1"] and "answer_f1" not in NAMED


def test_explain_fall_gives_a_reason_only_for_a_drop_beyond_chance():
    assert explain_fall("answer_f1", Difference(0.7, 0.5, 9, (-0.3, -0.1))) == "worse by more than chance"
    for other in (Difference(0.5, 0.7, 9, (0.1, 0.3)), Difference(0.7, 0.5, 9, (-0.3, 0.0)), Difference(None, 0.5, 0)):
        assert not explain_fall("answer_f1", other)
