"""Recognises yes-or-no questions, and clauses that deny or restrict something."""

import re

_PARTS = re.compile(r"[,;:]\s+|(?<=\S)\s*\?\s+|\)\s+")  # the end of the lead in "Under the lease, may he sublet?"
_ASKS = re.compile(
    r"\W*(?:and\s|but\s|so\s)?(?:"
    r"(?P<verdict>(?:is|are|was|were|am|does|do|did|has|have|had|can|could|may|might|must|shall|should|will|would|"
    r"isn't|aren't|doesn't|don't|can't|won't)\b(?!\s+not\s+only))"
    r"|(?P<other>(?:what|which|who|whom|whose|when|where|why|how|to\s+what|by\s+(?:what|when|which)|in\s+(?:what|which)|"
    r"under\s+(?:what|which)|for\s+(?:what|how|which)|on\s+(?:what|which)|at\s+(?:what|which)|list|name|state|"
    r"give|describe|explain|find|quote|identify)\b))",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|never|neither|nor|without|prohibit\w*|forbid\w*|cannot|none|nothing|exclud\w*|waive\w*|refus\w*|"
    r"restrict\w*|solely|only|unless|except)\b|\bnon-",
    re.IGNORECASE,
)
_WITHHOLDS = re.compile(
    r"\bdo(?:es)?\s+not\s+(?:hereby\s+)?(?:grant|assign|license|transfer|convey|warrant)\b"
    r"|\bnot\s+be\s+(?:required|obligated|obliged)\s+to\b|\bneither\s+party\s+grants\b"
    r"|\b(?:may\s+not|neither\s+party\s+may)\s+(?:terminate|end|cancel|audit|inspect|examine)\b",
    re.IGNORECASE,
)  # matches a clause that denies a grant, a duty, or a right to terminate or to inspect
# Matches a clause that permits an act without consent; anchored at its start, so that each clause is read once
_PERMITS = re.compile(
    r"(?<![^.;])(?>[^.;]*?\bmay\s+[a-z]+\b)(?>[^.;]*?\bwithout\b)[^.;]*?\b(?:consent|approval)\b", re.IGNORECASE
)
_FORBIDS = re.compile(r"\b(?:not|no|neither|nor|cannot|never)\b", re.IGNORECASE)
_RIGHTS = re.compile(r"(?i)\b(exclusiv|sublicens)")  # a clause can withhold such a right by `non-`
_EXCEPTS = re.compile(
    r"(?i)\b(?:notwithstanding|except(?:ion|ing)?|unless|however|other than|save (?:for|that|as)|provided,? that)\b"
)
_LIMITS = re.compile(r"(?i)\b(?:limit|restrict|restrain|bar|prohibit|prevent|forbid|refrain|non)")
"""Matches a question about a limit: for such a question, a clause with `non-exclusive` may mean yes."""
_DASH = "[-\u2010-\u2015 ]"
_MAX_QUESTION_CHARS = 2_000  # most characters of a question that are read: a longer text is not a question


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question asks for yes or no; its first phrase with a verb or a question word decides."""
    for part in _PARTS.split(question[:_MAX_QUESTION_CHARS]):
        match = _ASKS.match(part)
        if match:
            return match["verdict"] is not None
    return False


def denies(text: str) -> bool:
    """Return whether a text has a word that denies or restricts: not, without, only, unless."""
    return _DENIES.search(text) is not None


def has_exception(text: str) -> bool:
    """Return whether a clause is an exception or states one: `except`, `Notwithstanding the foregoing`."""
    return _EXCEPTS.search(text) is not None


def says_contrary(question: str, text: str) -> bool:
    """Return whether a clause denies what a question asks for, so that it cannot support a yes."""
    if _WITHHOLDS.search(text) or (_PERMITS.search(text) and not _FORBIDS.search(text)):
        return True
    if _LIMITS.search(question):
        return False
    for right in _RIGHTS.findall(question):
        plain, withheld = rf"(?i)\b(?<!non{_DASH}){right}", rf"(?i)\bnon{_DASH}?{right}"
        if re.search(withheld, text) and not re.search(plain, text):
            return True
    return False
