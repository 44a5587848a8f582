"""The headings and sections of a document, and their comparison with the headings that citations name."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from exhibit.converters.civil_procedure.documents import RulesFile
from exhibit.engine import run_in_worker
from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.readers.pdf import LineType
from exhibit.law.names import keep_letters
from exhibit.law.structure import read_structure
from exhibit.law.structure.lines import Outline
from exhibit.schemas.errors import DocumentError

# ---------------------------------------------------------------- headings as names

_UNSAID = frozenset("chapter section sub-section subsection rule rules r rr s para paras paragraph paragraphs".split())
"""Words before a number that may be left out or exchanged: `5.9` equals `Section 5.9`."""
_LABEL = re.compile(
    r"(?:(?P<kind>part|chapter|sub-?section|section|annexe?|appendix|schedule|rules?|rr?|paras?|paragraphs?|s)\b\.?\s*"
    r"(?P<worded>[A-Z]\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*|\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*|[A-Z]|[IVX]+)(?![A-Za-z0-9])"
    r"|(?P<lettered>[A-Z](?:\.(?=\s)|\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*(?![A-Za-z0-9])))"
    r"|(?P<bare>\d{1,3}[A-Z]{0,2}(?:\.\d+[A-Z]?)*)(?=\.[A-Z]|\W|$))"
    r"\s*(?:\([^)]{1,6}\)\s*)*[.:–—-]*\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Name:
    """The parts of a heading: `Appendix B: Specimen Directions` has the kind `appendix`, the number `B` and a title."""

    kind: str
    number: str  # in upper case, without the dot between a letter and a digit: `K.1` and `K1` are equal
    title: str
    text: str  # the whole heading


@cache
def read_name(text: str) -> Name:
    text = " ".join(text.split())
    match = _LABEL.match(text)
    if match is None:
        return Name("", "", text.strip(" .:;,–—-…"), text)
    kind = (match["kind"] or "").lower().replace("annexe", "annex")
    number = match["worded"] or match["lettered"] or match["bare"]
    number = re.sub(r"^([A-Z])\.(?=\d)", r"\1", number.upper().rstrip("."))
    return Name("" if kind in _UNSAID else kind, number, text[match.end() :].strip(" .:;,–—-…"), text)


def compare_names(cited: Name, heading: Name) -> float:
    """Return the similarity of a cited name and a heading, from 0 to 1; 0 if their numbers or words conflict."""
    if cited.number and heading.number and cited.number != heading.number:
        return 0.0
    if keep_letters(cited.text) == keep_letters(heading.text):
        return 1.0
    if cited.number and (cited.number, cited.kind) != (heading.number, heading.kind):
        return 0.0
    words, others = keep_letters(cited.title), keep_letters(heading.title)
    if not words or words == others:
        return float(bool(words or cited.number))
    if set(re.findall(r"\d+", cited.title)) - set(re.findall(r"\d+", heading.title)):
        return 0.0  # "Trial, J.7 Judgment" is not the heading "Trial"
    short, long = sorted((words, others), key=len)
    least = 0.3 if cited.number else 0.6  # least share of a title, if its beginning is cited
    share = len(short) / len(long) if short and long.startswith(short) else 0.0
    return 0.8 + 0.15 * share if share >= least else 0.0


_BETWEEN = re.compile(r",\s+|(?<!\s)\s++[–—>|/-]\s+|:\s+|(?<=Guide)\s+(?=\S)|(?<=Guide \d{4})\s+(?=\S)")


def list_splits(text: str) -> list[tuple[str, str]]:
    """Return every split of a text into a name and the name below it: `Part 3, Costs` gives `Part 3` and `Costs`."""
    return [
        (text[: m.start()].strip(), text[m.end() :].strip()) for m in _BETWEEN.finditer(text) if m.end() < len(text)
    ]


# ---------------------------------------------------------------- headings and sections


@dataclass(frozen=True)
class RuleHeading:
    """A heading or a numbered paragraph, and the end of the text under it."""

    start: int
    end: int  # the end of the heading's words
    name: Name
    page: int  # 0 if the document has no pages
    until: int  # the end of the heading's section


_RUNNING_HEAD = re.compile(r"(?:.*\n)?\d{1,4}")
_CONTENTS_CHARS = 60_000  # characters at the start of a document that contain its table of contents


@dataclass(frozen=True)
class Layout:
    """A document's text, pages and headings."""

    text: str = ""
    pages: Sequence[Span] = ()
    headings: Sequence[RuleHeading] = ()

    def find_meant(self, text: str) -> list[tuple[RuleHeading, float]]:
        """Return the headings that a citation can mean, each with its similarity."""
        whole = read_name(text)
        matches = list(self._find_alike(whole))
        exact = [match for match in matches if match[1] == 1]
        if exact and whole.number and whole.title:
            return exact  # the commas belong to the heading itself
        return [match for pair in list_splits(text) for match in self._find_below(*pair)] or matches

    def lists(self, text: str) -> bool:
        """Return whether the start of the document, which has the table of contents, contains a numbered heading."""
        name = read_name(text)
        return bool(name.number and name.title) and keep_letters(text) in keep_letters(self.text[:_CONTENTS_CHARS])

    def _find_alike(self, name: Name) -> Iterator[tuple[RuleHeading, float]]:
        for heading in self.headings:
            if like := compare_names(name, heading.name):
                yield heading, like

    def _find_below(self, left: str, right: str) -> Iterator[tuple[RuleHeading, float]]:
        """Yield the headings that match `right` below a heading that matches `left`, with their similarity to `right`.

        A section's full name with its number needs no parent: the chapter's title may be misspelt, and a guide's own
        parts, as in "Part 3, Chapter 21 Insolvency", have no printed heading.
        """
        wanted = read_name(right)
        parents = [heading for heading, _ in self._find_alike(read_name(left))]
        for heading, like in self._find_alike(wanted):
            full = like == 1 and wanted.number and wanted.title
            if full or any(parent.start < heading.start < parent.until for parent in parents):
                yield heading, like


