"""At which rank a gold passage is found: when the passages so far, united, hold at least half of its characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics._each import gold_texts
from exhibit.evidence import Span, fold
from exhibit.schemas.quotes import quote_parts

ENOUGH = 50
"""Characters that a piece of a gold passage must have to stand for it in a verdict, unless it is half of it."""
_ANCHOR = 16
"""Characters by which the end of one text is looked for at the start of another; fewer meet by accident."""

Held = tuple[int, Span]
"""A rank, and characters that the passage of this rank holds."""


def golds_of(case: Case) -> list[GoldPassage]:
    """Return the golds that can be found as passages, those of the same words in the same file once."""
    distinct: dict[tuple[object, ...], GoldPassage] = {}
    for gold in case.gold:
        if not gold.located and not _folded(gold.text or ""):
            continue  # a gap or a mark, of which nothing is left to compare
        distinct.setdefault(_identity(gold), gold)
    return list(distinct.values())


def _identity(gold: GoldPassage) -> tuple[object, ...]:
    return gold.filename, (_folded(gold.text) if gold.text else "") or gold.places


def gold_ranks(case: Case) -> list[int | None]:
    """Return for each of `golds_of` the rank, from 1, at which it is found; None where it is not."""
    return [_rank_of(gold, case.reply.passages) for gold in golds_of(case)]


def _rank_of(gold: GoldPassage, passages: Sequence[Passage]) -> int | None:
    """Return the earliest rank by place, for passages whose place is known, or by words, for the others."""
    placed: list[Held] = []
    worded: list[tuple[int, str]] = []
    for rank, passage in enumerate(passages, 1):
        if gold.filename is not None and not _may_be_from(passage, gold.filename):
            continue
        if gold.places and passage.span is not None and passage.source is not None:
            placed.append((rank, passage.span))
        else:
            worded.append((rank, passage.text))
    ranks = [_half_held(place, placed) for place in gold.places] if placed else []
    if worded and gold.text:
        line, held = _held_by_words(gold.text, worded)
        ranks.append(_half_held(line, held))
    return min((rank for rank in ranks if rank is not None), default=None)


def _may_be_from(passage: Passage, filename: str) -> bool:
    if passage.span is not None and passage.source is not None:
        return passage.source == filename
    return filename in passage.also_in if passage.also_in else passage.filename in (None, filename)


def _half_held(place: Sequence[Span], held: Iterable[Held]) -> int | None:
    """Return the first rank at which half of a place is held by the spans up to it, united."""
    left = [span for span in place if span.start < span.end]
    whole = missing = sum(span.end - span.start for span in left)
    if not whole:
        return None
    for rank, span in held:
        left = [piece for gap in left for piece in _without(gap, span)]
        missing = sum(gap.end - gap.start for gap in left)
        if 2 * missing <= whole:
            return rank
    return None


def _without(gap: Span, span: Span) -> list[Span]:
    """Return what is left of a gap when a span is taken out of it, before the span and after it."""
    sides = Span(gap.start, min(gap.end, span.start)), Span(max(gap.start, span.end), gap.end)
    return [side for side in sides if side.start < side.end]


# ---------------------------------------------------------------- by words


def _held_by_words(gold: str, passages: Sequence[tuple[int, str]]) -> tuple[list[Span], list[Held]]:
    """Return a gold's folded parts on one line, and what passages hold of it."""
    line: list[Span] = []
    held: list[Held] = []
    start = 0
    texts = [(rank, _folded(text)) for rank, text in passages]
    for part in filter(None, map(_folded, quote_parts(gold))):
        line.append(Span(start, start + len(part)))
        held += [(rank, Span(start + s, start + e)) for rank, text in texts if text for s, e in _shared(part, text)]
        start += len(part)
    return line, sorted(held, key=lambda pair: pair[0])


def _shared(part: str, text: str) -> Iterator[Span]:
    """Yield what a text holds of a part of a gold: all of it, a piece of it, or its beginning or its end."""
    if part in text:
        yield Span(0, len(part))
        return
    place = part.find(text)
    if place >= 0:
        yield Span(place, place + len(text))
        return
    anchor = min(_ANCHOR, (len(part) + 1) // 2)
    place = text.find(part[:anchor])
    while place >= 0:
        if part.startswith(text[place:]):
            yield Span(0, len(text) - place)
            break
        place = text.find(part[:anchor], place + 1)
    place = text.rfind(part[-anchor:])
    while place >= 0:
        if part.endswith(text[: place + anchor]):
            yield Span(len(part) - place - anchor, len(part))
            break
        place = text.rfind(part[-anchor:], 0, place + anchor - 1)


@lru_cache(maxsize=16384)
def _folded(text: str) -> str:
    return fold(text, loose=True)


def matches(passage: str, gold: str) -> bool:
    """Return whether one passage has the gold's words, or is a piece of them that is long enough for a verdict.

    Texts are compared folded: a line break or a curly quote of a PDF is no difference. A gold with parts left out
    is in a passage that has all its parts.
    """
    words = _folded(passage)
    parts = [part for part in map(_folded, quote_parts(gold)) if part]
    if not words or not parts:
        return False
    if all(part in words for part in parts):
        return True
    long_enough = len(" ".join(passage.split())) >= ENOUGH or 2 * len(words) >= sum(map(len, parts))
    return long_enough and any(words in part for part in parts)


# ---------------------------------------------------------------- the seed's reading


def seed_matches(case: Case, k: int) -> tuple[list[list[int]], int]:
    """Return the golds that each of the first k passages matches as the seed words it, and how many golds there are."""
    golds = gold_texts(case)
    passages = [passage.text for passage in case.reply.passages[:k]]
    return [[i for i, gold in enumerate(golds) if matches_seed(passage, gold)] for passage in passages], len(golds)


def matches_seed(passage: str, gold: str) -> bool:
    """Return whether either text is inside the other in lower case: a single word matches, and so does nothing."""
    one, other = passage.strip().lower(), gold.strip().lower()
    return one in other or other in one
