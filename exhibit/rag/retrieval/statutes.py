"""Retrieval for questions about laws: the law, § and day in the question decide which version is searched."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from weakref import WeakKeyDictionary

from exhibit.evidence import Span
from exhibit.law.editions import (
    Edition,
    LawName,
    Provision,
    Unit,
    find_provisions,
    find_units,
    label_key,
    make_law_name,
)
from exhibit.law.figures import find_days
from exhibit.law.language import LegalSystem, choose_system, system_of
from exhibit.rag.index import Index
from exhibit.rag.protocols import Answer, AnswerContext, Keys
from exhibit.rag.retrieval.passages import RankedPassage, find_row
from exhibit.rag.retrieval.stages import Retrieved

_LONGEST = 6000
"""The greatest length in characters of a § that is returned whole; a longer § is cut."""
_ANSWER = 2000  # characters of a § that an answer quotes
_EVERYWHERE = 1 << 20  # more words than a question has: no limit


@dataclass(frozen=True)
class Route:
    """The versions of a law to search for a question, and the provisions in them that the question cites."""

    documents: tuple[int, ...]
    """The versions of the days that the question names; today's version if it names none."""
    passages: tuple[RankedPassage, ...] = ()
    """The paragraphs that the question names; they rank first."""
    note: str = ""
    """The name of that version, in the document's own words."""
    nothing: bool = False
    """Whether no version contains the answer: the law is newer than the day, or the § was repealed by that day."""


@dataclass(frozen=True)
class _Law:
    name: LawName
    editions: list[tuple[int, Edition]] = field(default_factory=list)
    """The versions by the documents' numbers, oldest first."""


_LAWS: WeakKeyDictionary[Index, tuple[Keys, list[_Law]]] = WeakKeyDictionary()
"""A cache of the laws of each open index, until the index changes."""


def route(question: str, index: Index, *, today: date | None = None) -> Route | None:
    """Return the versions and provisions for a question that names a law of the index; None for other questions."""
    laws = _list_laws(index)
    law = _find_law(question, laws)
    if law is None:
        return None
    system = _find_system(index, law)
    days = find_days(question)
    editions = [_of_day(law, day) for day in days or [today or date.today()]]
    if not days and editions == [None]:
        editions = [law.editions[-1]]
    if None in editions:
        return Route((), note="", nothing=True)
    chosen = [edition for edition in editions if edition is not None]
    note = "; ".join(dict.fromkeys(edition.dated for _, edition in chosen if edition.dated))
    asked = _find_provision(question, system, laws)
    if asked is not None and asked.law not in {None, law.name.key}:
        other = next(each for each in laws if each.name.key == asked.law)
        day = days[0] if days else today or date.today()
        chosen = [_of_day(other, day) or other.editions[-1]]
        note = chosen[0][1].dated
    numbers = tuple(dict.fromkeys(number for number, _ in chosen))
    label = asked.label if asked else _find_governing(question, index, numbers[0], system)
    if label is None:
        return Route(numbers, note=note)
    places = [_place(index, number, label, system) for number in numbers]
    passages = tuple(place for place in places if place is not None)
    return Route(numbers, passages, note, nothing=not passages)


def _list_laws(index: Index) -> list[_Law]:
    known = _LAWS.get(index)
    if known is None or known[0] is not index.table:
        grouped: dict[str, list[tuple[int, Edition]]] = defaultdict(list)
        for entry in index.of_kind("legislation"):
            edition = Edition(entry.profile.title, entry.profile.date)
            grouped[edition.title].append((entry.number, edition))
        laws = [
            _Law(make_law_name(title), sorted(editions, key=lambda pair: pair[1].days[0] or date.min))
            for title, editions in grouped.items()
        ]
        known = _LAWS[index] = index.table, laws
    return known[1]


def _find_law(question: str, laws: list[_Law]) -> _Law | None:
    """Return the law that a question names first; None if it names no law.

    If several names end at the same offset, the longest name counts. If a law is named by a code such as `BGB`,
    laws that are named by their titles alone are ignored.
    """
    ends = [(law.name.find_end(question, near=_EVERYWHERE), law) for law in laws]
    named = [(end, -len(law.name.title), law) for end, law in ends if end]
    if not named:
        return None
    by_code = [(end, -_find_longest(law.name.codes, question), law) for end, _, law in named]
    by_code = [each for each in by_code if each[1]]
    first = min(by_code or named, key=lambda each: (each[0], each[1]))
    return first[2]


def _find_longest(codes: Sequence[str], question: str) -> int:
    """Return the length of the longest code of a law, such as `BGB`, that is in the question; 0 if none is."""
    return max((len(code) for code in codes if code in question), default=0)


def _of_day(law: _Law, day: date) -> tuple[int, Edition] | None:
    return next((pair for pair in reversed(law.editions) if pair[1].holds(day)), None)


def _find_provision(question: str, system: LegalSystem, laws: list[_Law]) -> Provision | None:
    """Return the provision that a question is about; None if the question cites no provision.

    If a quotation mark stands directly before the last cited provision, return the last cited provision.
    Otherwise return the first cited provision.
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


def _find_governing(question: str, index: Index, number: int, system: LegalSystem) -> str | None:
    """Return the label of the provision whose heading occurs in a question; None if there is none.

    Of several headings, the longest is chosen.
    """
    said = _normalise(question)
    titled = [unit for unit in _list_units(index, number, system) if len(_normalise(unit.title)) > 3]
    named = [unit for unit in titled if f" {_normalise(unit.title)} " in f" {said} "]
    best = max(named, key=lambda unit: len(unit.title), default=None)
    return best.label if best else None


def _normalise(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _place(index: Index, number: int, label: str, system: LegalSystem) -> RankedPassage | None:
    """Return a § of a document as a passage; None if the document has no § with this label."""
    found = [unit for unit in _list_units(index, number, system) if label_key(unit.label) == label_key(label)]
    if not found:
        return None
    text = index.text_of(number)
    # of two units with one number, the longer one is the provision, the shorter one a line of the table of contents
    span = max((unit.span for unit in found), key=lambda span: span.end - span.start)
    span = Span(span.start, min(span.start + len(text[slice(*span)].rstrip()), span.start + _LONGEST))
    return RankedPassage(number, span, 0.0, find_row(index.table, number, span.start))


@lru_cache(maxsize=32)
def _units_of(text: str, system: LegalSystem) -> list[Unit]:
    return find_units(text, system)


def _list_units(index: Index, number: int, system: LegalSystem) -> list[Unit]:
    return _units_of(index.text_of(number), system)


def _find_system(index: Index, law: _Law) -> LegalSystem:
    return system_of(index.text_of(law.editions[-1][0]))


def with_version(answer: Answer, retrieved: Retrieved, context: AnswerContext) -> Answer:
    """Return an answer with a note that names the version of the law from which its passages come.

    If the question cites provisions, and the answer is a refusal or was not written by a language model, the
    answer becomes the text of these provisions.
    """
    if answer.error or not retrieved.selected:
        return answer
    if retrieved.named and (answer.refused or not answer.usage):
        sources = context.sources[: retrieved.named]
        words = [f"“{_cut(source.text)}” [{source.number}]" for source in sources]
        answer = replace(answer, text="\n\n".join(words), citations=tuple(s.number for s in sources), refused=False)
    return (
        replace(answer, text=f"{answer.text}\n({retrieved.note})") if retrieved.note and not answer.refused else answer
    )


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _ANSWER else f"{words[: words.rfind(' ', 0, _ANSWER)]} …"
