"""Compares names and headings without regard to case, punctuation, numbering style and misspellings."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from string import capwords

from exhibit.evidence.fold import edit_distance
from exhibit.law.citations import BRACKETED
from exhibit.law.names import keep_letters, normalise_name

_SPACES = re.compile(r"\s+")
_CUT = re.compile(r"(?<!\s)\s*+(?:…|(?<!\.)\.{3,}+)\s*$")
_SMALL = frozenset("a an and at by for from in of on or the to with etc".split())
_KINDS = {"annexe": "annex", "chapter": "", "section": "", "rule": "", "rules": "", "r": "", "rr": "", "s": "",
          "para": "", "paras": "", "paragraph": "", "paragraphs": "", "sub-section": "",
          "subsection": ""}  # fmt: skip
"""Words before a number that may be left out or exchanged: `5.9` equals `Section 5.9`; an annex or a Part is no
chapter.
"""
_WORDED = re.compile(
    r"(part|chapter|sub-?section|section|annexe?|appendix|schedule|rules?|rr?|paras?|paragraphs?|s)\b\.?\s*"
    r"([A-Z]\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*|\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*|[A-Z]|[IVX]+)(?![A-Za-z0-9])"
    r"\s*(?:\([^)]{1,6}\)\s*)*[.:–—-]*\s*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"([A-Z](?:\.(?=\s)|\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*(?![A-Za-z0-9])))[.:]?(?:\([^)]{1,6}\))*\s*")
_NUMBER = re.compile(
    r"(\d{1,3}[A-Za-z]{0,2}(?:\.\d+[A-Z]?)*)(?:\.(?=[A-Z])|(?:[.:]|(?:\([^)]{1,6}\))+)?(?=\s|$))\s*[–—-]?\s*"
)


@dataclass(frozen=True)
class Name:
    """The parts of a heading: `Appendix B: Specimen Directions` has the kind `appendix`, the number `B` and a title."""

    kind: str
    number: str  # in upper case, without the dot between a letter and a digit: `K.1` and `K1` are equal
    title: str
    text: str = ""  # the whole heading as it is written
    cut: bool = False  # whether the heading ends with an ellipsis

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The content words of the title; all words if it has no content words."""
        words = tuple(normalise_name(self.title).split())
        return tuple(word for word in words if word not in _SMALL) or words

    @cached_property
    def stems(self) -> frozenset[str]:
        """The first three letters of each content word; a misspelt name usually still has some of them."""
        return frozenset(word[:3] for word in self.words)


@cache
def read_name(text: str, *, loose: bool = True) -> Name:
    """Return a heading's kind, number and title."""
    cut = bool(_CUT.search(text))
    text = _SPACES.sub(" ", _CUT.sub("", text)).strip()
    kind = number = ""
    if (match := _WORDED.match(text)) and (loose or _labels_heading(match, text)):
        word = match.group(1).lower()
        kind, number = _KINDS.get(word, word), match.group(2)
    else:
        match = _LETTER.match(text) or _NUMBER.match(text)
        if match and (loose or "." in match.group() or not match.group()[0].isdigit()):
            number = match.group(1)
    title = text[match.end() :] if match and number else text
    number = re.sub(r"^([A-Z])\.(?=\d)", r"\1", number.upper().rstrip("."))
    return Name(kind, number, title.strip(" .:;,–—-"), text, cut)


def _labels_heading(match: re.Match[str], text: str) -> bool:
    """Return whether a word and number such as `Part 20` label a heading; in `Part 20 claims` they are only words."""
    word, rest = match.group(1).lower(), text[match.end() :]
    if word not in {"part", "chapter", "section", "annex", "annexe", "appendix", "schedule"}:
        return False
    marked = not rest or match.group().rstrip()[-1] in ".:–—-"
    return marked or (word != "part" and not rest[0].islower() and rest[0] != ")")


def compare_names(cited: Name, heading: Name) -> float:
    """Return the similarity of a cited name and a heading, from 0 to 1; 0 if their numbers or words conflict."""
    if keep_letters(cited.text) == keep_letters(heading.text):
        return 1.0
    agreed = bool(cited.number and heading.number)
    if agreed and (cited.number != heading.number or cited.kind != heading.kind):
        return 0.0
    if cited.number and not heading.number:
        return 0.0
    if not cited.title:
        return 1.0 if agreed else 0.0
    if not heading.title:
        return 0.0
    return _compare_titles(cited, heading, agreed)


