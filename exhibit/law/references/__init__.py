"""References to law in running text: UK rules, statutes, guides and cases, acts of the EU, and provisions of laws."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from exhibit.evidence import Span
from exhibit.law.language import LegalSystem, choose_system, language_of, system_of
from exhibit.law.provisions import LawName, find_provisions, find_units, label_key, make_law_name, read_edition
from exhibit.law.references import courts
from exhibit.law.references.reference import Kind, Path, Reference, blank_spans, credit, is_same_source
from exhibit.law.references.statutes import find_statutes

__all__ = ["Kind", "Reference", "ReferenceCorpus", "credit", "find_references"]

# full names are read before names that may be their parts: "Part 1 of the Limitation Act 1980" is not CPR Part 1
_FINDERS = (
    courts.find_cases, courts.find_tribunals, find_statutes, courts.find_directions, courts.find_guides,
    courts.find_rules,
)  # fmt: skip
# The abbreviation of a law, such as `BGB` or `BDSG`.
_ABBREVIATION = re.compile(r"(?<!\w)[A-ZÄÖÜ][A-Za-zÄÖÜäöü]{0,7}[A-Z](?!\w)")
_NUMBERED = re.compile(r"(?m)^[ \t]*\(?(\d{1,2}|[a-z])\)")
_TITLE = re.compile(
    r"(?i)^\W*(?:Document:\s*)?(?P<sort>(?:CPR\s+)?PART|PRACTICE\s+DIRECTION)\s+"
    r"(?P<number>\d{1,2}[ \xa0]?(?:[A-Z]{1,3}\d?)?)(?![\w.])\s*(?P<rest>.*)$"
)
# some texts separate a letter from its number: "91.3 A The court"; but in "91.3 A party may" the A begins a sentence
_NUMBER = (
    r"(?:[A-Z]\.?)?\d{1,3}(?:[ \xa0]?[A-Z](?=\.\d))?(?:\.\d{1,3})*"
    r"(?:(?:[A-Z]{1,2}|[ \xa0](?:[A-Z]{2}|[B-HJ-Z]|[AI](?!\s+[a-z])))(?![A-Za-z.]))?"
)
_LABEL = re.compile(
    rf"^\s*(?:(?:Rule|Para(?:graph)?\.?|Section|Chapter)\s+)?(?P<number>{_NUMBER})(?=[\s.(]|[A-Z][a-z]|$)"
)
_ANNEXED = re.compile(r"(?i)^\s*(?P<sort>Annex|Appendix)\s+(?P<number>[A-Z]{1,2}|\d{1,2})\b")
# some texts lack spaces in a list: "about -(a) documents used in court proceedings; and(b) the obligations"
_PARAGRAPH = re.compile(
    r"(?:^|(?<=[-–—;:,.)])|(?<=\band)|(?<=\bor)|(?<=[\dA-Z]))\s*\((\d{1,3}[ ]?[A-Z]{0,2}|[a-z]{1,5})\)"
)


def find_references(text: str, *, context: str = "") -> list[Reference]:
    offset = len(context) + 2 if context else 0
    whole = f"{context}\n\n{text}" if context else text
    unread = whole
    references: list[Reference] = []
    for finder in _FINDERS:
        mentions = list(finder(unread))
        references += [reference for mention in mentions for reference in mention.references]
        unread = blank_spans(unread, [mention.span for mention in mentions])
    references += _find_provisions(unread, choose_system(language_of(whole[:_OPENING_CHARS])))
    in_text = [reference for reference in references if reference.span.start >= offset]
    shifted = [replace(r, span=Span(r.span.start - offset, r.span.end - offset)) for r in in_text]
    return sorted(shifted, key=lambda reference: reference.span.start)


def _find_provisions(text: str, system: LegalSystem) -> Iterator[Reference]:
    """Yield the provisions that a text names; a provision without a law belongs to the last named law."""
    if not system.units:
        return
    patterns = [_ABBREVIATION, *([re.compile(system.data["code"])] if "code" in system.data else [])]
    codes = dict.fromkeys(match[0] for pattern in patterns for match in pattern.finditer(text))
    last = ""
    for provision in find_provisions(text, system, [LawName(code, (code,)) for code in codes]):
        last = provision.law or last
        yield Reference("statute", last, (label_key(provision.label)[1], *provision.below), provision.span)


def _list_law_places(text: str, system: LegalSystem) -> Iterator[Reference]:
    """Yield a reference for each unit (§ or article) of a law, and for each numbered or lettered part of a unit."""
    edition = read_edition(text)
    codes = make_law_name(edition.title).codes if edition else ()
    for unit in find_units(text, system) if codes else ():
        inside: list[str] = []
        for label in ("", *_NUMBERED.findall(text[unit.span.start : unit.span.end])):
            inside = _nest_label(inside, label) if label else []
            yield from (Reference("statute", code, (label_key(unit.label)[1], *inside)) for code in codes)


_OPENING_CHARS = 1500  # characters of the first pages, on which a guide states its name


class ReferenceCorpus:
    """The references in some texts; a reference to a rule is also a reference to the rule's Part."""

    def __init__(self, references: Iterable[Reference]) -> None:
        self._sources: dict[tuple[Kind, Path], set[str]] = defaultdict(set)
        for reference in references:
            shortest = len(reference.path) if reference.kind == "case" else 0
            for end in range(shortest, len(reference.path) + 1):
                self._sources[reference.kind, reference.path[:end]].add(reference.source)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "ReferenceCorpus":
        return cls(reference for text in texts for reference in (*list_own_places(text), *find_references(text)))

    def contains(self, reference: Reference) -> bool:
        sources = self._sources.get((reference.kind, reference.path), set())
        return any(is_same_source(reference.kind, reference.source, source) for source in sources)


