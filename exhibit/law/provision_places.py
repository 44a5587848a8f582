"""Finds a provision in a document by its name: in the tree of sections, else by the lines that begin with its
number.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from exhibit.evidence import Document, Span
from exhibit.law.provisions import NamedProvision, ProvisionStep, list_number_forms, list_unit_sorts
from exhibit.law.sentences import split_sentences
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section

_LABEL = re.compile(r"(?P<word>\D{0,100}?)[ \xa0]*+(?P<number>[\divxlcIVXLC][\w.\-–]*+|[A-Za-z])[\W_]*+")
"""Matches a section's label, such as `Article IV`; no word for a kind of unit is longer than 100 characters."""
_OPENING = 0.1
"""Share of a document, from its start, in which an exhibit's number names the document itself: `Exhibit 10.1`."""
_RECITALS = 0.5
"""Share of a document, from its start, that contains its recitals."""


_BARE = ("unit", "article", "", "paragraph", "point")
"""Kinds of units whose headings may be only numbers: `2.01 Rent`."""
_COUNTED = 3
"""Number of headings of a kind that show that a document writes the kind's word in its headings."""


class ProvisionPlace(NamedTuple):
    """The location of a provision: its spans, without running heads and page numbers.

    If a reference cites a part of the provision that was not found, such as the paragraph in `Section 8(b)`,
    the spans cover the smallest unit that was found (`Section 8`), and `whole` is true.
    """

    spans: tuple[Span, ...]
    whole: bool = False


@dataclass(frozen=True)
class _Labelled:
    section: Section
    sort: str
    word: str
    forms: frozenset[str]
    bracketed: bool
    attached: bool
    """Whether the section is in a schedule."""


class ProvisionIndex:
    """An index of a document's provisions, which finds a provision by its name, such as `Section 8.03`."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @classmethod
    def make_empty(cls, filename: str) -> "ProvisionIndex":
        """Return the index of a missing document, which has no provisions."""
        return cls(Document(filename, ""))

    @cached_property
    def _sections(self) -> list[_Labelled]:
        return list(self._list_labelled(read_structure(self.document), attached=False))

    def _list_labelled(self, section: Section, *, attached: bool) -> Iterator[_Labelled]:
        match = _LABEL.fullmatch(section.label) if section.label else None
        if match:
            word = match["word"].strip(" (\xa0").lower()
            worded = word or not match["number"][0].isdigit()  # IV alone is a chapter, not section 4
            sort = list_unit_sorts().get(word, list_unit_sorts().get(f"{word}.", "part" if worded else ""))
            bracketed = section.label.strip().startswith("(")
            yield _Labelled(section, sort, word, list_number_forms(match["number"]), bracketed, attached)
        late = section.span.start > _OPENING * len(self.document.text)
        for child in section.children:
            yield from self._list_labelled(child, attached=attached or (section.kind == "schedule" and late))

    def find(self, named: NamedProvision) -> list[ProvisionPlace]:
        """Return the locations that a name may mean: several if it is ambiguous, none if it is absent."""
        first, *below = named.path
        places = [self._find_within(span, below) for span in self._find_top(first)]
        return [place for place in places if place.spans]

    def _find_top(self, step: ProvisionStep) -> list[Span]:
        forms = list_number_forms(step.number)
        if step.sort == "recital":
            return self._find_lines(rf"\(?{re.escape(step.number)}[.)]", r"\(?(?:\d{1,3}|[A-Z])[.)]", within=_RECITALS)
        found = [one for one in self._sections if one.forms & forms and not one.bracketed]
        same = [one for one in found if one.sort == step.sort != ""]
        if not step.sort:
            same = [one for one in found if one.sort in ("unit", "article")]
        bare = [one for one in found if not one.sort and step.sort in _BARE]
        if not same and sum(one.sort == step.sort for one in self._sections) >= _COUNTED:
            lined = self._find_begun(
                step
            )  # if articles have a heading with their word, a bare number is a point of a list
            if lined:
                return lined
        parts = [one for one in found if step.sort in ("paragraph", "point") and one.sort in ("unit", "article")]
        for choice in (same, bare, parts):
            if choice:
                return [_find_own_span(one.section) for one in self._usual(_keep_outermost(choice))]
        return self._find_begun(step)

    def _find_begun(self, step: ProvisionStep) -> list[Span]:
        """Return the ranges of text that begin with a line such as `Article 5`: a unit's word, then `step.number`.

        If there are no such lines, return the ranges that begin with a line without a unit's word, such as `2.01`.
        This second search is made only for decimal numbers of sections or articles.
        """
        words = "|".join(re.escape(word) for word, sort in list_unit_sorts().items() if sort == step.sort)
        word = rf"(?:{words})[ \xa0]*" if words else r"(?:§[ \xa0]?|[^\W\d]{1,12}\.?[ \xa0])?"
        lined = self._find_lines(rf"{word}{re.escape(step.number)}(?![\w]|\.\d)", rf"{word}\d{{1,4}}")
        if not lined and step.sort in ("unit", "article") and "." in step.number:
            lined = self._find_lines(rf"{re.escape(step.number)}(?![\w]|\.\d)", r"\d{1,3}\.\d{1,3}")
        return lined

    def _usual(self, found: list[_Labelled]) -> list[_Labelled]:
        """Return the sections whose unit word, such as `Art`, is the most common in the document.

        For example, a law uses `Art 6`, and a treaty in its annex uses `Artikel 6`: only the law's section is
        returned.
        """
        if len(found) < 2:
            return found
        often = max(self._words[one.word] for one in found)
        return [one for one in found if self._words[one.word] == often]

    @cached_property
    def _words(self) -> Counter[str]:
        return Counter(one.word for one in self._sections)

    def _find_lines(self, begins: str, ends: str, *, within: float = 1.0) -> list[Span]:
        """Return the ranges from each line that matches `begins` to the next line that matches `ends` or is a heading.

        Ranges much shorter than the longest are left out: they are lines of the table of contents.

        Args:
            within: the share of the document, from its start, in which a range may begin.
        """
        text = self.document.text
        limit = int(within * len(text))
        starts = [match.start() for match in re.finditer(rf"(?m)^[ \t#*]*(?:{begins})", text, re.IGNORECASE)]
        ahead = re.compile(rf"(?m)^[ \t#*]*(?:{ends})", re.IGNORECASE)
        spans = []
        for start in (start for start in starts if start <= limit):
            following = ahead.search(text, text.find("\n", start) + 1 or len(text))
            heads = [one.section.title.start for one in self._sections if not one.bracketed and one.sort]
            later = [head for head in heads if head > start] + ([following.start()] if following else [])
            spans.append(Span(start, min(later, default=len(text))))
        # the table of contents and the text both match: the longer range is the text
        longest = max((span.end - span.start for span in spans), default=0)
        return [span for span in spans if 4 * (span.end - span.start) > longest]

    def _find_within(self, span: Span, below: Sequence[ProvisionStep]) -> ProvisionPlace:
        """Return the location of a part of a provision; `below` is the path to it, such as paragraph 2, letter b.

        If a unit of the path is not found, return the smallest unit that was found, with `whole` set to true.
        """
        whole = False
        for step in below:
            part = self._find_part(span, step)
            if part is None:
                whole = True
                break
            span = part
        return ProvisionPlace(self._without_furniture(span), whole)

    def _find_part(self, span: Span, step: ProvisionStep) -> Span | None:
        text = self.document.text
        if step.sort == "sentence":
            own = [
                one
                for one in split_sentences(text[span.start : span.end])
                if re.search(r"\w{2}", _normalise(text, span, one))
            ]
            at = int(step.number) - 1 if step.number.isdigit() else -1
            return Span(span.start + own[at].start, span.start + own[at].end) if 0 <= at < len(own) else None
        forms = list_number_forms(step.number)
        inside = [
            one
            for one in self._sections
            if span.start <= one.section.title.start
            and one.section.span.end <= span.end
            and one.forms & forms
            and _find_own_span(one.section) != span
        ]
        if inside:
            return _find_own_span(_keep_outermost(inside)[0].section)
        return _find_bracketed(text, span, step.number) or _find_listed(text, span, step.number)

    def _without_furniture(self, span: Span) -> tuple[Span, ...]:
        """Return the parts of a span that are not running heads or page numbers, without white space at their edges."""
        pieces, start = [], span.start
        for line in self.document.furniture:
            if start < line.end and line.start < span.end:
                pieces.append(Span(start, max(line.start, start)))
                start = line.end
        pieces.append(Span(start, max(span.end, start)))
        return tuple(
            piece for piece in (_trim(piece, self.document.text) for piece in pieces) if piece.start < piece.end
        )


def _normalise(text: str, span: Span, one: Span) -> str:
    return re.sub(r"^\W*\w{1,4}\)", "", text[span.start + one.start : span.start + one.end])


def _find_own_span(section: Section) -> Span:
    """Return a section's span from its own heading on, without the headings above it."""
    start = section.title.start if section.span.start <= section.title.start < section.span.end else section.span.start
    return Span(start, section.span.end)


