"""Resolves a citation to a document of the corpus and to a section in it."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from exhibit.converters.civil_procedure.documents import CPR, GUIDE, PD, RulesFile, reference_of
from exhibit.converters.civil_procedure.layout import Layout, RuleHeading, layout_of, list_splits
from exhibit.converters.civil_procedure.names import (
    RuleCitation,
    find_strange_courts,
    guide_courts,
    names_court,
    read_citation,
    read_name,
)
from exhibit.law.names import normalise_name
from exhibit.law.references import find_references

Method = Literal["exact", "normalised", "section", "unresolved"]
METHODS: tuple[Method, ...] = ("exact", "normalised", "section", "unresolved")


@dataclass(frozen=True)
class RowEvidence:
    """The texts of a row other than its citation."""

    source_type: str = ""
    fields: tuple[str, ...] = ()  # all texts of the row other than question and answer: category, court …
    prose: str = ""


@dataclass(frozen=True)
class CitedSection:
    """A cited section of a document: its start and end offsets, its heading as printed, its text and its page."""

    start: int
    end: int
    heading: str
    text: str
    page: int = 0


@dataclass(frozen=True)
class Resolution:
    """The result of resolving a citation: the document, the section and the method, or the reason for no result."""

    source: RulesFile | None
    how: Method
    reason: str = ""
    place: CitedSection | None = None
    score: float = 1.0


_SPACES = re.compile(r"\s+")

# The weights of the evidence for a candidate, beside the similarity of its name (0.8 to 1). They were set by hand so
# that two kinds of evidence outweigh one contrary kind, and checked on the citations of the real question file and on
# constructed ones.
_NUMBER, _PARENT, _COURT, _KIND, _MENTIONED = 0.3, 0.3, 0.4, 0.2, 0.3
_SPOKEN = 0.3  # the question or the answer names the court, but no separate field does
_NAME = 0.35  # the whole name of a document
_INSIDE = 1.22  # a section of a document that is named before it: less than the whole name of another document
_FOREIGN = -0.5  # the row is about a court whose guide is not in the corpus
_PAGE, _NEAR, _FAR = 0.3, 0.2, -0.15  # the heading is on the cited page; on a page next to it; on another page
# pages: of 30 real citations of a guide's section, 27 give the page where it begins, and three are four pages off
_CLOSE, _OFF = 2, 5
_NO_PAGES = -0.3  # a citation with a page means a document with pages, not an export
# the least weight for a decision: a title alone (1.0) needs further evidence; a number and a title suffice
_ENOUGH = 1.2
_MARGIN = 0.12  # if the weights of two documents differ by less than this, a person must decide
# characters, about ten printed pages: a longer document that is cited as a whole has no location as gold
LONGEST_WHOLE = 25_000


@dataclass(frozen=True)
class _Candidate:
    source: RulesFile
    how: Method
    likeness: float
    score: float
    heading: RuleHeading | None = None
    whole: bool = False  # whether the citation names the whole document, not a section


class Corpus:
    """Resolves citations to documents and sections."""

    def __init__(self, sources: Sequence[RulesFile]) -> None:
        self.sources = sources
        self._exact: dict[str, list[RulesFile]] = defaultdict(list)
        self._plain: dict[str, list[RulesFile]] = defaultdict(list)
        self._layouts: dict[str, Layout] = {}
        for source in sources:
            for name in dict.fromkeys(_SPACES.sub(" ", name) for name in source.names):
                self._exact[name].append(source)
            for name in dict.fromkeys(map(normalise_name, source.names)):
                self._plain[name].append(source)

    # ------------------------------------------------------------ documents by the names that citations use

    def read_layout(self, source: RulesFile) -> Layout:
        """Return the layout of a document; each document is read once."""
        name = source.raw.filename
        if name not in self._layouts:
            self._layouts[name] = layout_of(source)
        return self._layouts[name]

    @property
    def faults(self) -> list[str]:
        """One message for each document in which a limit stopped the search for headings."""
        return [layout.fault for layout in self._layouts.values() if layout.fault]

    @cached_property
    def guides(self) -> list[tuple[RulesFile, dict[str, set[str]]]]:
        """The court guides of the corpus, each with the courts that it covers and their initials."""
        guides = [source for source in self.sources if source.kind == GUIDE]
        return [(source, guide_courts((*source.names, self.read_layout(source).first_page))) for source in guides]

    @cached_property
    def courts(self) -> dict[str, set[str]]:
        """The courts whose guides are in the corpus, each with its possible initials."""
        return {court: short for _, courts in self.guides for court, short in courts.items()}

    def documents(self, name: str) -> Iterator[tuple[Literal["exact", "normalised"], RulesFile]]:
        """Yield each document that a name can mean, with `exact` if it has exactly this name, else `normalised`."""
        exact = {source.raw.filename for source in self._exact.get(name, ())}
        ways = (self._plain.get(normalise_name(name), ()), self._find_by_number(name), self._find_by_court(name))
        for source in next(filter(None, ways), ()):
            yield ("exact" if source.raw.filename in exact else "normalised"), source

    def _find_by_number(self, name: str) -> list[RulesFile]:
        """Return the documents that have the number in a name such as `PART 36 - OFFERS`."""
        words = normalise_name(name)
        number = reference_of(words)
        after = words.removeprefix(number).split()
        if not number or not after:
            return []
        return [
            source
            for source in self._plain.get(number, [])
            if 2 * len(set(after) & {w for n in source.names for w in normalise_name(n).split()}) >= len(set(after))
        ]

    def _find_by_court(self, name: str) -> list[RulesFile]:
        """Return the guides of the court in a name such as `Commercial Court Guide`; empty for other names."""
        if not re.search(r"\bguide(?: \d{4})?$", normalise_name(name)):
            return []
        return [source for source, courts in self.guides if names_court(name, courts)]

    # ------------------------------------------------------------ resolving a citation

    def resolve_all(self, citation: RuleCitation, row: RowEvidence) -> list[tuple[RuleCitation, Resolution]]:
        """Return the citations in a square bracket of an answer, each with the document and section it refers to."""
        whole = self.resolve(citation, row)
        pieces = [piece.strip() for piece in citation.text.split(";")]
        if whole.source is not None or len(pieces) < 2 or not all(pieces):
            return [(citation, whole)]
        parts = [(part, self.resolve(part, row)) for part in map(read_citation, pieces)]
        return parts if any(resolution.source for _, resolution in parts) else [(citation, whole)]

    def resolve(self, citation: RuleCitation, row: RowEvidence) -> Resolution:
        """Resolve a citation to one document and, if possible, to a section of it."""
        strange = find_strange_courts(citation.document, self.courts, guides_only=True)
        if strange and not any(self.documents(citation.document)):
            return Resolution(None, "unresolved", f"names no document of the corpus: {strange[0]} is not in it")
        candidates = list(self._find_candidates(citation, row))
        likely = self._choose_best(candidates)
        if not likely:
            return Resolution(None, "unresolved", "names no document of the corpus")
        best = likely[0]
        rivals = [c for c in likely[1:] if best.score - c.score < _MARGIN]
        if rivals:
            names = ", ".join(sorted(c.source.raw.filename for c in (best, *rivals)))
            return Resolution(None, "unresolved", f"names {1 + len(rivals)} documents: {names}")
        if best.score < _ENOUGH:
            reason = f"may be in {best.source.raw.filename}, but nothing else speaks for it"
            return Resolution(None, "unresolved", f"names no document of the corpus for sure: it {reason}")
        twins = {
            c.heading.start for c in candidates if c.heading and _rank(c) == _rank(best) and c.source is best.source
        }
        # a heading such as "General" occurs in every chapter
        place = self._place(best, citation.pages) if len(twins) < 2 else None
        return Resolution(best.source, best.how, place=place, score=best.likeness)

    def _choose_best(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Return the best candidate of each document, sorted from best to worst."""
        best: dict[str, _Candidate] = {}
        for candidate in candidates:
            name = candidate.source.raw.filename
            if name not in best or _rank(candidate) > _rank(best[name]):
                best[name] = candidate
        return sorted(best.values(), key=_rank, reverse=True)

    def _place(self, candidate: _Candidate, pages: tuple[int, int] | None) -> CitedSection | None:
        layout = self.read_layout(candidate.source)
        heading = candidate.heading
        if heading is not None:
            words = _SPACES.sub(" ", layout.text[heading.start : heading.end])
            return CitedSection(
                heading.start, heading.until, words, layout.text[heading.start : heading.until], heading.page
            )
        text = layout.text
        if candidate.whole and pages and candidate.source.raw.path and not layout.offset:
            return _pages_of(layout, *pages)
        if not candidate.whole or not text.strip() or len(text) > LONGEST_WHOLE:
            return None
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        return CitedSection(start, end, text[start:end].partition("\n")[0].strip(), text[start:end], 1)

    # ------------------------------------------------------------ candidates

    def _find_candidates(self, citation: RuleCitation, row: RowEvidence) -> Iterator[_Candidate]:
        named = list(self._find_named(citation, row))
        yield from named
        if citation.section:
            yield from self._find_inside(citation.document, citation.section, citation, row)
            return
        inside = [
            *(
                one
                for left, right in list_splits(citation.document)
                for one in self._find_inside(left, right, citation, row)
            ),
            *self._find_rules(citation, row),
        ]
        yield from inside
        if citation.document.startswith("§") or not re.search(r"[A-Za-z]", citation.document):
            return
        if not citation.page and any(one.likeness == 1 and one.heading and one.heading.name.number for one in inside):
            return  # `Part 1, paragraph 1.1` is in Part 1; a direction may also have a part of that number
        for source in self.sources:
            # where the whole document is named, its title is no section of it
            if not any(candidate.source is source for candidate in named):
                yield from self._find_headings(source, citation, row)

    def _find_named(self, citation: RuleCitation, row: RowEvidence) -> Iterator[_Candidate]:
        """Yield a candidate for each document that a citation names; yield nothing if the citation has a section."""
        if citation.section:
            return
        for how, source in self.documents(citation.document):
            paged = _NO_PAGES if citation.page and not source.raw.path and "#" not in citation.text else 0.0
            sure = _NAME if normalise_name(citation.document) in map(normalise_name, source.names) else _INSIDE - 1
            score = 1 + sure + paged + self._weigh_evidence(source, row)
            yield _Candidate(source, how, 1.0, score, whole=True)

    def _find_inside(
        self, document: str, section: str, citation: RuleCitation, row: RowEvidence
    ) -> Iterator[_Candidate]:
        """Yield the headings that match `section` in each document that matches `document`."""
        for how, source in self.documents(document):
            score = _INSIDE + self._weigh_evidence(source, row)
            any_heading = False
            for heading, like, parent in self.read_layout(source).find_meant(section):
                any_heading = True
                bonus = (_PARENT if parent else 0.0) + self.weigh_page(source, heading, citation)
                yield _Candidate(source, how, like, score + bonus - (1 - like), heading)
            if not any_heading and (citation.section or re.search(r"\d|\bguide\b", normalise_name(document))):
                paged = _NO_PAGES if citation.page and not source.raw.path else 0.0
                yield _Candidate(source, how, 1.0, score + paged)

    def _find_rules(self, citation: RuleCitation, row: RowEvidence) -> Iterator[_Candidate]:
        """Yield the headings of the rules and paragraphs that a citation names: `CPR 36.2(1)`, `PD 28 para 2.1`."""
        for reference in find_references(citation.document):
            number = ".".join(reference.path[:2])
            if reference.kind == "rule" and len(reference.path) > 1:
                yield from self._find_inside(f"Part {reference.path[0]}", number, citation, row)
            elif reference.kind == "direction" and reference.path:
                yield from self._find_inside(f"Practice Direction {reference.source}", number, citation, row)

    def _find_headings(self, source: RulesFile, citation: RuleCitation, row: RowEvidence) -> Iterator[_Candidate]:
        """Yield the headings of a document that match a citation which names no document."""
        matches = list(self.read_layout(source).find_meant(citation.document))
        evidence = self._weigh_evidence(source, row) if matches else 0.0
        numbered = _NUMBER if read_name(citation.document).number else 0.0
        for heading, like, parent in matches:
            bonus = numbered + (_PARENT if parent else 0.0) + self.weigh_page(source, heading, citation)
            if citation.page and not source.raw.path:
                bonus += _NO_PAGES
            yield _Candidate(source, "section", like, like + bonus + evidence, heading)

    # ------------------------------------------------------------ further evidence

    def _weigh_evidence(self, source: RulesFile, row: RowEvidence) -> float:
        """Return how strongly a row's texts suggest that the row cites a document; negative if they contradict it."""
        total = self._weigh_court(source, row)
        if source.kind and source.kind == _read_kind(row.source_type) and total >= 0:
            total += _KIND
        number = normalise_name(reference_of(source.raw.title))
        if number and re.search(rf"\b{number}\b", normalise_name(row.prose)):
            total += _MENTIONED
        return total

    def _weigh_court(self, source: RulesFile, row: RowEvidence) -> float:
        if source.kind != GUIDE:
            return 0.0
        courts = next((courts for guide, courts in self.guides if guide is source), {})
        # check each text separately: the end of one and the start of the next do not form a court's name
        fields, prose = (row.source_type, *row.fields), row.prose.splitlines()
        if any(names_court(text, courts) for text in fields):
            return _COURT
        if any(names_court(text, courts) for text in prose):
            return _SPOKEN
        foreign = any(find_strange_courts(text, self.courts, guides_only=False) for text in fields)
        foreign = foreign or any(find_strange_courts(text, self.courts, guides_only=True) for text in prose)
        return _FOREIGN if foreign else 0.0

    def weigh_page(self, source: RulesFile, heading: RuleHeading | None, citation: RuleCitation) -> float:
        """Return how strongly a citation's page number supports a heading (positive) or contradicts it (negative)."""
        pages = citation.pages
        if pages is None or heading is None or not heading.page:
            return 0.0
        offset = self.read_layout(source).offset
        away = min(abs(pages[0] + shift - heading.page) for shift in (0, offset))
        if away == 0:
            return _PAGE
        within = any(heading.page <= pages[0] + shift <= heading.last_page for shift in (0, offset))
        if away <= _CLOSE:
            return _NEAR
        return 0.0 if within or away <= _OFF else _FAR


def _pages_of(layout: Layout, first: int, last: int) -> CitedSection | None:
    """Return the cited pages of a document as one section, at most five pages; None if they have no text."""
    lines = [line for line in layout.lines if first <= line.page <= min(last, first + _MOST_PAGES)]
    if not lines:
        return None
    start, end = lines[0].start, lines[-1].end
    return CitedSection(start, end, lines[0].text, layout.text[start:end], lines[0].page)


_MOST_PAGES = 4  # pages of a cited section: a longer section is cited for its start


def _read_kind(source_type: str) -> str:
    """Return the kind of document that a `source_type` states."""
    words = normalise_name(source_type)
    directions, rules = (
        re.search(r"\bpds?\b|practice direction", words),
        re.search(r"\bcpr\b|\brules?\b|^parts?$", words),
    )
    if re.search(r"\bguides?\b", words):
        return GUIDE
    return "" if bool(directions) == bool(rules) else PD if directions else CPR


def _rank(candidate: _Candidate) -> tuple[float, bool, float]:
    return (round(candidate.score, 6), candidate.heading is not None, candidate.likeness)
