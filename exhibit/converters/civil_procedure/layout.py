"""The lines, headings, sections and pages of a document, to find the section that a citation names."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from exhibit.converters.civil_procedure.documents import RulesFile
from exhibit.converters.civil_procedure.names import Name, compare_names, read_name
from exhibit.engine import run_in_worker
from exhibit.engine.limits import limit_reading
from exhibit.evidence import Document, Span
from exhibit.evidence.readers import pdf
from exhibit.law.names import keep_letters
from exhibit.law.structure import read_structure
from exhibit.law.structure.headings import FOOTNOTE
from exhibit.law.structure.lines import Outline, find_contents
from exhibit.law.structure.tree import Section
from exhibit.schemas.errors import DocumentError, LimitError


class SourceLine(NamedTuple):
    """A line of an extracted text, or a paragraph of a document that has no file yet and will be printed to PDF."""

    start: int
    end: int
    text: str
    page: int = 0


MAX_ENTRY_CHARS = 150  # characters: a longer line is a sentence
_LISTED = re.compile(r"[\s.…]\d{1,3}$|[.…]{4}$")
_LEADERS = re.compile(r"(?<![\s.…])[\s.…]*+\d{0,3}$")
_DIGITS = 10  # digits of a page number: Python refuses to parse thousands


class LayoutLines(NamedTuple):
    """The lines of a document without running heads, page numbers and table of contents."""

    kept: Sequence[SourceLine]
    entries: Mapping[str, str]  # the entries of the contents, by their letters
    printed: Mapping[int, int]  # the number printed on each page
    running: frozenset[int]  # the offsets of running heads and page numbers


def lines_of(document: Document) -> LayoutLines:
    """Split a document into lines, and separate running heads, page numbers and the table of contents from them."""
    spans = [(page.span, page.number) for page in document.pages] or [(Span(0, len(document.text)), 0)]
    pages = [[line for line in _split(document.text, *span, number) if line.text] for span, number in spans]
    contents, furniture, running = find_contents(document.text), document.furniture, _find_running(pages)
    skipped = running | {span.start for span in furniture if not read_name(document.text[slice(*span)]).number}
    printed = {
        line.page: int(line.text) for page in pages for line in reversed(_find_edges(page)) if _is_page_number(line)
    }
    listed = [line for page in pages for line in page if contents.start <= line.start < contents.end]
    kept = [
        line for page in pages for line in page
        if line.start not in skipped and not contents.start <= line.start < contents.end
    ]  # fmt: skip
    return LayoutLines(kept, _read_entries(listed), printed, running)


def _is_page_number(line: SourceLine) -> bool:
    # isdecimal: `²` is a digit, but not a number; and no page number has ten digits
    return line.text.isdecimal() and len(line.text) < _DIGITS


def _find_edges(lines: Sequence[SourceLine]) -> Sequence[SourceLine]:
    return [*lines[:2], *lines[2:][-2:]]


_MAX_LABEL_CHARS = 14  # most letters before a title that the running head repeats: a page number and `Section 12`


def _find_running(pages: Sequence[Sequence[SourceLine]]) -> frozenset[int]:
    """Return the offsets of page numbers and running heads."""
    # the first page of a chapter has its title below the running head
    tops = [[*_find_edges(lines), *lines[2:3]] for lines in pages]
    counted = Counter(words for lines in tops for words in {keep_letters(line.text) for line in lines})
    repeated: set[int] = set()
    for before, lines in zip([[], *pages], pages, strict=False):
        above = keep_letters("".join(line.text for line in before[:6]))
        edges = _find_edges(lines)
        numbered = any(line.text.isdigit() for line in edges)
        for at, line in enumerate(edges):
            below = keep_letters("".join(other.text for other in lines[at + 1 : at + 6]))
            twice = at < 2 and (
                0 <= below.find(keep_letters(line.text)) <= _MAX_LABEL_CHARS or keep_letters(line.text) in above
            )
            again = counted[keep_letters(line.text)] > 1 and (at < 2 or not read_name(line.text, loose=False).number)
            if line.text.isdigit() or (numbered and (again or twice)):
                repeated.add(line.start)
    return frozenset(repeated)


def _split(text: str, start: int, end: int, page: int) -> Iterator[SourceLine]:
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        words = match.group().strip()
        at = start + match.start() + match.group().index(words) if words else start + match.start()
        yield SourceLine(at, at + len(words), words, page)


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
    last_page: int = 0


# the number of an inserted rule, as the official pages write it: `3.5 A` alone, `40.8 AWithout prejudice`
_LETTER_APART = re.compile(r"(\d+[A-Z]*\.\d+) ([A-Z]{1,2})(?=$|[.(-]|[A-Z][a-z]|[A-Z] | Omitted\b)", re.MULTILINE)
_FEWEST = 3  # fewest characters below a heading that make it a section


def find_headings(document: Document, lines: Sequence[SourceLine], outline: Outline) -> list[RuleHeading]:
    """Return the headings in document order, each with the end of its section."""
    starts = [line.start for line in lines]
    sections = (section for section in read_structure(document, outline).walk() if section.heading)
    headings = (
        _make_heading(document.text, one, lines, starts, apart=outline.rules)
        for one in sections
        if one.kind != "clause"
    )
    # a rule may be one sentence, or one word such as "Omitted", which looks like its title
    return [
        one
        for one in headings
        if one.until - one.end >= _FEWEST
        or document.text[one.until - 1] == "."
        or (outline.rules and one.titled and one.name.number)
    ]


def _make_heading(
    text: str, section: Section, lines: Sequence[SourceLine], starts: Sequence[int], *, apart: bool
) -> RuleHeading:
    """Return a section's heading; with `apart`, read a number with a separate letter, such as `3.5 A`, as `3.5A`."""
    start, end = section.title
    first = lines[min(bisect_left(starts, start), len(lines) - 1)]
    last = lines[max(bisect_left(starts, section.span.end) - 1, 0)]
    titled = section.heading != section.label or section.kind != "section"
    written = FOOTNOTE.sub("", " ".join(text[start:end].split()))
    at = start
    if section.label and not written.startswith(section.label):
        # the number of a rule is below its title
        written, at = section.heading, end - len(section.label)
    letter = _LETTER_APART.match(text, at) if apart else None
    name = read_name(letter[1] + letter[2] if letter else written if titled else section.label, loose=False)
    return RuleHeading(
        start, end, name, section.level, titled, first.page, max(end, last.end), max(first.page, last.page)
    )


