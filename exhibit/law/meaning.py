"""Reads the meaning of an answer by rules: its words with polarity, the acting party, permissions and figures.

Synonyms are reduced to one word (`meaning.toml`). Each word has a sign: 1 if the text affirms the word, -1
if the text denies it ("not exclusive", "non-exclusive"), and 0 if this is unclear. The sign is unclear for
words before a denial and for words in an exception.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from exhibit.law.figures import Day
from exhibit.law.language import stem
from exhibit.law.meaning_words import DENIALS, WIDE_DENIALS, carries_meaning, find_canonical, is_party, sign_word
from exhibit.law.quantities import KINDS, SIGNS, UNITS, Quantity, find_quantities

_PHRASES = [
    (re.compile(pattern), f" {token} ")
    for pattern, token in (
        (r"n't\b", " not"),
        (r"\b(?:dr|mr|mrs|ms|prof)\b\.?", ""),
        (r"\b(inc|ltd|co|corp|no|st)\.", r"\1"),
        (
            r"(\d (?:(?:usd|eur|gbp|czk|chf) )?)(?:for each|for every|per|a|each)\b"
            r"(?! (?:year|annum|month|quarter|week|day)\b)",
            r"\1 apiece",
        ),
        (r"(\d (?:(?:usd|eur|gbp|czk|chf) )?)for all\b", r"\1 aggregate"),
        (r"\bnot limited to\b", "notonly"),
        (r"\bnot without\b", "only with"),
        (r"\bnot even\b", "noteven"),
        (r"(?:^|(?<=[,.;:] ))subject to\b|\b(?:provided|on condition|in the event) that\b", "if"),
        (r"\bcannot\b", "can not"),
        (r"\b(?:no|not) (?=(?:more|less|fewer|later|earlier|greater) than\b)|\bnot (?=exceed)|\bno later\b", ""),
        (
            r"\bwithout (?:undue |unreasonable )?(?:delay|limitation|prejudice)\b|\bwhether or not\b|\bno longer\b",
            "promptly",
        ),
        (r"\bfree of(?: any)?\b", "without"),
        (r"\bnot only\b", "notonly"),
        (r"\b(?:nobody|no one|none|nothing) (?:but|except|other than)\b|\band no others?\b(?: \w+)?", "only"),
        (r"\b(?:is|are) limited to\b|\bsolely\b|\balone\b|\bexclusively(?= to| by| for)", "only"),
        (r"\bindemnifying party\b", "indemnitor"),
        (r"\bindemnified party\b", "indemnitee"),
        (r"\bdisclosing party\b", "discloser"),
        (r"\breceiving party\b", "recipient"),
        (
            r"\bneed not\b|\b(?:not|no) (?:required|obliged|obligation|duty|need|necessary|have|has)"
            r"(?: to)?(?= \w)(?! (?:a|an|the)\b)",
            "neednot",
        ),
        (r"\b(?:may|can|must|shall|should|will|would|could) (?:\w+ )?not(?: be)?\b", "not"),
        (r"\bno (?:right|authority|power|permission) to\b|\bnot (?:possible|able)\b", "not"),
        (r"\bnot (?:(?:permitted|allowed|authori[sz]ed|entitled|free) to\b|subject\b)|\bmay never\b|\bunable\b", "not"),
        (r"\b(?:is|are) (?:prohibited|barred|forbidden|precluded|banned) from\b", "not"),
        (r"\b(?:fails?|failed|failing|failure|refuses?|refused) to\b|\black(?:s|ing)?\b|\bceases? to\b", "not"),
        (
            r"\b(?:is|are|be) (?:permitted|allowed|entitled|authori[sz]ed|free|able|open) to\b|"
            r"\b(?:has|have) (?:the|a) right to\b|\bcan\b|\bmay\b",
            "maybe",
        ),
        (r"\b(?:shall|must|has to|have to|needs? to|(?:is|are) (?:required|obliged|bound|to))\b", "must"),
        (
            r"\b(?:unless|except(?: for| in| where| that| with| if)?|other than|save(?: for)?|apart from|"
            r"with the exception of|excepted)\b",
            "except",
        ),
        (r"\beven (?:if|with|in|where|when)\b|\bincluding\b|\balso\b|\bas well as\b", "even"),
        (
            r"\b(?:per|a|each|every|in each|in every|in any) (?=year\b|annum\b|calendar year\b|contract year\b)",
            "annual",
        ),
        (r"\b(?:per|a|each|every|in each|in every) (?=(?:calendar )?month\b)", "monthly"),
        (r"\b(?:per|a|each|every) (?=(?:calendar )?quarter\b)", "quarterly"),
        (r"\b(?:per|a|each|every) (?=week\b)", "weekly"),
        (r"\b(?:per|a|each|every) (?=day\b)", "daily"),
        (r"\byear by year\b", "annual"),
    )
]
_YES = "yes ja oui sí si sim ano tak áno".split()
_NO = "no nein non não ne nie".split()
_LEAD = re.compile(rf"\W*({'|'.join((*_YES, *_NO))})\b(?=\s*(?:[,.;:!–—]|$))", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W\d_]+(?:'s\b)?|\d+(?:\.\d+)*|[,;:.()–—]")
_AUXILIARY = frozenset("is are was were must maybe will has have shall does do".split())
_BREAKS = frozenset(", ; : . – — ( )".split())
_OPENERS = frozenset("but except if when where provided even although though while which who and".split())
"""Words that begin a new clause after a comma."""
_CLAUSE = frozenset("but except otherwise even although though while if when where".split())
_MODALS = frozenset({"must", "maybe", "neednot"})
_MARKS = frozenset({"except", "even", "only", "notonly", "noteven", "if"})
_BOUNDING = frozenset("above below over under exceed exceeds exceeding more less least most fewer later".split())
_PREPOSITIONS = frozenset("to with in on during for from by at after before against under within towards while".split())
FIGURE = "#"
"""The token that stands for a figure among the words, so that its neighbours are known."""
_NAME = re.compile(r"(?<![.!?:] )(?<!^)(?<![\"“(])\b[A-Z][a-z]{2,}\b")
_SUBJECT = 3  # words from the start: a party that is named later may not be the subject
_RELATIVE = frozenset("who which that why whose".split())
_ARTICLES = frozenset("the a an its their his her our your each every any all".split())
_INVERSE = frozenset({"receive"})
_TO_AGENT = re.compile(
    r"\b(?:by|from|with|vests? in|on|for) (?:the |a |its |each |every )?([a-z]+)\b(?!')(?: ([a-z]+)\b(?!'))?"
)


class MeaningWord(NamedTuple):
    """A content word of a text, and whether the text affirms it or denies it."""

    term: str
    sign: int
    """1; -1 if the text denies the word; 0 if that is unclear."""
    segment: int
    """The number of the word's segment between commas and conjunctions."""
    head: bool = False
    """Whether a denial applies directly: the word is the first after a denial, or is itself a denial."""


