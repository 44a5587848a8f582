"""Decide by rules whether a reply gives the expected answer.

A reply is right if it has the words of the expected answer in order, and no denial, exception, alternative, other
candidate or value that the expected answer lacks. It is wrong if it has another yes or no, label or letter, number with
its unit or currency, date or period. Everything else is not judged.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from exhibit.law.citations import BRACKETED, rewrite_citations, without_places
from exhibit.law.language import is_content, stem
from exhibit.law.refusals import NO, YES, strip_reply
from exhibit.law.sentences import split_sentences
from exhibit.law.values import find_values, write_plain_amounts

MAX_REPLY_CHARS = 20_000  # ten pages, more than any answer has
MAX_EXTRA_WORDS = 80  # a reply with more words than this plus three times the gold is not judged
MIN_QUOTE_WORDS = 8
MAX_NAME_WORDS = 6  # a shorter expected answer is a name or a term, whose words must be adjacent in the reply


class Decision(NamedTuple):
    right: bool | None  # None if the rules cannot decide
    reason: str


_DENIALS = frozenset(
    "not no never neither nor none nothing nobody cannot without non isn aren doesn don won wouldn shouldn didn wasn "
    "weren hasn haven false untrue incorrect wrong nicht kein keine keinen keiner nie ne pas aucun aucune jamais nunca "
    "não nem sin sem senza nikdy žádný žádná není nemůže nesmí nie".split()
)
_EXCEPTIONS = frozenset(  # words that limit or doubt a statement, or add an alternative
    "except excepting excluding unless but save besides other otherwise however although though instead rather "
    "notwithstanding despite subject if provided only solely merely partly partially half außer ohne sondern nur sauf "
    "sinon salvo excepto eccetto kromě pouze jen oprócz tylko than over least minimum exceeding more fewer unlike "
    "regardless contrary some most hardly barely rarely seldom or either versus vs between oder entweder ou soit o "
    "nebo buď lub albo alebo maybe perhaps possibly probably might could unclear uncertain presumably allegedly "
    "vielleicht unklar".split()
)
_LIMITS = frozenset(  # a word directly before a value that makes it another value
    "above below under up before after until till since prior beyond nearly almost one minus vor nach bis seit "
    "avant".split()
)
_SEPARATORS = frozenset(", ; / & and und et y e".split())
_ARTICLES = frozenset("a an the der die das den dem des ein eine le la les un une el los las il lo gli the".split())
_FILLERS = frozenset(
    "is are was were be it its this that there pursuant according per of to in on by with for as which".split()
)
_NEUTRAL = frozenset(
    stem(word)
    for word in "agreement contract lease document text law state govern apply provide say specify set answer accord "
    "party amount date term total equal name follow agree require entitle hold give contain find show base define see "
    "allow capped deal".split()
)  # words that a sentence may have besides a short answer and the words of the question
_LEGAL_FORMS = {"limited": "ltd", "incorporated": "inc", "corporation": "corp", "company": "co"}


_LABEL = re.compile(
    r"(?i:\b(?P<noun>section|clause|article|art|paragraph|para|schedule|exhibit|annex|appendix|tranche|class|series|tier|"
    r"phase|level|option|part|chapter|rule|item|table|group|lot|unit|version|type|grade|category|variant|facility)s?\b\.?|"
    r"(?P<sign>§{1,2}))\s{0,3}(?P<id>\d+[a-zA-Z]{0,2}(?:\.\d+)*(?:\s?\([^\W_]{1,4}\))*|(?-i:[A-Z]\b(?:-[A-Z\d]{1,3}\b)*)|"
    r"(?-i:[IVXL]{1,5}\b)|(?-i:[A-Z]\d\b)|\([a-z]{1,3}\))"
)
_PLAIN = str.maketrans("\u2010\u2011\u2012\u2212’", "----'", "*`")
_NOUNS = {"art": "article", "para": "paragraph"}
_PARTS = frozenset("section clause article art paragraph para § schedule part chapter rule page".split())
_OTHER_CURRENCY = re.compile(r"\b(HKD|NZD|SGD|BRL|ZAR|MXN|KRW|TRY|HUF|RON|RUB|THB|ILS)\s?$")
_ROLE = re.compile(r"(?:or|ee|[nrsy]er)s?$")  # a licensor is not a licensee, although both words have the same stem
_PLACE = re.compile(
    r"\bhttps?://\S+|\bwww\.\S+|\(?\b(?:pages?|pp?\.|footnotes?|lines?)\s*\d+(?:\s*[-–,]\s*\d+)*\)?", re.I
)
_WORD = re.compile(r"[^\W_]+(?:[-'.&/][^\W_]+)*(?:\([^\W_]{1,4}\))*(?:[+-](?!\w))?|[,;/&]")
_HEAD = re.compile(r"\s*([^“”:\n]{1,200}):\s+“")
_LEAD = re.compile(r"\W*([^\W\d_]+)(\s*(?:[,.;:!–—-]|$|\sand\b|\sor\b))?")
_LETTER = re.compile(r"\W*(?:(?:answer|option|choice)\W+)?\(?([A-Za-z])\)?\W*", re.I)


class Reading(NamedTuple):
    """A text prepared for comparison: in lower case, without articles; each number, date and label is one token."""

    text: str
    tokens: tuple[str, ...]  # its words, values (the kind, a null character and the key) and separators
    words: str  # the text's tokens without separators and words such as `of`, with a space before and after each
    stems: frozenset[str]  # the stems of its content words
    values: frozenset[tuple[str, str]]  # the kind and the key of each figure, date, place and label
    lead: str  # `yes` or `no` if the text begins with this word; `both` if it says both

    @property
    def sentences(self) -> list["Reading"]:
        """The sentences of the text, each as a separate Reading."""
        return [read_text(self.text[span.start : span.end]) for span in split_sentences(self.text)]

    def count_changes(self) -> Counter[str]:
        """Count the words that change the meaning of the text, apart from a yes or no at its start."""
        words = [part for token in _split_words(self.text.lower()) for part in re.split(r"[-'/]", token)]
        return Counter(word for word in words[1 if self.lead else 0 :] if word in _DENIALS | _EXCEPTIONS)


@lru_cache(maxsize=4096)
def read_text(text: str) -> Reading:
    plain = unicodedata.normalize("NFKC", text)
    plain = write_plain_amounts(plain.translate(_PLAIN))
    marks = sorted(_find_marks(plain))
    tokens: list[str] = []
    at = 0
    for start, end, kind, key in marks:
        tokens += _split_words(plain[at:start])
        value = f"{kind}\0{key}".replace(" ", "_")
        tokens += [value] if tokens[-1:] != [value] else []  # "five thousand dollars ($5,000)"
        at = max(at, end)
    tokens += _split_words(plain[at:])
    words = _join(token for token in tokens if token not in _FILLERS and token not in ",;/&")
    content = (token.removesuffix("'s") for token in tokens if "\0" not in token and is_content(token))
    stems = frozenset(t.rstrip("s") if _ROLE.search(t) else stem(t) for t in content)
    values = frozenset((kind, key) for _, _, kind, key in marks)
    return Reading(plain, tuple(tokens), words, stems, values, _find_lead(plain))


def _find_marks(plain: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the span of each label and value, its kind (such as `amount`) and its normalised form."""
    labelled = set[int]()
    for match in _LABEL.finditer(plain):
        noun = (match["noun"] or "§").lower()
        yield *match.span(), f"label {_NOUNS.get(noun, noun)}", re.sub(r"\s", "", match["id"]).casefold()
        labelled.update(range(*match.span()))
    for value in find_values(plain, numbers=True):
        start, end = value.span
        if not labelled.isdisjoint(range(start, end)) or re.match(r"\(| cents?\b|-[a-z]", plain[end:]):
            continue
        kind, key = value.kind, value.key
        if value.unit == "hour":
            key = f"{(value.number / 24).normalize():f} day"
        if kind == "number" and (other := _OTHER_CURRENCY.search(plain, max(0, start - 4), start)):
            kind, key = "amount", f"{other[1]} {key}"
        yield start, end, kind, f"-{key}" if re.search(r"(?:^|\s)-$", plain[:start]) else key


