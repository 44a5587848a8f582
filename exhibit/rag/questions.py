"""Parses a question into a query: the words that name a document, and the words that ask.

A document is named in one of three ways. The name may contain a word for a kind of document, such as
`Agreement` (`Kenway's Non-Disclosure Agreement`, `the Supply Agreement between A and B`). The name may be
in a clause before the question (`Consider …;`, `Under …,`, `Kenway NDA:`). Or a single word may be a name,
as in `Does Fiverr …`: a word counts as a name if only few documents have it in their file names, titles and
parties. A single word that is a name also stays part of the question.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.language import list_content_words
from exhibit.law.names import is_followed_by_form
from exhibit.law.values import find_values
from exhibit.rag import question_patterns as patterns

Carried = Callable[[str], bool]
"""A function that returns whether a text has a word that few documents of the collection have in their names."""

_QUOTES = 50
"""The most quotations and breaks that are examined: a question has a few, a hostile one thousands."""
_EDGES = " ;,:—–-"
_LONGEST = 10_000
"""The length in characters above which single names are not searched for: such a text is a pasted contract."""
_REACH = 400
"""The greatest length of a name in characters: five parties with their legal forms."""
_DESCRIBING = 2
"""The most words in lower case that may precede a kind as part of a name: `content license agreement`."""


@dataclass(frozen=True)
class Query:
    """A parsed question.

    `lead` has the words that introduce a name, such as `Under`, `names` the words that name a document, and
    `asks` the words that ask. Every word of the question is in at least one of these fields.
    """

    question: str
    lead: str = ""
    """The words that introduce a name and have no other meaning: `Consider`, `Under`."""
    names: str = ""
    """The words that name a document; empty if no words do."""
    asks: str = ""
    """The words that ask: the whole question if no name is separate from it; `it` replaces a name in the middle."""
    quoted: tuple[str, ...] = ()
    """Names in quotation marks."""
    kind: str = ""
    """The kind of the document, as in `Profile.kind`; empty if the question names none."""
    apart: bool = False
    """Whether the names are separate from the question; otherwise they are words of it that look like names."""


def is_written_as_name(text: str) -> bool:
    """Return whether a text has a word that is written like a name: with a capital, a figure or a possessive.

    `understand` uses this test by default, when there is no collection in which names can be looked up.
    """
    return any(patterns.NAMED.match(word) and word.strip(".,?").lower() not in patterns.STOP for word in text.split())


def understand(question: str, carried: Carried = is_written_as_name) -> Query:
    """Parse a question into the words that name a document and the words that state what is asked.

    In `Under the Alder lease, who pays the rent?`, the words `the Alder lease` name a document. `carried` is
    a function that returns whether a text has a word that names a document of the collection.
    """
    if len(question) > _LONGEST:
        return _make_query(question, "", question, apart=False)
    if day := find_day_end(question):
        query = understand(question[day:], carried)
        return replace(query, question=question, lead=f"{question[:day].strip()} {query.lead}".strip())
    text = question.lower() if question.isupper() else question  # in a question in capitals, a capital marks no name
    quotes = [Span(*match.span()) for match in patterns.QUOTED.finditer(text)][:_QUOTES]
    end = _find_lead_end(text, quotes, carried)
    if end:
        return _parse_lead(question, text, end, carried)
    references = find_references(text, quotes)
    return _parse_apart(question, text, references) or _parse_mentions(question, text, references, quotes, carried)


def find_day_end(question: str) -> int:
    """Return the number of characters before the words that ask, if a question begins with a date; otherwise 0.

    In `As of 1 March 2021: who pays?`, these are `As of 1 March 2021: `. The date selects the version of a
    clause, and is not searched for.
    """
    lead = patterns.AS_OF.match(question)
    return lead.end() if lead and any(value.kind == "date" for value in find_values(lead[0])) else 0


def _parse_apart(question: str, text: str, references: "list[NamedPart]") -> Query | None:
    """Return a question as a query with two parts: the document's name, and the question without that name.

    `references` are the words that name a document or only describe it, such as `an insurance policy`. Return
    None if no document is named, or if no question remains without the names.
    """
    names = " ".join(text[slice(*reference.span)].strip() for reference in references)
    named = [reference.span for reference in references if reference.sure]
    framed = [_find_frame(text, span) for span in named]
    asks = _without(text, framed)
    if not asks:
        asks, framed = _without(text, named), named
    if not asks:
        return None
    frame = " ".join(
        text[slice(*piece)]
        for span, whole in zip(named, framed, strict=True)
        for piece in ((whole.start, span.start), (span.end, whole.end))
    )
    return _make_query(question, names, asks, apart=True, lead=" ".join(frame.split()))


def _parse_mentions(
    question: str, text: str, references: "list[NamedPart]", quotes: list[Span], carried: Carried
) -> Query:
    """Return the query for a question from which no document name can be separated.

    The query's field `asks` is the whole question. Its field `names` has the words that may name a document.
    """
    named = [text[slice(*reference.span)].strip() for reference in references]
    mentions = _find_mentions(text, quotes, carried)
    return _make_query(question, " ".join(filter(None, (*named, mentions))), text, apart=False)


def _parse_lead(question: str, text: str, end: int, carried: Carried) -> Query:
    """Return the query of a question with a lead, a clause that names the document: `Consider …; …`."""
    first = patterns.LEAD.match(text)
    at = first.end() if first else 0
    names, asks = text[at:end].strip(_EDGES), text[end:].strip(_EDGES)
    # `In the agreement, what does Kenway …`: the lead has the kind, the rest may have the name
    more = "" if carried(names) else _find_mentions(asks, [], carried)
    return _make_query(question, f"{names} {more}".strip(), asks or text, lead=text[:at].strip(), apart=bool(asks))


def _make_query(question: str, names: str, asks: str, *, apart: bool, lead: str = "") -> Query:
    quoted = tuple((match[1] or match[2]).strip() for match in patterns.QUOTED.finditer(question))
    where = names if patterns.KIND.search(names) else question
    kind = next((kind for kind, pattern in patterns.KINDS.items() if pattern.search(where)), "")
    return Query(question, lead, names, asks, quoted, kind if names or kind != "contract" else "", apart)


def _find_frame(text: str, span: Span) -> Span:
    """Return the span to remove from a question so that a document's name is no longer in it.

    This is the whole sentence with the name if the sentence asks nothing else, such as `Could you look into the
    Kenway NDA for me?`. Otherwise it is the name alone.
    """
    before = [match.end() for match in patterns.END.finditer(text[: span.start])]
    after = patterns.END.search(text, span.end)
    start, end = before[-1] if before else 0, after.end() if after else len(text)
    said = list_content_words(f"{text[start : span.start]} {text[span.end : end]}")
    return Span(start, end) if all(word in patterns.TALK for word in said) else span


def _without(text: str, spans: list[Span]) -> str:
    """Return a question without the document names at the given spans.

    A name inside a sentence is replaced by `it`. Return "" if no span is given or if no word would remain.
    """
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(text)]
    pieces = [text[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    if not spans or not any(patterns.CONTENT.search(piece) for piece in pieces):
        return ""
    joined = pieces[0]
    for piece in pieces[1:]:
        if patterns.CONTENT.match(piece):
            joined = f"{joined} it {piece}" if joined and joined[-1] not in ",;:" else f"{joined} {piece}"
        else:  # the first character of the rest ends the words before the name
            joined = f"{joined.rstrip(_EDGES)}{piece}" if piece else joined
    return patterns.NOTHING.sub("", joined).strip(_EDGES)


# ---------------------------------------------------------------- a lead


def _find_lead_end(text: str, quotes: list[Span], carried: Carried) -> int:
    """Return the offset at which the question begins after a lead such as `Consider …;` or `Kenway NDA:`.

    Return 0 if there is no lead.
    """
    first = patterns.LEAD.match(text)
    if not first and patterns.OPENER.match(text):
        return 0
    at = first.end() if first else 0
    breaks = [match for match in patterns.PAUSE.finditer(text, at) if not _is_inside(match.start(), quotes)]
    breaks.sort(key=lambda match: match[0] != ";")  # names often contain commas and colons, but rarely a semicolon
    for match in breaks[:_QUOTES]:
        before, after = text[at : match.start()], text[match.end() :]
        strong = match[0] == ";"
        asked = strong or (match[0] != "?" and patterns.OPENER.match(after))
        if (
            asked
            and patterns.CONTENT.search(after)
            and _names_document(before, carried, led=bool(first), strong=strong)
        ):
            return match.end()
    return 0


def _is_inside(at: int, spans: list[Span]) -> bool:
    return any(span.start <= at < span.end for span in spans)


def _names_document(clause: str, carried: Carried, *, led: bool, strong: bool) -> bool:
    """Return whether the clause before a question names a document, as in `Under the Acme Lease, who pays?`.

    `led` means that a word such as `Under` precedes the clause; `strong` means that a semicolon follows it.
    `carried(text)` is true if the text has a word that names a document of the collection. The clause names a
    document in two cases:

    1. It is `led`, and it has a quotation or a word for a kind of document, such as `Lease`.
    2. `carried(clause)` is true. In addition, the clause is both `led` and `strong`, or it has only names,
       words for kinds of documents, and words that join them. `If Kenway is sold` has other words.
    """
    if led and (patterns.KIND.search(clause) or patterns.QUOTED.search(clause)):
        return True
    return carried(clause) and ((led and strong) or _has_only_names(clause, carried))


def _has_only_names(clause: str, carried: Carried) -> bool:
    """Return whether a clause only names documents, as in `the Acme Supply Agreement`.

    Every word must be a name, a word for a kind of document, or a joining word such as `of` and `the`.
    """
    rest = patterns.KIND.sub(" ", clause).split()
    return all(patterns.NAMED.match(word) or _is_joining_word(word) or carried(word) for word in rest)


def _is_joining_word(word: str) -> bool:
    return patterns.GLUE.fullmatch(word.strip(",.").lower() or ",") is not None


# ---------------------------------------------------------------- names alone


def _find_mentions(text: str, quotes: list[Span], carried: Carried) -> str:
    """Return the words of a text that may name a document, joined by spaces.

    These are words in quotation marks, words written like names, and lower-case words that name a document of
    the collection. The lower-case words are left out if a word written like a name already names a document: in
    `If an agency asks Viber …`, `agency` does not mean an Agency Agreement.
    """
    names: list[tuple[str, bool]] = []
    fresh = True
    for match in patterns.TOKEN.finditer(text):
        word = match[0]
        asking = fresh and patterns.OPENER.match(f"{word} ")
        written, quoted = bool(patterns.NAMED.match(word)), _is_inside(match.start(), quotes)
        named = (written or carried(word)) and not asking and word.strip(".,?").lower() not in patterns.STOP
        if named or quoted:
            names.append((word.strip(",;:?!"), written or quoted))
        fresh = word[-1] in ".?!;:"
    doubtful = any(not written for _, written in names)  # otherwise the slow lookup in the collection is not needed
    known = doubtful and any(written and carried(word) for word, written in names)
    return " ".join(word for word, written in names if written or not known)


# ---------------------------------------------------------------- names beside a kind


class NamedPart(NamedTuple):
    span: Span
    sure: bool
    """Whether the words name a document; otherwise they only describe one, such as `an insurance policy`."""


def find_references(text: str, quotes: list[Span]) -> list[NamedPart]:
    """Return the spans of a question that refer to a document: a word such as `agreement`, and the name around it.

    An example is `the Kenway NDA`. The spans are in order and do not overlap.
    """
    references: list[NamedPart] = []
    for match in patterns.KIND.finditer(text):
        least = max(references[-1].span.end if references else 0, match.start() - _REACH)
        if match.start() < least:
            continue
        start = _find_name_start(text, match.start(), quotes, least)
        end, joined = _find_name_end(text, match.end(), quotes)
        marked = any(map(patterns.NAMED.match, text[start : match.start()].split()))
        sure = joined or marked or bool(patterns.FIGURE.search(match[0]))
        if sure or end > match.end() or start < match.start():
            before = patterns.PREPOSITION.search(text[least:start]) if sure else None
            references.append(NamedPart(Span(least + before.start() if before else start, end), sure))
    return references


def _find_name_start(text: str, at: int, quotes: list[Span], least: int) -> int:
    """Return the offset at which a document's name begins, such as `Acme Supply Agreement`.

    `at` is the offset of the last word of the name, the word for the kind of document (`Agreement`). A name
    consists of capitalised words, quotations, possessives, joining words and at most two plain words. It does
    not begin before the offset `least`.
    """
    tokens = [Span(*match.span()) for match in patterns.TOKEN.finditer(text, least, at)]
    start, described = at, 0
    while tokens:
        token = tokens.pop()
        quote = next((span for span in quotes if span.start < token.end and token.start < span.end), None)
        if quote and quote.start >= least:
            start = quote.start
            tokens = [other for other in tokens if other.end <= start]
            continue
        word = text[slice(*token)]
        if _ends_name(text, token):
            break
        if patterns.NAMED.match(word):
            start = token.start
            if word[0] in "([" and not quote:
                break  # the words before the bracket belong to the question
        elif patterns.GLUE.fullmatch(_strip_word(word)) and start < at:
            if not tokens or not _is_joined(text[slice(*tokens[-1])], tokens[-1].start):
                break
        elif described < _DESCRIBING and _is_describing_word(word):
            described, start = described + 1, token.start
        else:
            break
    return start


def _strip_word(word: str) -> str:
    return word.strip(".,;:()[]?!\"“”'").lower()


def _ends_name(text: str, token: Span) -> bool:
    """Return whether no name can contain this word: it opens a bracket, ends a clause, or is a stop word."""
    word = text[slice(*token)]
    if word[0] in "([" and not patterns.NAMED.match(word):
        return True
    if word[-1] in ";?!" or (word[-1] == "," and not is_followed_by_form(text, token.end)):
        return True
    bare = _strip_word(word)
    return bare in patterns.STOP and (token.start == 0 or not patterns.GLUE.fullmatch(bare))


def _is_describing_word(word: str) -> bool:
    """Return whether a word may be part of a document's description, as `content` in `content license agreement`.

    A describing word consists of letters and hyphens and is not a stop word.
    """
    bare = _strip_word(word)
    return bare not in patterns.STOP and bare.replace("-", "").isalpha()


def _is_joined(word: str, at: int) -> bool:
    """Return whether `word`, which precedes a joining word (`of`, `and`), can be part of a name.

    The first word of a question, at offset 0, cannot.
    """
    return bool(patterns.NAMED.match(word)) and word[-1] not in ",;?!" and word.lower() not in patterns.STOP and at > 0


def _find_name_end(text: str, at: int, quotes: list[Span]) -> tuple[int, bool]:
    """Return the offset at which a document's name ends, and whether the text is certainly a name.

    `at` is the end of the word for the type of document, such as `Agreement`. The name may continue after it,
    as in `Agreement between A and B`. Words such as `between`, `dated` or `called` make it certain.
    """
    end, sure = at, False
    while True:
        join = patterns.JOIN.match(text, end)
        if not join:
            return end, sure
        listed = join["join"].lower() in {"between", "among", "amongst"}
        stop = _list_end(text, join.end(), quotes, lower=listed)
        if stop <= join.end():
            return end, sure
        end, sure = stop, sure or join["join"].lower() in patterns.SURE


def _list_end(text: str, at: int, quotes: list[Span], *, lower: bool) -> int:
    """Return the end of the list of names, such as `Alder Ltd and Birch Ltd`, that begins at the offset `at`.

    Return `at` if no name begins there. `quotes` are the spans in quotation marks, each of which is a name.
    With `lower`, words in lower case also count as names, but only if the next 400 characters have no capital
    letter and no quotation.
    """
    end, most = at, at + _REACH
    plain = lower and not re.search(r"[A-Z]", text[at:most]) and not any(at <= span.start < most for span in quotes)
    for match in patterns.TOKEN.finditer(text, at, most):
        token = Span(*match.span())
        if token.start < end:
            continue
        quote = next((span for span in quotes if token.start <= span.start + 1 and span.start < token.end), None)
        word = match[0]
        if quote:
            end = quote.end
        elif plain or (patterns.NAMED.match(word) and not patterns.OPENER.match(f"{word} ")):
            end = token.start + len(word.rstrip("?;:!,"))
        elif not _is_joining_word(word):
            break
        tail = text[end : token.end]
        if re.search(r"[;?!]", tail) or (re.search(r"[,:]", tail) and patterns.OPENER.match(text, token.end)):
            break
    return end
