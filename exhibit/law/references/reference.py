"""Legal references in normal form, and the score of a reference compared with the expected reference."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from exhibit.evidence import Span
from exhibit.evidence.document import unite_spans
from exhibit.law.values import MONTH

Kind = Literal["rule", "direction", "statute", "guide", "case"]
Path = tuple[str, ...]

COARSER = 0.5  # the credit for Part 3 if rule 3.4 is expected: it is correct, but the reader has to search

_AFTER_A = (
    r"and|or|but|to|of|in|on|for|by|is|are|was|were|be|as|at|if|when|where|which|that|unless|without|with|"
    r"shall|must|may|"
    r"should|need|does|do|has|have|makes?|made|sets?|contains?|provides?|requires?|appl(?:y|ies|ied)|deals?|refers?|"
    r"allows?|includes?|gives?|came|supplement\w*|para\w*|section"
)
# the rules are exported as "rule 73.10 A(3)" and "Practice Direction 5 A sets out"; but "rule 3.4 A party may" is 3.4
_SPACED = rf"[ \xa0](?:[B-HJ-Z]|A[A-D]|Z[A-G]|[AI](?!\s+(?!(?:{_AFTER_A})\b)[a-z]))\d?(?![\w'’]|\s+\d{{4}}\b)"
_LETTERS = rf"(?:[A-Z]{{1,3}}\d?(?![A-Za-z])|{_SPACED})"
_BRACKET = r"\((?:\d{1,3}[ ]?[A-Z]{0,2}|[a-z]{1,5}|[A-Z])\)"
_ITEM = re.compile(
    rf"(?P<lead>\d{{1,3}}{_LETTERS}?)(?P<dots>(?:\.\d{{1,3}}{_LETTERS}?)*)"
    rf"(?P<brackets>(?:[ ]?\(\d{{1,2}}[A-Z]{{0,2}}\))?(?:{_BRACKET})*)(?!\d|\.\d|,\d{{3}}\b)"
)
# Numbers in court guides: `O.5.1`, `J1.1`, `K`.
_LETTERED = re.compile(
    rf"(?P<lead>[A-Z])(?P<dots>(?:\.?\d{{1,3}}[A-Z]?(?:\.\d{{1,3}}[A-Z]?)*)?)(?P<brackets>(?:{_BRACKET})*)(?![\w'’])"
)
_MORE = re.compile(rf"(?:{_BRACKET})+(?!\w)")
_SPACE = r"[^\S\n]*+(?:\n[^\S\n]*+)?"
_SEPARATOR = re.compile(
    rf"{_SPACE}(?:,{_SPACE}(?:(?:and|or)\b)?|/|&|(?:and/or|and|or)\b|(?P<range>(?:to|through)\b|[-–—])){_SPACE}"
)
_MEASURE = re.compile(
    r"\s*(?:%|per\s?cent|(?:clear\s+|working\s+|business\s+|calendar\s+)?(?:days?|weeks?|months?|years?|"
    r"hours?|minutes?)\b"
    rf"|pages?\b|a\.?m\b|p\.?m\b|million\b|thousand\b|{MONTH}\b)"
)
_OF_THE = re.compile(r"\s+(?:of|to)\s+the\b")
_ROMAN = re.compile(r"[IVX]{1,6}[A-Z]?\b")
# An instrument's name, and its year if it has one.
_DATED = re.compile(r"(?s)(.*?) ?(\d{4})?")
# Words that initials leave out.
_SMALL = frozenset("of and the for in to on by with etc".split())
_NOWHERE = Span(0, 0)  # the span of a reference that was not read from a text
_MAX_RANGE_NUMBERS = 60  # most numbers of a range; only the ends of a longer range count


@dataclass(frozen=True)
class Reference:
    kind: Kind
    source: str  # `CPR`; `53B`; `limitation act 1980`; `eu directive 1995/46`; `commercial court`; `EWHC (Ch)`; `UKEAT`
    path: Path  # `("3", "4", "2", "a")` for rule 3.4(2)(a); year and number for a case; empty for an Act as a whole
    span: Span = field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        """Return the reference in its normal form: `CPR 3.4(2)(a)`, `PD 53B 2.1`."""
        if self.kind == "case":
            first, second = self.path[:2]
            if self.source.startswith("UKEAT"):
                return f"{self.source}/{first}/{second}"
            if self.source in ("EA", "CJEU"):
                return f"EA-{first}-{second}" if self.source == "EA" else f"{first}-{second}"
            court, _, division = self.source.partition(" (")
            if not division or court == "SAC":
                return f"[{first}] {self.source} {second}"
            return f"[{first}] {court} {second} ({division}"
        if self.kind == "rule":
            rule = ".".join(self.path[:2]) + "".join(f"({part})" for part in self.path[2:])
            return f"CPR {rule}" if len(self.path) > 1 else f"CPR Part {rule}"
        name = f"PD {self.source}" if self.kind == "direction" else self.source
        return " ".join([name or "unnamed", ".".join(self.path)]).strip()


def credit(expected: Reference, given: Reference) -> float:
    if expected.kind != given.kind or not is_same_source(expected.kind, expected.source, given.source):
        return 0.0
    if expected.kind == "case":
        return float(expected.path == given.path)
    if given.path[: len(expected.path)] == expected.path:
        return 1.0
    return COARSER if expected.path[: len(given.path)] == given.path else 0.0


@cache
def is_same_source(kind: Kind, first: str, second: str) -> bool:
    """Return whether two names may mean the same source: `act 1996` is short for `arbitration act 1996`."""
    if first == second or (kind == "guide" and not (first and second)):
        return True
    (name, year), (name2, year2) = (_DATED.fullmatch(each).groups("") for each in (first, second))  # type: ignore[union-attr]
    if kind != "statute" or (year and year2 and year != year2):
        return False
    short, long = sorted((name, name2), key=len)
    words = re.sub(r"\([^()]*\)", " ", long).split()
    initials = "".join(word[0] for word in words if word not in _SMALL)  # `sca` for `senior courts act`
    return short in (long, initials) or long.endswith(f" {short}")


class Named(NamedTuple):
    start: int
    end: int
    name: str  # lower case, year last: `limitation act 1980`


class Mention(NamedTuple):
    span: Span
    references: tuple[Reference, ...]


def make_mention(kind: Kind, source: str, paths: Iterable[Path], start: int, end: int) -> Mention:
    span = Span(start, end)
    return Mention(span, tuple(Reference(kind, source, path, span) for path in paths))


def blank_spans(text: str, spans: Sequence[Span]) -> str:
    """Return the text with NUL characters in place of the given spans; its length does not change."""
    parts, end = [], 0
    for span in unite_spans(spans):
        parts += [text[end : span.start], "\0" * (span.end - span.start)]
        end = span.end
    return "".join([*parts, text[end:]])


class Numbers(NamedTuple):
    paths: tuple[Path, ...]
    end: int


class NumberedUnit(NamedTuple):
    """A cited unit: its word, such as `section`, and the numbers after the word."""

    start: int
    number: int  # the position of the first number
    end: int
    unit: str
    paths: tuple[Path, ...]


def read_units(
    text: str, pattern: re.Pattern[str], *, roman: Sequence[str] = (), lettered: bool = False
) -> Iterator[NumberedUnit]:
    """Yield each unit that a text cites, such as `section 5`."""
    for match in pattern.finditer(text):
        unit = match["unit"].strip().rstrip(".").lower()
        kind = next((kind for kind in ("annex", "appendix", "recital") if unit.startswith(kind[:6])), "")
        capitals = _ROMAN.match(text, match.end()) if roman else None
        at = match.end() + (text[match.end() : match.end() + 1] == "(")  # also read "Annex (A)"
        numbers: Numbers | None
        if capitals is not None:
            numbers = Numbers(((capitals.group(),),), capitals.end()) if unit.startswith(tuple(roman)) else None
        else:
            plural = unit == "§§" or (unit.endswith("s") and unit != "s")
            numbers = read_numbers(text, at, plural=plural, lettered=lettered or kind.startswith("a"))
        if numbers:
            paths = tuple((f"{kind} {path[0]}", *path[1:]) for path in numbers.paths) if kind else numbers.paths
            yield NumberedUnit(match.start(), at, numbers.end + (at > match.end()), unit, paths)


def read_numbers(text: str, at: int, *, plural: bool, single: bool = False, lettered: bool = False) -> Numbers | None:
    """Return the list of provision numbers that begins at a position, such as `3.4, 3.5` after `rules`."""
    first = _match_item(text, at, lettered=lettered)
    if first is None or _MEASURE.match(text, first.end()):
        return None
    pointed = bool(first["dots"])
    paths = [_make_path(first)]
    end = first.end()
    while not single and (separator := _SEPARATOR.match(text, end)):
        item_match = _MORE.match(text, separator.end())
        if item_match:
            path = _replace_last(paths[-1], item_match.group(), first["dots"])
        else:
            item = _match_item(text, separator.end(), lettered=lettered)
            if item is None or _MEASURE.match(text, item.end()) or (pointed and not item["dots"]):
                break
            if not (plural or pointed or _OF_THE.match(text, item.end())):
                break  # stop at "Part 36 and 14 days", but not at "section 215 or 217 of the Act"
            item_match, path = item, _make_path(item)
        if path is None:
            break
        if separator["range"] and (item_match.re is not _MORE or plural or pointed):
            paths += _list_between(paths[-1], path)
        paths.append(path)
        end = item_match.end()
    return Numbers(tuple(dict.fromkeys(paths)), end)


def _match_item(text: str, at: int, *, lettered: bool) -> re.Match[str] | None:
    return _ITEM.match(text, at) or (_LETTERED.match(text, at) if lettered else None)


def _make_path(item: re.Match[str]) -> Path:
    parts = [item["lead"], *item["dots"].split("."), *_read_brackets(item["brackets"])]
    return tuple(re.sub(r"\s", "", part) for part in parts if part)


def _read_brackets(brackets: str) -> list[str]:
    return [part.replace(" ", "") for part in re.findall(r"\(([^()]+)\)", brackets)]


def _replace_last(path: Path, brackets: str, dots: str) -> Path | None:
    """Return the path of a reference in brackets that follows another reference: `(b)` after 3.4(2)(a) is 3.4(2)(b)."""
    new = _read_brackets(brackets)
    fixed = 1 + len([dot for dot in dots.split(".") if dot])
    for place in range(len(path) - 1, fixed - 1, -1):
        if path[place][0].isdigit() == new[0][0].isdigit():
            return (*path[:place], *new)
    return None


def _list_between(low: Path, high: Path) -> list[Path]:
    """Return the references between the two ends of a range: 3.5 and 3.6 for the range from 3.4 to 3.7."""
    if low[:-1] != high[:-1] or not (low[-1].isdigit() and high[-1].isdigit()):
        return []
    numbers = range(int(low[-1]) + 1, int(high[-1]))
    return [(*low[:-1], str(number)) for number in numbers] if len(numbers) < _MAX_RANGE_NUMBERS else []
