"""Odd and cheating systems get exactly the results that the table states."""

from collections import Counter

import pytest

import exhibit
from tests.fooling.campaign import CAMPAIGN
from tests.fooling.contracts import ANSWERABLE, QUESTIONS, RETRIEVAL
from tests.fooling.table import ROWS, WRONG_ANSWERS

EVERY = [*ROWS, *CAMPAIGN]
UNDECIDED = {"wrong": {"wrong", "not judged"}, "not judged": {"wrong", "not judged"}, "right": {"right", "not judged"}}
"""The outcomes that are accepted for an expected outcome, because the rules cannot judge every answer."""


def assert_agree(figures, expected, about):
    outcome = figures.pop("outcome")
    wanted = expected.pop("outcome")
    assert outcome in UNDECIDED.get(wanted, {wanted}), about
    assert figures == pytest.approx(expected), about


def test_system_that_returns_gold_gets_the_best_results(honest):
    best = dict.fromkeys(RETRIEVAL, 1.0) | {"drm@8": 0.0, "outcome": "right"}
    for case in ANSWERABLE:
        assert honest[case.key] == best
    assert honest["training"]["outcome"] == "rightly refused"


def test_table_has_at_least_100_systems_with_unique_names():
    names = [row.name for row in EVERY]
    assert len(names) == len(set(names)) and len(ROWS) >= 100


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_each_system_gets_the_results_of_its_table_row(evaluation, honest, row):
    figures = evaluation.figures(row.reply, row.questions)
    for case in row.questions:
        assert_agree(figures[case.key], dict(row.figures(case, honest[case.key])), case.question)


@pytest.mark.parametrize("row", WRONG_ANSWERS, ids=lambda row: row.name)
def test_wrong_answer_rows_never_expect_right_outcome(row):
    assert row.gets["outcome"] in ("wrong", "not judged", "wrongly refused")


def test_evaluation_recognises_at_least_90_percent_of_right_and_50_percent_of_wrong_answers(evaluation, honest):
    counts: Counter[tuple[str, bool]] = Counter()
    for row in EVERY:
        figures = evaluation.figures(row.reply, row.questions)
        for case in row.questions:
            wanted = str(row.figures(case, honest[case.key])["outcome"])
            counts[wanted, figures[case.key]["outcome"] == wanted] += 1
    for wanted, share in {"right": 0.9, "wrong": 0.5}.items():
        assert counts[wanted, True] >= share * (counts[wanted, True] + counts[wanted, False]), (wanted, counts)


@pytest.mark.parametrize("name", ["the opposite", "the chunk in a JSON object"])
def test_exhibit_evaluate_returns_the_same_results_as_direct_scoring(evaluation, tmp_path, name):
    row = next(row for row in ROWS if row.name == name)
    by_question = {case.question: case for case in QUESTIONS.values()}

    def answer(question: str) -> dict[str, object]:
        said, passages = row.reply(by_question[question])
        return {"answer": said, "passages": list(passages)}

    run = exhibit.evaluate(evaluation.dataset.root, target=answer, output_dir=tmp_path)
    figures = evaluation.figures(row.reply)
    for key, scored in zip(QUESTIONS, run.rows, strict=True):
        assert {name: scored.scores[name] for name in RETRIEVAL} == {name: figures[key][name] for name in RETRIEVAL}
        assert scored.outcome == figures[key]["outcome"]
