"""Parses a question into a query: the words that name a document, and the words that ask.

A question names a document in one of three ways: with a word for its kind (`the Supply Agreement between A and B`), in
a clause before the question (`Consider …;`, `Under …,`, `Kenway NDA:`), or by a single word that is in few file names,
titles and parties (`Does Fiverr …`); such a word also stays in the question.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.language import language_of
from exhibit.law.names import is_followed_by_form
from exhibit.law.values import find_values

# Words for kinds of documents, before or after a document's name. A question may use `contract` where the title has
# `agreement`. On LegalBench-RAG-mini without file names, with questions that end in the name, the right document is
# first for 95.1% with this list, 95.1% with agreement, contract, policy and NDA alone, and 92.4% without a list.
KIND = re.compile(
    r"(?i)(?:\b(?:privacy|cookies?|data[ -]protection) (?:polic(?:y|ies)|statements?|notices?)|"
    r"\bterms (?:of (?:service|use|sale)|and conditions)|\bndas?\b|\bplan of (?:merger|reorgani[sz]ation)|"
    r"\bpractice directions?(?: \d+\w*)?|\b(?:amendment|addendum|supplement) (?:no\b\.?|number|n°|#) ?\d+|"
    r"\b(?:agreements?|contracts?|undertakings?|deeds?|leases?|polic(?:y|ies)|guides?|judgments?|acts?|regulations?|"
    r"directives?|treat(?:y|ies)|covenants?|memorand(?:um|a)|statutes?|rules)\b)(?: of \d{4}\b| (?:18|19|20)\d\d\b)?"
)
# a date before a question: `As of 1 May 2020: who …`
AS_OF = re.compile(r"(?i)\s*as (?:of|at) [^:;?]{6,30}[:;]\s*(?=\S)")
QUOTED = re.compile(r"[“\"„«]([^“”\"„«»]{1,200})[”\"“»]|(?<![\w'’\"”])['‘]([^'‘’]{2,120})['’](?!\w)")
# Words that join the words of a name: `Department of Health and Mental Hygiene`.
GLUE = re.compile(
    r"&|and|of|the|for|to|in|de|du|on|by|a|an|with|y|e|et|und|,|-|–|/|\+|\.|\(|\)|:|no|doing|business|as|dated"
)
# Words that cannot begin a name; before a name, such a word is not part of it: `does the agreement`, `under which
# contract`.
STOP = frozenset(
    """
