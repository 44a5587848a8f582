"""Decide by rules whether a reply gives the expected answer.

The rules decide closed types: yes or no, a number with its unit or currency, a date, a period, a label
(`Clause 5(a)`), a name, an exact quote. A reply is right if one of its sentences has the words of the expected answer
in order, and no denial, exception, alternative, other candidate or number that the expected answer lacks. It is wrong
if it has another value of the same type. Everything else is not judged.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from exhibit.law.citations import BRACKETED, rewrite_citations, without_places
from exhibit.law.language import is_content, stem
from exhibit.law.refusals import NO, YES, strip_reply
from exhibit.law.sentences import split_sentences
from exhibit.law.values import find_values, write_plain_amounts

MAX_REPLY_CHARS = 20_000  # ten pages, more than any answer has
MAX_EXTRA_WORDS = 80
"""A reply is not judged if it has more words than three times the expected answer and the gold, plus this number."""
MIN_QUOTE_WORDS = 8
MAX_NAME_WORDS = 6  # a shorter expected answer is a name or a term, whose words must be adjacent in the reply


class Decision(NamedTuple):
    """Whether a reply is right (None if the rules cannot decide), and why."""

    right: bool | None
    reason: str


# ---------------------------------------------------------------- words that change the meaning of a sentence

_DENIALS = frozenset(
    "not no never neither nor none nothing nobody cannot without non isn aren doesn don won wouldn shouldn didn wasn "
    "weren hasn haven false untrue incorrect wrong nicht kein keine keinen keiner nie ne pas aucun aucune jamais nunca "
    "não nem sin sem senza nikdy žádný žádná není nemůže nesmí nie".split()
)
_EXCEPTIONS = frozenset(
    "except excepting excluding unless but save besides other otherwise however although though instead rather "
    "notwithstanding despite subject if provided only solely merely partly partially half außer ohne sondern nur sauf "
    "sinon salvo excepto eccetto kromě pouze jen oprócz tylko than over least minimum exceeding more fewer unlike "
    "regardless contrary some most hardly barely rarely seldom".split()
)
_ALTERNATIVES = frozenset("or either versus vs between oder entweder ou soit o nebo buď lub albo alebo".split())
_HEDGES = frozenset(
    "maybe perhaps possibly probably might could unclear uncertain presumably allegedly vielleicht unklar".split()
)
_CHANGES = _DENIALS | _EXCEPTIONS | _ALTERNATIVES | _HEDGES
_LIMITS = frozenset(
    "above below under up before after until till since prior beyond nearly almost one minus vor nach bis seit "
    "avant".split()
)  # a word directly before a value that makes it another value
_SEPARATORS = frozenset(", ; / & and und et y e".split())
_ARTICLES = frozenset("a an the der die das den dem des ein eine le la les un une el los las il lo gli the".split())
_FILLERS = frozenset(
    "is are was were be it its this that there under pursuant according per of to in on by with for as which".split()
)
_NEUTRAL = frozenset(
    stem(word)
    for word in "agreement contract lease document text law state govern apply provide say specify set answer accord "
    "party amount date term total equal name follow agree require entitle hold give contain find show base define see "
    "allow capped deal".split()
)  # words that a sentence may have besides a short answer and the words of the question
_LEGAL_FORMS = {"limited": "ltd", "incorporated": "inc", "corporation": "corp", "company": "co"}

# ---------------------------------------------------------------- a text prepared for comparison

_LABEL = re.compile(
    r"(?i:\b(?P<noun>section|clause|article|art|paragraph|para|schedule|exhibit|annex|appendix|tranche|class|series|tier|"
    r"phase|level|option|part|chapter|rule|item|table|group|lot|unit|version|type|grade|category|variant|facility)s?\b\.?|"
    r"(?P<sign>§{1,2}))\s{0,3}(?P<id>\d+[a-zA-Z]{0,2}(?:\.\d+)*(?:\s?\([^\W_]{1,4}\))*|(?-i:[A-Z]\b(?:-[A-Z\d]{1,3}\b)*)|"
    r"(?-i:[IVXL]{1,5}\b)|(?-i:[A-Z]\d\b)|\([a-z]{1,3}\))"
)
_PARTS = frozenset("section clause article art paragraph para § schedule part chapter rule page".split())
"""Labels of parts of a document, which a reply may add to its answer."""
_OTHER_CURRENCY = re.compile(r"\b(HKD|NZD|SGD|BRL|ZAR|MXN|KRW|TRY|HUF|RON|RUB|THB|ILS)\s?$")
_SCALES = re.compile(r"\b(?:thousand|million|billion)s?\b", re.I)
_ROLE = re.compile(r"(?:or|ee|[nrsy]er)s?$")  # a licensor is not a licensee, although both words have the same stem
_PAGE = re.compile(r"\(?\b(?:pages?|pp?\.|footnotes?|lines?)\s*\d+(?:\s*[-–,]\s*\d+)*\)?", re.I)
_URL = re.compile(r"\bhttps?://\S+|\bwww\.\S+")
_WORD = re.compile(r"[^\W_]+(?:[-'.&/][^\W_]+)*(?:\([^\W_]{1,4}\))*(?:[+-](?!\w))?|'s\b|[,;/&]")
_HEAD = re.compile(r"\s*([^“”:\n]{1,200}):\s+“")
_LEAD = re.compile(r"\W*([^\W\d_]+)(\s*(?:[,.;:!–—-]|$|\sand\b|\sor\b))?")
_YES_AND_NO = re.compile(r"\W*([^\W\d_]+)\W+(?:and |or |und |et )?([^\W\d_]+)\b(?=\W*$|\s*[,.;])")
_LETTER = re.compile(r"\W*(?:(?:answer|option|choice)\W+)?\(?([A-Za-z])\)?\W*", re.I)


class Reading(NamedTuple):
    """A text prepared for comparison: in lower case, without articles; each number, date and label is one token."""

    text: str
    stream: tuple[str, ...]
    """The text's tokens and separators such as commas; a value is written as its kind, a null character and its key.
    """
    tokens: tuple[str, ...]  # the text's words and values
    words: tuple[str, ...]  # the text's tokens without words that join or introduce, such as `of`
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
        return Counter(word for word in words[1 if self.lead else 0 :] if word in _CHANGES)


@lru_cache(maxsize=4096)
def read_text(text: str) -> Reading:
    plain = unicodedata.normalize("NFKC", text)
    for mark, usual in (*((mark, "-") for mark in "\u2010\u2011\u2012\u2212"), ("’", "'"), ("*", ""), ("`", "")):
        plain = plain.replace(mark, usual)
    plain = write_plain_amounts(plain)
    marks = sorted(_find_marks(plain))
    stream: list[str] = []
    at = 0
    for start, end, kind, key in [*marks, (len(plain), len(plain), "", "")]:
        stream += _split_words(plain[at:start])
        if kind and (not stream or stream[-1] != f"{kind}\0{key}"):
            stream.append(f"{kind}\0{key}")
        at = max(at, end)
    tokens = tuple(token for token in stream if token not in ",;/&'s")
    words = tuple(token for token in tokens if token not in _FILLERS)
    content = (t for t in tokens if "\0" not in t and is_content(t))
    stems = frozenset(t.rstrip("s") if _ROLE.search(t) else stem(t) for t in content)
    values = frozenset((kind, key) for _, _, kind, key in marks)
    return Reading(plain, tuple(stream), tokens, words, stems, values, _find_lead(plain))


def _find_marks(plain: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the span of each label and value, its kind (such as `amount`) and its normalised form."""
    labels = list(_LABEL.finditer(plain))
    for match in labels:
        noun = (match["noun"] or "§").lower()
        noun = {"art": "article", "para": "paragraph"}.get(noun, noun)
        yield *match.span(), f"label {noun}", re.sub(r"\s", "", match["id"]).casefold()
    for value in find_values(plain, numbers=True):
        start, end = value.span
        labelled = any(start < match.end() and match.start() < end for match in labels)
        joined = value.kind == "number" and re.search(r"(?<!hundred)(?<!thousand)(?<!million)\sand\b", value.text, re.I)
        if labelled or joined or re.match(r"\(| cents?\b|-[a-z]", plain[end:]):  # joined: "between three and seven"
            continue
        kind, key = value.kind, value.key
        if value.unit == "hour":
            key = f"{(value.number / 24).normalize():f} day"
        if kind == "number" and (other := _OTHER_CURRENCY.search(plain, max(0, start - 4), start)):
            kind, key = "amount", f"{other[1]} {key}"
        yield start, end, kind, f"-{key}" if re.search(r"(?:^|\s)-$", plain[:start]) else key


