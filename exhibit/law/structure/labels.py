"""Reads the labels of headings (ARTICLE IV, Section 2.01, 1.1, (a)), and recognises titles by their words."""

import re
from dataclasses import dataclass

from exhibit.law.language import LegalSystem, Level, choose_system
from exhibit.law.names import ends_in_form
from exhibit.law.structure.lines import Line, is_entry

SMALL = frozenset("a an and as at by for from in into of on or per the to under upon with without".split())
_RUN_IN = re.compile(r"([^.:;–—]{2,90}?)(?:[.:](?=\s|[A-Z“]|$)|\s[–—-]\s|[.]?[–—])")
_LONG_WORD = re.compile(r"[^\W\d_]{4}")
_TITLE_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NO_HEADING = re.compile(
    r"(?i)(?:and|between|among|by|by and (?:between|among)|dated\b.*|to|name|title|date|its|confidential\b.*|"
    r"execution (?:copy|version).*|page\b.*|\[.*|<.*|source\b.*|(?:section|recitals|preamble|annex)\b.*|"
    r"[a-z]{1,4}-\d+|.*\bintentionally (?:left )?(?:blank|omitted)|.*_{3}.*|.*\[\*+\].*|\W*)\W*"
)
# Sentences begin with these words; a title that begins with one is entirely in title case.
_STARTS = re.compile(r"(?i)(?:this|the|each|any|no|if|all|a|an|in|for|where|when|it|you|we|such|these|subject)\b")
_VERBS = re.compile(r"\b(?:shall|means?|is|are|will|may|must|has|have|agrees?|includes?|was|were|been|would)\b")
_NUMBER = re.compile(
    r"(?P<number>\d{1,3}(?:[A-Z]{0,2}\.\d{1,3}){1,4}(?:[A-Z](?![A-Za-z]))?|[A-Z](?:\.\d{1,3}){1,4}|"
    r"\d{1,3}[A-Z]{0,2}(?=[.)—\s]))(?P<mark>\.\)|[.)]|—)?(?=[\s“\"‘'A-Z(\[]|$)[ \xa0]*"
)
_BRACKET = re.compile(r"\((?P<number>[a-z]{1,2}|[ivxl]{1,6}|[A-Z]{1,2}|[IVX]{1,5}|\d{1,3})\)[ \xa0]*")
_LETTER = re.compile(r"(?P<number>[A-Z]|[a-z]|[ivx]{1,5}|[IVX]{1,5})[.)](?=[\s“\"A-Z(]|$)[ \xa0]*")
_GOES_ON = re.compile(r"(?:above|below|hereof|of (?:this|the)|and \(|or \(|[,;)])")
_PAGE = re.compile(r"(?i)page\s+\d")
_ROMAN_PART = re.compile(r"([IVXLC]{1,6}[a-z]?\.)[ \xa0]*(?:[-–—][ \xa0]*)?")
_ROMAN_ITEM = re.compile(r"([IVXLC]{1,7})[ \xa0]*[-–—][ \xa0]*")
_ROMAN = re.compile(r"(?=.)(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_MAX_TITLE_CHARS = 150  # characters: a longer text is a sentence


def is_title(text: str) -> bool:
    opens, ends = text[:1].isupper() or text[:1] in "“\"'‘", text[-1:] in ".;,"
    return 3 <= len(text) <= 110 and opens and not ends and len(text.split()) <= 16


def is_title_case(text: str) -> bool:
    words = _TITLE_WORD.findall(text)
    capital = all(word[0].isupper() or word in SMALL for word in words)
    return 0 < len(words) <= 9 and capital and words[0][0].isupper()


def is_shout(text: str) -> bool:
    lettered = 2 * sum(map(str.isalpha, text)) > len(text) and _LONG_WORD.search(text) is not None
    if not (lettered and len(text) <= 110 and text.isupper()) or text[-1] in ",;":
        return False
    return not ends_in_form(text) and not heads_nothing(text)


def heads_nothing(text: str) -> bool:
    return _NO_HEADING.fullmatch(text) is not None


def is_prose(title: str) -> bool:
    return len(title) > _MAX_TITLE_CHARS or (len(title.split()) > 6 and _VERBS.search(title.lower()) is not None)


def run_in(rest: str) -> tuple[str, int]:
    match = _RUN_IN.match(rest)
    if match is None:
        return "", 0
    words = _TITLE_WORD.findall(match[1])
    large = [word for word in words if word not in SMALL]
    small = sum(word[0].islower() for word in large)
    most = 0 if _STARTS.match(match[1]) else max(len(large) // 3, 2)
    if not words or len(words) > 12 or not words[0][0].isupper() or small > most or _VERBS.search(match[1]):
        return "", 0
    return match[1].strip(' “”"'), match.end()


_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True)
class Label:
    text: str
    rest: str
    style: str
    value: tuple[int, ...]
    rank: float
    kind: str
    sure: bool = True


def read_label(line: Line, system: LegalSystem | None = None) -> Label | None:
    system = system or choose_system("en")
    if is_entry(line.text):
        return None
    first = line.text[0]
    if first == "(":
        return _bracket(line)
    if first.isdigit():
        return _read_worded(line, system) or _read_number(line, system) if system.units else _read_number(line, system)
    lettered = len(line.text) < 2 or line.text[1] in ".)ivxIVX"
    return (
        _read_worded(line, system)
        or _read_roman_part(line, system)
        or (_read_number(line, system) or _read_letter(line, system) if lettered else None)
    )


def _read_worded(line: Line, system: LegalSystem) -> Label | None:
    match = system.label.match(line.text)
    if match is None:
        return None
    level, rest = system.by_word[match["word"].lower()], line.text[match.end() :]
    number = match["number"] or (match["before"] if system.units else "") or ""
    shouts = match["word"].isupper()
    marked = bool(match["mark"].strip())
    if not number and (not level.alone or rest or not shouts):
        return None
    if rest and not _can_follow(rest, level, system, marked=marked, shouts=shouts):
        return None
    apart = line.fresh or bool(system.units) or (shouts and not line.before.isupper())
    if not apart or (level.rank > 1 and system.goes_on.search(line.before[-16:]) and not line.gap):
        return None
    style, rank, kind = _rank_part(level, match["word"].lower(), number, system)
    return Label(match.group().strip(" \xa0.:-–—"), rest, style, _parse_value(number, system), rank, kind)


def _rank_part(level: Level, word: str, number: str, system: LegalSystem) -> tuple[str, float, str]:
    """Return the style, rank and kind of a heading that begins with a word and a number, such as `Article 2`."""
    if system.units:
        return "unit" if level.unit else word if level.free else level.kind, level.rank, level.kind
    depth = len(_parse_value(number, system))
    if level.rank in {4, 5} and number[:1].isdigit() and (level.rank == 5 or depth > 1):
        return "decimal", 5 + depth, "section"
    return level.kind, level.rank, level.kind


def _read_roman_part(line: Line, system: LegalSystem) -> Label | None:
    """Return the label of a part with a Roman number, as in `II."""
    level = next((level for level in system.levels if level.roman), None)
    if level is None or not line.fresh:
        return None
    match = (_ROMAN_ITEM if level.text else _ROMAN_PART).match(line.text)
    if match is None or not (level.text or is_title(line.text[match.end() :])):
        return None
    number, rest = match[1].rstrip("."), line.text[match.end() :]
    return Label(number, rest, level.kind, _parse_value(match[1], system), level.rank, level.kind, sure=not level.text)


def _can_follow(rest: str, level: Level, system: LegalSystem, *, marked: bool, shouts: bool) -> bool:
    """Return whether the words after a label such as `Section 4` show that the line is a heading."""
    if system.units and (rest[0] == "(" or rest.split()[0] in system.follows):
        # "§ 10 (weggefallen)" is a heading, but "§ 5 Satz 1 gilt" is a reference at the start of a line
        return rest[0] == "("
    if level.text:
        return rest[0] not in ",;)&/"
    if _PAGE.match(rest):
        return False  # "Annex A Page 3" is a page footer in a text without pages
    if rest[0].islower() or rest[0] in ",;)&/" or (rest[0] == "(" and not shouts):
        return False
    return marked or shouts or is_title(rest) or level.rank == 5


def _read_number(line: Line, system: LegalSystem) -> Label | None:
    match = _NUMBER.match(line.text)
    if match is None or (not line.fresh and system.goes_on.search(line.before[-16:])):
        return None
    label, rest, value = match.group().strip(), line.text[match.end() :], _parse_value(match["number"], system)
    starts = not rest or not (rest[0].islower() or rest[0].isdigit() or rest[0] in ",;%)&/=")
    if len(value) > 1:
        apart = (line.fresh and (starts or line.gap)) or (starts and run_in(rest)[0])
        return Label(label, rest, "decimal", value, 5 + len(value), "section", starts and bool(rest)) if apart else None
    marked = bool(match["mark"])
    if system.units:  # a number of a list: the heading of a part of a law has a word before its number
        fits = marked and (line.fresh or line.before.endswith(","))
        return Label(label, rest, "1.", value, 9, "clause", sure=False) if fits else None
    if not (line.gap or (marked and line.fresh)) or not starts or not (marked or rest):
        return None
    titled = bool(run_in(rest)[0]) or is_shout(rest) or (len(rest) <= 60 and is_title_case(rest))
    return Label(label, rest, "1.", value, 6, "section", sure=marked and titled)


def _bracket(line: Line) -> Label | None:
    match = _BRACKET.match(line.text)
    if match is None or not (line.fresh or line.before.endswith(",")):
        return None
    rest = line.text[match.end() :]
    if _GOES_ON.match(rest):
        return None
    number = match["number"]
    style = "(1)" if number.isdigit() else "(a)" if number.islower() else "(A)"
    return Label(match.group().strip(), rest, style, _parse_value(number, letters=True), 9, "clause", sure=False)


def _read_letter(line: Line, system: LegalSystem) -> Label | None:
    match = _LETTER.match(line.text)
    listed = bool(system.units) and line.before.endswith(",")
    if match is None or not (line.fresh or listed):
        return None
    rest, number = line.text[match.end() :], match["number"]
    upper = not number.islower()
    if (upper or not system.units) and rest and not (rest[0].isupper() or rest[0] in '“"(['):
        return None
    style, rank, kind = ("A.", 5.5, "section") if upper else ("a.", 9, "clause")
    return Label(match.group().strip(), rest, style, _parse_value(number, letters=True), rank, kind, sure=False)


def _parse_value(number: str, system: LegalSystem | None = None, *, letters: bool = False) -> tuple[int, ...]:
    """Return the value of a label as integers: `4.2` is (4, 2), and `i` is (1,)."""
    ordinal = system.parse_ordinal(number) if system else None
    if ordinal is not None:
        return (ordinal,)
    parts = []
    for part in re.split(r"[.-]", number.lower()):
        digits = re.match(r"\d+", part)
        if digits:
            parts.append(int(digits[0]))
        elif part and not letters and _ROMAN.fullmatch(part):
            parts.append(parse_roman(part))
        elif part:
            parts.append(ord(part[0]) - 96 + 26 * (len(part) - 1))
    return tuple(parts)


def parse_roman(text: str) -> int:
    if not _ROMAN.fullmatch(text):
        return 0
    values = [_DIGITS[letter] for letter in text]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))


def drop_stray(labels: list[Label | None]) -> None:
    """Replace labels that are only numbers in a PDF's margin with None."""
    at = 0
    while at < len(labels):
        end = at
        while end < len(labels) and (label := labels[end]) is not None and not label.rest and label.rank > 4:
            end += 1
        if end - at >= 3 and not any(label is not None and label.style == "unit" for label in labels[at:end]):
            labels[at:end] = [None] * (end - at)
        at = max(end, at + 1)