def _split_words(text: str) -> list[str]:
    words = (match[0].removesuffix("'") for match in _WORD.finditer(text.lower()))
    return [_LEGAL_FORMS.get(word, word) for word in words if word not in _ARTICLES]


def _join(tokens: Iterable[str]) -> str:
    return f" {' '.join(tokens)} "


def _find_lead(text: str) -> str:
    sentences = [text[span.start : span.end].lower() for span in split_sentences(text)]
    leading = filter(None, map(_LEAD.match, sentences))
    words = [match[1] for match in leading if match[2] is not None or match[1] in YES]
    leads = {"yes" if word in YES else "no" for word in words if word in YES | NO}
    return "both" if len(leads) > 1 else next(iter(leads), "")


@lru_cache(maxsize=1024)  # the outcome, its reason and the metrics all judge the same pair
def judge_answer(question: str, expected: str, reply: str, gold: tuple[str, ...] = ()) -> Decision:
    """Decide whether a reply gives the expected answer; `gold` has the passages that support it."""
    answer = _strip(strip_reply(reply[:MAX_REPLY_CHARS]))
    letter, given_letter = _LETTER.fullmatch(expected), _LETTER.fullmatch(answer)
    if letter and given_letter:
        same = letter[1].lower() == given_letter[1].lower()
        return Decision(same, f"The reply says {given_letter[1]}; expected: {letter[1]}.")
    wanted, asked = read_text(_strip(expected)), read_text(question)
    if not wanted.tokens:
        return Decision(None, "The question has no expected answer.")
    sentences = (answer[span.start : span.end] for span in split_sentences(answer))
    answer = " ".join(sentence for sentence in sentences if not sentence.rstrip('"” ').endswith("?"))
    head = _HEAD.match(answer)  # judge an answer without the passage that it quotes
    if head and (before_quote := judge_answer(question, expected, head[1], gold)).right is not None:
        return before_quote
    if not any(kind.startswith("label") and kind[6:] in _PARTS for kind, _ in wanted.values):
        answer, gold = _without_labels(answer), tuple(map(_without_labels, gold))
    given = read_text(answer)
    if not given.tokens:
        return Decision(False, "The reply repeats the question or has no words.")
    if given.tokens == wanted.tokens and given.lead == wanted.lead:
        return Decision(True, "The reply is the expected answer.")
    longest = max(len(wanted.tokens), *(len(text.split()) for text in gold), 0)
    if len(given.tokens) > 3 * longest + MAX_EXTRA_WORDS:
        return Decision(None, "The reply is much longer than the expected answer.")
    sources = [read_text(text[:MAX_REPLY_CHARS]) for text in gold]
    decision = _judge_yes_or_no(wanted, given, asked, sources) or _judge_values(wanted, given, asked)
    return decision or _judge_words(wanted, given, asked, sources)


