"""Asks a language model, the judge, to rate answers with marks from 1 to 5."""

import json
import re
from collections.abc import Callable, Sequence

from exhibit.evaluation.metrics import Case, Measure, Options, Values
from exhibit.models.llms import Prompt
from exhibit.schemas.parsing import read_beside

_MAX_TOKENS = 300  # enough for a mark and a reason of two sentences
_LONGEST = 20
"""A mark written as text has at most this many characters."""
_OBJECT = re.compile(r"\{[^{}]*\}")
_SCORE = re.compile(
    r"\b(?:score|mark|rating)\b\W{0,6}(?:is\W{0,3}|of\W{0,3})?([1-5])(?!\d|\.\d)(?:\s*/\s*5)?", re.IGNORECASE
)
_ALONE = re.compile(r"\W*([1-5])(?:\s*/\s*5)?\W*")

_PROMPTS = read_beside(__file__)


def read_system_prompt(metric: str) -> str:
    """Return the judge's system prompt for a metric, from judge.toml."""
    return f"{_PROMPTS[metric]}\n{_PROMPTS['reply']}"


def make_judged_metric(name: str, prompt: Callable[[Case], Prompt | None]) -> tuple[tuple[str, ...], Measure]:
    """Return `NAMES` and `measure` for a metric that a judge marks.

    If the judge's reply has no readable mark, the metric is None and `NAME_unjudged` is 1.
    """

    def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
        prompts = [None if case.reply.error else prompt(case) for case in cases]
        marks = iter(ask_marks([one for one in prompts if one is not None], options))
        given = [None if one is None else (next(marks),) for one in prompts]
        return {
            name: [one and one[0] for one in given],
            f"{name}_unjudged": [one and float(one[0] is None) for one in given],
        }

    return (name, f"{name}_unjudged"), measure


def ask_marks(prompts: Sequence[Prompt], options: Options, *, temperature: float = 0.0) -> Values:
    """Return the judge's marks; None where a reply has no readable mark."""
    if not prompts or options.judge is None:
        return [None] * len(prompts)
    replies = options.judge.complete(prompts, max_tokens=_MAX_TOKENS, temperature=temperature)
    return [None if reply.error else read_mark(reply.text) for reply in replies]


def read_mark(text: str) -> float | None:
    """Return the mark, 1 to 5, in a judge's reply; None if the reply has no mark or several different marks."""
    for record in _OBJECT.findall(text):
        try:
            score = json.loads(record).get("score")
        except (ValueError, RecursionError):
            continue
        if isinstance(score, str) and score.strip().isdecimal() and len(score) < _LONGEST:
            score = int(score)
        if isinstance(score, bool) or not isinstance(score, int | float):
            return None
        return float(score) if score in {1, 2, 3, 4, 5} else None
    alone = _ALONE.fullmatch(text)
    marks = {alone[1]} if alone else set(_SCORE.findall(text))
    return float(marks.pop()) if len(marks) == 1 else None


def fence_text(title: str, text: str) -> str:
    """Return a text between delimiters that do not occur in it."""
    longest = max(re.findall("~+", text), key=len, default="")
    fence = "~" * max(3, len(longest) + 1)
    return f"{title}\n{fence}\n{text.strip()}\n{fence}"
