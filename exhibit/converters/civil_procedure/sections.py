"""The headings and sections of a document, and their comparison with the headings that citations name."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from math import inf
from typing import NamedTuple

from exhibit.converters.civil_procedure.documents import RulesFile
from exhibit.engine import run_in_worker
from exhibit.evidence import Document, Span, read_document
from exhibit.law.names import keep_letters
from exhibit.law.structure import read_structure
from exhibit.law.structure.lines import Outline, find_contents
from exhibit.schemas.errors import DocumentError, LimitError

# ---------------------------------------------------------------- headings as names

_DIVISIONS = {"part", "chapter", "section", "annex", "annexe", "appendix", "schedule"}
_KINDS = dict.fromkeys(
    "chapter section sub-section subsection rule rules r rr s para paras paragraph paragraphs".split(), ""
) | {"annexe": "annex"}
"""Words before a number that may be left out or exchanged: `5.9` equals `Section 5.9`."""
_WORDED = re.compile(
    r"(part|chapter|sub-?section|section|annexe?|appendix|schedule|rules?|rr?|paras?|paragraphs?|s)\b\.?\s*"
    r"([A-Z]\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*|\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*|[A-Z]|[IVX]+)(?![A-Za-z0-9])"
    r"\s*(?:\([^)]{1,6}\)\s*)*[.:–—-]*\s*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"([A-Z](?:\.(?=\s)|\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*(?![A-Za-z0-9])))[.:]?(?:\([^)]{1,6}\))*\s*")
_NUMBER = re.compile(
    r"(\d{1,3}[A-Za-z]{0,2}(?:\.\d+[A-Z]?)*)(?:\.(?=[A-Z])|(?:[.:]|(?:\([^)]{1,6}\))+)?(?=\s|$))\s*[–—-]?\s*"
)


@dataclass(frozen=True)
class Name:
    """The parts of a heading: `Appendix B: Specimen Directions` has the kind `appendix`, the number `B` and a title."""

    kind: str
    number: str  # in upper case, without the dot between a letter and a digit: `K.1` and `K1` are equal
    title: str
    text: str = ""  # the whole heading as it is written


@cache
def read_name(text: str, *, loose: bool = True) -> Name:
    """Return a heading's kind, number and title; with `loose`, numbers may also be words of the title."""
    text = " ".join(text.split())
    kind = number = ""
    if (match := _WORDED.match(text)) and (loose or _labels_heading(match, text)):
        kind, number = _KINDS.get(match[1].lower(), match[1].lower()), match[2]
    else:
        match = _LETTER.match(text) or _NUMBER.match(text)
        if match and (loose or "." in match[0] or not match[0][0].isdigit()):
            number = match[1]
    title = text[match.end() :] if match and number else text
    number = re.sub(r"^([A-Z])\.(?=\d)", r"\1", number.upper().rstrip("."))
    return Name(kind, number, title.strip(" .:;,–—-…"), text)


def _labels_heading(match: re.Match[str], text: str) -> bool:
    """Return whether a word and number such as `Part 20` label a heading; in `Part 20 claims` they do not."""
    word, rest = match[1].lower(), text[match.end() :]
    marked = not rest or match[0].rstrip()[-1] in ".:–—-"
    return word in _DIVISIONS and (marked or (word != "part" and not rest[0].islower() and rest[0] != ")"))


def compare_names(cited: Name, heading: Name) -> float:
    """Return the similarity of a cited name and a heading, from 0 to 1; 0 if their numbers or words conflict."""
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


# ---------------------------------------------------------------- lines


class SourceLine(NamedTuple):
    """A line of an extracted text, or a paragraph of a document that has no file yet and will be printed to PDF."""

    start: int
    end: int
    text: str
    page: int = 0


MAX_ENTRY_CHARS = 150  # most characters of an entry of a table of contents: a longer line is a sentence
_LISTED = re.compile(r"[\s.…]\d{1,3}$|[.…]{4}$")
_LEADERS = re.compile(r"(?<![\s.…])[\s.…]*+\d{0,3}$")
_MAX_LABEL_CHARS = 14  # letters before a title that the running head repeats: a page number and `Section 12`


