"""The Civil Procedure Rules: Parts, rules and their paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.law.references.numbers import Numbers, read_numbers
from exhibit.law.references.stretch import Stretch, stretch

_CPR = r"(?:CPR|C\.P\.R\.|Civil\s+Procedure\s+Rules?(?:\s{1,9}1998)?)"
_RULE = re.compile(
    rf"""(?<![\w.])(?:(?P<cpr>{_CPR}),?\s{{0,9}}(?:\(?(?P<of>Parts?|Pts?\.?|[Rr]ules?|rr?\.?))?
    |(?P<unit>(?:PART|[Pp]art)[Ss]?|Pts?\.?|(?:RULE|[Rr]ule)[Ss]?|rr?\.?))[^\S\n]{{0,9}}\n?[^\S\n]{{0,9}}(?=\d)""",
    re.VERBOSE,
)
_ITS_PARTS = re.compile(rf"\s+(?:of|in)\s+(?:the\s+|these\s+)?(?:{_CPR}|Rules\b)")
_OTHER_PARTS = re.compile(
    r"\s+(?:of|OF)\s+(?:\d|the\b|this\b|that\b|those\b|an?\b|[Ss]chedule|[A-Z\0])|,?\s+to\s+(?:the\s+)?(?:Schedule|Act\b)"
)
_SCHEDULE = re.compile(r"(?:Schedule|Sch\.?|Annex|Appendix|Chapter|Volume)\s+\w{1,3},?\s*$")
_HIGHEST = 99  # of a Part: the Rules have 89, and a larger number is of something else


def find_rules(text: str) -> Iterator[Stretch]:
    """Yield Parts and rules: a Part of something else, a bare number and a rule of other rules are none."""
    for match in _RULE.finditer(text):
        unit = (match["of"] or match["unit"] or "").lower().rstrip(".")
        whole = unit in {"part", "parts", "pt", "pts"}
        numbers = read_numbers(text, match.end(), plural=unit in {"parts", "rules", "rr", "pts"})
        if numbers is None or not _is_rule(text, match, numbers, whole):
            continue
        yield stretch("rule", "CPR", numbers.paths, match.start(), numbers.end)


def _is_rule(text: str, match: re.Match[str], numbers: Numbers, whole: bool) -> bool:
    first = numbers.paths[0]
    if match["cpr"]:
        return True
    if int(re.sub(r"\D", "", first[0])) > _HIGHEST or _SCHEDULE.search(text, match.start() - 40, match.start()):
        return False
    if whole:
        return bool(_ITS_PARTS.match(text, numbers.end)) or not _OTHER_PARTS.match(text, numbers.end)
    # Part 11 has one rule, 11; any other has a point: "rule 28" of an arbitration institute is not ours
    return "." in text[match.end() : numbers.end] or (first[0] == "11" and len(first) > 1)
