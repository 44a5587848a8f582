"""Recognises the reply that the documents do not hold the answer."""

from __future__ import annotations

import re
from functools import cache

from exhibit.law.citations import find_citations
from exhibit.law.sentences import sentences
from exhibit.law.system import systems

_REFUSAL = re.compile(
    r"""[^\w]*(?:.{0,60}\b)?not\s+(?:be\s+|been\s+)?(?:found|available|contained)\s+in\s+
    (?:any\s+of\s+)?(?:the\s+|these\s+|any\s+)?(?:(?:provided|given|supplied)\s+)?
    (?:documents?|sources?|context|excerpts?)(?:\s+(?:provided|given|supplied))?\W*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_refusal(text: str) -> bool:
    """Return whether a reply opens with the refusal phrase, or has it and cites nothing; small variations count.

    A phrase after a cited statement only says what part of the question stays open.
    """
    parts = [_without_citations(text[span.start : span.end]) for span in sentences(text)]
    said = [bool(_REFUSAL.fullmatch(part) or _foreign().fullmatch(part)) for part in parts]
    return bool(said) and (said[0] or (any(said) and not find_citations(text)))


@cache
def _foreign() -> re.Pattern[str]:
    """The refusal in the languages of the legal systems: a short sentence that says nothing else."""
    phrases = "|".join(phrase for system in systems() for phrase in system.data.get("refusals", ()))
    return re.compile(rf"\W*(?:.{{0,60}}\b)?(?:{phrases}).{{0,30}}", re.IGNORECASE | re.DOTALL)


def _without_citations(sentence: str) -> str:
    for citation in reversed(find_citations(sentence)):
        sentence = sentence[: citation.span.start] + sentence[citation.span.end :]
    return sentence
