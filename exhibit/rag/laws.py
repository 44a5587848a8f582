"""Retrieval for questions about laws: the law, § and day in the question decide which version is searched."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.language import LegalSystem, choose_system, system_of
from exhibit.law.provisions import Edition, LawName, Provision, find_provisions, find_units, label_key, make_law_name
from exhibit.law.values import find_days
from exhibit.rag.index import Index
from exhibit.rag.passages import RankedPassage

_MAX_CHARS = 6000  # most characters of a returned §; a longer § is cut
_EVERYWHERE = 1 << 20  # no limit: more words than any question has


class Route(NamedTuple):
    documents: tuple[int, ...] = ()  # the versions in force on the days in the question, else the last version
    passages: tuple[RankedPassage, ...] = ()  # the paragraphs that the question names; they rank first
    note: str = ""  # the name of that version, in the words of the document
    nothing: bool = False  # the law is newer than the day, or the § was repealed by that day


class _Law(NamedTuple):
    name: LawName
    editions: list[tuple[int, Edition]]  # the versions by the documents' numbers, oldest first

    def on(self, day: date) -> tuple[int, Edition] | None:
        return next((pair for pair in reversed(self.editions) if pair[1].holds(day)), None)


def route_to_law(question: str, index: Index) -> Route:
    laws = _list_laws(index)
    law = _find_law(question, laws)
    if law is None:
        return Route()
    system = system_of(index.text_of(law.editions[-1][0]))
    days = find_days(question)
    # without a day, use the last version, not the version of today: the result must be the same on every day
    editions = [law.on(day) for day in days] or [law.editions[-1]]
    chosen = [edition for edition in editions if edition is not None]
    if len(chosen) < len(editions):
        return Route(nothing=True)
    note = "; ".join(dict.fromkeys(edition.dated for _, edition in chosen if edition.dated))
    provision = _find_provision(question, system, laws)
    if provision is not None and provision.law not in {None, law.name.key}:
        other = next(each for each in laws if each.name.key == provision.law)
        chosen = [(other.on(days[0]) if days else None) or other.editions[-1]]
        note = chosen[0][1].dated
    numbers = tuple(dict.fromkeys(number for number, _ in chosen))
    label = provision.label if provision else _find_heading(question, index.text_of(numbers[0]), system)
    if label is None:
        return Route(numbers, note=note)
    paragraphs = [_find_paragraph(index, number, label, system) for number in numbers]
    passages = tuple(passage for passage in paragraphs if passage is not None)
    return Route(numbers, passages, note, nothing=not passages)


def _list_laws(index: Index) -> list[_Law]:
    if "laws" not in index.cache:
        grouped: dict[str, list[tuple[int, Edition]]] = defaultdict(list)
        for entry in index.of_kind("legislation"):
            edition = Edition(entry.profile.title, entry.profile.date)
            grouped[edition.title].append((entry.number, edition))
        index.cache["laws"] = [
            _Law(make_law_name(title), sorted(editions, key=lambda pair: pair[1].days[0] or date.min))
            for title, editions in grouped.items()
        ]
    laws: list[_Law] = index.cache["laws"]
    return laws


def _find_law(question: str, laws: Sequence[_Law]) -> _Law | None:
    ends = [(law.name.find_end(question, near=_EVERYWHERE), law) for law in laws]
    named = [(end, -len(law.name.title), law) for end, law in ends if end]
    codes = [max((len(code) for code in law.name.codes if code in question), default=0) for _, _, law in named]
    by_code = [(end, -length, law) for (end, _, law), length in zip(named, codes, strict=True) if length]
    first = min(by_code or named, key=lambda each: (each[0], each[1]), default=None)
    return first[2] if first else None


def _find_provision(question: str, system: LegalSystem, laws: Sequence[_Law]) -> Provision | None:
    """Return the provision that a question is about.

    It is the last cited provision if a quotation mark precedes it, else the first.
    """
    names = [law.name for law in laws]
    named = list(find_provisions(question, system, names)) or [
        replace(each, label=_translate_label(each.label, system))
        for each in find_provisions(question, choose_system("en"), names)
    ]
    if not named:
        return None
    last = named[-1]
    quoted = question[max(0, last.span.start - 1) : last.span.start] in '„“”"«»'
    return last if quoted or len(named) == 1 else named[0]


def _translate_label(label: str, system: LegalSystem) -> str:
    """Return a label as the laws of a legal system write it: `section 433 of the BGB` becomes `§ 433`."""
    word, _, number = label.partition(" ")
    kind = "article" if word.lower().startswith("art") else "paragraph"
    unit = next((level for level in system.units if level.kind == kind), None)
    return f"{unit.words[0]} {number}" if unit else label


def _find_heading(question: str, text: str, system: LegalSystem) -> str | None:
    words = f" {_normalise(question)} "
    titled = [(_normalise(unit.title), unit) for unit in _list_units(text, system)]
    named = [unit for title, unit in titled if len(title) > 3 and f" {title} " in words]
    best = max(named, key=lambda unit: len(unit.title), default=None)
    return best.label if best else None


def _normalise(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _find_paragraph(index: Index, number: int, label: str, system: LegalSystem) -> RankedPassage | None:
    text = index.text_of(number)
    spans = [unit.span for unit in _list_units(text, system) if label_key(unit.label) == label_key(label)]
    if not spans:
        return None
    # if two units have the same number, the shorter is a line of the table of contents
    span = max(spans, key=lambda span: span.end - span.start)
    span = Span(span.start, min(span.start + len(text[slice(*span)].rstrip()), span.start + _MAX_CHARS))
    return RankedPassage(number, span, 0.0)


_list_units = lru_cache(maxsize=32)(find_units)