def _strip(text: str) -> str:
    """Return an answer without citations, source marks such as `[doc 42]`, URLs and page references."""
    text = rewrite_citations(without_places(text), lambda *_: " ")
    text = BRACKETED.sub(lambda match: match[0] if match[0].strip("[]").isdigit() else " ", text)
    return _PLACE.sub(" ", text).strip()


def _without_labels(answer: str) -> str:
    """Return an answer without the sections and clauses that it cites as its source."""
    pattern = rf"\(?(?:\b(?:see|in|under|per|pursuant to|according to|cf\.?)\s+)?{_LABEL.pattern}[,:]?\)?"
    return re.sub(pattern, lambda m: " " if (m["noun"] or "§").lower() in _PARTS else m[0], answer)


def _judge_yes_or_no(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> Decision | None:
    """Return a decision on a yes or no: right if no sentence outside the gold denies or limits it."""
    if not expected.lead:
        return Decision(None, f"The reply says {reply.lead}, which was not expected.") if reply.lead else None
    if reply.lead != expected.lead:
        stated = reply.lead.replace("both", "yes and no") or "neither yes nor no"
        return Decision(False if reply.lead else None, f"The reply says {stated}; expected: {expected.lead}.")
    if set(expected.words.split()) - YES - NO:
        return None
    asked = question.count_changes().keys()
    denies = (reply.lead == "no") != bool(asked & _DENIALS)
    doubtful = bool(_find_unknown(expected, reply, question, gold))
    quotes = "\n".join(text.words for text in gold)
    for part in (part for part in reply.sentences if part.words not in quotes):
        changes = part.count_changes().keys()
        doubtful |= bool(changes - asked - _DENIALS or set(part.tokens[1:]) & (YES | NO) - {reply.lead})
        doubtful |= part.tokens != reply.tokens[:1] and bool(changes & _DENIALS) != denies
    return Decision(None if doubtful else True, f"The reply says {reply.lead}{', and doubts or denies it' * doubtful}.")


def _judge_values(expected: Reading, reply: Reading, question: Reading) -> Decision | None:
    """Return a decision if a reply has a value or a unit other than the expected one; otherwise return None."""
    expected_values = set(expected.values - question.values) or set(expected.values)
    expected_counts, counts = (
        [(token[7:], word) for token, word in pairwise((*reading.tokens, "")) if token.startswith("number\0")]
        for reading in (expected, reply)
    )  # each number without a unit, with the word after it
    for kind in sorted({kind for kind, _ in expected_values}):
        keys, stated, known = (
            {key for other, key in values if other == kind}
            for values in (expected_values, reply.values, question.values)
        )
        rivals = stated - keys - known
        if not keys & stated and (rivals or (stated and len(expected_values) == len(keys))):
            reason = f"The reply says {min(rivals or stated)}; expected: {', '.join(sorted(keys))}."
            scaled = kind in ("amount", "number") and re.search("thousand|million|billion", question.text, re.I)
            nouns, others = ({noun for _, noun in counted} for counted in (expected_counts, counts))
            uncertain = scaled or (kind == "number" and nouns != {""} and nouns.isdisjoint(others))
            return Decision(None if uncertain else False, reason)
        if keys <= stated and rivals:
            return Decision(None, f"The reply also says {min(rivals)}.")
        numbers = {part for key in keys - stated for part in key.split()} if kind != "number" else ()
        if not keys & stated and any(number in numbers and is_content(noun) for number, noun in counts):
            return Decision(False, f"The reply has the number of {min(keys)}, but another unit.")  # `5 million shares`
    return None


def _judge_words(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> Decision:
    """Decide by words: right if the reply has the expected words in order and nothing that changes their meaning."""
    needed = expected.words.split()[1 if expected.lead else 0 :]
    short = len(needed) <= MAX_NAME_WORDS
    if not needed or not _has_words(reply.words, needed, adjacent=short):
        return Decision(None, "The reply has other words than the expected answer.")
    sources = "\n".join(text.words for text in gold)
    quotes = _join(sentence.words.strip() for sentence in reply.sentences if sentence.words in sources)
    quoted = _has_words(quotes, needed, adjacent=short)
    if quoted and len(needed) >= MIN_QUOTE_WORDS:
        return Decision(True, "The reply quotes the expected answer.")
    changes = reply.count_changes() - expected.count_changes() - Counter(NO if expected.lead == "no" else ())
    if changes:
        near = len(reply.sentences) == 1 and len(reply.words.split()) <= 1.5 * len(needed) + 6
        denied = near and changes.keys() <= _DENIALS and _EXCEPTIONS.isdisjoint(reply.tokens)
        return Decision(False if denied else None, f"The reply denies, limits or doubts the answer: {min(changes)}.")
    known = question.values.union(*(text.values for text in gold))
    kinds, named = {kind for kind, _ in expected.values}, any("\0" not in word for word in needed)
    for kind, key in sorted(reply.values - expected.values - question.values):
        unknown_kind = kind != "number" and (named or kind.startswith("label")) and (kind, key) not in known
        if kind in kinds or (short and not kinds) or unknown_kind:
            return Decision(None, f"The reply also says {key}.")
    if short and _has_candidates(reply, needed, question):
        return Decision(None, "The words beside the expected answer may change its meaning.")
    if not quoted and (unknown := _find_unknown(expected, reply, question, () if short else gold)):
        return Decision(None, f"The reply adds the word {min(unknown)!r}, which may change its meaning.")
    return Decision(True, "The reply has the words of the expected answer.")


def _has_words(words: str, needed: Sequence[str], *, adjacent: bool) -> bool:
    remaining = iter(words.split())  # an iterator, so that `in` finds the needed words only in order
    return _join(needed) in words if adjacent else all(word in remaining for word in needed)


def _find_unknown(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> frozenset[str]:
    """Return the word stems of the reply that occur in neither the expected answer, the question nor the gold."""
    return reply.stems.difference(_NEUTRAL, expected.stems, question.stems, *(text.stems for text in gold))


def _has_candidates(reply: Reading, needed: Sequence[str], question: Reading) -> bool:
    """Return whether a reply may state something other than the short expected answer that it contains."""
    tokens = _join(token for token in reply.tokens if token not in _FILLERS)
    before, _, after = map(str.split, tokens.partition(_join(needed)))
    listed = not _SEPARATORS.isdisjoint(before[-1:]) and not reply.lead
    named = after[:1] == [","] and not (question.stems - _NEUTRAL).isdisjoint(map(stem, after[1:2]))  # "Ernst, Grant"
    limited = not _LIMITS.isdisjoint(before[-1:]) and "\0" in needed[0]
    if listed or named or limited or after[:1] in ([needed[0]], *([sign] for sign in _SEPARATORS - {","})):
        return True
    asked = question.tokens[:2]  # "The Agent gives notice" does not say to whom notice is given
    beside = after if "whom" in asked else before[-1:] if "who" in asked and "by" not in reply.tokens else ()
    return not question.stems.isdisjoint(map(stem, beside))
