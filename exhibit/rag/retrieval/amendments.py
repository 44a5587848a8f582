"""Retrieval for amended contracts: it returns the sections in force on the day that the question asks for.

An amendment may have replaced a section before that day, or may add one only later. A passage from a
section that is not in force is therefore replaced by the section as it reads on that day. An answer from a
changed section names the document that changed it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from exhibit.evidence import Span, subtract_spans
from exhibit.law.citations import SOURCES
from exhibit.law.families import Family, SectionVersion
from exhibit.law.language import list_content_words
from exhibit.law.sentences import split_sentences
from exhibit.law.values import find_values
from exhibit.rag.index import Index
from exhibit.rag.protocols import Answer, AnswerContext, Hit
from exhibit.rag.questions import find_day_end
from exhibit.rag.retrieval.families import find_amendments, find_family
from exhibit.rag.retrieval.passages import RankedPassage, find_row
from exhibit.rag.retrieval.routed import to_hits
from exhibit.rag.retrieval.stages import Retrieved, cut_hit

_PIECE = 700
"""The characters of a section that become a passage: the reader model reads 900 with the question."""
_LEAST = 60  # characters of a passage that stays when a section in it is replaced: a shorter rest is a heading
_ASKED = re.compile(r"(?i)\b(?:as\s+of|as\s+at|on|at|before|after|until|by)\W+(?:the\s+)?$")
_OTHERWISE = re.compile(r"(?i)\b(?:dated|entered\s+into|made|executed|signed|effective)\W+(?:as\s+of|on)?\W*$")


def find_asked_day(question: str) -> date | None:
    """Return the day that a question asks for: `As of 1 March 2021: …`; None if it names no such day."""
    for value in find_values(question):
        before = question[: value.span.start]
        if value.kind == "date" and _ASKED.search(before) and not _OTHERWISE.search(before):
            return date.fromisoformat(value.key)
    return None


def strip_asked_day(retrieved: Retrieved) -> str:
    """Return the question for the answerer, without a leading day such as `As of 1 March 2021:`.

    The day is removed only if `choose_in_force` has already applied it to the passages.
    """
    question = retrieved.question
    return question[find_day_end(question) :] if "amendments" in retrieved.trace else question


def choose_in_force(retrieved: Retrieved, index: Index, *, today: date | None = None) -> Retrieved:
    """Return the search result with each passage that an amendment has superseded replaced by the text in force.

    The text in force is determined for the day that the question names, else for `today`, else for the current
    date.
    """
    if not retrieved.ranked or not index.config.lexicon or not find_amendments(index):
        return retrieved
    names = dict.fromkeys(hit.chunk.document for hit in retrieved.selected or retrieved.ranked)
    families = {name: find_family(index, index.entry(name)) for name in names}
    if not any(families.values()):
        return retrieved
    day = find_asked_day(retrieved.question) or today or date.today()
    changes: dict[tuple[str, int], str] = {}
    update = partial(_update, index, families, day, changes)
    ranked, selected = update(retrieved.ranked), update(retrieved.selected)
    before = None if retrieved.before is None else update(retrieved.before)
    trace = {**retrieved.trace, "amendments": {"day": day.isoformat(), "changed": sorted(set(changes.values()))}}
    return replace(retrieved, ranked=ranked, selected=selected, before=before, trace=trace, changes=changes)


def _update(
    index: Index,
    families: dict[str, Family[int] | None],
    day: date,
    changes: dict[tuple[str, int], str],
    hits: Sequence[Hit],
) -> tuple[Hit, ...]:
    """Return the passages, with each superseded one replaced by the passages in force.

    For each passage that an amendment changed, a sentence about the change is added to `changes`.
    """
    kept: dict[tuple[str, Span], Hit] = {}
    for hit in hits:
        family = families.get(hit.chunk.document)
        number = index.entry(hit.chunk.document).number if family else -1
        for one, note in _find_replacements(index, family, number, hit, day) if family else [(hit, "")]:
            kept.setdefault((one.chunk.document, one.chunk.span), one)
            if note:
                changes[one.chunk.document, one.chunk.span.start] = note
    return tuple(kept.values())


def _find_replacements(
    index: Index, family: Family[int], number: int, hit: Hit, day: date
) -> Iterator[tuple[Hit, str]]:
    """Yield the passages in force that replace one passage, each with a sentence about its change.

    The sentence is "" if there was no change. A passage that is still in force is yielded itself. Nothing is
    yielded if the whole document is superseded.
    """
    member, note = family.members[number], ""
    if family.is_superseded(number, day):
        return
    rest = [hit.chunk.span]
    for section, place in family.find_changed_places(number, hit.chunk.span):
        if not any(_overlaps(place, span) for span in rest):
            continue  # a part of a section that was replaced
        parts = (part for part in family.find_changed_parts(section, day) if part.source is not member)
        yield from ((_as_hit(index, part, hit), part.note) for part in parts)
        version = family.find_version(section, day)
        if version is None:
            continue
        if version.source is member and version.text == member.text[slice(*version.span)]:
            note = note or version.note
            continue
        yield _as_hit(index, version, hit), version.note
        rest = subtract_spans(rest, [place])
    if not member.holds(day):
        return
    if rest == [hit.chunk.span]:
        yield hit, note
        return
    for span in rest:
        if span.end - span.start >= _LEAST:
            start = hit.chunk.span.start
            yield cut_hit(hit, span.start - start, span.end - start), note


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _as_hit(index: Index, version: SectionVersion[int], like: Hit) -> Hit:
    """Return the part of a section's version that is most similar to the passage `like`, as a hit.

    The hit has the score of `like`.
    """
    number, start = version.source.key, version.span.start
    own = version.text == index.text_of(number)[slice(*version.span)]
    piece = _cut_piece(version.text, like.text)
    span = Span(start + piece.start, start + piece.end) if own else version.span
    row = find_row(index.table, number, span.start)
    [hit] = to_hits(index, [RankedPassage(number, span, like.score, row)], index.text_of)
    return hit if own else replace(hit, text=version.text[slice(*piece)])


def _cut_piece(text: str, like: str) -> Span:
    """Return the span of adjacent sentences, at most one passage long, that share the most words with `like`."""
    if len(text) <= _PIECE:
        return Span(0, len(text))
    wanted = frozenset(list_content_words(like))
    spans = [Span(*span) for span in split_sentences(text)] or [Span(0, len(text))]
    pieces = []
    for at, first in enumerate(spans):
        fitting = [span.end for span in spans[at:] if span.end - first.start <= _PIECE]
        pieces.append(Span(first.start, fitting[-1] if fitting else first.start + _PIECE))
    return max(pieces, key=lambda piece: len(wanted.intersection(list_content_words(text[slice(*piece)]))))


# ---------------------------------------------------------------- answers


def with_changes(answer: Answer, retrieved: Retrieved, context: AnswerContext) -> Answer:
    """Return an answer with a note on each amendment that changed a section cited in the answer."""
    if answer.refused or answer.error or not retrieved.changes:
        return answer
    text, mark, places = answer.text.partition(f"\n\n{SOURCES}")
    cited = [source.hit.chunk for source in context.find_cited_sources(text)]
    notes = [retrieved.changes.get((chunk.document, chunk.span.start)) for chunk in cited]
    said = list(dict.fromkeys(filter(None, notes)))
    if not said:
        return answer
    return replace(answer, text=f"{text} ({'; '.join(said)}){mark}{places}")
