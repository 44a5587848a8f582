"""Computes the numbers that Word shows before paragraphs ("4.2", "(a)"), which are not in the text of the file."""

import re
from dataclasses import dataclass, field
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

MAX_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_LARGEST = 10**6  # the largest number of a clause: with a larger one, a file of a few bytes could print without end


@dataclass(frozen=True)
class ListLevel:
    """How one level of a list is numbered."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    restart: int | None = None
    """The level whose next paragraph restarts this level; 0 for never, None for any higher level."""
    legal: bool = False
    """Whether all numbers are written in digits, even those of higher levels with another form."""


@dataclass
class Numbering:
    """The lists of a document and their counters."""

    lists: dict[str, tuple[str, dict[int, ListLevel]]] = field(default_factory=dict)
    """For each numId, the list whose counter it uses, and its levels."""
    starts: dict[str, dict[int, int]] = field(default_factory=dict)
    """For each numId, the levels that restart at its first use."""
    styles: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each paragraph style, its numId and level."""
    _counts: dict[str, list[int | None]] = field(default_factory=dict)

    def label(self, paragraph: Any) -> str:
        """Return a paragraph's number as Word shows it; empty if it has none."""
        number, depth = self.place_of(paragraph)
        if number is None or number not in self.lists:
            return ""
        return self.count(number, depth)

    def count(self, number: str, depth: int) -> str:
        """Advance the counter of a list level, and return the new number; empty if the list has no such level."""
        counter, levels = self.lists.get(number, ("", {}))
        level = levels.get(depth) if depth < MAX_LEVELS else None
        if level is None:
            return ""
        counts = self._counts.setdefault(counter, [None] * MAX_LEVELS)
        for index, start in self.starts.pop(number, {}).items():
            counts[index] = start - 1
        for above in range(depth):
            if counts[above] is None:
                counts[above] = levels.get(above, ListLevel()).start
        current = counts[depth]
        counts[depth] = level.start if current is None else current + 1
        for below in range(depth + 1, MAX_LEVELS):
            restart = levels.get(below, ListLevel()).restart
            if restart is None or (restart and depth < restart):
                counts[below] = None
        return _label(level, levels, counts)

    def place_of(self, paragraph: Any) -> tuple[str | None, int]:
        """Return the list and level of a paragraph: its own, or those of its style."""
        properties = paragraph.find(f"{W}pPr")
        if properties is None:
            return self.styles.get("", (None, 0))
        own = properties.find(f"{W}numPr")
        style = properties.find(f"{W}pStyle")
        inherited = self.styles.get(_read_value(style) if style is not None else "", (None, 0))
        if own is None:
            return inherited
        number = own.find(f"{W}numId")
        depth = own.find(f"{W}ilvl")
        return (
            _read_value(number) if number is not None else inherited[0],
            _read_whole(depth, inherited[1]) if depth is not None else inherited[1] if number is None else 0,
        )


def read_numbering(numbering: Any | None, styles: Any | None) -> Numbering:
    """Return the lists that word/numbering.xml and word/styles.xml define."""
    rules = Numbering()
    if numbering is None:
        return rules
    abstract = {item.get(f"{W}abstractNumId", ""): _read_levels(item) for item in numbering.iterfind(f"{W}abstractNum")}
    for item in numbering.iterfind(f"{W}num"):
        name = item.get(f"{W}numId", "")
        counter = _read_value(item.find(f"{W}abstractNumId"))
        levels = dict(abstract.get(counter, {}))
        for change in item.iterfind(f"{W}lvlOverride"):
            depth = _read_depth(change.get(f"{W}ilvl"))
            if change.find(f"{W}startOverride") is not None:
                rules.starts.setdefault(name, {})[depth] = _read_whole(change.find(f"{W}startOverride"), 1)
            own = change.find(f"{W}lvl")
            if own is not None:
                levels[depth] = _read_level(own)
        rules.lists[name] = counter, levels
    if styles is not None:
        rules.styles = _read_styles(styles)
    return rules


def _read_levels(abstract: Any) -> dict[int, ListLevel]:
    return {_read_depth(item.get(f"{W}ilvl")): _read_level(item) for item in abstract.iterfind(f"{W}lvl")}


def _read_level(item: Any) -> ListLevel:
    restart = item.find(f"{W}lvlRestart")
    return ListLevel(
        start=_read_whole(item.find(f"{W}start"), 1),
        form=_read_value(item.find(f"{W}numFmt")) or "decimal",
        text=_read_value(item.find(f"{W}lvlText")),
        restart=None if restart is None else _read_whole(restart, 0),
        legal=item.find(f"{W}isLgl") is not None,
    )


def _read_styles(styles: Any) -> dict[str, tuple[str, int]]:
    """Return the numId and level of each paragraph style: its own, or those of the style that it is based on."""
    own: dict[str, tuple[str | None, int | None]] = {}
    based: dict[str, str] = {}
    for style in styles.iterfind(f"{W}style"):
        name = style.get(f"{W}styleId", "")
        based[name] = _read_value(style.find(f"{W}basedOn"))
        place = style.find(f"{W}pPr/{W}numPr")
        if place is not None:
            number, depth = place.find(f"{W}numId"), place.find(f"{W}ilvl")
            own[name] = (
                _read_value(number) if number is not None else None,
                _read_whole(depth, 0) if depth is not None else None,
            )
    return {name: place for name in based if (place := _inherit_style(name, own, based)) is not None}


def _inherit_style(
    name: str, own: dict[str, tuple[str | None, int | None]], based: dict[str, str]
) -> tuple[str, int] | None:
    number: str | None = None
    depth: int | None = None
    seen: set[str] = set()
    while name and name not in seen and number is None:
        seen.add(name)
        here = own.get(name, (None, None))
        number, depth = here[0], here[1] if depth is None else depth
        name = based.get(name, "")
    return None if number is None else (number, depth or 0)


def _label(level: ListLevel, levels: dict[int, ListLevel], counts: list[int | None]) -> str:
    if level.form == "bullet":
        return "•"
    if level.form == "none" and not level.text:
        return ""

    def format_number(match: re.Match[str]) -> str:
        index = ord(match[1]) - ord("1")
        form = "decimal" if level.legal else levels.get(index, ListLevel()).form
        return format_numeral(counts[index] or 0, form)

    return _PLACE.sub(format_number, level.text)


def format_numeral(number: int, form: str) -> str:
    """Return a number in Word's format `form`: 4 is `iv` in `lowerRoman` and `D` in `upperLetter`."""
    number = max(0, min(number, _LARGEST))
    if form in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 100) if number else ""
        return letters.upper() if form == "upperLetter" else letters
    if form in ("lowerRoman", "upperRoman"):
        letters = _format_roman(min(number, 9999))
        return letters.upper() if form == "upperRoman" else letters
    if form == "decimalZero":
        return f"{number:02}"
    if form == "ordinal":
        tens = number % 100
        return f"{number}{'th' if 10 <= tens <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(tens % 10, 'th')}"
    return "" if form == "none" else str(number)


_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ONES = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def _format_roman(number: int) -> str:
    letters = ""
    for value, mark in (*_ROMAN, *_ONES):
        letters += mark * (number // value)
        number %= value
    return letters


def _read_value(element: Any) -> str:
    return "" if element is None else str(element.get(f"{W}val", ""))


def _read_whole(element: Any, usual: int) -> int:
    value = _read_value(element)
    return min(int(value), _LARGEST) if value.isdecimal() else usual


def _read_depth(value: str | None) -> int:
    return min(int(value), MAX_LEVELS - 1) if value and value.isdecimal() else 0
