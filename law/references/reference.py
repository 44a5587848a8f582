"""A reference in one form however it is written, and how much of one another one gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from exhibit.evidence import Span

Kind = Literal["rule", "direction", "statute", "guide", "case"]
Path = tuple[str, ...]

COARSER = 0.5
"""What Part 3 is worth where rule 3.4 is expected: true, but the reader has to search."""

_NOWHERE = Span(0, 0)
"""The place of a reference that was not read from a text."""
_YEAR = re.compile(r"(.*?) ?(\d{4})?$")
_SMALL = frozenset("of and the for in to on by with etc".split())


@dataclass(frozen=True)
class Reference:
    """A place in the law: whose words, and the numbers that lead there, outermost first."""

    kind: Kind
    source: str
    """`CPR`; `53B`; `limitation act 1980`; `eu directive 1995/46`; `commercial court`; `EWHC (Ch)`; `UKEAT`."""
    path: Path
    """`("3", "4", "2", "a")` for rule 3.4(2)(a); year and number of a case; empty for an Act as a whole."""
    span: Span = field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        """The reference in one form: `CPR 3.4(2)(a)`, `PD 53B 2.1`."""
        if self.kind == "case":
            return self._case()
        if self.kind == "rule":
            rule = ".".join(self.path[:2]) + "".join(f"({part})" for part in self.path[2:])
            return f"CPR {rule}" if len(self.path) > 1 else f"CPR Part {rule}"
        name = f"PD {self.source}" if self.kind == "direction" else self.source
        return " ".join([name or "unnamed", ".".join(self.path)]).strip()

    def _case(self) -> str:
        first, second = self.path[:2]
        if self.source.startswith("UKEAT"):
            return f"{self.source}/{first}/{second}"
        if self.source in ("EA", "CJEU"):
            return f"EA-{first}-{second}" if self.source == "EA" else f"{first}-{second}"
        court, _, division = self.source.partition(" (")
        if not division or court == "SAC":
            return f"[{first}] {self.source} {second}"
        return f"[{first}] {court} {second} ({division}"


def credit(expected: Reference, given: Reference) -> float:
    """Return how much of an expected reference a given one is: all, half, or nothing.

    All when it is the same or goes further into it: who cites rule 36.5 has named Part 36. Half when it is coarser.
    Nothing for another paragraph of the same rule: vague is true, but a wrong paragraph sends the reader to the wrong
    words. A case has no coarser form: year, court, division and number must all agree.
    """
    if expected.kind != given.kind or not same_source(expected.kind, expected.source, given.source):
        return 0.0
    if expected.kind == "case":
        return float(expected.path == given.path)
    if given.path[: len(expected.path)] == expected.path:
        return 1.0
    return COARSER if expected.path[: len(given.path)] == given.path else 0.0


def same_source(kind: Kind, one: str, other: str) -> bool:
    """Return whether two names can mean one source: `act 1996` is short for `arbitration act 1996`."""
    if one == other or (kind == "guide" and not (one and other)):
        return True
    return kind == "statute" and _same_instrument(one, other)


@cache
def _same_instrument(one: str, other: str) -> bool:
    (name, year), (name2, year2) = _split(one), _split(other)
    if year and year2 and year != year2:
        return False
    short, long = sorted((name, name2), key=len)
    return short == long or long.endswith(f" {short}") or short == _initials(long)


def _split(name: str) -> tuple[str, str]:
    match = _YEAR.fullmatch(name)
    return (match[1], match[2] or "") if match else (name, "")


def _initials(name: str) -> str:
    """`sca` for `senior courts act`; what stands in brackets does not count."""
    words = re.sub(r"\([^()]*\)", " ", name).split()
    return "".join(word[0] for word in words if word not in _SMALL)


# ---------------------------------------------------------------- what a finder hands back


class Stretch(NamedTuple):
    """A stretch that no other finder may read; with no reference where it names nothing, as `Part 1 of the Act`."""

    span: Span
    references: tuple[Reference, ...]


def stretch(kind: Kind, source: str, paths: Sequence[Path], start: int, end: int) -> Stretch:
    """Return one stretch with a reference for each path."""
    span = Span(start, end)
    return Stretch(span, tuple(Reference(kind, source, path, span) for path in paths))


def blank(text: str, spans: Sequence[Span]) -> str:
    """Return a text of the same length in which nothing can be read at these spans."""
    parts = []
    end = 0
    for span in sorted(spans):
        if span.end <= end:
            continue
        start = max(span.start, end)
        parts += [text[end:start], "\0" * (span.end - start)]
        end = span.end
    return "".join([*parts, text[end:]])