@dataclass(frozen=True)
class Layout:
    """A document's text, its headings, and the number printed on each page."""

    text: str
    lines: Sequence[SourceLine]
    headings: Sequence[RuleHeading]
    listed: tuple[Name, ...] = ()  # the entries of its contents, even if the page itself cannot be read
    offset: int = 0  # the difference between a page's number in the file and its printed number, for most pages
    fault: str = ""  # the reason why the search for headings was not completed; else empty

    @property
    def first_page(self) -> str:
        """The text of page 1 without running heads and contents; empty if the page has only those."""
        return " ".join(line.text for line in self.lines if line.page == 1)

    def find_alike(self, name: Name) -> Iterator[tuple[RuleHeading, float]]:
        """Yield each heading to which a cited name may refer, with its similarity to the name, in document order."""
        for heading in self.headings:
            other = heading.name
            same = name.number == other.number if name.number else not name.stems.isdisjoint(other.stems)
            like = compare_names(name, other) if same or keep_letters(name.text) == keep_letters(other.text) else 0.0
            if like:
                yield heading, like

    def find_titled(self, title: str) -> Iterator[RuleHeading]:
        """Yield a heading for each position where one or more whole lines consist of the title."""
        text, places = self._letters
        wanted = keep_letters(title)
        at = text.find(wanted)
        while wanted and at >= 0:
            first, end = places.get(at), places.get(at + len(wanted))
            at = text.find(wanted, at + 1)
            if first is None or end is None or end - first > _MOST_LINES:
                continue
            lines = self.lines[first:end]
            words = " ".join(line.text for line in lines)
            if words[0].islower() or words[-1] in ".,;:":
                continue  # the end of a sentence, or a part of a list
            name = read_name(words, loose=False)
            yield self._find_section(RuleHeading(lines[0].start, lines[-1].end, name, 0, page=lines[0].page))

    def find_meant(self, text: str) -> Iterator[tuple[RuleHeading | None, float, bool]]:
        """Yield each heading that a text can mean, its similarity to the text, and whether a parent heading matches."""
        any_heading = False
        whole = read_name(text)
        for heading, like in self.find_alike(whole):
            any_heading = True
            yield heading, like, False
            if (like == 1 or whole.cut) and whole.number and whole.title:
                return  # the commas belong to the heading itself
        for left, right in list_splits(text):
            for heading, like in self._find_below(left, right):
                any_heading = True
                yield heading, like, True
        if any_heading:
            return
        if len(whole.words) > 1:
            for heading in self.find_titled(whole.text):
                any_heading = True
                yield heading, 1.0, False
        if (
            not any_heading
            and whole.number
            and whole.title
            and any(compare_names(whole, name) > _LISTED_LIKE for name in self.listed)
        ):
            yield None, 1.0, False

    def _find_below(self, left: str, right: str) -> Iterator[tuple[RuleHeading, float]]:
        """Yield the headings that match `right` below a heading that matches `left`, with their similarity to `right`.

        An exact match of `right` needs no matching parent in two cases: its number begins with the number in
        `left`, or `left` is only the number of a Part.
        """
        above, wanted = read_name(left), read_name(right)
        if not above.number and not above.title:
            return
        parents = [heading for heading, _ in self.find_alike(above) if heading.titled]
        for heading, like in self.find_alike(wanted):
            inside = any(parent.start < heading.start < parent.until for parent in parents)
            # the chapter's title has a misspelling: its number and the whole name of the section are enough
            counted = above.number and like == 1 and wanted.title and wanted.number.startswith(above.number)
            # a guide's own parts, as in "Part 3, Chapter 21 Insolvency", have no printed heading
            division = above.kind == "part" and not above.title and like == 1 and wanted.number and wanted.title
            if inside or counted or division:
                yield heading, like
        if parents and wanted.title and not wanted.number:
            for parent in parents:
                for heading in self.find_titled(right):
                    if parent.start < heading.start < parent.until:
                        yield heading, 1.0

    def _find_section(self, heading: RuleHeading) -> RuleHeading:
        """Return a copy of a heading that is not in `headings`, with the end and the last page of its section."""
        above = next((h for h in reversed(self.headings) if h.start < heading.start and h.titled), None)
        level = above.level if above else 1
        after = (h.start for h in self.headings if h.start >= heading.end and h.titled and h.level <= level + 1)
        end = next(after, self.lines[-1].end + 1)
        last = [line for line in self.lines if heading.start <= line.start < end][-1]
        return replace(heading, until=max(heading.end, last.end), last_page=max(heading.page, last.page))

    @cached_property
    def _letters(self) -> tuple[str, dict[int, int]]:
        """The letters of all lines as one string, and the index of the line that begins at each offset of the
        string.
        """
        written = [keep_letters(line.text) for line in self.lines]
        starts = accumulate(map(len, written), initial=0)
        return "".join(written), {start: line for line, start in enumerate(starts)}


