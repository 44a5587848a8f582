"""The labels that a question offers, the label that a reply chooses, and the accuracy of the choices."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from exhibit.evaluation.cases import Case
from exhibit.law.refusals import is_refusal

LABELS = "labels.json"
_NOWHERE = re.compile(r"not ?(mentioned|found|stated)|none|unknown")

Chosen = tuple[str, str, str]
"""The subject of a question, its label, and the label that the reply chose; empty if it chose none."""


def find_chosen_label(answer: str, choices: Sequence[str]) -> str | None:
    """Return the first label that a reply names; for a refusal, the label that means "not mentioned"."""
    text = _normalise_label(answer)
    offsets = {choice: f" {text} ".find(f" {_normalise_label(choice)} ") for choice in choices}
    named = [choice for choice in choices if offsets[choice] >= 0]
    if named:
        return min(named, key=lambda choice: offsets[choice])
    nothing = (choice for choice in choices if _NOWHERE.fullmatch(_normalise_label(choice)))
    return next(nothing, None) if is_refusal(answer) else None


def _normalise_label(text: str) -> str:
    """Return a label as lower-case words: `NotMentioned` becomes `not mentioned`."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))).lower()


_ABOUT = ("hypothesis", "deal_point")
"""The labels that separate confusion tables, if questions have them."""


def list_choices(cases: Iterable[Case]) -> list[Chosen]:
    """Return (subject, right label, chosen label) for each answered question that asks for a label."""
    return [
        (
            str(next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")),
            str(case.label),
            find_chosen_label(case.reply.answer, case.choices) or "",
        )
        for case in cases
        if case.choices and case.reply.answer is not None and not case.reply.error
    ]


def describe_choices(made: Sequence[Chosen]) -> dict[str, Any]:
    """Compare the labels that a system chose with the right labels; return the metrics by name."""
    right, chosen, hits = Counter[str](), Counter[str](), Counter[str]()
    by: dict[str, dict[str, Counter[str]]] = {}
    for about, label, choice in made:
        by.setdefault(about, {}).setdefault(label, Counter())[choice or "none"] += 1
        right[label] += 1
        chosen[choice] += 1
        hits[label] += label == choice
    return {
        "questions": len(made),
        "accuracy": hits.total() / len(made),
        "majority": max(right.values()) / len(made),
        "macro_f1": sum(2 * hits[label] / (right[label] + chosen[label]) for label in right) / len(right),
        "confusion": by,
    }


def describe_labels(name: str, rates: Mapping[str, Any]) -> str:
    return (
        f"{name}: {rates['questions']} labels: accuracy {rates['accuracy']:.3f}, macro F1 {rates['macro_f1']:.3f}; "
        f"always the commonest label: accuracy {rates['majority']:.3f}"
    )
