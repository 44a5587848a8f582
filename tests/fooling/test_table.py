"""Systems that cheat or are odd get the figures that the table names, and no others."""

from __future__ import annotations

import pytest

import exhibit
from tests.fooling.campaign import CAMPAIGN
from tests.fooling.contracts import ANSWERABLE, MEASURED, QUESTIONS, RETRIEVAL
from tests.fooling.table import ROWS, WRONG_ANSWERS

EVERY = [*ROWS, *CAMPAIGN]


def test_an_honest_system_gets_the_best_figures(honest):
    best = dict.fromkeys(RETRIEVAL, 1.0) | {"drm@8": 0.0, "answered_rightly": 1.0}
    for asked in ANSWERABLE:
        assert honest[asked.key] == best | {
            "abstention_accuracy": None, "false_refusal_rate": 0.0, "verdict": "answered",
        }  # fmt: skip
    assert honest["training"]["abstention_accuracy"] == 1.0 and honest["training"]["verdict"] == "answered"


def test_there_are_a_hundred_systems_under_different_names():
    names = [row.name for row in EVERY]
    assert len(names) == len(set(names)) and len(ROWS) >= 100


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_a_system_gets_the_figures_of_its_row(evaluation, honest, row):
    figures = evaluation.figures(row.reply, row.questions)
    for asked in row.questions:
        assert figures[asked.key] == pytest.approx(row.figures(asked, honest[asked.key])), asked.question


@pytest.mark.parametrize("row", WRONG_ANSWERS, ids=lambda row: row.name)
def test_a_wrong_answer_is_never_called_right(row):
    assert row.gets["answered_rightly"] in (0.0, None)


@pytest.mark.parametrize("name", ["the opposite", "a JSON frame"])
def test_exhibit_evaluate_gives_the_same_figures(evaluation, tmp_path, name):
    row = next(row for row in ROWS if row.name == name)
    by_question = {asked.question: asked for asked in QUESTIONS.values()}

    def answer(question: str) -> dict[str, object]:
        said, passages = row.reply(by_question[question])
        return {"answer": said, "passages": list(passages)}

    run = exhibit.evaluate(evaluation.dataset.root, target=answer, output_dir=tmp_path)
    figures = evaluation.figures(row.reply)
    for key, scored in zip(QUESTIONS, run.rows, strict=True):
        names = [metric for metric in MEASURED if metric in scored.scores]
        assert {metric: scored.scores[metric] for metric in names} == {m: figures[key][m] for m in names} and names
        assert scored.verdict == figures[key]["verdict"]