_LISTED_LIKE = 0.96  # least similarity to an entry of the contents: the whole entry, or its start and an ellipsis
_BETWEEN = re.compile(r",\s+|(?<!\s)\s++[–—>|/-]\s+|:\s+|(?<=Guide)\s+(?=\S)|(?<=Guide \d{4})\s+(?=\S)")
_CHAPTER = 3.0  # the rank of a title that the outline lists beside numbered chapters
_MOST_LINES = 4  # most lines of a heading: the longest in the five court guides has four
# characters of a text that is processed here, not in a worker: even if it has only headings, it takes 0.2 s
_SHORT = 50_000


def layout_of(source: RulesFile) -> Layout:
    """Return the layout of a document, from its text blocks if there are any, else from its file."""
    if source.blocks and len(source.raw.text or "") <= _SHORT:
        return read_layout(source)
    try:
        # do not send the HTML, which is not needed
        return run_in_worker(read_layout, replace(source, raw=replace(source.raw, html=None)))
    except LimitError as error:
        return Layout("", (), (), fault=str(error))
    except DocumentError:
        return Layout("", (), ())  # the conversion reads the document next, and reports the error


def read_layout(source: RulesFile) -> Layout:
    """Return the layout of a document, computed in this process."""
    if source.blocks:
        text = source.raw.text or ""
        marked = {keep_letters(block.text): 0.0 for block in source.blocks if block.style == "h2"}
        lines, shown = list(_read_lines(source)), Document(source.raw.filename, text)
        return Layout(text, lines, find_headings(shown, lines, Outline(marked, rules=True)))
    document = source.document()
    kept, entries, printed, running = lines_of(document)
    known = dict.fromkeys(entries, 0.0) | (read_bookmark_levels(source.raw.path) if source.raw.path else {})
    known = {title: rank for title, rank in known.items() if title not in {"", "contents"}}
    offsets = sorted(page - number for page, number in printed.items())
    listed = tuple(read_name(entry, loose=False) for entry in entries.values())
    offset = offsets[len(offsets) // 2] if offsets else 0
    return Layout(document.text, kept, find_headings(document, kept, Outline(known, running)), listed, offset)


def _read_lines(source: RulesFile) -> Iterator[SourceLine]:
    at = 0
    for block in source.blocks:
        if block.style != "h1":
            yield SourceLine(at, at + len(block.text), block.text)
        at += len(block.text) + len("\n\n")


def read_bookmark_levels(path: Path) -> dict[str, float]:
    """Return a rank for each title in a PDF's bookmarks: 3 for a chapter, 0 for a lower heading."""
    listed = read_outline(path)
    numbered = [depth for title, depth in listed if read_name(title, loose=False).number]
    highest = min(numbered, default=-1)
    return {keep_letters(title): _CHAPTER if depth <= highest else 0.0 for title, depth in reversed(listed)}


def read_outline(path: Path) -> list[tuple[str, int]]:
    """Return the titles in a PDF's bookmarks with their depths; empty if they are damaged."""
    try:
        with limit_reading(str(path), path.stat().st_size, pdf.MEMORY):
            return pdf.read_outline(path)
    except LimitError:
        raise
    except (DocumentError, OSError):
        return []


def list_splits(text: str) -> list[tuple[str, str]]:
    """Return every split of a text into a name and the name below it: `Part 3, Costs` gives `Part 3` and `Costs`."""
    return [
        (text[: m.start()].strip(), text[m.end() :].strip()) for m in _BETWEEN.finditer(text) if m.end() < len(text)
    ]
