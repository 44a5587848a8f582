"""Labels that a system is asked for (`--ask-label label`): the choices in the question, and which one a reply makes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from exhibit.evaluation.cases import Case
from exhibit.law.citations import is_refusal
from exhibit.schemas.errors import BundleError

LABELS = "labels.json"
_MOST = 12
"""Choices of one question: a label with more says what a question is, and is no choice."""
_NOWHERE = re.compile(r"not ?(mentioned|found|stated)|none|unknown")
_CONFIDENT = 0.5
"""Below it the documents are taken to say nothing; the confidence is a probability."""
_HYPOTHESIS = "hypothesis"
"""The label that a table of confusions is told apart by, where questions have it."""

Chosen = tuple[str, str, str]
"""What a question is about, its label, and the one that the reply chose, empty where it chose none."""


def choices_of(label: str, labels: Iterable[dict[str, Any]], *, where: str) -> tuple[str, ...]:
    """Return the values of a label over all questions, in order."""
    values = tuple(sorted({str(row[label]) for row in labels if row.get(label) is not None}))
    if not 1 < len(values) <= _MOST:
        raise BundleError(
            f"{where}: --ask-label {label}: {len(values)} different values; 2 to {_MOST} can be chosen from"
        )
    return values


def with_choices(question: str, choices: Sequence[str]) -> str:
    """Return a question that asks for one of some labels."""
    return f"{question} Begin your reply with one of these labels: {'; '.join(choices)}." if choices else question


def chosen(answer: str, choices: Sequence[str]) -> str | None:
    """Return the label that a reply makes: the first that it names; a refusal is the one that says "not mentioned"."""
    text = _plain(answer)
    places = {choice: f" {text} ".find(f" {_plain(choice)} ") for choice in choices}
    named = [choice for choice in choices if places[choice] >= 0]
    if named:
        return min(named, key=lambda choice: places[choice])
    return _nothing(choices) if is_refusal(answer) else None


def choose(
    case: Case, passages: Sequence[str], score: Callable[[str, Sequence[str]], list[float]] | None
) -> str | None:
    """Return the label that evidence alone makes, without a language model: how sure, then what the reranker says."""
    nothing = _nothing(case.choices)
    sure = case.reply.confidence
    if nothing and (is_refusal(case.reply.answer or "") or not passages or (sure is not None and sure < _CONFIDENT)):
        return nothing
    rest = [choice for choice in case.choices if choice != nothing]
    if score is None or not passages:
        return None
    best = {choice: max(score(f"{case.question} {choice}", passages)) for choice in rest}
    return max(rest, key=lambda choice: best[choice])


def _nothing(choices: Sequence[str]) -> str | None:
    return next((choice for choice in choices if _NOWHERE.fullmatch(_plain(choice))), None)


def _plain(text: str) -> str:
    """Return words in small letters: `NotMentioned` is `not mentioned`."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))).lower()


def choices_made(cases: Iterable[Case]) -> list[Chosen]:
    """Return the label and the choice of each question that was asked for one and answered."""
    asked = (case for case in cases if case.choices and case.reply.answer is not None and not case.reply.error)
    return [
        (
            str(case.labels.get(_HYPOTHESIS) or ""),
            str(case.label),
            chosen(case.reply.answer or "", case.choices) or "",
        )
        for case in asked
    ]


def describe_choices(made: Sequence[Chosen]) -> dict[str, Any]:
    """Return accuracy, macro F1 and the table of confusions, by hypothesis where there are several."""
    pairs = Counter((label, choice) for _, label, choice in made)
    labels = sorted({label for _, label, _ in made})
    by: dict[str, dict[str, dict[str, int]]] = {}
    for about, label, choice in made:
        row = by.setdefault(about, {}).setdefault(label, {})
        row[choice or "none"] = row.get(choice or "none", 0) + 1
    return {
        "questions": len(made),
        "accuracy": sum(label == choice for _, label, choice in made) / len(made),
        "macro_f1": sum(_f1(label, pairs) for label in labels) / len(labels),
        "confusion": by,
    }


def _f1(label: str, pairs: Counter[tuple[str, str]]) -> float:
    right = pairs[label, label]
    given = sum(count for (_, choice), count in pairs.items() if choice == label)
    true = sum(count for (own, _), count in pairs.items() if own == label)
    return 2 * right / (given + true) if given + true else 0.0