def _split_words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text.lower()):
        word = match[0].removesuffix("'")
        if "n't" in word:
            yield from (word.replace("n't", ""), "not")
        elif word.endswith("'s"):
            yield from filter(None, (word[:-2], "'s"))
        elif word not in _ARTICLES:
            yield _LEGAL_FORMS.get(word, word)


def _find_lead(text: str) -> str:
    """Return the yes or no at the start of a text's sentences; `both` if some begin with yes and others with no."""
    sentences = [text[span.start : span.end].lower() for span in split_sentences(text)]
    leading = filter(None, map(_LEAD.match, sentences))
    words = [match[1] for match in leading if match[2] is not None or match[1] in YES]
    if words and (both := _YES_AND_NO.match(sentences[0])):
        words.append(both[2])
    leads = {"yes" if word in YES else "no" for word in words if word in YES | NO}
    return "both" if len(leads) > 1 else next(iter(leads), "")


# ---------------------------------------------------------------- the decision


@lru_cache(maxsize=1024)  # the outcome, its reason and the metrics all judge the same pair
def judge_answer(question: str, expected: str, reply: str, gold: tuple[str, ...] = ()) -> Decision:
    """Decide whether a reply gives the expected answer; `gold` has the passages that support it."""
    answer = _strip(strip_reply(reply[:MAX_REPLY_CHARS]))
    letter, given_letter = _LETTER.fullmatch(expected), _LETTER.fullmatch(answer)
    if letter and given_letter:
        same = letter[1].lower() == given_letter[1].lower()
        return Decision(same, f"The reply says {given_letter[1]}; expected: {letter[1]}.")
    wanted, question_text = read_text(_strip(expected)), read_text(question)
    if not wanted.tokens and not wanted.lead:
        return Decision(None, "The question has no expected answer.")
    answer = _without_questions(answer, question)
    if head := _HEAD.match(answer):  # judge an answer without the passage that it quotes
        before_quote = judge_answer(question, expected, head[1], gold)
        if before_quote.right is not None:
            return before_quote
    if not any(kind.startswith("label") and kind[6:] in _PARTS for kind, _ in wanted.values):
        answer, gold = _without_labels(answer), tuple(map(_without_labels, gold))
    given = read_text(answer)
    if not given.tokens and not given.lead:
        return Decision(False, "The reply repeats the question or has no words.")
    if given.tokens == wanted.tokens and given.lead == wanted.lead:
        return Decision(True, "The reply is the expected answer.")
    longest = max(len(wanted.tokens), *(len(text.split()) for text in gold), 0)
    if len(given.tokens) > 3 * longest + MAX_EXTRA_WORDS:
        return Decision(None, "The reply is much longer than the expected answer.")
    sources = [read_text(text[:MAX_REPLY_CHARS]) for text in gold]
    decision = _judge_yes_or_no(wanted, given, question_text, sources) or _judge_values(wanted, given, question_text)
    return decision or _judge_words(wanted, given, question_text, sources)


