"""All references of a text, each stretch read once, by the finder that knows most about it."""

from __future__ import annotations

from dataclasses import replace

from exhibit.evidence import Span
from exhibit.law.references.cases import find_cases
from exhibit.law.references.directions import find_directions
from exhibit.law.references.european import find_european
from exhibit.law.references.guides import find_guides
from exhibit.law.references.numbered import find_numbered
from exhibit.law.references.reference import Reference
from exhibit.law.references.rules import find_rules
from exhibit.law.references.statutes import find_statutes
from exhibit.law.references.stretch import blank
from exhibit.law.references.tribunals import find_tribunals

# what is named in full is read before what could be part of it: "Part 1 of the Limitation Act 1980" is not CPR Part 1
_FINDERS = (
    find_cases,
    find_tribunals,
    find_european,
    find_statutes,
    find_numbered,
    find_directions,
    find_guides,
    find_rules,
)


def references(text: str, *, context: str = "") -> list[Reference]:
    """Return every reference of a text in order, repeats included.

    `context` is what was said before, such as the question: "the Act" and "section 14.1" of a reply may mean what it
    names. Its own references are left out.
    """
    offset = len(context) + 2 if context else 0
    whole = f"{context}\n\n{text}" if context else text
    rest = whole
    references: list[Reference] = []
    for finder in _FINDERS:
        stretches = list(finder(rest))
        references += [reference for stretch in stretches for reference in stretch.references]
        rest = blank(rest, [stretch.span for stretch in stretches])
    own = [reference for reference in references if reference.span.start >= offset]
    shifted = [replace(r, span=Span(r.span.start - offset, r.span.end - offset)) for r in own]
    return sorted(shifted, key=lambda reference: reference.span.start)
