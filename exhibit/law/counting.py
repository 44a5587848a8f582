"""Counts the items of a complete list in a clause.

This answers a question "How many …?" if the clause does not state the number itself.
"""

import re
from collections.abc import Sequence

from exhibit.law.language import list_content_words

_ASKS = re.compile(
    r"\bhow\s+many\s+(?P<noun>(?:[\w'’-]+\s+){0,4}?[\w'’-]+)(?=\s+(?:are|is|were|was|does|do|did|has|have|must|may|can|"
    r"shall|will|should|would|could|of|in|under|for|to|on|at|that|which|who|there|listed|named|described|set)\b|\s*\?)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?<![\w(])\(([a-z]{1,4}|\d{1,2})\)\s", re.IGNORECASE)
_LAST = re.compile(r"\b(?:and|or)\s*$", re.IGNORECASE)
_ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()
_SERIES = ([str(number) for number in range(1, 40)], _ROMAN, [chr(ord("a") + number) for number in range(26)])


def asked_to_count(question: str) -> str:
    """Return the noun that a question asks to count: `permitted uses` in "How many permitted uses are listed?".

    Return "" if it does not ask how many.
    """
    match = _ASKS.search(question)
    return match["noun"] if match else ""


def count_items(noun: str, text: str) -> int | None:
    """Return the number of items in a labelled list, such as 3 for "three events: (a) …; (b) …; and (c) …".

    None is returned if the count is not certain. The text before the first label must contain the noun
    (`events`). The labels must begin with the first of a series, such as `(a)`, without gaps. `and` or `or`
    before the last label must show that the list is complete.
    """
    labels = list(_LABEL.finditer(text))
    wanted = list_content_words(noun)[-1:]
    if len(labels) < 2 or not wanted or wanted[0] not in list_content_words(text[: labels[0].start()]):
        return None
    first = labels[0][1].lower()
    series = next((series for series in _SERIES if series[0] == first), None)
    if series is None:
        return None
    own, inner = labels[:1], list[str]()
    for label in labels[1:]:
        name = label[1].lower()
        if len(own) < len(series) and name == series[len(own)]:
            own.append(label)
            inner.clear()
        elif _continues(inner, name, besides=series):
            inner.append(name)
        else:
            return None
    complete = _LAST.search(text[: own[-1].start()]) is not None
    return len(own) if complete and len(own) > 1 else None


def _continues(inner: Sequence[str], name: str, *, besides: Sequence[str]) -> bool:
    """Return whether the label `name` begins or continues a list that is nested in an item of another list.

    Args:
        inner: the labels of the nested list so far.
        besides: the series of the outer list's labels, such as a, b, c …; the nested list must use another
            series, such as i, ii, iii ….
    """
    return any([*inner, name] == series[: len(inner) + 1] for series in _SERIES if series is not besides)