@dataclass(frozen=True)
class Meaning:
    """The content of a text as rules read it: words (affirmed or denied), figures, dates, names and parties."""

    lead: Literal["", "yes", "no"]
    tokens: tuple[str, ...]
    """Every word in order, with figures in digits and one form for all denials and modal verbs, to compare similar
    texts.
    """
    words: tuple[MeaningWord, ...]
    modals: frozenset[str]
    marks: frozenset[str]
    """The words that limit a statement: `except`, `even`, `only`, `notonly`, `noteven`, `if`."""
    quantities: tuple[Quantity, ...]
    dates: tuple[frozenset[Day], ...]
    names: frozenset[str]
    parties: tuple[str, ...]
    """The parties that the text names, in order."""
    agent: str
    """The party that acts; empty if the rules find none."""

    @property
    def terms(self) -> frozenset[str]:
        """The content words of the text, whether they are affirmed or denied; figures are left out."""
        return frozenset(word.term for word in self.words if not word.term.startswith(FIGURE))

    @property
    def heads(self) -> frozenset[str]:
        """The words to which a denial applies directly, each in its canonical form.

        They are the first word after a denial ("may not assign": `assign`), and words that are negative themselves
        ("unlimited": `cap`, the canonical form of "limited").
        """
        return frozenset(word.term for word in self.words if word.head)

    def list_signs(self) -> dict[str, int]:
        """Return the sign of each content word: 1 if the text affirms the word, -1 if it denies it, 0 if unclear.

        A word that occurs with different signs is left out.
        """
        found: dict[str, set[int]] = {}
        for word in self.words:
            found.setdefault(word.term, set()).add(word.sign)
        return {term: signs.pop() for term, signs in found.items() if len(signs) == 1}