def _split_lines(document: Document) -> list[list[SourceLine]]:
    spans = [(page.span, page.number) for page in document.pages] or [(Span(0, len(document.text)), 0)]
    return [
        [
            SourceLine(span.start + match.start(), span.start + match.end(), match[0], number)
            for match in re.finditer(r"[^\s](?:[^\r\n]*[^\s])?", document.text[span.start : span.end])
        ]
        for span, number in spans
    ]


def _find_running(pages: Sequence[Sequence[SourceLine]]) -> frozenset[int]:
    """Return the offsets of page numbers and running heads."""
    edges = [[*lines[:2], *lines[2:][-2:]] for lines in pages]
    # the first page of a chapter has its title below the running head
    tops = [
        {keep_letters(line.text) for line in [*edge, *lines[2:3]]} for edge, lines in zip(edges, pages, strict=True)
    ]
    counted = Counter(chain.from_iterable(tops))
    running: set[int] = set()
    for edge, lines in zip(edges, pages, strict=True):
        numbered = any(line.text.isdigit() for line in edge)
        for at, line in enumerate(edge):
            letters = keep_letters(line.text)
            below = keep_letters("".join(other.text for other in lines[at + 1 : at + 6]))
            twice = at < 2 and 0 <= below.find(letters) <= _MAX_LABEL_CHARS
            again = counted[letters] > 1 and (at < 2 or not read_name(line.text, loose=False).number)
            if line.text.isdigit() or (numbered and (again or twice)):
                running.add(line.start)
    return frozenset(running)


def _read_entries(lines: Sequence[SourceLine]) -> dict[str, str]:
    """Return the entries of a table of contents, as a mapping from an entry's letters and digits to its text."""
    entries: list[str] = []
    pending = ""
    for line in lines:
        words = _LEADERS.sub("", line.text)
        if pending and read_name(words, loose=False).number:
            entries.append(pending)
            pending = ""
        if _LISTED.search(line.text):
            entries.append(f"{pending} {words}".strip())
            pending = ""
        else:
            pending = f"{pending} {line.text}".strip() if len(pending) < MAX_ENTRY_CHARS else ""
    return {keep_letters(entry): entry for entry in entries if len(keep_letters(entry)) > 2}


# ---------------------------------------------------------------- headings and sections


@dataclass(frozen=True)
class RuleHeading:
    """A heading or a numbered paragraph, and the end of the text under it."""

    start: int
    end: int  # the end of the heading's words
    name: Name
    level: int  # the depth of the heading in the document's tree
    titled: bool = True  # false for a paragraph with a number and no title
    page: int = 0
    until: int = 0  # the end of the heading's section


_LISTED_LIKE = 0.96  # least similarity to an entry of the contents: the whole entry, or its start and an ellipsis


def find_headings(document: Document, lines: Sequence[SourceLine], outline: Outline) -> list[RuleHeading]:
    """Return the headings in document order, each with the end of its section."""
    starts = [line.start for line in lines]
    headings = []
    for section in read_structure(document, outline).walk():
        if not section.heading or section.kind == "clause":
            continue
        start, end = section.title
        first = lines[min(bisect_left(starts, start), len(lines) - 1)]
        last = lines[max(bisect_left(starts, section.span.end) - 1, 0)]
        titled = section.heading != section.label or section.kind != "section"
        written = " ".join(document.text[start:end].split())
        if section.label and not written.startswith(section.label):
            written = section.heading  # a rule's number is below its title
        name = read_name(written if titled else section.label, loose=False)
        headings.append(RuleHeading(start, end, name, section.level, titled, first.page, max(end, last.end)))
    return headings


