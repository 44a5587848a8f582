"""Normalises the names of rules, guides and files for comparison."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote

from exhibit.law.language import list_word_runs, load_systems, replace_typography, strip_accents

ENDINGS = "pdf|txt|json|html?|md|docx?"  # the extensions of document files, as a part of a regular expression
_ENDING = re.compile(rf"\.(?:{ENDINGS})\s*$", re.IGNORECASE)

_ANY_ENDING = re.compile(r"(?<=.)\.[a-z][a-z0-9]{1,4}$")  # any extension in lower case; `v1.2` has none
_MAX_ENCODINGS = 3  # levels of percent-encoding, for a name in a URL inside another URL

_LETTERED = re.compile(r"\b((?i:part|direction|ymarfer|pd) ?\d+) ([A-Z]{1,2}\d?)\b")
_DROPPED = re.compile(r"['’‘`\u0300-\u036f]")
_APART = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """Return a name in lower case without accents and punctuation, with its abbreviations spelt out."""
    # the rules' own headings print "PRACTICE DIRECTION 34 A" for 34A
    text = unicodedata.normalize("NFKD", _LETTERED.sub(r"\1\2", name)).casefold()
    text = _APART.sub(" ", _DROPPED.sub("", text).replace("&", " and ")).strip()
    text = re.sub(r"\bpd ?(?=\d)", "practice direction ", text)
    return re.sub(r"^(?:the )?(?:cpr )?(?=part \d|practice direction)", "", text)


@lru_cache(maxsize=1 << 16)
def keep_letters(text: str) -> str:
    return _APART.sub("", unicodedata.normalize("NFKD", text.replace("&", "and")).casefold())


def without_ending(name: str) -> str:
    return _ENDING.sub("", name.strip())


def make_file_key(name: str) -> str:
    text = unicodedata.normalize("NFKD", without_ending(name)).casefold()
    key = _APART.sub("", text)
    # a name in another script has no such letters, so compare it unchanged
    return "".join(list_word_runs(text)) if key.isdigit() or not key else key


_PAGED = re.compile(
    r"\[?(?P<name>.{1,255}?)(?:#page=|[,;:]? ?\(?(?:pages?|pp?\.?|Seite|S\.) ?)(?P<page>\d{1,4})"
    r"(?: ?[-–] ?\d{1,4})?[)\]]{0,2}",
    re.IGNORECASE,
)


def split_page(cited: str) -> tuple[str, int | None]:
    """Return a file's name and its cited page, as in `nda.pdf, p. 3` or `[nda.pdf#page=3]`."""
    match = _PAGED.fullmatch(cited.strip())
    return (match["name"].strip(" []"), int(match["page"])) if match else (cited, None)


class FileNames:
    def __init__(self, files: Iterable[str], aliases: Mapping[str, Iterable[str]] | None = None) -> None:
        # the files with each form of a name; the key has the form and its rank
        self._files: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
        for file in files:
            for name in (file, *(aliases or {}).get(file, ())):
                for form in enumerate(_list_spellings(name)):
                    self._files[form][file] = None

    def find(self, name: str) -> str | None:
        meant = self.find_all(name)
        return meant[0] if len(meant) == 1 else None

    def find_all(self, name: str) -> list[str]:
        several: list[str] = []
        for form in enumerate(_list_spellings(name)):
            files = list(self._files.get(form, ())) if form[1] else []
            if len(files) == 1:
                return files
            several = several or files
        return several


def _list_spellings(name: str) -> Iterator[str]:
    """Yield the forms of a file's name for comparison with other names, the strictest first."""
    yield name
    written = unicodedata.normalize("NFC", name).strip()
    yield written
    path, mark, query = re.match(r"([^?#]*)([?#]?)(.*)", written, re.DOTALL).groups()  # type: ignore[union-attr]
    last = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    yield last + mark + query
    for bare in (last + mark + query, last):
        for _ in range(_MAX_ENCODINGS):
            bare = unquote(bare)
        plain_name = unicodedata.normalize("NFC", bare.casefold()).strip()
        yield plain_name
        without = _ANY_ENDING.sub("", plain_name)
        yield without if _ANY_ENDING.search(without) else plain_name  # X.docx.pdf is a print of X.docx
        while _ANY_ENDING.search(without):
            without = _ANY_ENDING.sub("", without)
        yield without.strip()