a an the this that these those any each every some no all which what whose who whom when where why how does do did is
are was were be been may can could shall should will would must might has have had if whether and or but not than then
there here it its they their them we our us you your i my me he she his her in on at by of for to from with within
under into onto upon about against between among per via as after before during until since such other another same
following said above below general applicable governing describe explain list identify summarise summarize state show
tell find give consider regarding concerning according pursuant entire whole sign signed signing read reads say says
let lets allow allows permit permits require requires provide provides define defines contain contains mention
mentions specify specifies terminate terminates end ends party parties make makes made enter entered new existing
valid binding written oral
""".split()
)
# Words that introduce a name before a question.
LEAD = re.compile(
    r"(?i)\s*(?P<lead>consider(?:ing)?|under|in (?:respect of|relation to|the context of)|in|within|according to|"
    r"as per|per|pursuant to|based on|for|with (?:respect|regard|reference) to|regarding|concerning|given|looking at|"
    r"take|review|about|on|from|as to|as regards|re|refer(?:ring)? to|with|having read|turning to|see)\b[\s:]*"
)
ASKING = r"what|which|whom|whose|how|when"
# Words that a question begins with.
OPENER = re.compile(
    rf"(?i)\W*(?:and |then |so |please )?(?:{ASKING}|who|where|why|does|do|did|am|is|are|was|were|may|can|"
    r"could|shall|should|will|would|must|might|has|have|had|if|whether|(?:under|to|for|in|on|at|by|until|from|with|"
    r"within|after) "
    rf"(?:{ASKING})|describe|explain|list|identify|summari[sz]e|state|show|tell|find|give|specify|name|quote|"
    r"outline|locate|please|i (?:want|would|need|wonder))\b"
)
PAUSE = re.compile(r"[;,:—–?]|\s-\s")
# Words that introduce a name in the middle or at the end, and are removed with it.
PREPOSITION = re.compile(
    r"(?i)(?:\b(?:in|under|within|of|by|from|to|per|according to|pursuant to|as per|on|for|with|regarding|concerning|"
    r"about|(?:as )?set (?:out|forth) in|based on|stated in|contained in|governed by)\s+)?(?:\b(?:the|this|that|their|"
    r"an?)\s+)?$"
)
# Words between a kind and the names that follow it.
JOIN = re.compile(
    r"(?i)\s*+(?:,\s*+)?(?:(?:entered into|made|signed|executed|concluded|"
    r"dated [\w ,]{4,24}?)\s+)?(?:by and )?(?P<join>between|among|amongst|of|with|by|from|for|dated|named|called|"
    r"titled)\b(?: and between\b| and among\b)?\s*"
)
# A word that is written as a name: a capital or a figure, a possessive, `iPhone`, `A&B`.
NAMED = re.compile(r"(?s)[(\[]?[^\W_a-z]|.*(?:['’]s?\W{0,9}$|[a-z][A-Z]|&)")
TOKEN = re.compile(r"\S+")
# `Amendment No. 3`, `Practice Direction 7A`, `the Act 1996`: a kind with a number is a name.
FIGURE = re.compile(r"\d")
CONTENT = re.compile(r"[^\W_]")
# Words that join a document's own names to its kind; `contracts with Third Parties` names no document.
SURE = frozenset("between among amongst of dated named called titled".split())
# The value of `Profile.kind` for the words of a question; the first match counts. The table helps if a question states
# a kind but no name: after `Under the privacy policy, …` the policies of LegalBench-RAG-mini have 88% of the
# probability with the table and 42% without. For merger agreements it is 94 and 73%, for NDAs 99 and 93%.
KINDS: dict[str, re.Pattern[str]] = {
    "privacy policy": re.compile(r"(?i)\b(?:privacy|cookies?|data[ -]protection) (?:polic|statement|notice)"),
    "nda": re.compile(r"(?i)\bndas?\b|\bnon-? ?disclosure\b|\bconfidentiality\b|\bsecrecy agreement"),
    "merger agreement": re.compile(
        r"(?i)\bmerger\b|\bacquisition agreement|\bplan of reorgani[sz]ation|\bcombination agreement"
    ),
    "terms": re.compile(r"(?i)\bterms of (?:service|use|sale)|\bterms and conditions\b"),
    "practice direction": re.compile(r"(?i)\bpractice direction"),
    "court guide": re.compile(r"(?i)\b(?:court|chancery|bench|division|tribunal)s? guide\b"),
    "contract": re.compile(r"(?i)\b(?:agreement|contract|undertaking|deed|lease|covenant)s?\b"),
}

Carried = Callable[[str], bool]  # returns whether a word of the text is in the names of only a few documents

_MAX_QUOTES = 50  # most quotations and breaks that are examined: a question has a few, a hostile text has thousands
_EDGES = " ;,:—–-"
_MAX_QUESTION_CHARS = 10_000  # a longer text is a pasted contract, in which no names are searched for
_MAX_NAME_CHARS = 400  # about five parties with their legal forms
_MAX_PLAIN_WORDS = 2  # most lower-case words before a kind that are part of a name: `content license agreement`


@dataclass(frozen=True)
class Query:
    question: str
    names: str = ""  # the words that name a document; empty if no words do
    asks: str = ""  # the words that ask; a name in the middle is replaced by `it`
    kind: str = ""  # the kind of the document, as in `Profile.kind`; empty if the question names none
    apart: bool = False  # whether names are stated separately; otherwise they are words that look like names

    @cached_property
    def english(self) -> bool:
        return language_of(self.question) == "en"


def is_written_as_name(text: str) -> bool:
    return any(NAMED.match(word) and word.strip(".,?").lower() not in STOP for word in text.split())


def understand(question: str, carried: Carried = is_written_as_name) -> Query:
    """Split a question into the words that name a document and the words that ask."""
    if len(question) > _MAX_QUESTION_CHARS:
        return _make_query(question, "", question, apart=False)
    day = AS_OF.match(question)
    if day and any(value.kind == "date" for value in find_values(day[0])):
        return replace(understand(question[day.end() :], carried), question=question)
    # in a question in capitals, a capital does not mark a name
    text = question.lower() if question.isupper() else question
    quotes = [Span(*match.span()) for match in QUOTED.finditer(text)][:_MAX_QUOTES]
    if lead := _find_lead(text, quotes, carried):
        names, asks = text[slice(*lead)].strip(_EDGES), text[lead.end :].strip(_EDGES)
        # `In the agreement, what does Kenway …`: the lead has the kind, the rest may have the name
        other_names = "" if carried(names) else _find_mentions(asks, [], carried)
        return _make_query(question, f"{names} {other_names}".strip(), asks, apart=True)
    references = find_references(text, quotes)
    named = [text[slice(*reference.span)].strip() for reference in references]
    if asks := _without(text, [reference.span for reference in references if reference.sure]):
        return _make_query(question, " ".join(named), asks, apart=True)
    mentions = _find_mentions(text, quotes, carried)
    return _make_query(question, " ".join(filter(None, (*named, mentions))), text, apart=False)


def _make_query(question: str, names: str, asks: str, *, apart: bool) -> Query:
    where = names if KIND.search(names) else question
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(where)), "")
    return Query(question, names, asks, kind if names or kind != "contract" else "", apart)


def _without(text: str, spans: list[Span]) -> str:
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(text)]
    pieces = [text[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    if not spans or not any(CONTENT.search(piece) for piece in pieces):
        return ""
    joined = pieces[0]
    for piece in pieces[1:]:
        if CONTENT.match(piece):
            joined = f"{joined} it {piece}" if joined and joined[-1] not in ",;:" else f"{joined} {piece}"
        elif piece:  # the piece begins with punctuation
            joined = f"{joined.rstrip(_EDGES)}{piece}"
    return joined.lstrip(f"{_EDGES}.").rstrip(_EDGES)


# ---------------------------------------------------------------- a lead


def _find_lead(text: str, quotes: list[Span], carried: Carried) -> Span | None:
    """Return the span of a name and its mark before a question, such as `Consider …;` or `Kenway NDA:`."""
    first = LEAD.match(text)
    if not first and OPENER.match(text):
        return None
    start = first.end() if first else 0
    breaks = [match for match in PAUSE.finditer(text, start) if not _is_inside(match.start(), quotes)]
    breaks.sort(key=lambda match: match[0] != ";")  # names often contain commas and colons, but rarely a semicolon
    for match in breaks[:_MAX_QUOTES]:
        clause, after, strong = text[start : match.start()], text[match.end() :], match[0] == ";"
        if not CONTENT.search(after) or not (strong or (match[0] != "?" and OPENER.match(after))):
            continue
        certain = first and (KIND.search(clause) or QUOTED.search(clause))
        rest = KIND.sub(" ", clause).split()  # all words of `the Acme Supply Agreement` belong to a name
        only = all(NAMED.match(word) or _is_joining_word(word) or carried(word) for word in rest)
        if certain or (carried(clause) and ((first and strong) or only)):
            return Span(start, match.end())
    return None


def _is_inside(at: int, spans: list[Span]) -> bool:
    return any(span.start <= at < span.end for span in spans)


def _is_joining_word(word: str) -> bool:
    return GLUE.fullmatch(word.strip(",.").lower() or ",") is not None


# ---------------------------------------------------------------- names alone


def _find_mentions(text: str, quotes: list[Span], carried: Carried) -> str:
    names: list[tuple[str, bool]] = []
    fresh = True
    for match in TOKEN.finditer(text):
        word = match[0]
        asking = fresh and OPENER.match(f"{word} ")
        written, quoted = bool(NAMED.match(word)), _is_inside(match.start(), quotes)
        named = (written or carried(word)) and not asking and word.strip(".,?").lower() not in STOP
        if named or quoted:
            names.append((word.strip(",;:?!"), written or quoted))
        fresh = word[-1] in ".?!;:"
    doubtful = any(not written for _, written in names)  # if False, skip the slow lookup in the collection
    known = doubtful and any(written and carried(word) for word, written in names)
    return " ".join(word for word, written in names if written or not known)


# ---------------------------------------------------------------- names beside a kind


class NamedPart(NamedTuple):
    span: Span
    sure: bool  # whether the words name a document; otherwise they only describe one, such as `an insurance policy`


def find_references(text: str, quotes: list[Span]) -> list[NamedPart]:
    """Return the spans of a question that refer to a document: a word such as `agreement`, and the name around it."""
    references: list[NamedPart] = []
    for match in KIND.finditer(text):
        least = max(references[-1].span.end if references else 0, match.start() - _MAX_NAME_CHARS)
        if match.start() < least:
            continue
        start = _find_name_start(text, match.start(), quotes, least)
        end, joined = _find_name_end(text, match.end(), quotes)
        marked = any(map(NAMED.match, text[start : match.start()].split()))
        sure = joined or marked or bool(FIGURE.search(match[0]))
        if sure or end > match.end() or start < match.start():
            before = PREPOSITION.search(text[least:start]) if sure else None
            references.append(NamedPart(Span(least + before.start() if before else start, end), sure))
    return references


def _find_name_start(text: str, at: int, quotes: list[Span], least: int) -> int:
    tokens = [Span(*match.span()) for match in TOKEN.finditer(text, least, at)]
    start, described = at, 0
    while tokens:
        token = tokens.pop()
        quote = next((span for span in quotes if span.start < token.end and token.start < span.end), None)
        if quote and quote.start >= least:
            start = quote.start
            tokens = [other for other in tokens if other.end <= start]
            continue
        word = text[slice(*token)]
        bare = _strip_word(word)
        if _ends_name(text, token):
            break
        if NAMED.match(word):
            start = token.start
            if word[0] in "([" and not quote:
                break  # words before the bracket are not part of the name
        elif GLUE.fullmatch(bare) and start < at:
            before = tokens[-1] if tokens else Span(0, 0)
            name = text[slice(*before)]  # the word before `and`, `of` or `&` must be part of a name
            if not before.start or not NAMED.match(name) or name[-1] in ",;?!" or name.lower() in STOP:
                break
        elif described < _MAX_PLAIN_WORDS and bare not in STOP and bare.replace("-", "").isalpha():
            described, start = described + 1, token.start
        else:
            break
    return start


def _strip_word(word: str) -> str:
    return word.strip(".,;:()[]?!\"“”'").lower()


def _ends_name(text: str, token: Span) -> bool:
    """Return whether a name must end before this word: it opens a bracket, ends a clause, or is a stop word."""
    word = text[slice(*token)]
    if word[0] in "([" and not NAMED.match(word):
        return True
    if word[-1] in ";?!" or (word[-1] == "," and not is_followed_by_form(text, token.end)):
        return True
    bare = _strip_word(word)
    return bare in STOP and (token.start == 0 or not GLUE.fullmatch(bare))


def _find_name_end(text: str, at: int, quotes: list[Span]) -> tuple[int, bool]:
    """Return the offset at which a document's name ends, and whether the text is certainly a name."""
    end, sure = at, False
    while join := JOIN.match(text, end):
        listed = join["join"].lower() in {"between", "among", "amongst"}
        stop = _find_list_end(text, join.end(), quotes, lower=listed)
        if stop <= join.end():
            break
        end, sure = stop, sure or join["join"].lower() in SURE
    return end, sure


def _find_list_end(text: str, at: int, quotes: list[Span], *, lower: bool) -> int:
    """Return the end of the list of names, such as `Alder Ltd and Birch Ltd`, that begins at the offset `at`."""
    end, most = at, at + _MAX_NAME_CHARS
    plain = lower and not re.search(r"[A-Z]", text[at:most]) and not any(at <= span.start < most for span in quotes)
    for match in TOKEN.finditer(text, at, most):
        word, (start, stop) = match[0], match.span()
        if start < end:
            continue
        quote = next((span for span in quotes if start <= span.start + 1 and span.start < stop), None)
        if quote:
            end = quote.end
        elif plain or (NAMED.match(word) and not OPENER.match(f"{word} ")):
            end = start + len(word.rstrip("?;:!,"))
        elif not _is_joining_word(word):
            break
        tail = text[end:stop]
        if re.search(r"[;?!]", tail) or (re.search(r"[,:]", tail) and OPENER.match(text, stop)):
            break
    return end
