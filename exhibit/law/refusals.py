"""Decides whether a reply refuses, which means that it gives no answer.

A reply is split into clauses. Each word of an English clause becomes the letter of its class (`x` without a class), and
the clause refuses if the letters match `_REFUSAL`: "The lease does not mention a cap" is `DNVx`. `law/systems` has the
words of each class, and for other languages phrases and words. A reply refuses if a clause refuses and none answers.
"""

import json
import re
import unicodedata
from functools import cache, lru_cache
from itertools import takewhile

from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.place import without_markup
from exhibit.law.citations import rewrite_citations
from exhibit.law.language import load_systems, stem
from exhibit.law.sentences import split_sentences

MAX_READ_CHARS = 4000  # refusals are in the first sentences of a reply, and a longer reply is an answer
_REFUSAL = re.compile(
    r"(?!W)[^WQ]{0,3}D[^NSWQT]{0,3}(?:N[VIT]|S|TO|C?OV|xN$|VN(?:[IVTA]|x$))"  # the lease does not say
    r"|T[DIx]?(?:[^WQN]{0,2}(?:S|O[^x]*D)|NI?[VP](?!x+T)|NDW)|TM?N[ID]"  # this is not stated, lies outside it
    r"|T?I[^QWN]{0,4}(?:O[^Q]*D|N[VPID]|N$)"  # the answer is not in the documents
    r"|(?:M[^NM]{0,2})?M(?:N[ID]|NV(?!xT)|N.{0,2}[TD]|VN[IVTA]|[^NQ]*S)|YNV[TDP]"  # I cannot find it
    r"|VNI(?:A|$)|N(?:[IVAT][^QN]*(?<!x)$|P?D(?:[^Qx]*[VI]|$)|[IPD]+V|[IV]A|Ix$)"  # no such clause was found
    r"|H(?:N[IVAD]|N[^PQ]*(?:P+[MT]?D|P$)|Nx?[VT])"  # there is no mention of it
    r"|S[^Qx]*$|W.*(?:NV|O)[^Q]*$"  # whether it may is not stated
)
_UNSTATED = re.compile(r"[^QTW]*NV(?:P[^xQ]*)?$")  # the date is not known
_ASIDE = re.compile(r"$|Y|M[^VN]|M$|[^N]{0,2}(?:D[MVx]?|T)[VC](?!T)|x?C")
"""Matches clauses that neither answer nor refuse: "I looked through the files", "the lease deals with payment"."""
_EXCLUSION = re.compile(r"[\w\s]{0,40}\b(?:policy|insurance|lease|licen[cs]e) does not (?:cover|include|extend)")
"""Matches a statement of what an insurance or a licence does not cover: such a statement is an answer."""
_LEADS = re.compile(
    r"(?:if|where|when|unless|since|because|as|although|though|while|even though)\b[^,]{1,200},\s*"
    r"|(?:based on|according to|from|after \w+ing|in|on|having|as far as)\b[^,.;]{1,80},\s*"
    r"|(?:regrettably|sadly|hm+|well|ok|okay|that said|in short|answer|and|but|because|so)\b,?\s*|\W+"
)
_FOLLOWS = (
    "so|therefore|thus|hence|consequently|accordingly|which means|this means|that means|meaning|as a result|"
    "daher|deshalb|somit|also|donc|por lo tanto|por tanto|así que|quindi|pertanto|portanto|logo|takže|proto|tudíž|"
    "więc|zatem|preto|teda"
)
_BREAK = re.compile(
    rf";|:\s|,\s(?=(?:and\s)?(?:{_FOLLOWS})\b)|,\s(?=(?:la|le|die|der|das)\s)|,?\s(?=(?:but|although|though|because)\s)|\s[–—]\s"
)
_CONSEQUENCE = re.compile(rf"\W*(?:and\s)?(?:{_FOLLOWS})\b")
YES = frozenset("yes ja oui sí si sim ano tak áno".split())
NO = frozenset("no nein non não ne nie".split())
_Silence = tuple[frozenset[str], tuple[str, ...], frozenset[str], tuple[str, ...]]  # words of the field `silence`
_THAT = frozenset("that dass daß que že iż che".split())
_YES_OR_NO = re.compile(rf"\W*({'|'.join(sorted(YES | NO))})(?:\s*[,.;:!–—]+\s*|\s*$)", re.I)