def list_own_places(text: str) -> Iterator[Reference]:
    if (system := system_of(text)).units:
        yield from _list_law_places(text, system)
        return
    guides = courts.name_guides(text[:_OPENING_CHARS])
    is_guide = bool(guides) and not any(map(_read_title, text[: guides[0].start].split("\n")))
    whole = Reference("guide", guides[0].name, ()) if is_guide else None
    base: Path = ()
    inside: list[str] = []
    for line in text.split("\n"):
        if not is_guide and (titled := _read_title(line)):
            whole, base, inside = titled, (), []
            yield titled
        elif whole:
            base, inside, rest = _read_label(line, whole, base, inside)
            if base:
                yield replace(whole, path=base)
            for label in _PARAGRAPH.findall(rest) if base else ():
                inside = _nest_label(inside, label.replace(" ", ""))
                yield replace(whole, path=(*base, *inside))


def _read_title(line: str) -> Reference | None:
    """Return the Part or practice direction that a title line names; None for "Part 36 applies where …"."""
    match = _TITLE.match(line) if len(line) < 200 else None
    if match is None:
        return None
    after_number = match["rest"]
    if after_number and not re.match(r"[-–—:]|[A-Z][A-Z]", after_number) and not line.lstrip().startswith("Document:"):
        return None
    number = re.sub(r"\s", "", match["number"]).upper()
    part = match["sort"].lower().endswith("part")
    return Reference("rule", "CPR", (number,)) if part else Reference("direction", number, ())


def _read_label(line: str, whole: Reference, base: Path, inside: list[str]) -> tuple[Path, list[str], str]:
    """Return the number of the provision at a line, the path of its inner paragraphs, and the text after the label."""
    annexed = _ANNEXED.match(line) if whole.kind != "rule" else None
    if annexed:
        return (f"{annexed['sort'].lower()} {annexed['number'].upper()}",), [], line[annexed.end() :]
    match = _LABEL.match(line)
    plain = re.sub(r"\s", "", match["number"]) if match else ""
    parts = tuple(part for part in re.sub(r"^([A-Z])\.?", r"\1.", plain).split(".") if part)
    # the numbers of the rules begin with that of their Part
    if match is None or (whole.path and (parts[:1] != whole.path or (len(parts) < 2 and parts != ("11",)))):
        return base, inside, line
    return parts, [], line[match.end() :]


def _nest_label(inside: list[str], label: str) -> list[str]:
    """Return the path of a label after the labels in `inside`: (1) contains (a), and (a) contains (i)."""
    if label[0].isdigit():
        return [label]
    numbers, letters = [part for part in inside if part[0].isdigit()], [part for part in inside if part.isalpha()]
    follows_h = letters[-1:] == ["h"] and label == "i"
    roman = re.fullmatch(r"[ivx]+[a-z]?", label) and letters and not follows_h
    return [*numbers, letters[0], label] if roman else [*numbers, label]
