"""The stretches of a question that name a document by its kind and what stands around it.

`Kenway's Non-Disclosure Agreement`, `the Supply Agreement between A and B`: from the word for the kind a name is read
to the left and to the right, as far as words are written as names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.companies import form_follows
from exhibit.rag.questions.wording import GLUE, JOIN, KIND, NAMED, OPENER, PREPOSITION, STOP, SURE

_REACH = 400
"""Characters that a name may be long: five parties with their forms."""
_DESCRIBING = 2
"""Words in lower case that a kind may have before it: `content license agreement`."""
_TOKEN = re.compile(r"\S+")
_FIGURE = re.compile(r"\d")
"""`Amendment No. 3`, `Practice Direction 7A`, `the Act 1996`: a kind with a number is a name."""


class Reference(NamedTuple):
    span: Span
    sure: bool
    """Whether it names a document, and does not only describe one: `an insurance policy` may be what is asked for."""


def find_references(text: str, quotes: list[Span]) -> list[Reference]:
    """Return the stretches that name a document by its kind and more, in order, none overlapping."""
    references: list[Reference] = []
    for match in KIND.finditer(text):
        least = max(references[-1].span.end if references else 0, match.start() - _REACH)
        if match.start() < least:
            continue
        start = _leftwards(text, match.start(), quotes, least)
        end, joined = _rightwards(text, match.end(), quotes)
        sure = joined or _marked(text[start : match.start()]) or bool(_FIGURE.search(match[0]))
        if sure or end > match.end() or start < match.start():
            before = PREPOSITION.search(text[least:start]) if sure else None
            references.append(Reference(Span(least + before.start() if before else start, end), sure))
    return references


def _marked(words: str) -> bool:
    return any(NAMED.match(word) for word in words.split())


def _leftwards(text: str, at: int, quotes: list[Span], least: int) -> int:
    """Return where a name that ends at a place begins: capitals, quotes, possessives, glue, a plain word or two."""
    tokens = [Span(*match.span()) for match in _TOKEN.finditer(text, least, at)]
    start, described = at, 0
    while tokens:
        token = tokens.pop()
        quote = next((span for span in quotes if span.start < token.end and token.start < span.end), None)
        if quote and quote.start >= least:
            start = quote.start
            tokens = [other for other in tokens if other.end <= start]
            continue
        word = text[slice(*token)]
        if _stops(text, token):
            break
        if NAMED.match(word):
            start = token.start
            if word[0] in "([" and not quote:
                break  # what stands before the bracket is the question's
        elif GLUE.fullmatch(_bare(word)) and start < at:
            if not tokens or not _joins(text[slice(*tokens[-1])], tokens[-1].start):
                break
        elif described < _DESCRIBING and _describes(word):
            described, start = described + 1, token.start
        else:
            break
    return start


def _bare(word: str) -> str:
    return word.strip(".,;:()[]?!\"“”'").lower()


def _stops(text: str, token: Span) -> bool:
    """Return whether a name begins after this word: a bracket, the end of a clause, or a word that no name has."""
    word = text[slice(*token)]
    if word[0] in "([" and not NAMED.match(word):
        return True
    if word[-1] in ";?!" or (word[-1] == "," and not form_follows(text, token.end)):
        return True
    bare = _bare(word)
    return bare in STOP and (token.start == 0 or not GLUE.fullmatch(bare))


def _describes(word: str) -> bool:
    """Return whether a word in lower case may say what a document is about: `content license` agreement."""
    bare = _bare(word)
    return bare not in STOP and bare.replace("-", "").isalpha()


def _joins(word: str, at: int) -> bool:
    """Return whether glue has a name before it, and not the first word of a question."""
    return bool(NAMED.match(word)) and word[-1] not in ",;?!" and word.lower() not in STOP and at > 0


def _rightwards(text: str, at: int, quotes: list[Span]) -> tuple[int, bool]:
    """Return where a name that begins with a kind ends, `between A and B for C`, and whether it surely is one."""
    end, sure = at, False
    while True:
        join = JOIN.match(text, end)
        if not join:
            return end, sure
        listed = join["join"].lower() in {"between", "among", "amongst"}
        stop = _list_end(text, join.end(), quotes, lower=listed)
        if stop <= join.end():
            return end, sure
        end, sure = stop, sure or join["join"].lower() in SURE


def _list_end(text: str, at: int, quotes: list[Span], *, lower: bool) -> int:
    """Return where a list of names that begins at a place ends; at once when there is none."""
    end, most = at, at + _REACH
    plain = lower and not re.search(r"[A-Z]", text[at:most]) and not any(at <= span.start < most for span in quotes)
    for match in _TOKEN.finditer(text, at, most):
        token = Span(*match.span())
        if token.start < end:
            continue
        quote = next((span for span in quotes if token.start <= span.start + 1 and span.start < token.end), None)
        word = match[0]
        if quote:
            end = quote.end
        elif plain or (NAMED.match(word) and not OPENER.match(f"{word} ")):
            end = token.start + len(word.rstrip("?;:!,"))
        elif not GLUE.fullmatch(word.strip(",.").lower() or ","):
            break
        tail = text[end : token.end]
        if re.search(r"[;?!]", tail) or (re.search(r"[,:]", tail) and OPENER.match(text, token.end)):
            break
    return end