def is_refusal(text: str) -> bool:
    text = strip_reply(text[:MAX_READ_CHARS]).replace("’", "'")
    if opening := _YES_OR_NO.match(text):  # "No, I cannot find that" refuses; "No." answers
        if opening[1].lower() in YES:
            return False
        text = text[opening.end() :]
    text = rewrite_citations(text, lambda *_: "")
    sentences = (" ".join(text[span.start : span.end].lower().split()) for span in split_sentences(text))
    kinds = {_find_kind(clause) for sentence in sentences for clause in _BREAK.split(sentence) if clause.strip()}
    return "refusal" in kinds and "answer" not in kinds


def _find_kind(clause: str) -> str:
    """Return whether a clause is a `refusal`, an `answer` or an `aside`."""
    plain = re.sub(r"\bcan(?:not|'t)\b|n't\b", " not", clause.strip()).replace("n/a", "unknown")
    while lead := _LEADS.match(plain):
        plain = plain[lead.end() :]
    if _EXCLUSION.match(plain):
        return "answer"
    letters = "".join(map(_find_class, re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*|\d+", plain)))
    if _UNSTATED.match(letters) or _REFUSAL.match(letters := letters.replace("B", "V")) or _is_foreign_refusal(clause):
        return "refusal"
    return "aside" if _ASIDE.match(letters) and not _CONSEQUENCE.match(clause) else "answer"


@lru_cache(maxsize=8192)
def _find_class(word: str) -> str:
    words, stems = _list_classes()
    return words[word] if word in words else words.get(word.removesuffix("s")) or stems.get(stem(word), "x")


@cache
def _list_classes() -> tuple[dict[str, str], dict[str, str]]:
    classes = next(system.data["refusing"] for system in load_systems() if "refusing" in system.data)
    words = {word: letter.strip("_") for letter, listed in classes.items() for word in listed.split()}
    return words, {stem(word): letter for word, letter in words.items() if letter in ("V", "B", "C") and len(word) > 2}


def _is_foreign_refusal(clause: str) -> bool:
    """Return whether a clause in another language has a phrase of refusal, or states that documents lack something."""
    words = list(takewhile(lambda word: word not in _THAT, re.findall(r"[^\W\d_]+", clause)))
    phrases, silences = _read_foreign()
    for documents, verbs, denials, omissions in silences:
        denied = any(word.startswith(verbs) for word in words) and not denials.isdisjoint(words)
        if not documents.isdisjoint(words) and (denied or any(word.startswith(omissions) for word in words)):
            return True
    return bool(phrases.match(clause))


@cache
def _read_foreign() -> tuple[re.Pattern[str], list[_Silence]]:
    systems = load_systems()
    phrases = "|".join(phrase for system in systems for phrase in system.data.get("refusals", ()))
    silences = []
    for lists in (system.data["silence"] for system in systems if "silence" in system.data):
        documents, verbs, denials, omissions = map(str.split, lists)
        negated = (f"ne{verb}" for verb in verbs)  # neuvádí
        silences.append((frozenset(documents), tuple(verbs), frozenset(denials), (*omissions, *negated)))
    return re.compile(rf"\W*(?:[^.;]{{0,60}}\b)??(?:{phrases})", re.IGNORECASE), silences


_THOUGHTS = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?</\1>", re.DOTALL)
_COURTESY = re.compile(
    r"\A(?:certainly|sure|of course|(?:great|good) question|(?:short )?answer)[!.:]\s+(?=\S)"
    r"|\A\s{0,9}(?:q|question)\s?:\s[^\n]{1,600}\n\s{0,9}(?:a|answer)\s?:\s"
    r"|\s(?:please\s)?(?:let\sme\sknow|feel\sfree|i\shope\s(?:this|that)\shelps)\b[^.!?]{0,120}[.!?]?\s{0,4}$",
    re.I,
)  # matches a polite phrase or the question before an answer, and an offer of help after it


def strip_reply(text: str) -> str:
    text = _THOUGHTS.sub(" ", text).strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text[3:-3].partition("\n")[2] or text
    text = without_markup(_read_json(text))
    text = with_latin_letters("".join(letter for letter in text if unicodedata.category(letter) != "Cf"))
    return _COURTESY.sub("", text)


def _read_json(text: str) -> str:
    try:
        answer = json.loads(text) if text.startswith("{") else text
    except (ValueError, RecursionError):
        return text
    fields = ("answer", "response", "result", "output", "text", "content")  # the likeliest first
    while isinstance(answer, dict):
        answer = answer.get(next((name for name in fields if name in answer), ""), text)
    return answer if isinstance(answer, str) else "N/A" if answer is None else text