def layout_of(source: RulesFile) -> Layout:
    try:
        return run_in_worker(_read_layout, source)
    except DocumentError:
        return Layout()  # the conversion reads the document next, and reports the error


def _read_layout(source: RulesFile) -> Layout:
    raw = source.raw
    document = read_document(raw.path) if raw.path else Document(raw.filename, raw.text or "")
    starts = accumulate((len(f"{block.text}\n\n") for block in raw.blocks), initial=0)
    # of different heights, so that two headings in a row are not read as one
    large = {at: LineType(at, True) for at, block in zip(starts, raw.blocks, strict=False) if block.style == "h2"}
    root = read_structure(document, Outline(large, rules=True) if raw.blocks else None)
    headings: list[RuleHeading] = []
    for section in root.walk():
        if section.heading and section.kind != "clause":
            start, end = section.title
            page = next(iter(document.pages_of(section.title)), 0)
            until = _find_end(document, Span(start, section.span.end))
            headings.append(RuleHeading(start, end, read_name(section.heading), page, until))
    for at in range(len(headings) - 2, -1, -1):
        # the text of a section may begin below another heading of the same level
        if document.pages and headings[at].until <= headings[at].end:
            headings[at] = replace(headings[at], until=headings[at + 1].until)
    return Layout(document.text, [page.span for page in document.pages], headings)


def _find_end(document: Document, span: Span) -> int:
    """Return the end of a section without the running head of the page on which the next section begins."""
    last = document.cut_furniture(span)[-1]
    numbers = document.pages_of((last.end - 1, last.end))
    top = document.pages[numbers[0] - 1].span.start if numbers else 0
    if top > span.start and _RUNNING_HEAD.fullmatch(document.text, top, last.end):
        return Span(span.start, top).trim(document.text).end
    return last.end
