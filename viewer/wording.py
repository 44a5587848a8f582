"""What became of a question, in words that a reader who is no engineer can follow."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from exhibit.schemas.run import RunQuestion

GOOD_MARK = 4.0
"""From here on a judge's mark calls an answer right: 4 is "it says what matters", 3 lacks something of substance."""
_RIGHT = {"answer_correctness": GOOD_MARK, "label_accuracy": 1.0, "answer_contained": 1.0}
"""Metrics that tell whether an answer is right, the first that applies, and from which value on it is."""
_VERDICTS = {
    "figures that no passage has": "invented figures",
    "answered though impossible": "answered without a source",
    "refused though answerable": "wrongly refused",
    "retrieved but not used": "right passage not used",
}
"""What a verdict is called here, where that differs from the verdict's own name."""
_STAGES = {
    "retrieval": "The fault lies in retrieval.",
    "reading": "The fault lies in reading.",
    "invented": "Invented.",
}
GOOD_VERDICTS = ("answered", "expected answer given")


class Outcome(NamedTuple):
    """What an outcome means, and the colour that it has."""

    meaning: str
    tone: str = ""
    good: bool = False
    judged: bool = True
    """Whether it says anything for the system or against it."""


_WORDS = tomllib.loads((Path(__file__).parent / "static" / "outcomes.toml").read_text(encoding="utf-8"))
OUTCOMES: dict[str, Outcome] = {name: Outcome(**told) for name, told in _WORDS["outcomes"].items()}
"""What can become of a question, the most serious first."""
CHANGES: dict[str, Outcome] = {name: Outcome(**told) for name, told in _WORDS["changes"].items()}
"""How a question changed from the first run to the others, the worst first."""


def is_right(row: RunQuestion) -> bool | None:
    """Return whether the reply gives the expected answer; None where no metric tells."""
    known = ((row.scores.get(name), least) for name, least in _RIGHT.items())
    return next((value >= least for value, least in known if value is not None), None)


def outcome(row: RunQuestion) -> str:
    """Return what became of a question: one of `OUTCOMES`."""
    if row.verdict not in GOOD_VERDICTS:
        name = _VERDICTS.get(row.verdict, row.verdict)
        return name if name in OUTCOMES else "cannot be judged"
    if row.is_impossible:
        return "rightly refused"
    right = is_right(row) if row.verdict == "answered" else True
    if right is None:
        return "right passage used"
    return "answered rightly" if right else "right passage, another answer"


def reasons(row: RunQuestion) -> list[str]:
    """Return why a question has its outcome, a sentence each, with the evidence for it at the end."""
    name = outcome(row)
    if name == "failed":
        return [OUTCOMES[name].meaning, "The error:", row.reply.error or "unknown"]
    return [*filter(None, (_STAGES.get(row.stage or ""), OUTCOMES[name].meaning, row.evidence))]
