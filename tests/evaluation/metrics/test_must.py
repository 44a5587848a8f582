"""What an answer must say and must not, by hand-computed cases."""

from __future__ import annotations

import json

import pytest

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.metrics import Options, answer_must_contain, answer_must_not


def case(answer: str, **labels: list[object]) -> Case:
    return Case(1, "q", "", labels={name: json.dumps(items) for name, items in labels.items()}, reply=Reply(answer))


@pytest.mark.parametrize(
    ("answer", "items", "expected"),
    [
        ("Notice is thirty (30) days, in writing.", ["30 days", "in writing"], 1.0),
        ("Notice is 30 days.", ["30 days", "in writing"], 0.5),
        ("It ends on 5 January 2024.", ["2024-01-05"], 1.0),
        ("It must be written.", [["in writing", "written"]], 1.0),
        ("It may be oral.", [["in writing", "written"]], 0.0),
        ("Anything.", [], None),
    ],
)
def test_the_share_of_what_must_be_said(answer, items, expected):
    (value,) = answer_must_contain.measure([case(answer, must_contain=items)], Options())["answer_must_contain"]
    assert value == expected


@pytest.mark.parametrize(
    ("answer", "items", "expected"),
    [
        ("Sixty days' notice.", ["thirty days"], 0.0),
        ("A notice of thirty (30) days.", ["30 days", "oral"], 0.5),
        ("The days of the landlord are thirty in number.", ["landlord days"], 0.0),
        ("No list.", [], None),
    ],
)
def test_the_share_of_what_is_forbidden_and_said(answer, items, expected):
    (value,) = answer_must_not.measure([case(answer, must_not_contain=items)], Options())["answer_must_not"]
    assert value == expected
