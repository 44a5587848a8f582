"""Decide whether a reply refuses: whether it gives no answer, in whatever words.

A reply is cut into clauses, and each clause is reduced to lower case without auxiliary verbs. In English, a clause
refuses if it matches one of `_PATTERNS`, in which a capitalised word stands for one of `_WORDS`; other languages have
their phrases and words in `law/systems`. A reply refuses if a clause does, and no other clause has an answer.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.place import without_markup
from exhibit.law.citations import rewrite_citations
from exhibit.law.language import load_systems
from exhibit.law.sentences import split_sentences

MAX_READ_CHARS = 4000
"""A refusal is in the first sentences of a reply, and a longer reply is an answer."""

# ---------------------------------------------------------------- patterns of refusing clauses

_WORDS = {
    "NOT": r"(?:not|fails? to|unable to|impossible to|not possible to|not able to|never|nowhere)",
    "NO": r"(?:no(?: (?:such|relevant|specific|explicit|express|clear|direct|further))?|none|neither|nothing|"
    r"not a word)",
    "DOC": r"(?:agreements?|contracts?|leases?|licen[cs]es?|documents?|documentation|texts?|contexts?|passages?|"
    r"excerpts?|extracts?|sources?|materials?|polic(?:y|ies)|handbooks?|snippets?|papers?|files?|sections?|"
    r"provisions?|clauses?|statutes?|acts?|laws?|rules|terms and conditions|contents?|corpus|knowledge base|"
    r"(?:search )?results?|amendments?|guides?|directives?|regulations?|chunks?|pages?|"
    r"articles?(?: of association)?|paragraphs?|schedules?|(?:provided|given|retrieved|available) (?:information|"
    r"data)|information (?:provided|given))\b",
    "SAY": r"(?:specif(?:y|ies)|mentions?|states?|contains?|address(?:es)?|says?|provides?(?! for)|includes?|"
    r"indicates?|discloses?|covers?|defines?|describes?|discuss(?:es)?|gives?|sets? (?:out|forth)|refers?|"
    r"identif(?:y|ies)|answers?|reveals?|lists?|names?|explains?|makes?|clarif(?:y|ies)|deals? with|speaks?|tells?|"
    r"shows?|touch(?:es)? (?:up)?on|goe?s? into|(?:allow|let|permit)s? (?:me|us)|offers?|stipulates?)\b",
    "FIND": r"(?:find|locate|answer|determine|identify|verify|confirm|establish|ascertain|provide|help|assist|"
    r"respond|tell|know|see|say|access|infer|found|sure|certain|aware)\b",
    "FOUND": r"(?:stated|specified|mentioned|found|available|provided|addressed|disclosed|included|contained|"
    r"covered|defined|given|indicated|present|known|discussed|described|answer(?:ed|able)|identified|listed|clear|"
    r"apparent|set out|regulated|dealt with|spelled out|settled|recorded|determin(?:ed|able)|established|located|"
    r"verified|said|retrieved|appear|occur)\b",
    "FACT": r"(?:information|details?|data|provisions?|clauses?|mentions?|references?|indications?|answers?|"
    r"evidence|statements?|terms?|language|discussion|sections?|passages?|documents?|context|specifics|guidance|"
    r"results?|anything|figures?|numbers?|hints?|clues?|explanations?|basis)\b",
    "ASKED": r"(?:whether|who|what|how|which|if|when|where|why)",
    "TELL": r"(?:tell|say|determine|establish|infer|answer|know(?= ASKED| from|$)|(?:find|locate) (?:this|that|it|"
    r"any|an))",
    "THIS": r"(?:(?:this|that|it|(?:(?:this|that|such|the|your) )?(?:answer|question|information|details?|points?|"
    r"topic|matter|figure|issue|subject)(?: (?:to|of) (?:\w+ ){0,2}?\w+)?) )",
    "SUBJECT": r"(?:(?:(?:the|this|these|those|any|all|my|our|your|both|two) )*(?:(?!(?:under|of|in|to|by|for|from|"
    r"with|and|or|that|which|who|no)\b)[\w'-]+ ){0,4}?DOC(?:,? (?:as \w+,?|(?:that )?(?:you|i|we) \w+|provided|"
    r"given|supplied|retrieved|available|shown|above|here|at hand|before (?:me|us)|(?:of|in|to|from) (?:the|"
    r"this) (?:\w+ ){0,2}DOC)){0,2}|it|they|which|what (?:i|we|you) (?:given|was given|supplied|found|saw|seen)|"
    r"what (?:the|this) DOC SAY)",
    "HERE": r"(?:(?: (?:anywhere|explicitly|here))? (?:in|from|by|within|with|on the basis of|"
    r"based on)(?: any of)? SUBJECT)",
    "PLACE": r"(?:HERE|(?: (?:anywhere|explicitly|here))?)",
    "ANY": r"(?:(?!(?:may|must|shall|should|need|if|unless|that|which|who|where|when)\b)[\w'|-]+ )",
}
"""Regular expressions by the name that stands for them in `_PATTERNS` and in later entries of this table."""

_PATTERNS = r"""
SUBJECT NOT (?:\w+ (?:to )?)?SAY
SUBJECT (?:SAY )?(?:NO|insufficient|not(?: any| enough| sufficient)?) (?:[\w-]+ ){0,2}FACT
SUBJECT (?:remains? )?(?:silent|quiet|mute|irrelevant|not relevant)
SUBJECT SAY nothing(?= (?:about|on|of|as|regarding|concerning|to|in|at|more|else|further|here)\b|$)
SUBJECT leaves? (?:this|that|it|the \w+) (?:\w+ )?(?:open|unanswered|unsaid|unclear|unresolved|undefined)
SUBJECT (?:stops? short of|lacks?|omits?) (?:any |all |this |that |the )?FACT
NO (?:(?:of|in|about) )?SUBJECT SAY
(?:i |it )?NOT FIND(?! guilty| liable)
i (?:have |can )?NOT FIND|(?:we|one|you|they) NOT TELL
(?:i|we) (?:not (?:any|enough|sufficient|that|this|the|access|specific)|(?:(?:find|found|see) )?(?:NO|insufficient
  |too little) (?:[\w-]+ ){0,2}FACT)
