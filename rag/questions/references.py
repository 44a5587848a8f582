"""The stretches of a question that name a document by its kind and what stands around it.

`Kenway's Non-Disclosure Agreement`, `the Supply Agreement between A and B`: from the word for the kind a name is read
to the left and to the right, as far as words are written as names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.companies import form_follows

KIND = re.compile(
    r"(?:\b(?:privacy|cookies?|data[ -]protection) (?:polic(?:y|ies)|statements?|notices?)|"
    r"\bterms (?:of (?:service|use|sale)|and conditions)|\bndas?\b|\bplan of (?:merger|reorgani[sz]ation)|"
    r"\bpractice directions?(?: \d+\w*)?|\b(?:amendment|addendum|supplement) (?:no\b\.?|number|n°|#) ?\d+|"
    r"\b(?:agreements?|contracts?|undertakings?|deeds?|leases?|polic(?:y|ies)|guides?|judgments?|acts?|regulations?|"
    r"directives?|treat(?:y|ies)|covenants?|memorand(?:um|a)|statutes?|rules)\b)"
    r"(?: of \d{4}\b| (?:18|19|20)\d\d\b)?",
    re.IGNORECASE,
)
"""What a document is called: where a name is read from, to its left and right.

A list of words, and not told by the collection's titles: a question may say `contract` where every title says
`agreement`. Measured on LegalBench-RAG-mini (776 questions, 72 documents, no names of files): the right document comes
first for 95.1% of the questions that end in the name, 92.4% without the list; for 95.1% of those in lower case, 87.0%
without. Which words are in it hardly matters: with agreement, contract, policy and NDA alone it is 95.1 and 95.0%.
"""

KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("privacy policy", r"\b(?:privacy|cookies?|data[ -]protection) (?:polic|statement|notice)"),
        ("nda", r"\bndas?\b|\bnon-? ?disclosure\b|\bconfidentiality\b|\bsecrecy agreement"),
        ("merger agreement", r"\bmerger\b|\bacquisition agreement|\bplan of reorgani[sz]ation|\bcombination agreement"),
        ("terms", r"\bterms of (?:service|use|sale)|\bterms and conditions\b"),
        ("practice direction", r"\bpractice direction"),
        ("court guide", r"\b(?:court|chancery|bench|division|tribunal)s? guide\b"),
        ("contract", r"\b(?:agreement|contract|undertaking|deed|lease|covenant)s?\b"),
    )
)
"""`Profile.kind` by what is said; the first that fits. It decides where a question says a kind and no name: of `Under
the privacy policy, …` the documents of PrivacyQA in LegalBench-RAG-mini hold 88% of the likelihood with it and 42%
without; of merger agreements 94 and 73%, of NDAs 99 and 93%. Where a document is named it changes nothing.
"""

QUOTED = re.compile(r"[“\"„«]([^“”\"„«»]{1,200})[”\"“»]|(?<![\w'’])['‘]([^'‘’]{2,120})['’](?!\w)")

GLUE = re.compile(
    r"&|and|of|the|for|to|in|de|du|on|by|a|an|with|y|e|et|und|,|-|–|/|\+|\.|\(|\)|:|no|doing|business|as|dated"
)
"""What joins the words of a name, `Department of Health and Mental Hygiene`."""

STOP = frozenset(
    """a an the this that these those any each every some no all which what whose who whom when where why how
    does do did is are was were be been may can could shall should will would must might has have had if whether
    and or but not than then there here it its they their them we our us you your i my me he she his her
    in on at by of for to from with within under into onto upon about against between among per via as after before
    during until since such other another same following said above below general applicable governing
    describe explain list identify summarise summarize state show tell find give consider regarding concerning
    according pursuant entire whole sign signed signing read reads say says let lets allow allows permit permits
    require requires provide provides define defines contain contains mention mentions specify specifies
    terminate terminates end ends party parties make makes made enter entered new existing valid binding written
    oral""".split()
)
"""Words that no name begins with and that end one on its left: `does the agreement`, `under which contract`."""

LEAD = re.compile(
    r"\s*(?P<lead>consider(?:ing)?|under|in (?:respect of|relation to|the context of)|in|within|according to|as per|"
    r"per|pursuant to|based on|for|with (?:respect|regard|reference) to|regarding|concerning|given|looking at|take|"
    r"review|about|on|from|as to|as regards|re|refer(?:ring)? to|with|having read|turning to|see)\b[\s:]*",
    re.IGNORECASE,
)
"""What a name in front of a question begins with."""

_ASKING = "what|which|whom|whose|how|when"
OPENER = re.compile(
    rf"\W*(?:and |then |so |please )?(?:{_ASKING}|who|where|why|does|do|did|am|is|are|was|were|may|can|could|shall|"
    rf"should|will|would|must|might|has|have|had|if|whether|(?:under|to|for|in|on|at|by|until|from|with|within|after) "
    rf"(?:{_ASKING})|describe|explain|list|identify|summari[sz]e|state|show|tell|find|give|specify|name|quote|outline|"
    r"locate|please|i (?:want|would|need|wonder))\b",
    re.IGNORECASE,
)
"""What a question begins with."""

END = re.compile(r"[.?!:;]\s+|\s[—–-]\s")
"""What may end a sentence that a name stands in."""

TALK = frozenset(
    """advise ask answer check clarify concern confirm consult explain find front get give hand help hi inform interest
    kind know let look mean need open query question quick read refer regard relate reply respect respond review say see
    show speak study talk tell text thank think understand use want wish wonder word""".split()
)
"""What people say when they only tell which document they ask about: verbs of asking, reading and telling, and where
the document lies, `in front of me`, `at hand`. Any other word that carries meaning is part of what is asked."""

BREAK = re.compile(r"[;,:—–?]|\s-\s")

PREPOSITION = re.compile(
    r"(?:\b(?:in|under|within|of|by|from|to|per|according to|pursuant to|as per|on|for|with|regarding|concerning|about|"
    r"(?:as )?set (?:out|forth) in|based on|stated in|contained in|governed by)\s+)?"
    r"(?:\b(?:the|this|that|their|an?)\s+)?$",
    re.IGNORECASE,
)
"""What leads to a name in the middle or at the end, and goes with it."""

JOIN = re.compile(
    r"\s*+(?:,\s*+)?(?:(?:entered into|made|signed|executed|concluded|dated [\w ,]{4,24}?)\s+)?(?:by and )?"
    r"(?P<join>between|among|amongst|of|with|by|from|for|dated|named|called|titled)\b"
    r"(?: and between\b| and among\b)?\s*",
    re.IGNORECASE,
)
"""What stands between a kind and the names that follow it."""

SURE = frozenset({"between", "among", "amongst", "of", "dated", "named", "called", "titled"})
"""Joins that lead to the document's own names; `contracts with Third Parties` names no document."""

NAMED = re.compile(r"[(\[]?[^\W_a-z]|.*(?:['’]s?\W{0,9}$|[a-z][A-Z]|&)", re.DOTALL)
"""A word that is written as a name: a capital or a figure, a possessive, `iPhone`, `A&B`."""


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
