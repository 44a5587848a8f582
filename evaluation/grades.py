"""How well files serve a question, from the labels of gold.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterable

from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import Gold

GRADE = "grade"
"""The label with the grade of a gold passage's file."""
GRADES = "grades"
"""The label, on one line of a row, with all its grades: a JSON object, file name to grade."""


GRADE_RANGE = range(5)
"""A number beyond it is some other grade, of which metrics know nothing."""


def read_grades(lines: Iterable[Gold], *, where: str) -> dict[int | str, dict[str, int]]:
    """Return the grades of files by row, as far as lines have any; of several grades of a file the best counts."""
    by_question: dict[int | str, dict[str, int]] = {}
    for line in lines:
        grades = _all_grades(line, where)
        own = line.labels.get(GRADE)
        if type(own) is int and own in GRADE_RANGE and line.filename:
            grades[line.filename] = max(own, grades.get(line.filename, own))
        for file, grade in grades.items():
            row = by_question.setdefault(line.id, {})
            row[file] = max(grade, row.get(file, grade))
    return by_question


def _all_grades(line: Gold, where: str) -> dict[str, int]:
    told = line.labels.get(GRADES)
    if not isinstance(told, str):
        return {}
    try:
        grades = json.loads(told)
    except ValueError:
        grades = None
    if not isinstance(grades, dict) or not all(
        type(grade) is int and grade in GRADE_RANGE for grade in grades.values()
    ):
        raise BundleError(
            f"{where}: row {line.id}: labels.{GRADES} must be a JSON object, file name to grade from 0 to 4"
        )
    return grades