(?:i|we) ANY{0,8}(?:came up empty|drew a blank|without success|found nothing)
i (?:only |just )?(?:guess|speculate|guessing|to guess|to speculate)
(?:THIS)?not (?:be )?FOUND(?: to this question)?PLACE\W*$
(?:whether .{1,60}? )?ANY{0,12}(?:not|nowhere) (?:(?:stated|specified|mentioned|addressed|indicated|found|known
  |disclosed|determined|established)PLACE|FOUNDHERE)\W*$
ANY{0,12}(?:unspecified|unstated|undisclosed)PLACE\W*$
it (?:remains |seems )?(?:not (?:FOUND|evident|obvious)|unclear|uncertain)(?: to me)?(?= ASKED| from| in| on|$)
THIS(?:\w+ )?(?:missing|absent|lacking|omitted|unavailable)PLACE\W*$
THIS(?:\w+ )*?(?:not (?:part of|within|in)|lies? (?:outside|beyond)|goes? beyond|falls? outside|outside
  |beyond)(?: of)? (?:SUBJECT|the scope|what)
THISnot something SUBJECT SAY
ANY{0,12}left (?:open|unanswered|unsaid|undefined|unspecified) (?:in|by) SUBJECT
there (?:(?:appears?|seems?) to )?(?:not|insufficient|too little|NO) (?:(?:appear|seem) to )?(?:(?!(?:of|to|on|in
  |for)\b)[\w-]+ ){0,3}FACT
there (?:not|NO) (?:[\w-]+ ){0,5}?(?:(?:in|within) SUBJECT|anywhere)
there no (?:way|means|possibility) (?:of|to) (?:tell|know|say|determine|establish|answer)
NO FACT(?!.{0,80}\b(?:may|shall|must|within|counts?)\b)(?:.{0,60}\b(?:FOUND|SAY)\b|\W*$| (?:on|about|regarding|of
  |as to)\b[^,]{0,60}$)
