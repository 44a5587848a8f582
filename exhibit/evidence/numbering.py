"""Computes the numbers that Word shows before paragraphs ("4.2", "(a)"), which are not in the text of the file."""

from dataclasses import dataclass, field
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

MAX_LEVELS = 9
MAX_NUMBER = 9999  # highest number of a clause: with a larger limit, a file of a few bytes could print without end
_ROMAN = {
    "m": 1000, "cm": 900, "d": 500, "cd": 400, "c": 100, "xc": 90, "l": 50, "xl": 40, "x": 10, "ix": 9, "v": 5, "iv": 4,
    "i": 1,
}  # fmt: skip


@dataclass(frozen=True)
class ListLevel:
    """How one level of a list is numbered."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    restart: int | None = None
    """The level that restarts this level; 0 for none, None for any higher level."""
    legal: bool = False  # Whether all numbers are written in digits, even those of higher levels with another form


@dataclass
class Numbering:
    """The lists of a document and their counters."""

    lists: dict[str, tuple[str, dict[int, ListLevel]]] = field(default_factory=dict)
    """For each numId, the list whose counter it uses, and its levels."""
    starts: dict[str, dict[int, int]] = field(default_factory=dict)
    """For each numId, the levels that restart at its first use."""
    styles: dict[str, tuple[str, int]] = field(default_factory=dict)  # For each paragraph style, its numId and level
    _counts: dict[str, list[int | None]] = field(default_factory=dict)

    def label(self, paragraph: Any) -> str:
        """Return a paragraph's number as Word shows it; empty if it has none."""
        properties = paragraph.find(f"{W}pPr")
        number, depth = self.styles.get(_read_child(properties, "pStyle"), ("", 0))
        numbering = None if properties is None else properties.find(f"{W}numPr")
        if numbering is not None:
            usual = depth if numbering.find(f"{W}numId") is None else 0
            number, depth = _read_child(numbering, "numId") or number, _to_whole(_read_child(numbering, "ilvl"), usual)
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
        if level.form == "bullet":
            return "•"

        text = level.text
        for index, count in enumerate(counts):
            form = "decimal" if level.legal else levels.get(index, ListLevel()).form
            text = text.replace(f"%{index + 1}", format_numeral(count or 0, form))
        return text


def read_numbering(numbering: Any | None, styles: Any | None) -> Numbering:
    """Return the lists that word/numbering.xml and word/styles.xml define."""
    rules = Numbering()
    if numbering is None:
        return rules
    abstract = {
        item.get(f"{W}abstractNumId", ""): {_read_depth(one): _read_level(one) for one in item.iterfind(f"{W}lvl")}
        for item in numbering.iterfind(f"{W}abstractNum")
    }
    for item in numbering.iterfind(f"{W}num"):
        name = item.get(f"{W}numId", "")
        counter = _read_child(item, "abstractNumId")
        levels = dict(abstract.get(counter, {}))
        for change in item.iterfind(f"{W}lvlOverride"):
            if change.find(f"{W}startOverride") is not None:
                start = _to_whole(_read_child(change, "startOverride"), 1)
                rules.starts.setdefault(name, {})[_read_depth(change)] = start
            own = change.find(f"{W}lvl")
            if own is not None:
                levels[_read_depth(change)] = _read_level(own)
        rules.lists[name] = counter, levels
    if styles is not None:
        rules.styles = _read_styles(styles)
    return rules


def _read_level(item: Any) -> ListLevel:
    return ListLevel(
        start=_to_whole(_read_child(item, "start"), 1),
        form=_read_child(item, "numFmt") or "decimal",
        text=_read_child(item, "lvlText"),
        restart=None if item.find(f"{W}lvlRestart") is None else _to_whole(_read_child(item, "lvlRestart"), 0),
        legal=item.find(f"{W}isLgl") is not None,
    )


def _read_styles(styles: Any) -> dict[str, tuple[str, int]]:
    """Return the numId and level of each paragraph style, if necessary from its base style."""
    items = {style.get(f"{W}styleId", ""): style for style in styles.iterfind(f"{W}style")}
    placed: dict[str, tuple[str, int]] = {}
    for name in items:
        at, number, depth = name, "", ""
        seen: set[str] = set()
        while at in items and at not in seen and not number:
            seen.add(at)
            numbering = items[at].find(f"{W}pPr/{W}numPr")
            number, depth = _read_child(numbering, "numId"), depth or _read_child(numbering, "ilvl")
            at = _read_child(items[at], "basedOn")
        if number:
            placed[name] = number, _to_whole(depth, 0)
    return placed


def format_numeral(number: int, form: str) -> str:
    """Return a number in Word's format `form`: 4 is `iv` in `lowerRoman` and `D` in `upperLetter`."""
    number = max(0, min(number, MAX_NUMBER))
    if form == "none":
        return ""
    if form in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1) if number else ""
    elif form in ("lowerRoman", "upperRoman"):
        letters = ""
        for mark, value in _ROMAN.items():
            letters += mark * (number // value)
            number %= value
    else:
        return str(number)
    return letters.upper() if form.startswith("upper") else letters


def _read_child(element: Any | None, name: str) -> str:
    child = None if element is None else element.find(f"{W}{name}")
    return "" if child is None else str(child.get(f"{W}val", ""))


def _to_whole(value: str, usual: int) -> int:
    return min(int(value), MAX_NUMBER) if value.isdecimal() else usual


def _read_depth(element: Any) -> int:
    return min(_to_whole(element.get(f"{W}ilvl", ""), 0), MAX_LEVELS - 1)
