"""Reads the citations of an answer, and resolves each to a document of the corpus and to a section in it."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Literal, NamedTuple

from exhibit.converters.civil_procedure.documents import GUIDE, RulesFile, reference_of
from exhibit.engine import run_in_worker
from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.readers.pdf import LineType
from exhibit.law.citations import BRACKETED
from exhibit.law.names import keep_letters, normalise_name
from exhibit.law.references import find_references
from exhibit.law.structure import read_structure
from exhibit.law.structure.lines import Outline
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.parsing import read_beside

# ---------------------------------------------------------------- headings as names

_UNSAID = frozenset("chapter section sub-section subsection rule rules r rr s para paras paragraph paragraphs".split())
"""Words before a number that a citation may omit or exchange: `5.9` equals `Section 5.9`."""
_LABEL = re.compile(
    r"(?:(?P<kind>part|chapter|sub-?section|section|annexe?|appendix|schedule|rules?|rr?|paras?|paragraphs?|s)\b\.?\s*"
    r"(?P<worded>[A-Z]\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*|\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*|[A-Z]|[IVX]+)(?![A-Za-z0-9])"
    r"|(?P<lettered>[A-Z](?:\.(?=\s)|\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*(?![A-Za-z0-9])))"
    r"|(?P<bare>\d{1,3}[A-Z]{0,2}(?:\.\d+[A-Z]?)*)(?=\.[A-Z]|\W|$))"
    r"\s*(?:\([^)]{1,6}\)\s*)*[.:–—-]*\s*",
    re.IGNORECASE,
)


class Name(NamedTuple):
    """The parts of a heading: `Appendix B: Specimen Directions` has the kind `appendix`, the number `B` and a title."""

    kind: str
    number: str  # in upper case, without the dot between a letter and a digit: `K.1` and `K1` are equal
    title: str


@cache
def read_name(text: str) -> Name:
    text = " ".join(text.split())
    match = _LABEL.match(text)
    kind, number = "", ""
    if match:
        kind = (match["kind"] or "").lower().replace("annexe", "annex")
        number = (match["worded"] or match["lettered"] or match["bare"]).upper().rstrip(".")
        text = text[match.end() :]
    return Name("" if kind in _UNSAID else kind, re.sub(r"^([A-Z])\.(?=\d)", r"\1", number), text.strip(" .:;,–—-…"))


def compare_names(cited: Name, heading: Name) -> float:
    """Return the similarity of a cited name and a heading, from 0 to 1; the cited title may be cut off at its end."""
    if cited.number and (cited.number, cited.kind) != (heading.number, heading.kind):
        return 0.0
    words, others = keep_letters(cited.title), keep_letters(heading.title)
    if words == others or not words:
        return float(bool(words or cited.number))
    least = 0.3 if cited.number else 0.6  # least share of a title, if its beginning is cited
    share = len(words) / len(others) if others.startswith(words) else 0.0
    return 0.8 + 0.15 * share if share >= least else 0.0


_BETWEEN = re.compile(r",\s+|(?<!\s)\s++[–—>|/-]\s+|:\s+|(?<=Guide)\s+(?=\S)|(?<=Guide \d{4})\s+(?=\S)")


def list_splits(text: str) -> list[tuple[str, str]]:
    """Return every way to split a text into a name and the name of a section, such as `Part 3` and `Costs`."""
    return [
        (text[: m.start()].strip(), text[m.end() :].strip()) for m in _BETWEEN.finditer(text) if m.end() < len(text)
    ]


# ---------------------------------------------------------------- headings and sections


class RuleHeading(NamedTuple):
    """A heading or a numbered paragraph, and its section, which includes the heading."""

    name: Name
    words: str
    section: Span


_RUNNING_HEAD = re.compile(r"(?:.*\n)?\d{1,4}")
_CONTENTS_CHARS = 60_000  # characters at the start of a document that contain its table of contents


@dataclass(frozen=True)
class Layout:
    """A document's text, pages and headings."""

    text: str = ""
    pages: Sequence[Span] = ()
    headings: Sequence[RuleHeading] = ()

    def find_meant(self, text: str) -> list[tuple[RuleHeading, float]]:
        """Return the headings that a citation can mean, each with its similarity.

        A section that is cited with its number needs no chapter, because a chapter's title may be misspelt or
        missing.
        """
        whole = read_name(text)
        matches = self._find_alike(whole)
        if whole.number and whole.title and any(like == 1 for _, like in matches):
            return [match for match in matches if match[1] == 1]  # the whole citation is one heading with commas
        names = [name for _, below in list_splits(text) if (name := read_name(below)).number and name.title]
        return [match for name in names for match in self._find_alike(name) if match[1] == 1] or matches

    def lists(self, text: str) -> bool:
        """Return whether the start of the document, where the table of contents is, contains this numbered heading."""
        name = read_name(text)
        return bool(name.number and name.title) and keep_letters(text) in keep_letters(self.text[:_CONTENTS_CHARS])

    def _find_alike(self, name: Name) -> list[tuple[RuleHeading, float]]:
        return [(heading, like) for heading in self.headings if (like := compare_names(name, heading.name))]