def _compare_titles(cited: Name, heading: Name, agreed: bool) -> float:
    one, other = keep_letters(cited.title), keep_letters(heading.title)
    if one == other:
        return 1.0 if one else 0.0
    if cited.cut and len(one) >= 4 and other.startswith(one):
        return 0.97
    if set(re.findall(r"\d+", cited.title)) - set(re.findall(r"\d+", heading.title)):
        return 0.0  # "Part 8 claims" is not a misspelling of "Part 20 claims"
    mine, theirs = cited.words, heading.words
    missing, extra = _find_unmatched(mine, theirs), _find_unmatched(theirs, mine)
    if not missing and not extra:
        return 0.97
    if missing and (extra or cited.cut):
        return 0.0
    short, long = (mine, theirs) if extra else (theirs, mine)
    share = len(short) / len(long)
    begins = all(_is_same(a, b) for a, b in zip(short, long, strict=False))
    least, fewest = (0.3, 1) if agreed else (0.6, 3)
    return 0.8 + 0.15 * share if begins and share >= least and len(short) >= fewest else 0.0


def _find_unmatched(words: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in others and not any(_is_same(word, other) for other in others)]


@cache
def _is_same(one: str, other: str) -> bool:
    """Return whether two words are equal apart from a misspelling."""
    if one == other:
        return True
    short, long = sorted((len(one), len(other)))
    if short < 5 or long - short > 2 or one.isdigit() or other.isdigit():
        return False
    # a misspelling is in one place: the word still begins or ends correctly
    if one[:3] != other[:3] and one[-3:] != other[-3:]:
        return False
    return edit_distance(one, other) <= (1 if short < 8 else 2)


# ---------------------------------------------------------------- citations in square brackets


