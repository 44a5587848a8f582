"""Adds a sentence to an answer for each of its values that another document or clause contradicts.

Two documents are compared only if they are versions of one contract and neither is an amendment. Versions
have the same title and parties; if the titles differ or no parties are recognised, their openings must be
nearly equal. Two values contradict each other if they are of one kind, differ, and have the same words
around them.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from weakref import WeakKeyDictionary

from exhibit.evidence import Document, Span
from exhibit.law.citations import SOURCES
from exhibit.law.names import normalise_name
from exhibit.law.provision_places import ProvisionIndex
from exhibit.law.provisions import read_provisions
from exhibit.law.values import Value, find_values
from exhibit.rag.index import Entry, Index
from exhibit.rag.protocols import Answer, AnswerContext, Keys, Source
from exhibit.rag.retrieval.families import find_namesakes

_MOST = 4  # values of an answer that are compared
_AROUND = 8  # words before and after a value that must be the same
_FEWEST = 4  # such words in all: fewer occur in any contract
_WIDEST = 80  # characters of a value, in words and digits
_OPENING, _ALIKE = 1500, 0.9
"""The characters of an opening, and the least share of words that two versions' openings share; dates and figures
differ.
"""
_REFERS = re.compile(
    r"(?i)\bthe\s+(?:[a-z]+\s+){0,2}[a-z]+\s+(?:stated|set\s+(?:forth|out)|specified|provided|given)\s+in\s+"
    r"(?P<section>(?:section|clause|article)\s+\d{1,3}(?:\.\d{1,3}){0,4})\s+(?:is|shall\s+be|means)\s+"
    r"(?P<states>[^.;]{1,120})"
)
"""Matches a sentence that states the value of another section: `the period stated in Section 9.1 is four (4) years`."""

_VERSIONS: WeakKeyDictionary[Index, tuple[Keys, dict[int, list[Entry]]]] = WeakKeyDictionary()
"""A cache of the other versions of each contract that was the source of an answer, until the index changes."""


def with_disagreement(answer: Answer, context: AnswerContext, index: Index) -> Answer:
    """Return an answer with a sentence added for each value in it that another document or clause contradicts."""
    if answer.refused or answer.error or not index.config.lexicon:
        return answer
    text, mark, places = answer.text.partition(f"\n\n{SOURCES}")
    stated = {value.same for value in find_values(text)}
    told: dict[str, None] = {}
    for source in context.find_cited_sources(text):
        own = [value for value in find_values(source.text) if value.same in stated][:_MOST]
        for value in own:
            told |= dict.fromkeys(_compare_documents(source, value, index))
        told |= dict.fromkeys(_compare_sections(source, stated, index))
    return replace(answer, text=" ".join([text, *told]) + mark + places) if told else answer


# ---------------------------------------------------------------- two documents


def _compare_documents(source: Source, value: Value, index: Index) -> Iterator[str]:
    """Yield a sentence for each other version of the contract that states another value at the same position.

    The position is recognised by the words around the value: one version says `within 30 days of notice`, and
    the other `within 60 days of notice`.
    """
    around = _make_pattern(source.text, value)
    if around is None:
        return
    for entry in _find_other_versions(index, index.entry(source.document)):
        others = [
            other
            for match in around.finditer(index.text_of(entry.number))
            for other in find_values(match[1])
            if other.kind == value.kind
        ]
        if others and all(other.same != value.same for other in others):
            yield (
                f"The documents disagree: {_join_lines(value.text)} according to {source.document}, "
                f"{_join_lines(others[0].text)} according to {entry.filename}."
            )


def _make_pattern(text: str, value: Value) -> re.Pattern[str] | None:
    """Return a regular expression that matches any value between the same words as `value` in `text`.

    For `30 days` in "a notice of 30 days in writing", it also matches "a notice of 60 days in writing".
    Only words up to the next value on each side are used. Return None if there are too few words.
    """
    near = [other.span for other in find_values(text) if other.span != value.span]
    start = max((span.end for span in near if span.end <= value.span.start), default=0)
    end = min((span.start for span in near if span.start >= value.span.end), default=len(text))
    before = text[start : value.span.start].split()[-_AROUND:]
    after = text[value.span.end : end].split()[:_AROUND]
    if len(before) + len(after) < _FEWEST:
        return None
    words = [r"\s+".join(map(re.escape, words)) for words in (before, after)]
    return re.compile(rf"{words[0]}\s{{0,4}}(.{{1,{_WIDEST}}}?)\s{{0,4}}{words[1]}", re.DOTALL)


def _find_other_versions(index: Index, entry: Entry) -> list[Entry]:
    known = _VERSIONS.get(index)
    if known is None or known[0] is not index.table:
        known = _VERSIONS[index] = index.table, {}
    if entry.number not in known[1]:
        amending = index.amendments
        near = find_namesakes(index, entry).values() if entry.number not in amending else ()
        known[1][entry.number] = [
            other
            for other in near
            if other.number != entry.number and other.number not in amending and _is_version(entry, other, index)
        ]
    return known[1][entry.number]


def _is_version(one: Entry, other: Entry, index: Index) -> bool:
    """Return whether two documents are versions of one contract.

    Two documents with the same title are versions if their parties are the same. If the titles differ or
    parties are unknown, the openings of the documents must be nearly equal.
    """
    if (
        normalise_name(one.profile.title) == normalise_name(other.profile.title)
        and one.profile.parties
        and other.profile.parties
    ):
        return set(map(normalise_name, one.profile.parties)) == set(map(normalise_name, other.profile.parties))
    words = [frozenset(normalise_name(index.text_of(entry.number)[:_OPENING]).split()) for entry in (one, other)]
    return len(words[0] & words[1]) >= _ALIKE * len(words[0] | words[1])


# ---------------------------------------------------------------- two clauses


def _compare_sections(source: Source, stated: set[tuple[str, str]], index: Index) -> Iterator[str]:
    """Yield a sentence for each contradiction between a section's value and a clause that restates this value.

    Example: Section 9.1 says three years, but a clause says `the period stated in Section 9.1 is four years`.
    The section or the clause must overlap the source, and the answer must contain one of the two values.
    `stated` has the values in the answer, each as its kind and its normal form.
    """
    text = index.text_of(index.entry(source.document).number)
    here = source.hit.chunk.span
    for match in _REFERS.finditer(text):
        places = _places_of(text, _join_lines(match["section"]))
        clauses = [place for place in places if _overlaps(place, here)]
        if not clauses and _overlaps(Span(*match.span()), here) and len(places) == 1:
            clauses = places  # of several sections with one number none is sure
        for section in clauses:
            clause = find_values(text[slice(*section)])
            for other in find_values(match["states"]):
                alike = [value for value in clause if value.kind == other.kind]
                is_meant = stated & {value.same for value in (*alike, other)}
                if is_meant and alike and all(value.same != other.same for value in alike):
                    yield (
                        f"The document disagrees with itself: {_join_lines(alike[0].text)} "
                        f"in {_join_lines(match['section'])}, "
                        f"{_join_lines(other.text)} in “{_join_lines(match[0])}”."
                    )


@lru_cache(maxsize=64)
def _places_of(text: str, section: str) -> list[Span]:
    """Return the spans of all sections, clauses or articles of a given name, such as `Section 9.1`."""
    named = read_provisions(section)
    found = _provisions_of(text).find(named[0]) if named else []
    return [Span(place.spans[0].start, place.spans[-1].end) for place in found if not place.whole]


@lru_cache(maxsize=4)  # questions that follow each other are on few documents
def _provisions_of(text: str) -> ProvisionIndex:
    return ProvisionIndex(Document("", text))


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _join_lines(text: str) -> str:
    return " ".join(text.split())