@lru_cache(maxsize=2048)  # an expected answer is compared with every answer to its question
def read_meaning(text: str) -> Meaning:
    """Return the meaning of a text, as values that rules can compare with those of another text.

    The values are an initial yes or no, the words with their polarity, modal verbs, figures, dates, names and
    parties.
    """
    typed = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    lead = _LEAD.match(typed)
    statement = typed[lead.end() :].lstrip(" ,.;:!–—") if lead else typed
    stated = find_quantities(statement)
    plain = re.sub(r"[-‐‑]", " ", stated.plain)
    for pattern, words in _PHRASES:
        plain = pattern.sub(words, plain)
    found = _TOKEN.findall(plain)
    words_read = tuple(_sign_words(found))
    return Meaning(
        "" if lead is None else "yes" if lead[1].lower() in _YES else "no",
        tuple(token for token in found if token not in _BREAKS),
        words_read,
        frozenset(found) & _MODALS,
        frozenset(found) & _MARKS,
        stated.quantities,
        stated.dates,
        frozenset(find_canonical(name)[0] for name in map(str.lower, _NAME.findall(typed)) if carries_meaning(name)),
        tuple(word.term for word in words_read if is_party(word.term)),
        _find_agent(found, plain),
    )


def _sign_words(tokens: list[str]) -> list[MeaningWord]:
    """Return the content words and figures, each with a sign: 1 for affirmed, -1 for denied, 0 for unclear.

    A word such as `not` denies the words after it, usually until a preposition or the end of the clause.
    """
    words: list[MeaningWord] = []
    known = {stem(token) for token in tokens}
    scope = _Scope()
    for number, token in enumerate(tokens):
        following = tokens[number + 1] if number + 1 < len(tokens) else ""
        scope.enter(token, following)
        if token in DENIALS:
            # the polarity of the words before the denial is unclear
            if scope.sign == 1 and token not in ("non", "without"):
                words = [word._replace(sign=0) if word.segment == scope.segment else word for word in words]
            scope.deny(token)
        elif token[0].isdigit():
            words.append(MeaningWord(f"{FIGURE}{token}", 0, scope.segment))
        elif token[0].isalpha() and token not in _MODALS | _MARKS and carries_meaning(token):
            if _belongs_to_figure(tokens, number):
                continue
            term, own = sign_word(token, known)
            head = own < 0 or (scope.sign < 0 and not scope.seen)
            words.append(MeaningWord(term, own * scope.sign if not scope.open else 0, scope.segment, head))
            scope.pass_word()
    return words


def _belongs_to_figure(tokens: list[str], number: int) -> bool:
    """Return whether the token at index `number` belongs to a figure.

    Such tokens are units (`days`), currencies and `percent`, and words for a bound, such as `least` in `at
    least 5`.
    """
    token = tokens[number]
    before = [one for one in tokens[max(0, number - 2) : number] if one not in KINDS]
    if token.removesuffix("s") in UNITS and before and before[-1][0].isdigit():
        return True
    return token in SIGNS or (token in _BOUNDING and any(one[0].isdigit() for one in tokens[number + 1 : number + 4]))


