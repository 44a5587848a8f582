"""Detects refusals: replies without an answer, in ordinary words.

A reply is read by its clauses. A clause refuses ("the agreement does not specify a cap", "I cannot find that"), or is
neutral (an apology, advice, the topics that the documents do cover), or answers. A reply that answers and also refuses
is an answer: "does not specify a cap, so liability is unlimited", "The fee is $5. Not found in the documents."
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from exhibit.law.citations import rewrite_citations
from exhibit.law.language import load_systems
from exhibit.law.plain_reply import strip_reply
from exhibit.law.sentences import split_sentences

_READ = 4000
"""Characters of a reply that are read: a refusal is in the first sentences, and a longer reply is an answer."""

Kind = Literal["refusal", "aside", "answer"]


class Refusal(NamedTuple):
    """Whether a reply is a refusal, and whether that is certain."""

    refused: bool
    sure: bool


_NOUNS = (
    "agreements?|contracts?|leases?|licen[cs]es?|documents?|documentation|texts?|contexts?|passages?|excerpts?|extracts?|sources?|"
    "materials?|polic(?:y|ies)|handbooks?|snippets?|papers?|files?|sections?|provisions?|clauses?|statutes?|acts?|laws?|rules|"
    r"terms(?:\sand\sconditions)?|contents?|corpus|knowledge\sbase|search\sresults?|results|amendments?|guides?|directives?|"
    "regulations?|chunks?|pages?|articles?|paragraphs?|schedules?|"
    r"(?:provided|given|retrieved|available)\s(?:information|data)"
)
_FACTS = (
    "information|details?|data|provisions?|clauses?|mentions?|references?|indications?|answers?|evidence|statements?|terms?|"
    "language|discussion|sections?|passages?|documents?|context|specifics|guidance|results?|anything|figures?|numbers?|"
    "hints?|clues?|explanations?"
)
_PLAIN = r"(?:(?!(?:under|of|in|to|by|for|from|with|and|or|that|which|who)\b)[\w'’-]{1,30}\s){0,4}"
"""Words that may precede a noun for documents and keep it the subject."""
_DOCS = (
    rf"(?:(?:the|this|these|those|any|my|our|your|both|available|provided|retrieved|given)\s{_PLAIN}(?:{_NOUNS})\b"
    rf"(?:,?\s(?:as\s\w{{1,20}}|(?:that\s)?(?:you|i|we)\s(?:was\s|were\s|have\s|had\s)?\w{{1,20}}|provided|given|supplied|retrieved|"
    rf"available|above|here|at\shand|on\sfile|before\s(?:me|us)|(?:of|in|to|from)\s(?:the|this)\s{_PLAIN}(?:{_NOUNS})\b)){{0,2}},?"
    r"|it|they|which)"
)
_NOT = (
    r"(?:(?:do|does)(?:\s(?:also|simply|however|itself|themselves))?\s?(?:not|n't)|(?:doesn|don)['’]t|"
    r"did\s?not|didn['’]t|fails?\sto|never|nowhere)"
)
_VERBS = (
    r"(?:(?:appear|seem)\sto\s|(?:explicitly|expressly|specifically|directly|clearly|actually|further|itself)\s)?"
    r"(?:specif(?:y|ies)|mentions?|states?|contains?|address(?:es)?|says?|provides?(?!\sfor)|includes?|indicates?|discloses?|"
    r"covers?|defines?|describes?|discuss(?:es)?|gives?|sets?\s(?:out|forth)|refers?|identif(?:y|ies)|answers?|reveals?|"
    r"lists?|names?|explains?|makes?\s(?:it\s)?clear|clarif(?:y|ies)|deals?\swith|speaks?|tells?|shows?|stipulates?|"
    r"touch(?:es)?\s(?:up)?on|goe?s?\sinto|"
    rf"ha(?:s|ve)\s(?:any\s|enough\s|sufficient\s)?(?:{_FACTS}))"
)
_INABILITY = (
    r"(?:cannot|can\s?not|can['’]t|could\snot|couldn['’]t|do\snot|don['’]t|did\snot|didn['’]t|am\sunable\sto|['’]m\sunable\sto|"
    r"was\sunable\sto|were\sunable\sto|am\snot\sable\sto|was\snot\sable\sto|are\sunable\sto|have\snot\sbeen\sable\sto)"
)
_FINDING = (
    r"(?:find|found|locate|answer|determine|identif(?:y|ied)|verif(?:y|ied)|confirm|establish(?:ed)?|ascertain(?:ed)?|provide|help|assist|"
    r"respond|tell|see|say|access|answered|determined|located|given|inferred|infer)"
)
_ABSENT = (
    r"(?:stated|specified|mentioned|found|available|provided|addressed|disclosed|included|contained|covered|defined|given|"
    r"indicated|present|known|discussed|described|answered|identified|listed|clear|set\sout)"
)
_GIVEN = r"(?:in|from|by|within)\swhat\s(?:i|we|you|was|is|has)\b[^.;]{0,40}"
"""Documents as what somebody was given or has found."""
_SETTLED = (
    r"(?:regulated|dealt\swith|laid\sdown|recorded|documented|settled|governed|noted|reported|shown|evident|apparent|visible|"
    r"spelled\sout|touched\s(?:up)?on|stipulated)"
)
"""Words for a point that the documents do not have; without the documents, they may be an answer."""
_WHERE = (
    rf"(?:anywhere\s?|explicitly\s|here\s?)?(?:(?:in|from|by|within)\s(?:any\sof\s)?(?:(?:the|these|this|any|our|my)\s)?{_PLAIN}"
    rf"(?:{_NOUNS}|information|data)\b(?:\s(?:provided|given|supplied|available|above|retrieved))?)?"
)
_REFUSES = re.compile(
    rf"""(?:
    {_DOCS}\s{_NOT}\s{_VERBS}\b
    | {_DOCS}\s(?:contains?|has|have|makes?|includes?|provides?|gives?|offers?)\sno\s(?:[\w-]{{1,20}}\s){{0,2}}
      (?:{_FACTS})\b
    | {_DOCS}\s(?:is|are|remains?)\s(?:silent|irrelevant|not\srelevant)\b
    | {_DOCS}\ssays?\snothing(?=\s(?:about|on|of|as|regarding|concerning|to|in|at|more|else|further|here)\b|\W*$)
    | {_DOCS}\sleaves?\s(?:this|that|it|the\s(?:question|point|matter|issue))\s(?:\w{{1,20}}\s)?
      (?:open|unanswered|unsaid|unclear|unresolved|undefined)\b
    | {_DOCS}\s(?:stops?\sshort\sof|lacks?|omits?)\s(?:any\s|all\s)?(?:{_FACTS})\b
    | (?:none|neither)\sof\s{_DOCS}\s{_VERBS}\b
    | nothing\s(?:is\ssaid|(?:was|is)\sfound|(?:in|about)\s{_DOCS}\s{_VERBS}\b)
    | i\s?{_INABILITY}\s{_FINDING}\b | (?:we|they)\s{_INABILITY}\s(?:find|locate|answer|determine)\b
    | i\s(?:really\s|simply\s)?(?:do\snot|don['’]t)\s(?:know|see)\b
    | i\s(?:do\snot|don['’]t)\shave\s(?:(?:any|enough|sufficient|that|this|the|access|specific)\b)
    | i\s(?:have|find|found|see)\sno\b | i\s(?:have\s)?[\w\s]{{0,60}}\bfound\s(?:nothing|no)\b
    | i\s?(?:am|['’]m)\snot\s(?:sure|certain|aware)\b
    | (?:unable|not\sable)\sto\s(?:be\s)?{_FINDING}\b
    | (?:cannot|can['’]t|could\snot|couldn['’]t)\s(?:be\s)?{_FINDING}\b(?!\s(?:liable|guilty|responsible)\b)
    | it(?:\sis|['’]s)\s(?:not\spossible|impossible)\sto\s(?:know|{_FINDING})\b
    | it(?:\sis|['’]s|\sremains|\sseems)\s(?:unclear|uncertain|not\s(?:clear|apparent|evident|obvious|
      discernible|visible))(?=\s(?:from|whether|who|what|how|which|if|when|where|why|in|on|to\sme)\b|\W*$)
    | it(?:\sis\snot|\sisn['’]t|['’]s\snot)\s{_ABSENT}\s(?:whether|who|what|how|which|if|when|where|
      why|in|from|anywhere)\b
    | (?:my|our|the|a|this)\s(?:search|query|review)\b[^.;]{{0,40}}\b
      (?:returned|found|gave|yielded|produced|turned\sup)\s(?:nothing|no)\b
    | you\s(?:will\snot|won['’]t)\sfind\s(?:this|that|it|any|an?\sanswer)\b
    | [^.;]{{0,80}}?\bleft\s(?:open|unanswered|unsaid|undefined|unspecified)\s(?:in|by)\s{_PLAIN}(?:{_NOUNS})\b
    | [^.;]{{0,80}}?\bnowhere\s(?:{_ABSENT}|to\sbe\sfound)\b
    | (?:this|that|it|such|the|your)\s(?:(?:answer|question|information|details?|points?|topic|matter|figure|
      issue|subject)\s
      (?:to\s\w{{1,10}}\s|of\s\w{{1,10}}\s)?)?(?:(?:is|are)(?:\snot|n['’]t)\s(?:part\sof|within|in)|lies?\s(?:outside|beyond)|
      goes?\sbeyond|falls?\soutside|is\s(?:outside|beyond))\s(?:of\s)?(?:{_PLAIN}(?:{_NOUNS}|scope)\b|what\b)
    | (?:i|we|one|you)\s(?:have|has)\s(?:no|insufficient|too\slittle|not\senough)\s(?:{_PLAIN})(?:{_FACTS}|basis|
      grounds)\b
      [^.;]{{0,60}}
    | (?:i|we)\b[^.;]{{0,80}}\b(?:came\sup\sempty|drew\sa\sblank|without\s(?:success|result))\b
    | (?:one|you|we)\s(?:cannot|can['’]t|can\snot|could\snot)\s
      (?:tell|say|know|determine|establish|infer|find\s(?:this|that|it|any|an))\b
    | there(?:\sis|\sare|['’]s)\sno\s(?:way|means|possibility)\s(?:of\s(?:telling|knowing|saying)|to\s(?:tell|know|say|
      determine|establish|answer))\b
    | i\s?(?:would|could|can|will|['’]d|['’]ll)\s(?:only\s|just\s)?(?:be\s(?:guessing|speculating)|guess|speculate)\b
    | i\s(?:would\s)?have\sto\s(?:guess|speculate)\b
    | (?:(?:this|that|it|the|your)\s)?(?:{_PLAIN})(?:question|answer|this|that|it|information)?\s?
      (?:to\sthis\squestion\s)?
      (?:cannot|can['’]t|could\snot)\sbe\s(?:answered|determined|found|located|established|verified|identified|given)\b
      (?!\s(?:liable|guilty|responsible|in\sbreach|to\s))
    | there(?:\s(?:do|does)\snot|\s(?:do|does)n['’]t)\s(?:appear|seem)\sto\sbe\s(?:any|an?|enough|sufficient)\s
      (?:[\w-]{{1,20}}\s){{0,2}}(?:{_FACTS})\b
    | there\s(?:appears?|seems?)\sto\sbe\sno\s(?:[\w-]{{1,20}}\s){{0,2}}(?:{_FACTS})\b
    | there(?:\sis|\sare|['’]s|\swas)\s(?:no|nothing)\s(?:such\s)?
      (?:(?:specific|explicit|relevant|express|clear|direct)\s)?(?:{_FACTS})\b
    | there\s(?:(?:is|are)\s(?:not|n['’]t)|isn['’]t|aren['’]t)\s(?:enough|sufficient|any)\s(?:{_FACTS})\b
    | no\s(?:(?:such|relevant|specific|explicit|further)\s)?(?:{_FACTS})\b
      (?![^.]{{0,80}}\b(?:may|shall|must|within|counts?)\b)
      (?:[^.]{{0,60}}\b(?:found|available|given|provided|specified|stated|identified|located|{_VERBS})\b|\W*$
      |\s(?:on|about|regarding|concerning|as\sto)\b(?![^.]{{0,80}}\b(?:is|are|will|can|has|have|was)\b)[^.]{{0,80}}\W*$)
    | (?:insufficient|not\senough)\s(?:{_FACTS})\b
    | [^.;]{{0,120}}?\b(?:is|are|was|were|has|have)(?:\s(?:also|simply|therefore))?(?:\snot|n['’]t)\s
      (?:been\s|be\s)?{_ABSENT}\s{_WHERE}\W*$
    | (?:[^.;]{{0,60}}?\s)?not\s(?:be\s|been\s)?{_ABSENT}\s(?:{_WHERE}|{_GIVEN})\W*$
    | [^.;]{{0,120}}?\bnot\s{_SETTLED}\s(?:in|from)\s(?:{_PLAIN})(?:{_NOUNS})\b
    | (?:this|that|it|such|the)\s{_PLAIN}(?:{_FACTS}|point|topic|matter|question)?\s?(?:is|are|was|were)\s
      (?:missing|absent|lacking|omitted|unavailable)\b
    | [^.;]{{0,80}}?\b(?:is|are|remains?)\s(?:unspecified|unstated|undisclosed)\W*$
    | [^.;,]{{0,60}}?\b(?:is|are)(?:\snot|n['’]t)\s(?:stated|specified|mentioned|addressed|indicated|found|
      known|disclosed)\W*$
    | (?:this|that|it)(?:\squestion)?\sis\s(?:beyond|outside)\sthe\sscope\b
    | (?:this|that|it)\sis\snot\ssomething\s{_DOCS}\b
    | not\s(?:specified|mentioned|stated|found|available|addressed|provided|known|applicable|disclosed|
      indicated|given)\W*$
    | (?:n/a|unknown|unanswerable|none\sfound|no\sanswer|i\sdon['’]t\sknow|my\ssources\sdo\snot\ssay)\W*$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ASIDE = re.compile(
    rf"""(?:
    (?:(?:i\s?(?:am|['’]m)\s)?(?:so\s|very\s)?sorry|unfortunately|apologies|hm+|i\s(?:apologi[sz]e|regret(?:\sthat)?)|i\s?(?:am|['’]m)\safraid)[\s\w]{{0,20}}\W*$
    | (?:please|you\s(?:may|might|could|should|can)|let\sme\sknow|feel\sfree|would\syou|perhaps\syou)\b
    | i\s(?:would|['’]d)\s?(?:be\s)?(?:happy|glad|recommend|suggest)
    | i\s(?:have\s|had\s)?(?:looked|searched|reviewed|checked|read|can\sonly)\b
    | as\san?\s[\w\s]{{0,40}}\b(?:model|assistant)\b
    | (?:the\s)?closest\s{_PLAIN}(?:{_NOUNS})\b
    | {_DOCS}\s(?:(?:only|merely|do|does|just)\s){{0,2}}
      (?:{_VERBS}|concern|cover|relate|focus|pertain|stop|end|deal)(?:s|es)?\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SUBORDINATE = re.compile(
    r"(?:if|where|when|unless|since|because|as|although|though|while|whilst|even\sthough)\b[^,]{1,200},\s*", re.I
)
_LEAD = re.compile(
    r"(?:[^\w]+|(?:(?:i\s?(?:am|['’]m)\s)?(?:so\s|very\s)?sorry|unfortunately|apologies|i\sapologi[sz]e|i\s?(?:am|['’]m)\safraid(?:\sthat)?|regrettably|sadly|"
    r"i\sregret\sthat|hm+|however|well|ok|okay|that\ssaid|in\sshort|answer)\b,?\s*(?:but\s)?|"
    r"(?:based\son|according\sto|from|after\s\w+ing|in|having)\b[^,.;]{1,80},\s*|and\s|but\s|because\s|so\s)"
    rf"|from\s(?:the|these|this)\s{_PLAIN}(?:{_NOUNS})(?:\salone)?\s",
    re.IGNORECASE,
)
_FOLLOWS = (
    "so|therefore|thus|hence|consequently|accordingly|which means|this means|that means|meaning|as a result|"
    "daher|deshalb|somit|also|donc|por lo tanto|por tanto|así que|quindi|pertanto|portanto|logo|takže|proto|tudíž|"
    "więc|zatem|preto|teda"
)
_BREAK = re.compile(
    rf"(?:;|:\s|,\s(?=(?:and\s)?(?:{_FOLLOWS})\b)|,?\s(?=(?:but|although|though|because)\s)|\s[–—]\s)", re.IGNORECASE
)
_CONSEQUENCE = re.compile(rf"\W*(?:and\s|but\s)?(?:{_FOLLOWS})\b|[^.;]{{0,80}}?\s(?:{_FOLLOWS})\s", re.IGNORECASE)
_YES_NO = re.compile(
    r"\W*(?:yes|no|ja|nein|oui|non|sí|si|sim|não|ano|ne|tak|nie|áno)(?:\s*[,.;:!–—]+\s*|\s*$)", re.IGNORECASE
)
_THAT = frozenset("that dass daß que že że iż che".split())
_MODALS = frozenset("may must shall should will would if unless".split())
_PERSON = re.compile(r"i\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d")
_INSURED = re.compile(
    r"[\w\s]{0,40}\b(?:policy|insurance|lease|licen[cs]e|warranty|guarantee)\s(?:does\snot|doesn['’]t)\s"
    r"(?:cover|include|extend|apply)\b|[\w\s]{0,40}\bpolicy\s(?:does\snot|doesn['’]t)\sprovide\b",
    re.IGNORECASE,
)
"""The exclusions of an insurance policy, and what a lease or a licence does not cover, are an answer."""


def is_refusal(text: str) -> bool:
    """Return whether a reply gives no answer, as in "The agreement does not specify a cap"."""
    return read_refusal(text).refused


def read_refusal(text: str) -> Refusal:
    """Return whether a reply is a refusal, and whether this decision is certain.

    It is uncertain if one clause refuses and another clause seems to answer, but that clause has no figure and
    no citation.
    """
    text = strip_reply(text[:_READ])
    opening = _YES_NO.match(text)
    cited = [bool(rewrite_citations(text[s.start : s.end], lambda *_: "\0").count("\0")) for s in split_sentences(text)]
    parts = [rewrite_citations(text[span.start : span.end], lambda *_: "") for span in split_sentences(text)]
    if opening and parts:
        rest = text[opening.end() :]
        if not rest.strip() or not _PERSON.match(rest):
            return Refusal(refused=False, sure=True)
        parts, cited = [rest, *parts[1:]] if len(rest) > len(parts[0]) else parts, cited
    clauses = [
        (kind, bool(_FIGURE.search(clause)) or has_citation, bool(_CONSEQUENCE.match(clause)))
        for part, has_citation in zip(parts, cited, strict=False)
        for clause, kind in _split_clauses(part)
    ]
    return _decide(clauses)


def _decide(clauses: list[tuple[Kind, bool, bool]]) -> Refusal:
    """Decide from its clauses whether a reply is a refusal.

    Args:
        clauses: for each clause its kind, whether it has a figure or citation, and whether it is a conclusion.
    """
    kinds = [kind for kind, _, _ in clauses]
    if "refusal" not in kinds:
        return Refusal(refused=False, sure=True)
    first = kinds.index("refusal")
    before = [one for one in clauses[:first] if one[0] == "answer"]
    after = [one for one in clauses[first:] if one[0] == "answer"]
    if any(figure for _, figure, _ in before) or any(concludes or figure for _, figure, concludes in after):
        return Refusal(refused=False, sure=True)
    if before and clauses[-1][0] == "refusal" and clauses[-1][2]:
        return Refusal(refused=True, sure=True)  # a conclusion that refuses: "…, so I cannot say what it is"
    if before:
        return Refusal(refused=False, sure=False)
    return Refusal(refused=True, sure=not after)


def _split_clauses(sentence: str) -> Iterator[tuple[str, Kind]]:
    """Yield each clause of a sentence with its kind: `refusal`, `aside` (neutral) or `answer`.

    A subordinate clause at the beginning does not affect the kind.
    """
    for piece in filter(str.strip, _BREAK.split(" ".join(sentence.split()))):
        yield piece, _find_kind(piece)


def _find_kind(piece: str) -> Kind:
    clause, previous = piece, ""
    while clause != previous:
        previous = clause
        clause = _SUBORDINATE.sub("", clause, count=1) if _SUBORDINATE.match(clause) else clause
        lead = _LEAD.match(clause)
        clause = clause[lead.end() :] if lead else clause
    if not clause:
        return "aside"
    if _INSURED.match(clause):
        return "answer"
    if _REFUSES.match(clause) or _make_foreign_pattern().match(clause) or _is_silent(clause):
        return "refusal"
    return "aside" if _ASIDE.match(clause) else "answer"


@cache
def _make_foreign_pattern() -> re.Pattern[str]:
    """Return the pattern for refusals in the languages of all legal systems, made from the systems' TOML files."""
    phrases = "|".join(phrase for system in load_systems() for phrase in system.data.get("refusals", ()))
    return re.compile(rf"\W*(?:[^.;]{{0,60}}\b)??(?:{phrases})", re.IGNORECASE)


def _is_silent(clause: str) -> bool:
    """Return whether a clause says, in a language of the legal systems, that the documents do not state something.

    Such a clause has a word for documents, a word for stating, and a denial, in any order. Words after "that"
    do not count: they belong to the statement.
    """
    words = re.findall(r"[^\W\d_]+", clause.lower())
    words = words[: next((at for at, word in enumerate(words) if word in _THAT), len(words))]
    if not _MODALS.isdisjoint(words):
        return False  # a rule on what documents may contain
    for documents, telling, denials, silent in _read_silences():
        if documents.isdisjoint(words):
            continue
        prefixed = any(word.startswith("ne") and word[2:].startswith(telling) for word in words)  # neuvádí
        tells = any(word.startswith(telling) for word in words)
        if prefixed or (tells and not denials.isdisjoint(words)) or any(word.startswith(silent) for word in words):
            return True
    return False


@cache
def _read_silences() -> list[tuple[frozenset[str], tuple[str, ...], frozenset[str], tuple[str, ...]]]:
    """Return the words by which refusals are detected: one tuple of four word lists for each legal system.

    The lists have words for a document (Spanish `contrato`), for stating (`indic`), for denial (`no`) and for
    silence (`calla`). The words for stating and for silence are only the beginnings of words.
    """
    lists = [
        [words.split() for words in system.data["silence"]] for system in load_systems() if "silence" in system.data
    ]
    return [(frozenset(one), tuple(two), frozenset(three), tuple(four)) for one, two, three, four in lists]