(?:nothing|none of (?:this|that|it)) FOUND
(?:i|we) lack
nothing (?:about|on|regarding|concerning) [\w ]{0,40}\W*$
(?:insufficient|not enough) FACT
(?:search|query|review|my \w+|the \w+) (?:returned|found|gave|yielded|produced|turned up) (?:nothing|no)
unanswerable (?:from|with|given|based)
(?:n/a|unknown|unanswerable|none found|no answer|not applicable)\W*$
"""


@cache
def _compile(patterns: str) -> re.Pattern[str]:
    """Return one expression for lines of patterns, with the words of `_WORDS` in the place of their names.

    An indented line continues the one before it.
    """
    expression = "|".join(f"(?:{line})" for line in re.sub(r"\n {2,}", "", patterns).strip().splitlines())
    names = re.compile("|".join(sorted(_WORDS, key=len, reverse=True)))
    while (expanded := names.sub(lambda match: _WORDS[match[0]], expression)) != expression:
        expression = expanded
    return re.compile(expression)


_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|am|appears? to|seems? to|also|"
    r"simply|explicitly|expressly|specifically|directly|clearly|actually|further|itself|therefore|however|really)\b "
)
_ASIDES = r"""
(?:so |very )?(?:sorry|unfortunately|apologies|i (?:apologi[sz]e|regret)|i afraid)\b[\w ]{0,20}$
(?:please|you (?:may|might|should|want)|let me know|feel free|perhaps you)\b
i (?:happy|glad|recommend|suggest|looked|searched|reviewed|checked|read|only)\b
(?:the )?closest DOC
as an? [\w ]{0,40}\b(?:model|assistant)\b
SUBJECT (?:only |merely |just )?(?:SAY|concern|cover|relate|focus|pertain|stop|end|deal)(?:s|es)?\b
"""
"""Clauses that neither answer nor refuse."""
_STATEMENT = re.compile(r"(?:states?|says?|provides?|specif(?:y|ies)) (?:only )?that\b.*\d")
"""A statement of the documents is an answer: "it states that notice is due within 30 days"."""
_EXCLUSION = re.compile(
    r"[\w\s]{0,40}\b(?:policy|insurance|lease|licen[cs]e|warranty|guarantee) not (?:cover|include|extend|apply)\b"
)
"""What an insurance or a licence does not cover is an answer."""
_LEADS = re.compile(
    r"(?:if|where|when|unless|since|because|as|although|though|while|whilst|even though)\b[^,]{1,200},\s*"
    r"|(?:(?:based on|according to|from|after \w+ing|in|on|having|as far as)\b[^,.;]{1,80},\s*)|[^\w]+"
    r"|(?:i )?(?:so |very )?(?:sorry|unfortunately|apologies|regrettably|sadly|hm+|well|ok|okay|that said|in short|"
    r"answer|and|but|because|so|i (?:apologi[sz]e|afraid|regret)(?: that)?)\b,?\s*"
    r"|(?:from|on) (?:the|these|this)(?: \w+){0,3}(?: alone)? (?=one|i\b|we\b|it|the\b)"
)
_FOLLOWS = (
    "so|therefore|thus|hence|consequently|accordingly|which means|this means|that means|meaning|as a result|"
    "daher|deshalb|somit|also|donc|por lo tanto|por tanto|así que|quindi|pertanto|portanto|logo|takže|proto|tudíž|"
    "więc|zatem|preto|teda"
)
_BREAK = re.compile(
    rf";|:\s|,\s(?=(?:and\s)?(?:{_FOLLOWS})\b)|,\s(?=(?:la|le|die|der|das)\s)|,?\s(?=(?:but|although|though|because)\s)|\s[–—]\s"
)
_CONSEQUENCE = re.compile(rf"\W*(?:and\s|but\s)?(?:{_FOLLOWS})\b|[^.;]{{0,80}}?\s(?:{_FOLLOWS})\s")
_YES_OR_NO = re.compile(r"\W*(yes|no|ja|nein|oui|non|sí|si|sim|não|ano|ne|tak|nie|áno)(?:\s*[,.;:!–—]+\s*|\s*$)", re.I)


def is_refusal(text: str) -> bool:
    """Return whether a reply gives no answer, as in "The agreement does not specify a cap"."""
    text = strip_reply(text[:MAX_READ_CHARS])
    if opening := _YES_OR_NO.match(text):  # "No, I cannot find that" refuses; "No." answers
        text = text[opening.end() :]
        if not text.strip() or not opening[1].lower().startswith("n"):
            return False
    clauses = list(_split_clauses(text))
    kinds = [kind for kind, _, _ in clauses]
    if "refusal" not in kinds:
        return False
    first = kinds.index("refusal")
    if any(stated or concludes for kind, stated, concludes in clauses[first:] if kind == "answer"):
        return False
    before = [stated for kind, stated, _ in clauses[:first] if kind == "answer"]
    concludes = kinds[-1] == "refusal" and clauses[-1][2]  # "…, so I cannot say what it is"
    return not before or (concludes and not any(before))


def _split_clauses(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the kind of each clause, whether it has a figure or a citation, and whether it is a conclusion."""
    for span in split_sentences(text):
        sentence = text[span.start : span.end].replace("’", "'")
        bare = rewrite_citations(sentence, lambda *_: "\0")
        for clause in filter(str.strip, _BREAK.split(" ".join(bare.replace("\0", "").split()).lower())):
            stated = "\0" in bare or bool(re.search(r"\d", clause))
            yield _find_kind(clause), stated, bool(_CONSEQUENCE.match(clause))


