"""Reads the citations of an answer, and resolves each to a document of the corpus and to a section in it."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from exhibit.converters.civil_procedure.documents import CPR, GUIDE, PD, RulesFile, reference_of
from exhibit.converters.civil_procedure.sections import Layout, layout_of, list_splits, read_name
from exhibit.law.citations import BRACKETED
from exhibit.law.names import normalise_name
from exhibit.law.references import find_references
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import parse_toml

Method = Literal["exact", "normalised", "section"]
METHODS: tuple[Method, ...] = ("exact", "normalised", "section")
_NO_DOCUMENT = "names no document of the corpus"
MAX_WHOLE_CHARS = 25_000  # about ten printed pages: if a longer document is cited as a whole, its gold has no location
MAX_CITATION_CHARS = 500  # the longest in the real question file has 117
_MAX_PAGES = 5  # most pages of a cited section: of a longer range, only the start is meant

# ---------------------------------------------------------------- citations in square brackets

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

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page that the citation gives."""
        numbers = [int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", self.page)]
        return (numbers[0], max(numbers[-1], numbers[0])) if numbers else None


def find_citations(truth: str) -> list[RuleCitation]:
    """Return the distinct citations in the brackets of an answer.

    A bracket is a citation if it follows a sentence or holds a title of several words; others are editorial changes.
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


@cache
def _read_guides() -> dict[str, str]:
    """Return the guide for each name of a court."""
    path = Path(__file__).with_name("guides.toml")
    guides = parse_toml(path.read_text(encoding="utf-8"), where=path, error=SourceError)
    return {name: guide for guide, names in guides.items() for name in names}


def find_courts(text: str) -> set[str]:
    """Return the court guides of the courts that a text names."""
    guides = _read_guides()
    names = "|".join(sorted(guides, key=len, reverse=True))
    return {guides[name] for name in re.findall(rf"\b(?:{names})\b", normalise_name(text))}


# ---------------------------------------------------------------- resolving


@dataclass(frozen=True)
class RowEvidence:
    """The texts of a row without its citation."""

    source_type: str = ""
    fields: tuple[str, ...] = ()  # all texts of the row except question and answer: category, court …
    prose: str = ""


class Resolution(NamedTuple):
    """The document and the section to which a citation refers, or the reason why it was not resolved."""

    source: RulesFile | None
    how: Method | None = None
    reason: str = ""
    span: tuple[int, int] | None = None  # None if only the document is known
    text: str = ""
    heading: str = ""
    score: float = 1.0


class Corpus:
    """Resolves citations to documents and sections."""

    def __init__(self, sources: Sequence[RulesFile]) -> None:
        self.sources = sources
        self._named: dict[str, list[RulesFile]] = defaultdict(list)
        for source in sources:
            for name in dict.fromkeys(map(normalise_name, source.names)):
                self._named[name].append(source)
        self._guides = {s.raw.filename: find_courts(" / ".join(s.names)) for s in sources if s.kind == GUIDE}
        self._layouts: dict[str, Layout] = {}

    def _read_layout(self, source: RulesFile) -> Layout:
        name = source.raw.filename
        if name not in self._layouts:
            self._layouts[name] = layout_of(source)
        return self._layouts[name]

    def resolve_all(self, citation: RuleCitation, row: RowEvidence) -> list[tuple[RuleCitation, Resolution]]:
        """Return the citations in a bracket of an answer, each with the document and section to which it refers."""
        whole = self.resolve(citation, row)
        pieces = [piece.strip() for piece in citation.text.split(";")]
        if whole.source is not None or len(pieces) < 2 or not all(pieces):
            return [(citation, whole)]
        parts = [(part, self.resolve(part, row)) for part in map(read_citation, pieces)]
        return parts if any(resolution.source for _, resolution in parts) else [(citation, whole)]

    def resolve(self, citation: RuleCitation, row: RowEvidence) -> Resolution:
        """Resolve a citation to one document and, if possible, to a section of it."""
        parts = [(citation.document, citation.section)]
        if not citation.section:
            parts += [*list_splits(citation.document), *_list_rules(citation.document)]
        for name, section in parts:
            sources = self._choose(self._find_documents(name), row)
            if len(sources) > 1:
                return Resolution(None, reason=_list_names(sources))
            if sources:
                exact = name in [" ".join(called.split()) for called in sources[0].names]
                resolution = self._resolve_section(sources, section, citation, "exact" if exact else "normalised")
                if resolution.span or citation.section or not section or re.search(r"\d|[Gg]uide", name):
                    return resolution
        return Resolution(None, reason=_NO_DOCUMENT) if citation.section else self._resolve_heading(citation, row)

    def _find_documents(self, name: str) -> list[RulesFile]:
        """Return the documents that a name can mean: by name, by number and half of the title, or by the court."""
        plain = normalise_name(name)
        number = reference_of(plain)
        rest = set(plain.removeprefix(number).split())
        numbered = [
            source
            for source in self._named.get(number, ()) if number and rest
            if 2 * len(rest & {word for n in source.names for word in normalise_name(n).split()}) >= len(rest)
        ]  # fmt: skip
        courts = find_courts(name) if re.search(r"\bguide(?: \d{4})?$", plain) else set()
        return self._named.get(plain) or numbered or self._list_guides(courts)

    def _list_guides(self, courts: set[str]) -> list[RulesFile]:
        return [source for source in self.sources if courts & self._guides.get(source.raw.filename, set())]

    def _choose(self, sources: list[RulesFile], row: RowEvidence) -> list[RulesFile]:
        """Choose the documents with the row's `source_type`, else those whose number the row mentions."""
        kind, words = _read_kind(row.source_type), normalise_name(row.prose)
        for rule in (
            lambda source: source.kind == kind,
            lambda source: re.search(rf"\b{normalise_name(reference_of(source.raw.title)) or '$^'}\b", words),
        ):
            if len(sources) > 1:
                sources = [source for source in sources if rule(source)] or sources
        return sources

    def _resolve_heading(self, citation: RuleCitation, row: RowEvidence) -> Resolution:
        """Resolve a heading without a document: to the guide of the row's court, or to the only document with it."""
        name = read_name(citation.document)
        texts = (citation.document if "uide" in citation.document else "", " / ".join(row.fields), row.source_type)
        courts = next(filter(None, map(find_courts, (*texts, row.prose))), set())
        phrases = [f"{normalise_name(field)} guide" for field in row.fields]
        named = [source for source in self.sources if any(p in normalise_name(source.raw.title) for p in phrases)]
        guides = self._list_guides(courts) or named
        if not guides and (courts or (_read_kind(row.source_type) == GUIDE and row.fields)):
            missing = ", ".join(sorted(courts)) or f"the guide of {row.fields[0]}"
            return Resolution(None, reason=f"{_NO_DOCUMENT}: {missing} is not in it")
        resolution = self._resolve_section(guides or self.sources, citation.document, citation, "section")
        if resolution.source and not guides and not name.number:
            reason = f"{_NO_DOCUMENT} for sure: {resolution.source.raw.filename} has this title"
            return Resolution(None, reason=reason)
        return resolution

    def _resolve_section(
        self, sources: Sequence[RulesFile], section: str, citation: RuleCitation, how: Method
    ) -> Resolution:
        """Resolve a section in one of these documents; an empty section means the whole document."""
        if not section:
            return self._resolve_whole(sources[0], citation.pages, how)
        matches = [
            (source, heading, like, like + _weigh_page(heading.page, citation.pages))
            for source in sources
            for heading, like in self._read_layout(source).find_meant(section)
        ]
        top = max((weight for *_, weight in matches), default=0)
        best = [match for match in matches if match[-1] == top]
        files = {source.raw.filename: source for source, *_ in best}
        if not files and how == "section":
            files = {s.raw.filename: s for s in sources if self._read_layout(s).lists(section)}
        if len(files) > 1:
            return Resolution(None, reason=_list_names(files.values()))
        if not files:
            return Resolution(None, reason=_NO_DOCUMENT) if how == "section" else Resolution(sources[0], how)
        source = next(iter(files.values()))
        if len({heading.start for _, heading, *_ in best}) != 1:
            return Resolution(source, how)  # a heading such as "General" occurs in every chapter
        _, heading, like, _ = best[0]
        text = self._read_layout(source).text
        words = " ".join(text[heading.start : heading.end].split())
        span = (heading.start, heading.until)
        return Resolution(source, how, span=span, text=text[slice(*span)], heading=words, score=like)

    def _resolve_whole(self, source: RulesFile, pages: tuple[int, int] | None, how: Method) -> Resolution:
        """Resolve a citation to the cited pages of a document; without cited pages, to all of a short document."""
        layout = self._read_layout(source)
        start, end = 0, len(layout.text)
        if pages and layout.pages:
            spans = layout.pages[pages[0] - 1 : min(pages[1], pages[0] + _MAX_PAGES - 1)]
            start, end = (spans[0].start, spans[-1].end) if spans else (0, 0)
        elif end > MAX_WHOLE_CHARS:
            return Resolution(source, how)
        words = layout.text[start:end].strip()
        start = layout.text.find(words, start)
        span = (start, start + len(words)) if words else None
        return Resolution(source, how, span=span, text=words, heading=words.partition("\n")[0].strip())


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


def _weigh_page(heading: int, cited: tuple[int, int] | None) -> float:
    """Return how strongly a citation's page supports a heading; 27 of 30 real citations give a heading's first page."""
    return 0.2 if heading and cited and abs(cited[0] - heading) <= 2 else 0.0


def _read_kind(source_type: str) -> str:
    """Return the kind of document that a `source_type` states."""
    words = normalise_name(source_type)
    if re.search(r"\bguides?\b", words):
        return GUIDE
    directions = bool(re.search(r"\bpds?\b|practice direction", words))
    rules = bool(re.search(r"\bcpr\b|\brules?\b|^parts?$", words))
    return "" if directions == rules else PD if directions else CPR