class _Scope:
    """The state while a text is read word by word: whether the next word is denied, and its segment.

    `sign` is -1 if the next word is denied, as after `not`, and 1 otherwise. `segment` is the number of the
    next word's segment. Segments are the parts of a text between punctuation marks and conjunctions.
    """

    def __init__(self) -> None:
        self.sign, self.seen, self.segment = 1, 0, 0
        self.open = self._exception = self._wide = self._short = self._joined = self._once = False

    def enter(self, token: str, following: str) -> None:
        """Update the scope of a negation with the next token; `following` is the token after it.

        The scope of a word such as "not" ends where a new clause begins, as at ";" or "but". It also ends at an
        auxiliary verb, such as "is" or "shall", that comes after the negated words.
        """
        comma = token == "," and (following in _OPENERS or self._short)
        if token in (".", ";", ":") or comma or token in _CLAUSE:
            self.sign, self.seen, self._wide, self._short = 1, 0, False, False
            self._exception = self.open = token in ("except", "otherwise")
        elif token in _AUXILIARY and self.seen and not self._wide:
            self.sign, self.seen, self.open = (
                (1, 0, self._exception) if self.sign < 0 else (self.sign, self.seen, self.open)
            )
        elif token in _PREPOSITIONS and self.seen and self.sign < 0 and not self._wide:
            self.open = True
        if token in _BREAKS or token in ("and", "or", "but"):
            self.segment += 1
            self._joined = True

    def pass_word(self) -> None:
        """Count a word as read, and end the effect of "non-", which denies only one word."""
        self.seen += 1
        if self._once:
            self.sign, self._once = -self.sign, False

    def deny(self, token: str) -> None:
        """Process a word of denial, such as `not`: the words that follow get the opposite sign.

        A second denial in the same statement, such as `nor` after `neither`, does not reverse the sign again.
        """
        again = token == "nor" or (self._joined and self.seen)  # a second denial in "does not know and could not know"
        if not (again and self.sign < 0):
            self.sign, self.seen, self.open, self._joined = -self.sign, 0, self._exception, False
            self._wide, self._short, self._once = token in WIDE_DENIALS, token == "without", token == "non"


def _find_agent(tokens: list[str], plain: str) -> str:
    """Return the acting party: the party after "by" or, with the verb "receive", after "from"; else the subject."""
    named = [find_canonical(token)[0] for token in tokens]
    for match in _TO_AGENT.finditer(plain):
        term = next((one for word in match.groups() if word and is_party(one := find_canonical(word)[0])), "")
        passive = match[0].startswith(("by", "vest")) or (match[0].startswith("from") and _INVERSE & set(named))
        lies = match[0].startswith(("with", "on", "for")) and re.search(
            r"\b(?:lies|falls|is|are|matter|rests) $", plain[: match.start()]
        )
        if (passive or lies) and is_party(term):
            return term
    return _find_subject(tokens, named)


def _find_subject(tokens: list[str], named: list[str]) -> str:
    """Return the party that is the subject of the first clause, such as `tenant`; empty if there is none.

    `tokens` are the words of the text, and `named` are the same words with each synonym replaced by one word.
    """
    inside = seen = False
    for number, term in enumerate(named):
        if seen and tokens[number] in (".", ";"):
            break  # the first clause names a party that does not act
        ends = tokens[number] in (".", ";") or (
            tokens[number] == "," and tokens[number + 1 : number + 2] not in (["or"], ["and"])
        )
        inside = (inside or tokens[number] in _CLAUSE | _RELATIVE) and not ends
        before = [token for token in tokens[max(0, number - 2) : number] if token not in _ARTICLES]
        owned = tokens[number].endswith("'s") or (before and before[-1] in _PREPOSITIONS | {"of"})
        if number > _SUBJECT or tokens[number][0].isdigit():
            break
        if is_party(term) and not owned and not inside:
            return term
        seen = seen or is_party(term)
    return ""
