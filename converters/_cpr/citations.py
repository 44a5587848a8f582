"""What an answer cites in square brackets, and which document of the corpus that is."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from converters._cpr.documents import GUIDE, Source, reference_of

Method = Literal["exact", "normalised", "section", "unresolved"]
METHODS: tuple[Method, ...] = ("exact", "normalised", "section", "unresolved")

_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
_NUMBERS = re.compile(r"[\d\s,;–-]+")
"""`[1]`, `[1, 2]` and the year of `[2024] EWCA Civ 123` cite no document by name."""
_PAGES = re.compile(r"(?<!\s)\s*\(pp?\.([\d\s,–-]+)\)\s*$")
_SUBSECTION = re.compile(r",\s+(?=[A-Z]?\.?\d)")
"""Between the headings of `J. Trial, J.5 Reading lists, authorities and trial timetable`."""
_LETTERED = re.compile(r"\b((?i:part|direction|ymarfer|pd) ?\d+) ([A-Z]{1,2}\d?)\b")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Citation:
    """`[Document#page=Section]`, `[Document]`, or the heading of a section with its page."""

    text: str
    document: str
    section: str = ""
    page: str = ""


@dataclass(frozen=True)
class Resolution:
    """The document a citation means, by what rule; or why none was chosen."""

    source: Source | None
    how: Method
    reason: str = ""


def citations(truth: str) -> list[Citation]:
    """Return what an answer cites, each citation once."""
    found: dict[str, Citation] = {}
    for match in _BRACKETS.finditer(truth):
        text = _SPACES.sub(" ", match.group(1)).strip()
        if text and not _NUMBERS.fullmatch(text):
            found.setdefault(plain(text), _parsed(text))
    return list(found.values())


def _parsed(text: str) -> Citation:
    document, _, section = text.partition("#page=")
    page = ""
    if section.strip().isdigit():
        section, page = "", section.strip()
    pages = _PAGES.search(document)
    if pages:
        document, page = document[: pages.start()], pages.group(1).strip()
    return Citation(text, document.strip(), section.strip(), page)


@cache
def plain(name: str) -> str:
    """Return a name in small letters and single spaces, without accents, punctuation and abbreviation."""
    # the rules' own headings print "PRACTICE DIRECTION 34 A" for 34A
    text = unicodedata.normalize("NFKD", _LETTERED.sub(r"\1\2", name)).casefold()
    text = re.sub(r"['’‘`\u0300-\u036f]", "", text).replace("&", " and ")
    text = re.sub(r"[^a-z0-9]+", " ", text).strip()
    text = re.sub(r"\bpd ?(?=\d)", "practice direction ", text)
    return re.sub(r"^(?:the )?(?:cpr )?(?=part \d|practice direction)", "", text)


class Corpus:
    """Finds documents by the names that citations give them."""

    def __init__(self, sources: Sequence[Source], courts: Iterable[str]) -> None:
        self._courts = sorted({plain(court) for court in courts if court})
        self._exact: dict[str, list[Source]] = defaultdict(list)
        self._plain: dict[str, list[Source]] = defaultdict(list)
        self._guides = [source for source in sources if source.kind == GUIDE]
        self._letters: dict[str, str] = {}
        for source in sources:
            for name in dict.fromkeys(_SPACES.sub(" ", name) for name in source.names):
                self._exact[name].append(source)
            for name in dict.fromkeys(map(plain, source.names)):
                self._plain[name].append(source)

    def resolve(self, citation: Citation, *, source_type: str, category: str) -> Resolution:
        """Return the one document that a citation can mean, surest rule first; never the likeliest of several."""
        rules: list[tuple[Method, list[Source]]] = [
            ("exact", self._exact.get(citation.document, [])),
            ("normalised", self._plain.get(plain(citation.document), [])),
            ("normalised", self._by_number(citation.document)),
            ("normalised", self._by_court(plain(citation.document).removesuffix(" guide"), citation.document)),
        ]
        if source_type == GUIDE and not citation.section:
            rules.append(("section", self._by_section(citation.document, category)))
        # Part 44 and Practice Direction 44 have one name; the row says which of them it is about
        for same_kind in (True, False):
            for how, found in rules:
                kept = [s for s in found if not same_kind or not source_type or s.kind in {source_type, ""}]
                if len(kept) == 1:
                    return Resolution(kept[0], how)
                if kept:
                    names = ", ".join(source.raw.filename for source in kept)
                    return Resolution(None, "unresolved", f"names {len(kept)} documents: {names}")
        return Resolution(None, "unresolved", "names no document of the corpus")

    def _by_number(self, name: str) -> list[Source]:
        """`PART 36 - OFFERS`: the number decides, if at least half of the words after it are the document's, too."""
        words = plain(name)
        number = reference_of(words)
        after = words.removeprefix(number).split()
        if not number or not after:
            return []
        return [
            source
            for source in self._plain.get(number, [])
            if 2 * len(set(after) & {w for n in source.names for w in plain(n).split()}) >= len(set(after))
        ]

    def _by_court(self, court: str, name: str) -> list[Source]:
        """`Commercial Court Guide`: the guide of that court, whatever stands around it in the file's name."""
        return self._guides_of(court) if plain(name).endswith(" guide") else []

    def _guides_of(self, court: str) -> list[Source]:
        longer = [other for other in self._courts if court in other and other != court]
        return [
            source
            for source in self._guides
            if _named(source, court) and not any(_named(source, other) for other in longer)
        ]

    def _by_section(self, name: str, category: str) -> list[Source]:
        """A heading alone: the guide of the row's own court, if every heading that is cited stands in it."""
        headings = [_letters(part) for part in (name, *_SUBSECTION.split(name))]
        return [
            source
            for source in self._guides_of(plain(category))
            if headings[0] in (text := self._text(source)) or all(part in text for part in headings[1:])
        ]

    def holds(self, source: Source, section: str) -> bool:
        """Whether the words of a section's heading stand in a document, or are one of its names."""
        words = _letters(section)
        return words in self._text(source) or any(words in _letters(name) for name in source.names)

    def _text(self, source: Source) -> str:
        name = source.raw.filename
        if name not in self._letters:
            self._letters[name] = _letters(source.text())
        return self._letters[name]


def _named(source: Source, court: str) -> bool:
    return any(f" {court} guide " in f" {plain(name)} " for name in source.names)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", text).casefold())