ABBREVIATED = tuple("Inc Ltd Corp Co".split())
SPELT = tuple("Incorporated Limited Corporation Company".split())
INITIALS = tuple("LLC LLP LP plc".split())
SHORT_INITIALS = tuple("AG BV NA NV SA Ltda".split())
MIXED = tuple("GmbH ApS AB".split())
BESIDE = tuple("Pte Pty SAS SpA".split())
"""Legal forms that do not prove a company: Pte and Pty precede Ltd, SAS is also a name, and a spa is a resort."""
DOTTED = tuple("L.L.C L.P N.A S.A N.V B.V".split())  # the last full stop is optional in every form

STOPPED = frozenset(form.lower() for form in (*ABBREVIATED, *INITIALS, *BESIDE[:2]))
"""Legal forms that end with a full stop, which need not end a sentence."""

_FORMS = (*ABBREVIATED, *SPELT, *INITIALS, *SHORT_INITIALS, *MIXED, *DOTTED)
FORM = rf"(?:{'|'.join(re.escape(form) for word in _FORMS for form in (word, word.upper()))})\b\.?"
"""The pattern for a legal form after a name, to use in a longer, case-sensitive pattern."""

# AG, NA and SA without their dots may be letters of an exhibit or a column: alone they do not end a name
_ENDINGS = (*ABBREVIATED, *SPELT, *INITIALS, "GmbH", *DOTTED)


@cache
def _make_ending_pattern() -> re.Pattern[str]:
    """Return the pattern for a company's legal form at the end of a line, such as `Inc.`."""
    others = (form for system in load_systems() for form in system.data.get("companies", "").split())
    dotted = dict.fromkeys(form.rstrip(".") for form in others if "." in form)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, (*_ENDINGS, *dotted)))})\.?,?$", re.IGNORECASE)


_FOLLOWING = re.compile(
    rf"\W*(?:{'|'.join(map(re.escape, (*ABBREVIATED, *INITIALS, *SHORT_INITIALS, *MIXED, *DOTTED)))})\b", re.IGNORECASE
)  # legal forms that may follow a comma; not those spelt out, because `company` may follow the comma of any sentence

DESCRIBED = re.compile(
    r"(?:,\s*|(?<!\s)\s*)\ban?\s+(?:[\w.]+\s+){1,3}?(?:limited\s+liability\s+|limited\s+|statutory\s+|real\s+estate\s+)?"
    r"(?:corporation|company|partnership|trust|bank|association|entity)\b.*$",
    re.IGNORECASE,
)  # the description of a party after its name, to the end of the line: `, a Delaware corporation`


def ends_in_form(line: str) -> bool:
    return _make_ending_pattern().search(line) is not None


def is_followed_by_form(text: str, at: int) -> bool:
    return _FOLLOWING.match(text, at) is not None


_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FILE_ENDING = re.compile(rf"\.(?:{ENDINGS})\b", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_a-z]")
# after this text, a capital may only mark the start of a sentence
_FRESH = re.compile(rf"[.!?:;•\n\r][\W_]{{0,6}}({_WORD.pattern})")
_NON = re.compile(r"non(?=[a-z]{5})")
_MAX_GAP_CHARS = 2  # most characters between two words of one name: a full stop or a comma, and a space
_FORMAL = frozenset("of and the for in de du e & to a an by".split())  # words that an acronym leaves out


class Word(NamedTuple):
    term: str
    capital: bool
    start: int
    end: int
    parts: tuple[str, ...] = ()  # `ag` and `projects` for `AGProjects`: they are used if the whole word is unknown


def name_words(text: str) -> Iterator[Word]:
    for match in _WORD.finditer(text):
        for word in _list_shapes(match[0]):
            yield word._replace(start=match.start() + word.start, end=match.start() + word.end)


