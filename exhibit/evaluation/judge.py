"""Asks a language model, the judge, to rate answers with marks from 1 to 5."""

import json
import re
from collections.abc import Sequence

from exhibit.evaluation.metrics import Options, Values
from exhibit.models.llms import Prompt
from exhibit.schemas.parsing import read_beside

_MAX_TOKENS = 300  # enough for a mark and a reason of two sentences
_SHOWN_CHARS = 80  # characters of an unreadable reply that the error message shows
_OBJECT = re.compile(r"\{[^{}]*\}")
_SCORE = re.compile(
    r"\b(?:score|mark|rating|grade)\b\W{0,6}(?:is\W{0,3}|of\W{0,3})?([1-5])(?!\d|\.[1-9])(?:\s*/\s*5)?", re.IGNORECASE
)
_ALONE = re.compile(r"[^\w-]*([1-4](?:\.\d+)?|5(?:\.0+)?)(?:\s*(?:/|out of)\s*5)?[^\w%]*", re.IGNORECASE)
_PROMPTS = read_beside(__file__)


def make_prompt(metric: str, **texts: str) -> Prompt:
    """Return the judge's prompt for a metric: its instruction in judge.toml, and texts between delimiters."""
    fenced = "\n\n".join(_fence_text(title, text) for title, text in texts.items())
    return Prompt(fenced, system=f"{_PROMPTS[metric]}\n{_PROMPTS['reply']}")


def _fence_text(title: str, text: str) -> str:
    """Return a text between delimiters that do not occur in it."""
    fence = "~" * max([3, *(len(run) + 1 for run in re.findall("~+", text))])
    return f"{title}\n{fence}\n{text.strip()}\n{fence}"


def ask_marks(prompts: Sequence[Prompt], options: Options) -> Values:
    if not prompts or options.judge is None:
        return [None] * len(prompts)
    replies = options.judge.complete(prompts, max_tokens=_MAX_TOKENS, temperature=0.0)
    marks = [None if reply.error else read_mark(reply.text) for reply in replies]
    for reply, mark in zip(replies, marks, strict=True):
        if mark is None:
            text = " ".join(reply.text.split())[:_SHOWN_CHARS]
            options.judge_faults[reply.error or f"its reply has no mark from 1 to 5: {text!r}"] += 1
    return marks


def read_mark(text: str) -> float | None:
    """Return the mark, 1 to 5, in a judge's reply; None if the reply has no mark or several different marks."""
    for record in _OBJECT.findall(text):
        try:
            fields = json.loads(record)
        except (ValueError, RecursionError):
            continue
        stated = [str(fields[key]) for key in ("score", "mark", "rating", "grade") if key in fields]
        if stated:
            alone = _ALONE.fullmatch(stated[0])
            return float(alone[1]) if alone and len(stated) == 1 else None
    alone = _ALONE.fullmatch(text)
    marks = {alone[1]} if alone else set(_SCORE.findall(text))
    return float(marks.pop()) if len(marks) == 1 else None
