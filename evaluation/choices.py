"""Labels that a system is asked for (`--ask-label label`): the choices in the question, and which one a reply makes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Case
from exhibit.law.citations import is_refusal
from exhibit.schemas.errors import BundleError

LABELS = "labels.json"
_MOST = 12
"""Choices of one question: a label with more says what a question is, and is no choice."""
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
_ABOUT = ("hypothesis", "deal_point")
"""Labels that a table of confusions is told apart by, where questions have one."""
_MARK = "\n\n"
"""Between a question and what it is asked for besides."""

Chosen = tuple[str, str, str]
"""What a question is about, its label, and the one that the reply chose, empty where it chose none."""


class Offer(NamedTuple):
    """What a question is asked for besides its answer."""

    choices: tuple[str, ...]
    label: str
    """The one that the source gives."""
    asked: str = ""
    """What the choice is about, where the label says."""


def offers_of(label: str, rows: Mapping[Any, Mapping[str, Any]], *, where: str) -> dict[Any, Offer]:
    """Return what each question that has a label may choose from: its values over all questions.

    A label may be several finer questions with what was ticked, as MAUD's is ("MAE applies to: Target; …"): then a
    question asks for the first of them that has several values.
    """
    told = {id: str(row[label]) for id, row in rows.items() if row.get(label) is not None}
    finer = {
        id: [tuple(pair.split(": ", 1)) for pair in value.split("; ") if ": " in pair] for id, value in told.items()
    }
    if not all(finer.values()) or not told:
        finer = {id: [("", value)] for id, value in told.items()}
    values: dict[str, set[str]] = {}
    for name, value in (pair for pairs in finer.values() for pair in pairs):
        values.setdefault(name, set()).add(value)
    offered = {}
    for id, pairs in finer.items():
        open_pairs = [pair for pair in pairs if 1 < len(values[pair[0]]) <= _MOST]
        if open_pairs:
            name, value = open_pairs[0]
            offered[id] = Offer(tuple(sorted(values[name])), value, name)
    if not offered:
        counts = ", ".join(str(len(one)) for one in values.values()) or "no"
        raise BundleError(f"{where}: --ask-label {label}: {counts} different values; 2 to {_MOST} can be chosen from")
    return offered


def with_choices(question: str, choices: Sequence[str], asked: str = "") -> str:
    """Return a question that asks for one of some labels."""
    begin = f"On {asked!r} begin" if asked else "Begin"
    return (
        f"{question}{_MARK}{begin} your reply with one of these labels: {'; '.join(choices)}." if choices else question
    )


def without_choices(case: Case) -> str:
    """Return a question as it was before a label was asked for: its words are what is searched for."""
    return case.question.partition(_MARK)[0] if case.choices else case.question


def chosen(answer: str, choices: Sequence[str]) -> str | None:
    """Return the label that a reply makes: the first that it names; a refusal is the one that says "not mentioned"."""
    text = _plain(answer)
    places = {choice: f" {text} ".find(f" {_plain(choice)} ") for choice in choices}
    named = [choice for choice in choices if places[choice] >= 0]
    if named:
        return min(named, key=lambda choice: places[choice])
    return _nothing(choices) if is_refusal(answer) else None


def choose(case: Case, passages: Sequence[str], score: Callable[[str, Sequence[str]], list[float]] | None) -> str:
    """Return the label that evidence alone makes, without a language model.

    A refusal is the label for what is not mentioned. Of yes and no, cues of the answer's own words decide
    (`contradicts`); of other labels the one that a reranker likes best or, without one, whose words stand there.
    """
    nothing, answer = _nothing(case.choices), case.reply.answer or ""
    if nothing and (is_refusal(answer) or not passages):
        return nothing
    rest = [choice for choice in case.choices if choice != nothing]
    yes, no = (next((choice for choice in rest if _plain(choice) in words), None) for words in (_YES, _NO))
    if yes and no and len(rest) == 2:
        return no if contradicts(without_choices(case), answer) else yes
    if score is not None and passages:
        best = {choice: max(score(f"{without_choices(case)} {choice}", passages)) for choice in rest}
    else:
        there = set(_plain(answer).split())
        best = {choice: len(there & set(_plain(choice).split())) / len(_plain(choice).split()) for choice in rest}
    return max(rest, key=lambda choice: best[choice])


def contradicts(question: str, evidence: str) -> bool:
    """Return whether evidence says no: no limit where a limit is asked for, or a ban where a permission is.

    On the experts' own evidence for 1,188 labels of ContractNLI's test split, which nothing was chosen on, it is right
    in 1,096; "yes" to all in 968.
    """
    if _ASKS_LIMIT.search(question):
        return bool(_OPEN.search(evidence)) or not _LIMIT.search(evidence)
    return bool(_ASKS_LEAVE.search(question) and _BAN.search(evidence) and not _LEAVE.search(evidence))


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
            str(next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")),
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
        "majority": max(Counter(label for _, label, _ in made).values()) / len(made),
        "macro_f1": sum(_f1(label, pairs) for label in labels) / len(labels),
        "confusion": by,
    }


def labels_in_words(name: str, told: Mapping[str, Any]) -> str:
    """Return how far the labels of a dataset were right, in a line, beside what the commonest label alone gives."""
    return (
        f"{name}: {told['questions']} labels: accuracy {told['accuracy']:.3f}, macro F1 {told['macro_f1']:.3f}; "
        f"always the commonest label: accuracy {told['majority']:.3f}"
    )


def _f1(label: str, pairs: Counter[tuple[str, str]]) -> float:
    right = pairs[label, label]
    given = sum(count for (_, choice), count in pairs.items() if choice == label)
    true = sum(count for (own, _), count in pairs.items() if own == label)
    return 2 * right / (given + true) if given + true else 0.0