@dataclass(frozen=True)
class Layout:
    """A document's text, lines and headings."""

    text: str
    lines: Sequence[SourceLine]
    headings: Sequence[RuleHeading]
    listed: tuple[Name, ...] = ()  # the entries of its contents, even if the page itself cannot be read
    fault: str = ""  # the reason why the search for headings was not completed; else empty

    def find_meant(self, text: str) -> Iterator[tuple[RuleHeading | None, float, bool]]:
        """Yield each heading that a text can mean, with its similarity, and whether a parent heading matches.

        The heading is None if only the table of contents lists it.
        """
        whole = read_name(text)
        matches = [(heading, like, False) for heading, like in self._find_alike(whole)]
        if not any(like == 1 and whole.number and whole.title for _, like, _ in matches):
            # otherwise the commas belong to the heading itself
            matches += [(h, like, True) for pair in list_splits(text) for h, like in self._find_below(*pair)]
        if not matches and " " in whole.title:
            matches = [(heading, 1.0, False) for heading in self._find_titled(whole.text)]
        yield from matches
        listed = whole.number and whole.title and any(compare_names(whole, n) > _LISTED_LIKE for n in self.listed)
        if listed and not matches:
            yield None, 1.0, False

    def _find_alike(self, name: Name) -> Iterator[tuple[RuleHeading, float]]:
        for heading in self.headings:
            if not name.number or name.number == heading.name.number or not heading.name.number:
                like = compare_names(name, heading.name)
                if like:
                    yield heading, like

    def _find_titled(self, title: str) -> Iterator[RuleHeading]:
        """Yield the heading and section of each line that equals a title and does not end a sentence."""
        wanted = keep_letters(title)
        for line in self.lines if wanted else ():
            if keep_letters(line.text) != wanted or line.text[0].islower() or line.text[-1] in ".,;:":
                continue
            level = next((h.level for h in reversed(self.headings) if h.start < line.start and h.titled), 1)
            ends = [h.start for h in self.headings if h.start >= line.end and h.titled and h.level <= level + 1]
            last = [other for other in self.lines if line.start <= other.start < min(ends, default=inf)][-1]
            yield RuleHeading(line.start, line.end, read_name(line.text, loose=False), 0, True, line.page, last.end)

    def _find_below(self, left: str, right: str) -> Iterator[tuple[RuleHeading, float]]:
        """Yield the headings that match `right` below a heading that matches `left`, with their similarity to `right`.

        A section's full name with its number needs no parent: the chapter's title may be misspelt, and a guide's own
        parts, as in "Part 3, Chapter 21 Insolvency", have no printed heading.
        """
        above, wanted = read_name(left), read_name(right)
        if not above.number and not above.title:
            return
        parents = [heading for heading, _ in self._find_alike(above) if heading.titled]
        matches = list(self._find_alike(wanted))
        if wanted.title and not wanted.number and parents:
            matches += [(heading, 1.0) for heading in self._find_titled(right)]
        for heading, like in matches:
            whole = like == 1 and wanted.number and wanted.title
            if whole or any(parent.start < heading.start < parent.until for parent in parents):
                yield heading, like


# most characters of a text that is processed here, not in a worker: even with only headings it takes 0.2 s
_MAX_LOCAL_CHARS = 50_000


def layout_of(source: RulesFile) -> Layout:
    """Return the layout of a document, from its text blocks if there are any, else from its file."""
    if source.blocks and len(source.raw.text or "") <= _MAX_LOCAL_CHARS:
        return _read_layout(source)
    try:
        return run_in_worker(_read_layout, source)
    except LimitError as error:
        return Layout("", (), (), fault=str(error))
    except DocumentError:
        return Layout("", (), ())  # the conversion reads the document next, and reports the error


def _read_layout(source: RulesFile) -> Layout:
    if source.blocks:
        text = source.raw.text or ""
        titles: Mapping[str, float] = {keep_letters(block.text): 0.0 for block in source.blocks if block.style == "h2"}
        starts = accumulate((len(block.text) + len("\n\n") for block in source.blocks), initial=0)
        lines = [
            SourceLine(at, at + len(block.text), block.text)
            for at, block in zip(starts, source.blocks, strict=False)
            if block.style != "h1"
        ]
        shown = Document(source.raw.filename, text)
        return Layout(text, lines, find_headings(shown, lines, Outline(titles, rules=True)))
    path = source.raw.path
    document = read_document(path) if path else Document(source.raw.filename, source.raw.text or "")
    pages, contents = _split_lines(document), find_contents(document.text)
    running = _find_running(pages)
    listed = [line for page in pages for line in page if contents.start <= line.start < contents.end]
    entries = _read_entries(listed)
    hidden = running.union(line.start for line in listed)
    lines = [line for page in pages for line in page if line.start not in hidden]
    outline = Outline({title: 0.0 for title in entries if title != "contents"}, running)
    names = tuple(read_name(entry, loose=False) for entry in entries.values())
    return Layout(document.text, lines, find_headings(document, lines, outline), names)