def layout_of(source: RulesFile) -> Layout:
    try:
        return run_in_worker(_read_layout, source)
    except DocumentError:
        return Layout()  # the conversion reads the document next, and reports the error


def _read_layout(source: RulesFile) -> Layout:
    raw = source.raw
    document = read_document(raw.path) if raw.path else Document(raw.filename, raw.text or "")
    starts = accumulate((len(f"{block.text}\n\n") for block in raw.blocks), initial=0)
    # different font heights, so that two consecutive headings are not read as one
    large = {at: LineType(at, True) for at, block in zip(starts, raw.blocks, strict=False) if block.style == "h2"}
    root = read_structure(document, Outline(large, rules=True) if raw.blocks else None)
    headings: list[RuleHeading] = []
    for section in reversed(list(root.walk())):
        if section.heading and section.kind != "clause":
            start, end = section.title
            until = _find_end(document, Span(start, section.span.end))
            if headings and document.pages and until <= end:
                until = headings[-1].section.end  # the text may begin below another heading of the same level
            words = " ".join(document.text[start:end].split())
            headings.append(RuleHeading(read_name(section.heading), words, Span(start, until)))
    return Layout(document.text, [page.span for page in document.pages], headings[::-1])


def _find_end(document: Document, span: Span) -> int:
    """Return the end of a section, before the running head of the page on which the next section begins."""
    last = document.cut_furniture(span)[-1]
    numbers = document.pages_of((last.end - 1, last.end))
    top = document.pages[numbers[0] - 1].span.start if numbers else 0
    if top > span.start and _RUNNING_HEAD.fullmatch(document.text, top, last.end):
        return Span(span.start, top).trim(document.text).end
    return last.end


# ---------------------------------------------------------------- citations in square brackets

MAX_CITATION_CHARS = 500  # the longest in the real question file has 117
_NUMBERS = re.compile(r"[\d\s,;–-]+")
_PAGES = re.compile(r"(?<!\s)\s*+(?:[,;]\s*+)?\(?\b(?:pp?\.|pages?)\s*(\d[\d\s,–-]*+)\)?\s*$", re.IGNORECASE)
_ENDED = re.compile(r"(?:[.!?:;][\"'”’)]*|\])\s*$")


@dataclass(frozen=True)
class RuleCitation:
    """A citation: `[Document#page=Section]`, `[Document]`, or the heading of a section with its page."""

    text: str
    document: str
    section: str = ""
    page: str = ""


def find_citations(truth: str) -> list[RuleCitation]:
    """Return the distinct citations in the brackets of an answer.

    A bracket is a citation if it follows a sentence or contains a title of several words; otherwise it marks an
    editor's change to a quote.
    """
    by_name: dict[str, RuleCitation] = {}
    for match in BRACKETED.finditer(truth):
        text = " ".join(match.group(1).split())
        titled = re.match(r"[A-Z].*\s", text) or "#page=" in text or _ENDED.search(truth[: match.start()])
        if len(text) <= MAX_CITATION_CHARS and titled and re.search(r"[A-Za-z]{2}", text):
            by_name.setdefault(normalise_name(text), read_citation(text))
    return list(by_name.values())


