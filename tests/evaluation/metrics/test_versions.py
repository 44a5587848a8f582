"""Statutes on a given day: the right paragraph in the right version or a wrong one, and a wrong paragraph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.metrics.version_accuracy import measure
from exhibit.evaluation.verdicts import judge
from tests.evaluation.metrics.build import at, case, gold

LABELS = {"paragraph": "§ 8", "law": "x", "other_versions": "x_2023-01-01.pdf#100-200 my law_2024-01-01.pdf#5-50"}


def asked(file: str, start: int, end: int) -> Case:
    return replace(case([gold((40, 140), file="x_2019-07-01.pdf")], [at(start, end, file)]), labels=LABELS)


@pytest.mark.parametrize(
    ("file", "start", "end", "provision", "version", "verdict"),
    [
        ("x_2019-07-01.pdf", 40, 140, 1.0, 1.0, "answered"),
        ("x_2023-01-01.pdf", 150, 300, 1.0, 0.0, "right text, wrong version"),
        ("my law_2024-01-01.pdf", 0, 20, 1.0, 0.0, "right text, wrong version"),
        ("x_2023-01-01.pdf", 200, 300, 0.0, None, "wrong document"),
        ("x_2019-07-01.pdf", 140, 200, 0.0, None, "right document, wrong passage"),
    ],
)
def test_versions_are_told_apart(file, start, end, provision, version, verdict):
    one = asked(file, start, end)
    assert measure([one], Options()) == {"provision_first": [provision], "version_accuracy": [version]}
    assert judge(one) == verdict


@pytest.mark.parametrize(
    ("note", "verdict"),
    [
        ("(Znění účinné od 1. 7. 2018 do 31. 12. 2022)", "answered"),
        ("(Text in force from 1 July 2018)", "answered"),
        ("That is the law in the version of 1 July 2018.", "answered"),
        ("(Section 2.1 as changed by lease (on S-1)_No 3.pdf, in force from 1 July 2018)", "answered"),
        ("(Section 7 was deleted by second.pdf; Section 8 as changed by x.pdf, in force from 1 July 2018)", "answered"),
        ("(Section 2.1 provides for 2018 pounds, as changed by the parties)", "figures that no passage has"),
        ("It was repealed on 1 July 2018.", "figures that no passage has"),
        ("The fee is 2018 pounds.", "figures that no passage has"),
    ],
)
def test_the_day_of_the_version_is_no_figure_that_was_invented(note, verdict):
    one = asked("x_2019-07-01.pdf", 40, 140)
    assert judge(replace(one, reply=replace(one.reply, answer=f"The fee is due [1].\n{note}"))) == verdict


def test_a_question_on_no_law_and_an_impossible_one_have_none():
    plain = case([gold((0, 10), file="a.pdf")], [at(0, 10, "a.pdf")])
    impossible = replace(asked("x_2019-07-01.pdf", 40, 140), is_impossible=True)
    assert measure([plain, impossible], Options())["provision_first"] == [None, None]
