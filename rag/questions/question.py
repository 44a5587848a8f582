"""A question in any wording to a query: which of its words name a document, and which ask.

A document is named by what stands around a word for its kind (`Kenway's Non-Disclosure Agreement`, `the Supply
Agreement between A and B`), by a lead (`Consider …;`, `Under …,`), or by a name alone (`Does Fiverr …`). In the last
case the words name *and* ask: a rule cannot tell a company from a defined term, the collection's statistics can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from evidence import Span
from rag.questions.wording import (
    BREAK,
    END,
    FRAME,
    GLUE,
    JOIN,
    KIND,
    KINDS,
    LEAD,
    NAMED,
    OPENER,
    PREPOSITION,
    QUOTED,
    STOP,
    SURE,
)

_REACH = 400
"""Characters that a name may be long: five parties with their forms."""
_PLAIN = 2
"""Words in lower case that a kind may have before it: `content license agreement`."""
_QUOTES = 50
_TOKEN = re.compile(r"\S+")
_CONTENT = re.compile(r"[^\W_]")
_EDGES = " ;,:—–-"
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST = 10_000
"""Characters: in what is longer, a whole contract pasted in, names are not looked for one by one."""
_NOTHING = re.compile(r"\s{0,20}\((?:\W{0,20}\)|\s*$)")
"""Brackets that held a name."""
_FIGURE = re.compile(r"\d")
"""`Amendment No. 3`, `Practice Direction 7A`, `the Act 1996`: a kind with a number is a name."""
_FORM = re.compile(r"\W*(?:inc|ltd|llc|l\.l\.c|llp|lp|l\.p|co|corp|plc|gmbh|ag|sa|s\.a|fsb|na|n\.a)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Query:
    """A question, taken apart; every word of it is in `lead`, `names` or `asks`."""

    question: str
    lead: str = ""
    """What leads to a name and says nothing: `Consider`, `Under`."""
    names: str = ""
    """What names a document; empty when nothing does."""
    asks: str = ""
    """What is asked of it: the whole question when no name stands apart; `it` stands for one in the middle."""
    quoted: tuple[str, ...] = ()
    """Names in quotation marks."""
    kind: str = ""
    """What sort of document is meant, in the words of `Profile.kind`; empty when it is not said."""
    apart: bool = False
    """Whether the names stand apart from the question; else they are words of it that look like names."""


def understand(question: str) -> Query:
    """Return what a question names and what it asks; nothing of it is lost."""
    if len(question) > _LONGEST:
        return _query(question, "", question, apart=False)
    text = question.lower() if question.isupper() else question  # capitals say nothing when all are
    quotes = [Span(*match.span()) for match in QUOTED.finditer(text)][:_QUOTES]
    end = _lead_end(text, quotes)
    if end:
        return _led(question, text, end)
    found = _references(text, quotes)
    names = " ".join(text[slice(*reference.span)].strip() for reference in found)
    named = [reference.span for reference in found if reference.sure]
    framed = [_framed(text, span) for span in named]
    asks = _without(text, framed)
    if asks:
        frame = " ".join(
            text[slice(*piece)]
            for span, whole in zip(named, framed, strict=True)
            for piece in ((whole.start, span.start), (span.end, whole.end))
        )
        return _query(question, names, asks, apart=True, lead=" ".join(frame.split()))
    asks = _without(text, named)
    if asks:
        return _query(question, names, asks, apart=True)
    mentions = _mentions(text, quotes)
    return _query(question, " ".join(filter(None, (names, mentions))), text, apart=False)


def _led(question: str, text: str, end: int) -> Query:
    """Return the query of `Consider …; …`."""
    first = LEAD.match(text)
    at = first.end() if first else 0
    names, asks = text[at:end].strip(_EDGES), text[end:].strip(_EDGES)
    # `In the agreement, what does Kenway …`: the lead says the kind, the rest may say the name
    more = "" if _telling(names) else _mentions(asks, [])
    return _query(question, f"{names} {more}".strip(), asks or text, lead=text[:at].strip(), apart=bool(asks))


def _query(question: str, names: str, asks: str, *, apart: bool, lead: str = "") -> Query:
    quoted = tuple((match[1] or match[2]).strip() for match in QUOTED.finditer(question))
    where = names if KIND.search(names) else question
    kind = next((kind for kind, pattern in KINDS if pattern.search(where)), "")
    return Query(question, lead, names, asks, quoted, kind if names or kind != "contract" else "", apart)


def _framed(text: str, span: Span) -> Span:
    """Return a name with the sentence around it where that asks nothing: `Could you look into … for me?`."""
    before = [match.end() for match in END.finditer(text, 0, span.start)]
    after = END.search(text, span.end)
    start, end = before[-1] if before else 0, after.end() if after else len(text)
    around = f"{text[start : span.start]} {text[span.end : end]}".casefold()
    said = _WORD.findall(around)
    return Span(start, end) if said and all(word in FRAME for word in said) else span


def _without(text: str, spans: list[Span]) -> str:
    """Return a question without its names, empty when nothing is left; `it` keeps a sentence whole."""
    edges = [Span(0, 0), *spans, Span(len(text), len(text))]
    pieces = [text[before.end : after.start].strip() for before, after in pairwise(edges)]
    if not spans or not any(_CONTENT.search(piece) for piece in pieces):
        return ""
    joined = pieces[0]
    for piece in pieces[1:]:
        if _CONTENT.match(piece):
            joined = f"{joined} it {piece}" if joined and joined[-1] not in ",;:" else f"{joined} {piece}"
        else:  # its first sign ends what was before the name
            joined = f"{joined.rstrip(_EDGES)}{piece}" if piece else joined
    return _NOTHING.sub("", joined).strip(_EDGES)


# ---------------------------------------------------------------- a lead


def _lead_end(text: str, quotes: list[Span]) -> int:
    """Return where the question proper begins after `Consider …;` or `Under …,`; 0 when it has no such lead."""
    first = LEAD.match(text)
    if not first:
        return 0
    sure = first["lead"].lower().startswith("consider")
    breaks = [match for match in BREAK.finditer(text, first.end()) if not _inside(match.start(), quotes)]
    breaks.sort(key=lambda match: match[0] != ";")  # names have commas and colons in them, hardly a semicolon
    for match in breaks[:_QUOTES]:
        before, after = text[first.end() : match.start()], text[match.end() :]
        asked = match[0] == ";" or (match[0] != "?" and OPENER.match(after))
        if asked and _CONTENT.search(after) and _naming(before, sure):
            return match.end()
    return 0


def _inside(at: int, spans: list[Span]) -> bool:
    return any(span.start <= at < span.end for span in spans)


def _naming(words: str, sure: bool) -> bool:
    """Return whether a lead names a document: `In the event of termination,` and `Under Delaware law,` do not."""
    return bool(KIND.search(words) or QUOTED.search(words) or (sure and _CONTENT.search(words)))


def _telling(names: str) -> bool:
    """Return whether more than a kind is named: a word in capitals, in quotes, or before `'s`."""
    rest = KIND.sub(" ", names)
    return bool(re.search(r"[A-Z0-9]|['’]s?\b|[\"“]", rest) or len(rest.split()) > _PLAIN)


# ---------------------------------------------------------------- a kind and what stands around it


class _Reference(NamedTuple):
    span: Span
    sure: bool
    """Whether it names a document, and does not only describe one: `an insurance policy` may be what is asked for."""


def _references(text: str, quotes: list[Span]) -> list[_Reference]:
    """Return the stretches that name a document by its kind and more, in order, none overlapping."""
    found: list[_Reference] = []
    for match in KIND.finditer(text):
        least = max(found[-1].span.end if found else 0, match.start() - _REACH)
        if match.start() < least:
            continue
        start = _leftwards(text, match.start(), quotes, least)
        end, joined = _rightwards(text, match.end(), quotes)
        sure = joined or _marked(text[start : match.start()]) or bool(_FIGURE.search(match[0]))
        if sure or end > match.end() or start < match.start():
            before = PREPOSITION.search(text[least:start]) if sure else None
            found.append(_Reference(Span(least + before.start() if before else start, end), sure))
    return found


def _marked(words: str) -> bool:
    return any(NAMED.match(word) for word in words.split())


def _leftwards(text: str, at: int, quotes: list[Span], least: int) -> int:
    """Return where a name that ends at a place begins: capitals, quotes, possessives, glue, a plain word or two."""
    tokens = [Span(*match.span()) for match in _TOKEN.finditer(text, least, at)]
    start, plain = at, 0
    while tokens:
        token = tokens.pop()
        quote = next((span for span in quotes if span.start < token.end and token.start < span.end), None)
        if quote and quote.start >= least:
            start = quote.start
            tokens = [other for other in tokens if other.end <= start]
            continue
        word = text[slice(*token)]
        bare = word.strip(".,;:()[]?!\"“”'").lower()
        opens = word[0] in "([" and not quote
        if opens and not NAMED.match(word):
            break  # what stands before the bracket is the question's
        ends = word[-1] in ";?!" or (word[-1] == "," and not _FORM.match(text, token.end))
        if ends or (bare in STOP and not GLUE.fullmatch(bare)) or (bare in STOP and token.start == 0):
            break
        if NAMED.match(word):
            start = token.start
            if opens:
                break
        elif GLUE.fullmatch(bare) and start < at:
            if not tokens or not _joins(text[slice(*tokens[-1])], tokens[-1].start):
                break
        elif plain < _PLAIN and bare not in STOP and bare.replace("-", "").isalpha():
            plain, start = plain + 1, token.start
        else:
            break
    return start


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


# ---------------------------------------------------------------- names alone


def _mentions(text: str, quotes: list[Span]) -> str:
    """Return the words that are written as names, but for the one a question begins with."""
    found: list[str] = []
    fresh = True
    for match in _TOKEN.finditer(text):
        word = match[0]
        asking = fresh and OPENER.match(f"{word} ")
        named = NAMED.match(word) and not asking and word.strip(".,?").lower() not in STOP
        if named or _inside(match.start(), quotes):
            found.append(word.strip(",;:?!"))
        fresh = word[-1] in ".?!;:"
    return " ".join(found)