def _strip(text: str) -> str:
    """Return an answer without citations, source marks such as `[doc 42]`, URLs and page references."""
    text = rewrite_citations(without_places(text), lambda *_: " ")
    text = BRACKETED.sub(lambda match: match[0] if match[0].strip("[]").isdigit() else " ", text)
    return _PAGE.sub(" ", _URL.sub(" ", text)).strip()


def _without_questions(answer: str, question: str) -> str:
    """Return an answer without the sentences that are questions, and without the question that it repeats."""
    answer, repeated = answer.lstrip('"“ '), question.strip()
    if repeated and answer[: len(repeated)].casefold() == repeated.casefold():
        answer = answer[len(repeated) :]
    sentences = (answer[span.start : span.end] for span in split_sentences(answer))
    return " ".join(sentence for sentence in sentences if not sentence.rstrip('"” ').endswith("?"))


def _without_labels(answer: str) -> str:
    """Return an answer without the sections and clauses that it cites as its source."""
    pattern = rf"\(?(?:\b(?:see|in|under|per|pursuant to|according to|cf\.?)\s+)?{_LABEL.pattern}[,:]?\)?"
    return re.sub(pattern, lambda m: " " if (m["noun"] or "§").lower() in _PARTS else m[0], answer)


def _judge_yes_or_no(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> Decision | None:
    if not expected.lead:
        return Decision(None, f"The reply says {reply.lead}, which was not expected.") if reply.lead else None
    if reply.lead != expected.lead:
        stated = reply.lead.replace("both", "yes and no") or "neither yes nor no"
        return Decision(False if reply.lead else None, f"The reply says {stated}; expected: {expected.lead}.")
    doubts = _has_doubts(reply, question, gold) or _find_unknown(expected, reply, question, gold)
    reason = f"The reply says {reply.lead}, and doubts or denies it." if doubts else f"The reply says {reply.lead}."
    return None if set(expected.tokens) - YES - NO else Decision(None if doubts else True, reason)


def _has_doubts(reply: Reading, question: Reading, gold: Sequence[Reading]) -> bool:
    """Return whether a sentence that is not in the gold denies or limits the yes or no of a reply."""
    in_question = question.count_changes().keys()
    denies = (reply.lead == "no") != bool(in_question & _DENIALS)
    for part in (part for part in reply.sentences if not _is_quoted([part], gold)):
        changes = part.count_changes().keys()
        limited = changes - in_question - _DENIALS or set(part.tokens[1:]) & (YES | NO) - {reply.lead}
        if limited or (part.tokens != reply.tokens[:1] and bool(changes & _DENIALS) != denies):
            return True
    return False


def _judge_values(expected: Reading, reply: Reading, question: Reading) -> Decision | None:
    """Return a decision if a reply has a value or a unit other than the expected one; otherwise return None."""
    expected_values = set(expected.values - question.values) or set(expected.values)
    for kind in sorted({kind for kind, _ in expected_values}):
        keys, stated, known = (
            {key for other, key in values if other == kind}
            for values in (expected_values, reply.values, question.values)
        )
        rivals = stated - keys - known
        if not keys & stated and (rivals or (stated and len(expected_values) == len(keys))):
            reason = f"The reply says {min(rivals or stated)}; expected: {', '.join(sorted(keys))}."
            scaled = kind in ("amount", "number") and _SCALES.search(question.text)  # `in millions`
            counted = kind == "number" and not _count_the_same(expected, reply)
            return Decision(None if scaled or counted else False, reason)
        if keys <= stated and rivals:
            return Decision(None, f"The reply also says {min(rivals)}.")
        if kind in ("amount", "period", "percentage") and not keys & stated and _has_other_unit(keys, reply):
            return Decision(False, f"The reply has the number of {min(keys)}, but another unit.")
    return None


def _list_counted(reading: Reading) -> list[tuple[str, str]]:
    """Return each number with the noun after it."""
    return [(token[7:], noun) for token, noun in pairwise((*reading.tokens, "")) if token.startswith("number\0")]


def _count_the_same(expected: Reading, reply: Reading) -> bool:
    """Return whether both texts have a number before the same noun, or the expected numbers have no noun."""
    nouns, stated = ({noun for _, noun in _list_counted(reading)} for reading in (expected, reply))
    return nouns == {""} or not nouns.isdisjoint(stated)


def _has_other_unit(keys: Collection[str], reply: Reading) -> bool:
    """Return whether a reply has the number of an expected value before another noun: `5 million shares`."""
    numbers = {part for key in keys for part in key.split()}
    return any(n in numbers and is_content(noun) and "\0" not in noun for n, noun in _list_counted(reply))


def _judge_words(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> Decision:
    """Decide by words: right if the reply has the expected words in order and nothing that changes their meaning."""
    needed = [token for token in expected.tokens[1 if expected.lead else 0 :] if token not in _FILLERS]
    short = len(needed) <= MAX_NAME_WORDS
    sentences = _find_sentences(reply, needed, adjacent=short) if needed else []
    if not sentences:
        return Decision(None, "The reply has other words than the expected answer.")
    quoted = _is_quoted(sentences, gold)
    if quoted and len(needed) >= MIN_QUOTE_WORDS:
        return Decision(True, "The reply quotes the expected answer.")
    if fault := _find_change(expected, reply, sentences):
        near = len(reply.tokens) <= 1.5 * len(expected.tokens) + 6
        denied = fault.startswith("The reply denies") and near and not set(reply.tokens) & (_EXCEPTIONS | _ALTERNATIVES)
        return Decision(False if denied else None, fault)
    known = question.values.union(*(text.values for text in gold))
    kinds, named = {kind for kind, _ in expected.values}, any("\0" not in token for token in needed)
    extra = {
        (kind, key)
        for kind, key in reply.values - expected.values - question.values
        if kind in kinds or (short and not kinds) or (named and kind != "number" and (kind, key) not in known)
    }
    if extra:
        return Decision(None, f"The reply also says {min(extra)[1]}.")
    if short and (fault := _find_candidates(reply, needed, question)):
        return Decision(None, fault)
    if not quoted and (unknown := _find_unknown(expected, reply, question, () if short else gold)):
        return Decision(None, f"The reply adds the word {min(unknown)!r}, which may change its meaning.")
    return Decision(True, "The reply has the words of the expected answer.")


def _find_unknown(expected: Reading, reply: Reading, question: Reading, gold: Sequence[Reading]) -> frozenset[str]:
    """Return the word stems of the reply that occur in neither the expected answer, the question nor the gold."""
    return reply.stems.difference(_NEUTRAL, expected.stems, question.stems, *(text.stems for text in gold))


def _is_quoted(sentences: Sequence[Reading], gold: Sequence[Reading]) -> bool:
    """Return whether the gold contains each of the sentences word for word."""
    return all(any(_find_run(text.words, sentence.words) for text in gold) for sentence in sentences)


def _find_sentences(reply: Reading, needed: Sequence[str], *, adjacent: bool) -> list[Reading]:
    """Return the first one to four consecutive sentences of a reply that together have the needed tokens in order."""
    for count in range(1, 2 if adjacent else 5):
        for at in range(len(reply.sentences) - count + 1):
            parts = reply.sentences[at : at + count]
            tokens = [token for part in parts for token in part.words]
            remaining = iter(tokens)  # an iterator, so that `in` finds the needed tokens only in order
            if _find_run(tokens, needed) if adjacent else all(token in remaining for token in needed):
                return parts
    return []


def _find_run(tokens: Sequence[str], needed: Sequence[str]) -> tuple[int, int] | None:
    """Return the range of tokens in which the needed tokens are adjacent."""
    ends = ((at, at + len(needed)) for at in range(len(tokens) - len(needed) + 1))
    return next(((start, end) for start, end in ends if tuple(tokens[start:end]) == tuple(needed)), None)


def _find_change(expected: Reading, reply: Reading, sentences: Sequence[Reading]) -> str:
    """Return in what way a reply changes the meaning of the expected answer; empty if it does not.

    A word such as `not` or `except` does not count if the expected answer also has it.
    """
    allowed = expected.count_changes() + Counter(NO if expected.lead == "no" else ())
    for word in sum((sentence.count_changes() for sentence in sentences), Counter[str]()) - allowed:
        kind = "denies it" if word in _DENIALS else "has an exception, an alternative or a doubt"
        return f"The reply {kind}: {word}."
    for other in reply.sentences:
        shared = set(other.tokens) & set(expected.tokens)
        close = 2 * len(shared) >= len(expected.tokens) or len(other.tokens) <= 6  # such as "That is not so."
        if other not in sentences and close and other.count_changes() - allowed:
            return "The reply states the expected answer and its opposite, or retracts it."
    return ""


def _find_candidates(reply: Reading, needed: Sequence[str], question: Reading) -> str:
    """Return why a reply may state something other than a short expected answer; empty if there is no reason."""
    streams = [[token for token in reply.stream if token not in _FILLERS - kept] for kept in ({"by", "under"}, set())]
    stream = next((stream for stream in streams if _find_run(stream, needed)), streams[0])
    run = _find_run(stream, needed)
    if run is None:
        return ""
    before, after = stream[: run[0]], stream[run[1] :]
    listed = before and before[-1] in _SEPARATORS and not (len(before) == 2 and reply.lead)
    ends = [*after[:1], *after[2 : min(6, len(after) - 1)]]
    named = {stem(token) for token in after[1:2] if after[0] == ","} & question.stems - _NEUTRAL  # "Ernst, Grant"
    if listed or named or _SEPARATORS.intersection(ends[1:] if ends[:1] == [","] else ends[:1]):
        return "The reply also names alternatives to the expected answer."
    following = zip(reply.stream, reply.stream[1:], reply.stream[2:], strict=False)
    # "the Client of the Contractor"
    owners = [owner for part, of, owner in following if (part, of) == (needed[-1], "of")]
    owned = any("\0" not in needed[-1] or owner.startswith("label") for owner in owners)
    if owned or after[:1] in (["'s"], [needed[0]]) or (before and before[-1] in _LIMITS and "\0" in needed[0]):
        return "A word beside the expected answer changes the meaning."
    preposition = question.tokens[:1] if question.tokens[1:2] == ("whom",) else ()
    if preposition and (preposition[0], needed[0]) not in pairwise(reply.stream):
        return "The expected answer may have a different grammatical role in the reply than in the question."
    if question.tokens[:1] == ("who",) and before and stem(before[-1]) in question.stems:
        return "The expected answer may be the grammatical object in the reply, not the subject."
    return ""