def name_terms(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and possessive endings."""
    return [word.term for written in _WORD.findall(text) for word in _list_shapes(written)]


@lru_cache(maxsize=1 << 13)
def _list_shapes(written: str) -> tuple[Word, ...]:
    """Return a word, or the two parts of a word such as `Nondisclosure`, with offsets."""
    raw = written.replace("’", "'").replace("ʼ", "'")
    raw = raw[:-2] if raw[-2:] in {"'s", "'S"} else raw.replace("'", "")
    mixed = not raw.isupper() and not raw.islower()
    parts = tuple(strip_accents(part).casefold() for part in _CAMEL.split(raw)) if mixed else ()
    term = strip_accents(raw).casefold()
    if _NON.match(term):  # "Nondisclosure" equals "Non-Disclosure"
        upper = raw[0].isupper()
        return Word("non", upper, 0, 3), Word(term[3:], upper, 3, len(written))
    capital = any(map(str.isupper, raw)) or (raw[:1].isdigit() and not raw.isdigit())
    return (Word(term, capital, 0, len(written), parts if len(parts) > 1 else ()),) if term else ()


def count_proper_words(text: str) -> Counter[str]:
    """Return how often each word is written as a name: with a capital, but not at the start of a sentence or line."""
    plain = f"\n{replace_typography(text)}"
    fresh, counts = Counter(_FRESH.findall(plain)), Counter[str]()
    for written, count in Counter(_WORD.findall(plain)).items():
        first, _, suffix = written.partition("'")
        if _CAPITAL.search(first):
            count -= fresh[written]
        else:  # a name with a prefix, such as "d'Or"
            written = suffix
        for term in name_terms(written) if count > 0 and _CAPITAL.search(written) else ():
            counts[term] += count
    return counts


def list_pairs(row: Sequence[Word], *, lower: bool = False) -> Iterator[tuple[Word, Word]]:
    """Yield pairs of neighbouring words in which each word has a capital or is a number, as in `No. 3`."""
    for first, second in pairwise(row):
        named = all(word.capital or word.term.isdigit() for word in (first, second))
        if (named or lower) and second.start - first.end <= _MAX_GAP_CHARS:
            yield first, second


def list_acronyms(name: str) -> set[str]:
    initials = "".join(term[0] for term in name_terms(name) if term not in _FORMAL)
    return {initials[:length] for length in (len(initials), len(initials) - 1) if length >= 2}


def split_filename(filename: str) -> tuple[str, tuple[str, ...]]:
    stem = _FILE_ENDING.sub(" ", unquote(filename).replace("\\", "/").rpartition("/")[2])
    spellings = (form for word in name_words(stem.replace("||", " ")) for form in (word.term, *word.parts))
    return "".join(name_terms(stem)), tuple(dict.fromkeys(spellings))


_CASED_WORD = re.compile(r"[^\W_][\w'’.]*")
_VOWEL = re.compile(r"(?i)[aeiouy]")
# The rest of an annotation at the end of a name: an open bracket, the first letter of the next word.
_CUT_END = re.compile(r"(?:,\s?\w|(?<![\s\"'“”‘’(\[;,:-])[\s\"'“”‘’(\[;,:-]+)$")
_SPACES = re.compile(r"\s+")
_LOWER_CASE_WORDS = frozenset("a an and as at by for from in of on or the to under with".split())
_CAPITALISED = frozenset("ltd mr mrs dr st jr sr".split())
_STAY_CAPITAL = frozenset(form.lower() for form in (*INITIALS, *SHORT_INITIALS, *BESIDE))
_STAY_CAPITAL |= frozenset("dba ii iii iv uk us usa".split())  # numbers and countries, besides legal forms


def tidy(name: str) -> str:
    """Return a name on one line, and in title case if the source writes it in capitals."""
    name = _CUT_END.sub("", _SPACES.sub(" ", name).strip(" ;,"))
    return to_title_case(name) if name.isupper() else name


def to_title_case(text: str) -> str:
    """Return a text in title case; function words become lower case, and initials such as LLC stay unchanged."""

    def write_word(match: re.Match[str]) -> str:
        lower = match.group().lower()
        if lower in _LOWER_CASE_WORDS and match.start():
            return lower
        letters = lower.replace(".", "")
        if letters in _STAY_CAPITAL or "." in lower[:-1] or (len(letters) > 1 and not _VOWEL.search(letters)):
            # LLC, S.p.A., NCC: initials, not words; but Ltd., Corp. and Mr. are words
            return match.group() if letters not in _CAPITALISED else lower[:1].upper() + lower[1:]
        return lower[:1].upper() + lower[1:]

    return _CASED_WORD.sub(write_word, text)


def calm_heading(heading: str) -> str:
    """Return a heading in title case if most of it is in capitals."""
    letters = [character.isupper() for character in heading if character.isalpha()]
    return to_title_case(heading) if 2 * sum(letters) > len(letters) else heading