def read_citation(text: str) -> RuleCitation:
    """Split a citation into the name of its document or heading, its section, and its pages."""
    document, _, section = text.partition("#page=")
    page = ""
    if _NUMBERS.fullmatch(section.strip()):
        section, page = "", section.strip()
    for part in (document, section):
        if pages := _PAGES.search(part):
            page = pages[1].strip(" ,–-")
    return RuleCitation(text, _PAGES.sub("", document).strip(), _PAGES.sub("", section).strip(), page)


# ---------------------------------------------------------------- the map of court guides

_GUIDES = {name: guide for guide, names in read_beside(__file__).items() for name in names}
_COURTS = re.compile(rf"\b(?:{'|'.join(sorted(_GUIDES, key=len, reverse=True))})\b")


def find_courts(text: str) -> set[str]:
    """Return the court guides of the courts that a text names."""
    return {_GUIDES[name] for name in _COURTS.findall(normalise_name(text))}


# ---------------------------------------------------------------- resolving

Method = Literal["exact", "normalised", "section"]
_NO_DOCUMENT = "names no document of the corpus"
MAX_WHOLE_CHARS = 25_000  # about ten printed pages: if a longer document is cited as a whole, its gold has no location
_MAX_PAGES = 5  # most pages of a cited section: a longer range only names its start


class Resolution(NamedTuple):
    """The document and the section to which a citation refers, or the reason why it was not resolved."""

    source: RulesFile | None
    how: Method | None = None
    reason: str = ""
    span: tuple[int, int] | None = None  # the section's span; None if only the document is known
    text: str = ""
    heading: str = ""
    score: float = 1.0


