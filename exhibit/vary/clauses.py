"""Finds the numbered clauses of a document, which other clauses and amendments refer to by their number."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from exhibit.converters import RawDocument, RawRow
from exhibit.converters.pages.text_pdf import PAGE_BREAK
from exhibit.evidence import Document, Span
from exhibit.law.structure import read_structure
from exhibit.vary.corpus import list_gold

_NUMBER = re.compile(r"(?:(Section|Article|Clause)\s+|§\s?)?(\d{1,2}(?:\.\d{1,2}){0,3})\.?", re.IGNORECASE)
_STRAY = re.compile(
    r"\bIN WITNESS\b|\bSource: |^[ \t]*(?:Page )?-? ?\d{1,3} ?-?(?: of \d+)?[ \t]*$|_{4}|\.{6}|\[Signature",
    re.MULTILINE | re.IGNORECASE,
)
"""Matches text outside clauses: signatures, a page number, a row of a table of contents."""
_UNFINISHED = re.compile(r"\n.*(?<!\band)(?<!\bor)(?<![^\w\s])\Z")
"""Matches a clause of several lines without final punctuation: it is cut off, or the next heading follows."""
_MAX_CLAUSE_CHARS = 4_000
"""The most characters of a clause: a longer text contains several clauses, or the schedules after the last clause."""
NO_CLAUSE = "its gold is not in a numbered clause"


@dataclass(frozen=True)
class Clause:
    """A numbered clause without clauses below it."""

    number: str
    span: Span  # The span from the clause's number to its last word
    label: str  # The number as the clause states it, such as `Section 3.2`
    word: str = "Section"  # The contract's word for it: `Article` if its heading has this word

    @property
    def name(self) -> str:
        """The name by which other clauses refer to this clause, such as `Section 3.2`."""
        return f"{self.word} {self.number}"

    def holds(self, span: Span) -> bool:
        return self.span.start <= span.start and span.end <= self.span.end


@lru_cache(maxsize=8)
def find_clauses(document: RawDocument) -> tuple[Clause, ...]:
    """Return the numbered clauses of a document in order, except clauses whose number occurs twice."""
    text = (document.text or "").replace(PAGE_BREAK, "\n")
    found = []
    for section in read_structure(Document(document.filename, text)).walk():
        number = _NUMBER.fullmatch(section.label.strip())
        if number is None or section.children:
            continue
        end = section.span.end - len(text[: section.span.end]) + len(text[: section.span.end].rstrip())
        span = Span(section.title.start, end)
        words = text[slice(*span)]
        whole = end - span.start <= _MAX_CLAUSE_CHARS and not _STRAY.search(words) and not _UNFINISHED.search(words)
        if section.title.end < end and whole:
            found.append(Clause(number[2], span, section.label.strip(), (number[1] or "Section").capitalize()))
    counts = Counter(clause.number for clause in found)
    return tuple(clause for clause in found if counts[clause.number] == 1)


def clauses_of(row: RawRow, clauses: Sequence[Clause]) -> list[Clause] | None:
    """Return the clauses that contain all gold of a row; None if some gold is in no clause."""
    holders = []
    for span in list_gold([row]):
        holder = next((clause for clause in clauses if clause.holds(span)), None)
        if holder is None:
            return None
        if holder not in holders:
            holders.append(holder)
    return holders