def _keep_outermost(found: Sequence[_Labelled]) -> list[_Labelled]:
    """Return the sections of the highest level; sections in schedules are left out if there are other sections.

    If several sections have the same heading, only the longest is returned.
    """
    own = [one for one in found if not one.attached] or list(found)
    highest = min(one.section.level for one in own)
    top = [one for one in own if one.section.level == highest]
    by_heading: dict[str, _Labelled] = {}
    for one in top:
        other = by_heading.setdefault(one.section.heading, one)
        if _measure_length(one) > _measure_length(other):
            by_heading[one.section.heading] = one
    return list(by_heading.values())


def _measure_length(one: _Labelled) -> int:
    return one.section.span.end - one.section.span.start


def _find_bracketed(text: str, span: Span, number: str) -> Span | None:
    """Return the span of a labelled part of a line, such as `(b) any breach;` before `(c)`; None if not found.

    `number` is the part's label without brackets: digits or letters. The part ends at the next label of the
    same sort (digits or letters) in brackets.
    """
    start = re.compile(rf"(?:^|(?<=[\s;:,.]))\({re.escape(number)}\)", re.IGNORECASE).search(text, *span)
    if start is None:
        return None
    kind = r"\d{1,3}" if number.isdigit() else "[A-Za-z]{1,5}"
    following = re.compile(rf"(?<=[\s;:,.])\({kind}\)").search(text, start.end(), span.end)
    return Span(start.start(), following.start() if following else span.end)


def _find_listed(text: str, span: Span, number: str) -> Span | None:
    """Return the span of the list item with a number, such as from the line `2. …` to the line `3. …`.

    None if no line in `span` begins with the number.
    """
    start = re.compile(rf"(?m)^[ \t]*{re.escape(number)}[.)]\s").search(text, *span)
    if start is None:
        return None
    kind = r"\d{1,3}[a-z]?" if number[0].isdigit() else "[A-Za-z]{1,2}"
    following = re.compile(rf"(?m)^[ \t]*{kind}[.)]\s").search(text, start.end(), span.end)
    return Span(start.start(), following.start() if following else span.end)


def _trim(span: Span, text: str) -> Span:
    words = text[span.start : span.end]
    inner = words.strip()
    start = span.start + words.find(inner)
    return Span(start, start + len(inner))