# brackets such as `[1]`, `[1, 2]` and the year of `[2024] EWCA Civ 123`, which cite no document by name
_NUMBERS = re.compile(r"[\d\s,;–-]+")
_PAGES = re.compile(r"(?<!\s)\s*+(?:[,;]\s*+)?\(?\b(?:pp?\.|pages?)\s*(\d[\d\s,–-]*+)\)?\s*$", re.IGNORECASE)
_LONGEST = 500  # most characters of a citation: the longest in the real question file has 117
_DIGITS = 10  # most digits of a page number; Python refuses to parse 5,000
_LAW = re.compile(
    r"\b(?:part|practice direction|pd|cpr|rules?|guide|annexe?|appendix|section|chapter|schedule|act|protocol|"
    r"regulations?|order \d+)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"(?:[.!?:;][\"'”’)]*|\])\s*$")
_FOLLOWED = re.compile(r"\s*(?:$|[.;:,)\[]|\n)")
# the words with which a form asks for an entry, or an editor changes a quotation
_FILLED = re.compile(
    r"(?:insert|name|date|address|time|number|amount|sum|sic|emphasis|omitted|redacted|party|parties|the|and|or|a|an|"
    r"his|her|its|their|if|state|set out|specify|delete|claimant|defendant|applicant|respondent|judge|master|month|year"
    r"|day|court|deliberately|intentionally|n|x+|y+)\b[^a-z]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class RuleCitation:
    """A citation: `[Document#page=Section]`, `[Document]`, or the heading of a section with its page."""

    text: str
    document: str
    section: str = ""
    page: str = ""

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page that the citation gives."""
        numbers = [int(number) for number in re.findall(r"\d+", self.page) if len(number) < _DIGITS]
        return (numbers[0], max(numbers[-1], numbers[0])) if numbers else None


def find_citations(truth: str) -> list[RuleCitation]:
    """Return the distinct citations in the brackets of an answer; brackets that an editor added are skipped."""
    by_name: dict[str, RuleCitation] = {}
    for match in BRACKETED.finditer(truth):
        text = _SPACES.sub(" ", match.group(1)).strip()
        if (
            0 < len(text) <= _LONGEST
            and not _NUMBERS.fullmatch(text)
            and not _is_editorial(text, truth[: match.start()], truth[match.end() :])
        ):
            by_name.setdefault(normalise_name(text), read_citation(text))
    return list(by_name.values())


def read_citation(text: str) -> RuleCitation:
    """Split a citation into the name of its document or heading, its section, and its pages."""
    document, _, section = text.partition("#page=")
    page = ""
    if re.fullmatch(r"[\d\s,–-]+", section.strip()):
        section, page = "", section.strip()
    for part in (document, section):
        pages = _PAGES.search(part)
        if pages:
            page = pages.group(1).strip(" ,–-")
    return RuleCitation(text, _PAGES.sub("", document).strip(), _PAGES.sub("", section).strip(), page)


def _is_editorial(text: str, before: str, after: str) -> bool:
    """Return whether a bracket is an editor's change to a quotation or a blank to fill in, and not a citation."""
    if not re.search(r"[A-Za-z]{2}", text):
        return True
    if "#page=" in text or _PAGES.search(text) or read_name(text).number or (_LAW.search(text) and not text.islower()):
        return False
    at_end = bool(_FOLLOWED.match(after)) and bool(_ENDED.search(before) or not after.strip())
    if _has_open_quote(before):
        return True
    words = text.split()
    titled = text[0].isupper() and (len(words) > 2 or (len(words) == 2 and words[1][0].isupper()))
    if _FILLED.match(text) and not (at_end and titled):
        return True
    # a citation is after a sentence or at its end; inside a sentence, lower-case and single words are an editor's
    return not at_end and (text[0].islower() or (" " not in text and not _FOLLOWED.match(after)))


def _has_open_quote(before: str) -> bool:
    """Return whether the last paragraph of a text has an open quotation mark."""
    paragraph = before.rpartition("\n")[2]
    return paragraph.count("“") > paragraph.count("”") or paragraph.count('"') % 2 == 1


# words that do not distinguish courts
_NEUTRAL = frozenset(
    "the a of and for in to at court courts division divisions list guide guides business property england wales high "
    "justice royal tribunals tribunal judiciary chamber cpr pd civil procedure rules practice direction directions "
    "part uk source according under from by see per that this".split()
)
# the length limit prevents reading a text without spaces from each of its letters
_COURT_WORD = r"(?:[A-Z][\w'’.-]{0,40}|and|of|&)"
_GUIDE = re.compile(rf"({_COURT_WORD}(?: {_COURT_WORD}){{0,9}}?) Guide\b")
# a court's name ends at its first noun: `Chancery Division Patents Court` names two courts
_COURT = re.compile(rf"({_COURT_WORD}(?: {_COURT_WORD}){{0,9}}? (?:Courts?|Division|Chamber|Bench|Tribunal))\b")
# a court's name begins after the last of these words: `Courts and Tribunals Judiciary The Commercial Court`
_BEFORE_NAME = re.compile(r"\b(?i:the|a|an|in|at|to|by|from|for|with|under|before)\b|\b[A-Z]{2}\b")
_SYNONYMS = {"queens": "kings", "patent": "patents"}


def find_courts(text: str, *, guides_only: bool = False, any_case: bool = False) -> dict[str, str]:
    """Return the courts that a text names, as `{distinguishing words: name in the text}`."""
    flat = " ".join(re.sub(r"[-_]+", " ", text).split())
    if any_case or flat.islower() or flat.isupper():
        flat = capwords(flat)
    matches = [match for pattern in (_GUIDE, _COURT)[: 1 if guides_only else 2] for match in pattern.finditer(flat)]
    named = {
        _find_telling(match[1]): match[0] for match in matches if not match[1].lower().endswith((" of", " and", " &"))
    }
    return {court: words for court, words in named.items() if court}


def guide_courts(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the courts in the names of a guide, each with its possible initials in lower case."""
    courts: dict[str, set[str]] = {}
    for name in names:
        for court, words in find_courts(name, guides_only=True).items():
            courts.setdefault(court, set()).update(_make_initials(words.removesuffix(" Guide")))
    return courts


def names_court(text: str, courts: Mapping[str, Collection[str]]) -> bool:
    """Return whether a text names one of these courts, in full or by its initials."""
    short = {initials.upper() for known in courts.values() for initials in known}
    named = {_find_telling(text), *find_courts(text), *find_courts(text, any_case=True)}
    return not named.isdisjoint(courts) or not short.isdisjoint(re.findall(r"\b[A-Z]{2,}\b", text))


def find_strange_courts(text: str, known: Mapping[str, Collection[str]], *, guides_only: bool) -> list[str]:
    """Return the names of courts in a text that `known` does not contain."""
    return [words for words in find_courts(text, guides_only=guides_only).values() if not names_court(words, known)]


def _find_telling(name: str) -> str:
    own = _BEFORE_NAME.split(name)[-1]
    words = (_SYNONYMS.get(word, word) for word in normalise_name(own).split())
    return " ".join(word for word in words if word not in _NEUTRAL and not word[0].isdigit())


def _make_initials(name: str) -> set[str]:
    """Return a court's initials: `tcc` for the Technology and Construction Court, `kb` and `kbd` for the King's
    Bench.
    """
    own = _BEFORE_NAME.split(name)[-1]
    short = "".join(word[0] for word in normalise_name(own).split() if word not in {"and", "of"})
    if len(short) < 2 or own.endswith(" Court"):
        return {short} if len(short) > 1 else set()
    return {short, short[:-1]} - {short[:1]} if own.endswith(" Division") else {short, f"{short}d"}