def _find_kind(clause: str) -> str:
    """Return the kind of a clause: `refusal`, `answer`, or `aside` if it is neither."""
    plain = re.sub(r"\b(there|it|that|what)'s\b|'(?:m|re|ve|d|ll)\b", r"\1", clause)
    plain = re.sub(r"\bcan(?:not|'t)\b|n't\b", " not ", plain)
    plain = _AUXILIARY.sub("", " ".join(plain.split()) + " ").strip()
    previous = ""
    while plain != previous:
        previous, plain = plain, _LEADS.sub("", plain, count=1) if _LEADS.match(plain) else plain
    if not plain:
        return "aside"
    if _EXCLUSION.match(plain):
        return "answer"
    if _compile(_PATTERNS).match(plain) or _compile_foreign().match(clause) or _is_silent(clause):
        return "refusal"
    return "aside" if _compile(_ASIDES).match(plain) and not _STATEMENT.search(plain) else "answer"


@cache
def _compile_foreign() -> re.Pattern[str]:
    phrases = "|".join(phrase for system in load_systems() for phrase in system.data.get("refusals", ()))
    return re.compile(rf"\W*(?:[^.;]{{0,60}}\b)??(?:{phrases})", re.IGNORECASE)


def _is_silent(clause: str) -> bool:
    """Return whether a clause says, in a language other than English, that documents do not state something."""
    words = re.findall(r"[^\W\d_]+", clause)
    words = words[: next((at for at, word in enumerate(words) if word in _THAT), len(words))]
    for documents, verbs, denials, silent in _read_silences():
        told = any(word.startswith(verbs) for word in words) and not denials.isdisjoint(words)
        prefixed = any(word.startswith("ne") and word[2:].startswith(verbs) for word in words)  # neuvádí
        if not documents.isdisjoint(words) and (told or prefixed or any(word.startswith(silent) for word in words)):
            return True
    return False


_THAT = frozenset("that dass daß que že iż che".split())


@cache
def _read_silences() -> list[tuple[frozenset[str], tuple[str, ...], frozenset[str], tuple[str, ...]]]:
    systems = [[words.split() for words in one.data["silence"]] for one in load_systems() if "silence" in one.data]
    return [(frozenset(docs), tuple(verbs), frozenset(no), tuple(silent)) for docs, verbs, no, silent in systems]


# ---------------------------------------------------------------- the answer in a reply

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,400}>")
_THOUGHTS = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?</\1>", re.DOTALL)
_COURTESY = re.compile(r"(?:certainly|sure|of course|(?:great|good) question|(?:short )?answer)[!.:]\s+(?=\S)", re.I)
_OFFER = re.compile(
    r"\s(?:please\s)?(?:let\sme\sknow|feel\sfree|i\shope\s(?:this|that)\shelps)\b[^.!?]{0,120}[.!?]?\s{0,4}$", re.I
)
_ECHO = re.compile(r"\s{0,9}(?:q|question)\s?:\s[^\n]{1,600}\n\s{0,9}(?:a|answer)\s?:\s", re.I)
"""The question in front of the answer: "Q: … A: …"."""
_ANSWERS = ("answer", "response", "result", "output", "text", "content")
"""Names of the JSON field that contains the answer, the most likely first."""


def strip_reply(text: str) -> str:
    """Return the answer in a reply, without the JSON, code block, thoughts, tags and polite phrases around it."""
    text = _THOUGHTS.sub(" ", text).strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text[3:-3].partition("\n")[2] or text
    text = _without_frame(text)
    if echo := _ECHO.match(text):
        text = text[echo.end() :]
    if _TAG.search(text):
        text = without_markup(text)
    if not text.isascii():
        text = with_latin_letters("".join(letter for letter in text if unicodedata.category(letter) != "Cf"))
    courtesy = _COURTESY.match(text)
    return _OFFER.sub("", text[courtesy.end() :] if courtesy else text)


def _without_frame(text: str) -> str:
    """Return the answer in a JSON reply, or `N/A` if the answer is null; return any other reply unchanged."""
    if not text.startswith("{"):
        return text
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return text
    name = next((name for name in _ANSWERS if name in frame), "")
    answer = frame.get(name, text)
    if isinstance(answer, dict):
        return _without_frame(json.dumps(answer))
    return answer if isinstance(answer, str) else "N/A" if answer is None else text
