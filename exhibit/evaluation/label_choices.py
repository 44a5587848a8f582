"""The labels that a question offers, the label that a reply chooses, and the accuracy of the choices."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exhibit.evaluation.cases import Case, without_choices
from exhibit.law.refusals import is_refusal

LABELS = "labels.json"
_NOWHERE = re.compile(r"not ?(mentioned|found|stated)|none|unknown")
_YES, _NO = frozenset({"entailment", "yes", "true"}), frozenset({"contradiction", "no", "false"})
_ASKS_LIMIT = re.compile(r"\bnothing but\b|\bonly\b|\ball\b.*\bmust\b", re.I)
_ASKS_LEAVE = re.compile(r"\b(?:let|allow|permit)s?\b", re.I)
_LIMIT = re.compile(r"\b(?:only|solely|exclusively|marked|identified|designated|labell?ed|confirmed)\b", re.I)
_OPEN = re.compile(
    r"\bwhether or not\b|\bwithout limitation\b|\bincluding but not\b|\bneed not\b|\bregardless\b"
    r"|\b(?:any(?: and all)?|all) information\b",
    re.I,
)
_BAN = re.compile(
    r"\b(?:shall|may|must|will|agrees?|is) not\b"
    r"|\bnot (?:to )?(?:disclose|copy|retain|make|reproduce|keep|reveal|share)"
    r"|\bno copies\b|\bnor\b|\bwithout retaining\b|\ball copies\b|\bwithout\b[^.]{0,40}\bconsent\b",
    re.I,
)
_LEAVE = re.compile(
    r"\b(?:may|except|unless|other than|permitted|provided that|save|to those|who need|need to know)\b", re.I
)

Chosen = tuple[str, str, str]
"""The subject of a question, its label, and the label that the reply chose; empty where it chose none."""


def find_chosen_label(answer: str, choices: Sequence[str]) -> str | None:
    """Return the first label that a reply names; for a refusal, the label that means "not mentioned"."""
    text = _normalise_label(answer)
    places = {choice: f" {text} ".find(f" {_normalise_label(choice)} ") for choice in choices}
    named = [choice for choice in choices if places[choice] >= 0]
    if named:
        return min(named, key=lambda choice: places[choice])
    return _find_nothing_label(choices) if is_refusal(answer) else None


def choose(case: Case, passages: Sequence[str], score: Callable[[str, Sequence[str]], list[float]] | None) -> str:
    """Return the label that the answer and the passages suggest, chosen without a language model."""
    nothing, answer = _find_nothing_label(case.choices), case.reply.answer or ""
    if nothing and (is_refusal(answer) or not passages):
        return nothing
    rest = [choice for choice in case.choices if choice != nothing]
    yes, no = (next((choice for choice in rest if _normalise_label(choice) in words), None) for words in (_YES, _NO))
    if yes and no and len(rest) == 2:
        return no if contradicts(without_choices(case), answer) else yes
    if score is not None and passages:
        best = {choice: max(score(f"{without_choices(case)} {choice}", passages)) for choice in rest}
    else:
        there = set(_normalise_label(answer).split())
        best = {
            choice: len(there & set(_normalise_label(choice).split())) / len(_normalise_label(choice).split())
            for choice in rest
        }
    return max(rest, key=lambda choice: best[choice])


def contradicts(question: str, evidence: str) -> bool:
    """Return whether the evidence means "no" to a question."""
    if _ASKS_LIMIT.search(question):
        return bool(_OPEN.search(evidence)) or not _LIMIT.search(evidence)
    return bool(_ASKS_LEAVE.search(question) and _BAN.search(evidence) and not _LEAVE.search(evidence))


def _find_nothing_label(choices: Sequence[str]) -> str | None:
    return next((choice for choice in choices if _NOWHERE.fullmatch(_normalise_label(choice))), None)


def _normalise_label(text: str) -> str:
    """Return a label as lower-case words: `NotMentioned` becomes `not mentioned`."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))).lower()


def describe_choices(made: Sequence[Chosen]) -> dict[str, Any]:
    """Compare the labels that a system chose with the right labels; return the metrics by name."""
    pairs = Counter((label, choice) for _, label, choice in made)
    labels = sorted({label for _, label, _ in made})
    by: dict[str, dict[str, dict[str, int]]] = {}
    for about, label, choice in made:
        row = by.setdefault(about, {}).setdefault(label, {})
        row[choice or "none"] = row.get(choice or "none", 0) + 1
    return {
        "questions": len(made),
        "accuracy": sum(label == choice for _, label, choice in made) / len(made),
        "majority": max(Counter(label for _, label, _ in made).values()) / len(made),
        "macro_f1": sum(_compute_f1(label, pairs) for label in labels) / len(labels),
        "confusion": by,
    }


def describe_labels(name: str, rates: Mapping[str, Any]) -> str:
    """Return a line with the accuracy and macro F1 of the labels that a system chose for a dataset's questions."""
    return (
        f"{name}: {rates['questions']} labels: accuracy {rates['accuracy']:.3f}, macro F1 {rates['macro_f1']:.3f}; "
        f"always the commonest label: accuracy {rates['majority']:.3f}"
    )


def _compute_f1(label: str, pairs: Counter[tuple[str, str]]) -> float:
    right = pairs[label, label]
    given = sum(count for (_, choice), count in pairs.items() if choice == label)
    true = sum(count for (own, _), count in pairs.items() if own == label)
    return 2 * right / (given + true) if given + true else 0.0