class Corpus:
    """Resolves citations to documents and sections.

    The methods receive two facts about the question whose answer has the citation: `kind` is the question's source
    type, and `fields` are its other texts, such as category and court.
    """

    def __init__(self, sources: Sequence[RulesFile]) -> None:
        self.sources = sources
        self._named: dict[str, list[RulesFile]] = defaultdict(list)
        for source in sources:
            for name in dict.fromkeys(map(normalise_name, source.names)):
                self._named[name].append(source)
        self._guides = {source: find_courts(" / ".join(source.names)) for source in sources if source.kind == GUIDE}
        self._read_layout = cache(layout_of)

    def resolve_all(
        self, citation: RuleCitation, kind: str = "", fields: Sequence[str] = ()
    ) -> list[tuple[RuleCitation, Resolution]]:
        """Return the citations in a bracket of an answer, each with the document and section to which it refers."""
        whole = self.resolve(citation, kind, fields)
        pieces = re.split(r"\s*;\s*", citation.text) if whole.source is None else []
        parts = [(part, self.resolve(part, kind, fields)) for part in map(read_citation, pieces)]
        return parts if any(resolution.source for _, resolution in parts) else [(citation, whole)]

    def resolve(self, citation: RuleCitation, kind: str = "", fields: Sequence[str] = ()) -> Resolution:
        """Resolve a citation to one document and, if possible, to a section of it."""
        parts = [(citation.document, citation.section)]
        if not citation.section:
            parts += [*list_splits(citation.document), *_list_rules(citation.document)]
        for name, section in parts:
            sources = self._find_documents(name)
            if len(sources) > 1:
                sources = [source for source in sources if source.kind == kind] or sources
            if len(sources) > 1:
                return Resolution(None, reason=_list_names(sources))
            if sources:
                exact = name in [" ".join(called.split()) for called in sources[0].names]
                resolution = self._resolve_section(sources, section, citation, "exact" if exact else "normalised")
                if resolution.span or citation.section or not section or re.search(r"\d|[Gg]uide", name):
                    return resolution
        if citation.section:
            return Resolution(None, reason=_NO_DOCUMENT)
        return self._resolve_heading(citation, kind, fields)

    def _find_documents(self, name: str) -> list[RulesFile]:
        """Return the documents with this name, else with its number and half of its title, else of its court."""
        plain = normalise_name(name)
        number = reference_of(plain)
        title = set(plain.removeprefix(number).split())
        numbered = [
            source
            for source in self._named.get(number, ()) if number and title
            if 2 * len(title & {word for n in source.names for word in normalise_name(n).split()}) >= len(title)
        ]  # fmt: skip
        courts = find_courts(name) if re.search(r"\bguide(?: \d{4})?$", plain) else set()
        return self._named.get(plain) or numbered or self._list_guides(courts)

    def _list_guides(self, courts: set[str]) -> list[RulesFile]:
        return [guide for guide, own_courts in self._guides.items() if courts & own_courts]

    def _resolve_heading(self, citation: RuleCitation, kind: str, fields: Sequence[str]) -> Resolution:
        """Resolve a heading cited without a document, in the guide of the row's court, else in all documents."""
        texts = (citation.document if "uide" in citation.document else "", " / ".join(fields), kind)
        courts = next(filter(None, map(find_courts, texts)), set())
        phrases = [f"{normalise_name(field)} guide" for field in fields]  # also for courts that are not in the map
        named = [source for source in self.sources if any(p in normalise_name(source.raw.title) for p in phrases)]
        guides = self._list_guides(courts) or named
        if not guides and (courts or (kind == GUIDE and fields)):
            missing = ", ".join(sorted(courts)) or f"the guide of {fields[0]}"
            return Resolution(None, reason=f"{_NO_DOCUMENT}: {missing} is not in it")
        resolution = self._resolve_section(guides or self.sources, citation.document, citation, "section")
        if resolution.source and not guides and not read_name(citation.document).number:
            reason = f"{_NO_DOCUMENT} with certainty: it is a heading in {resolution.source.raw.filename}"
            return Resolution(None, reason=reason)
        return resolution

    def _resolve_section(
        self, sources: Sequence[RulesFile], section: str, citation: RuleCitation, how: Method
    ) -> Resolution:
        """Resolve a section in one of these documents; an empty section means the whole document."""
        if not section:
            return self._resolve_whole(sources[0], citation.page, how)
        matches = [
            (source, heading, like)
            for source in sources
            for heading, like in self._read_layout(source).find_meant(section)
        ]
        top = max((like for *_, like in matches), default=0)
        best = [match for match in matches if match[-1] == top]
        holders = list(dict.fromkeys(source for source, *_ in best))
        if not holders and how == "section":
            holders = [source for source in sources if self._read_layout(source).lists(section)]
        if len(holders) > 1:
            return Resolution(None, reason=_list_names(holders))
        if not holders:
            return Resolution(None, reason=_NO_DOCUMENT) if how == "section" else Resolution(sources[0], how)
        [source] = holders
        if len({heading.section.start for _, heading, _ in best}) != 1:
            return Resolution(source, how)  # a heading such as "General" occurs in every chapter
        _, heading, like = best[0]
        text = self._read_layout(source).text[slice(*heading.section)]
        return Resolution(source, how, span=heading.section, text=text, heading=heading.words, score=like)

    def _resolve_whole(self, source: RulesFile, page: str, how: Method) -> Resolution:
        """Resolve a citation without a section: to the cited pages or, in a short document, to the whole document."""
        layout = self._read_layout(source)
        start, end = 0, len(layout.text)
        pages = [int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", page)]
        if pages and layout.pages:
            spans = layout.pages[pages[0] - 1 : min(max(pages), pages[0] + _MAX_PAGES - 1)]
            start, end = (spans[0].start, spans[-1].end) if spans else (0, 0)
        elif end > MAX_WHOLE_CHARS:
            return Resolution(source, how)
        span = Span(start, end).trim(layout.text)
        text = layout.text[slice(*span)]
        return Resolution(source, how, span=span if text else None, text=text, heading=text.partition("\n")[0].strip())


def _list_rules(name: str) -> Iterator[tuple[str, str]]:
    """Yield the document and the number of each rule and paragraph that a citation names, such as `CPR 36.2(1)`."""
    for reference in find_references(name):
        number = ".".join(reference.path[:2])
        if reference.kind == "rule" and len(reference.path) > 1:
            yield f"Part {reference.path[0]}", number
        elif reference.kind == "direction" and reference.path:
            yield f"Practice Direction {reference.source}", number


def _list_names(sources: Collection[RulesFile]) -> str:
    return f"names {len(sources)} documents: {', '.join(sorted(source.raw.filename for source in sources))}"
