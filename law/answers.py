"""Whether a text says an expected answer: in its words, or with every number, date, amount, name and term of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from exhibit.law.companies import ABBREVIATED, DOTTED, INITIALS, SPELT
from exhibit.law.figures import Day, figures, in_digits
from exhibit.law.words import is_content, stem

_TOKEN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
_WRITTEN = (
    (re.compile(r"us\s?\$|\$|\b(?:us )?dollars?\b"), " usd "),
    (re.compile(r"£|\bpounds?(?: sterling)?\b"), " gbp "),
    (re.compile(r"€|\beuros?\b"), " eur "),
    (re.compile(r"%|\bper\s?cent\b"), " percent "),
    (re.compile(r"\b[a-z]\.(?:[a-z]\.)+"), lambda match: match.group().replace(".", "") + " "),  # l.l.c.
)
_CURRENCIES = frozenset({"usd", "gbp", "eur"})
_UNITS = frozenset(map(stem, "day week month year hour minute percent".split()))
_KINDS = frozenset(map(stem, "calendar business working clear consecutive full".split()))
"""What may stand between a number and its unit."""
_NOT = frozenset("not no never neither nor none cannot without".split())
_FORMS = frozenset(form.replace(".", "").lower() for form in (*ABBREVIATED, *SPELT, *INITIALS, *DOTTED))
_POLAR = frozenset({"yes", "no"})


@dataclass(frozen=True)
class _Said:
    """What a text says, as two texts are compared by it."""

    tokens: tuple[str, ...]
    """Every word and number in order."""
    terms: frozenset[str]
    """Numbers, and the stems of the words that carry meaning; companies without their form."""
    measures: frozenset[tuple[str, str]]
    """Numbers with their unit of time, or per cent."""
    dates: tuple[frozenset[Day], ...]


def stands_in(expected: str, text: str) -> bool | None:
    """Return whether a text says an answer; None where that cannot be told: no words, or a bare yes or no.

    A yes or no is compared where the text begins with one. "thirty (30) days" is "30 days", and 5 January 2024 is
    2024-01-05. An answer that denies something is not in a text that denies nothing. A net, not a proof.
    """
    wanted, given = _said(expected), _said(text)
    if not wanted.tokens and not wanted.dates:
        return None
    if wanted.tokens[:1] and wanted.tokens[0] in _POLAR:
        told = given.tokens[0] if given.tokens[:1] and given.tokens[0] in _POLAR else None
        if told not in (None, wanted.tokens[0]):
            return False
        if not wanted.terms:
            return None if told is None else True
    if not wanted.terms and not wanted.dates:
        return f" {' '.join(wanted.tokens)} " in f" {' '.join(given.tokens)} "
    return _has_parts(wanted, given)


def _has_parts(wanted: _Said, given: _Said) -> bool:
    currencies = given.terms & _CURRENCIES
    terms = wanted.terms if currencies else wanted.terms - _CURRENCIES
    denied = not _NOT.intersection(wanted.tokens) or bool(_NOT.intersection(given.tokens))
    known = [day for readings in given.dates for day in readings]
    dated = all(any(day.within(other) for day in readings for other in known) for readings in wanted.dates)
    return denied and dated and terms <= given.terms and wanted.measures <= given.measures


@lru_cache(maxsize=4096)  # an answer is looked for in every passage, and a passage serves many questions
def _said(text: str) -> _Said:
    told = figures(text)
    plain = in_digits(told.rest)
    for pattern, written in _WRITTEN:
        plain = pattern.sub(written, plain)
    found = _TOKEN.findall(plain)
    # thirty (30) is one number
    tokens = [token for at, token in enumerate(found) if not (at and token[0].isdigit() and token == found[at - 1])]
    words = [token if token[0].isdigit() else stem(token) for token in tokens]
    kept = [
        word
        for token, word in zip(tokens, words, strict=True)
        if token[0].isdigit() or (is_content(token) and token not in _FORMS)
    ]
    return _Said(tuple(tokens), frozenset(kept), frozenset(_measures(words)), told.dates)


def _measures(words: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for at, word in enumerate(words):
        following = words[at + 1 : at + 3]
        if word[0].isdigit() and following:
            unit = following[1] if following[0] in _KINDS and len(following) > 1 else following[0]
            pairs += [(word, unit)] if unit in _UNITS else []
    return pairs
