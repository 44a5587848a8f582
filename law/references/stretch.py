"""What a finder hands back: a stretch of text that is accounted for, and the references in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.references.reference import Kind, Path, Reference


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
