"""When a retrieved passage matches a gold one, and which golds a ranking is credited with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from evaluation.cases import Case
from evaluation.metrics._each import gold_texts
from evaluation.metrics._options import Options
from evidence import fold
from evidence.locate import OMITTED

ENOUGH = 50
"""Characters that a piece of a gold passage must have to stand for it, unless it is half of it."""

Matches = list[list[int]]
"""For each of the first K passages, the golds that it matches."""


def matches_of(case: Case, options: Options) -> tuple[Matches, int]:
    """Return what the first K passages match, and how many golds there are; golds of the same words are one."""
    passages = [passage.text for passage in case.reply.passages[: options.k]]
    golds = gold_texts(case)
    rule: Callable[[str, str], bool] = matches_seed
    if options.parity != "seed":
        rule = matches
        golds = list({_folded(gold): gold for gold in golds if _folded(gold)}.values())
    return [[i for i, gold in enumerate(golds) if rule(passage, gold)] for passage in passages], len(golds)


def matches(passage: str, gold: str) -> bool:
    """Return whether the passage has the gold's words, or is a piece of them that is long enough.

    Texts are compared folded: a line break or a curly quote of a PDF is no difference. A gold with parts left out
    is in a passage that has all its parts.
    """
    found = _folded(passage)
    parts = [part for part in map(_folded, OMITTED.split(gold)) if part]
    if not found or not parts:
        return False
    if all(part in found for part in parts):
        return True
    long_enough = len(" ".join(passage.split())) >= ENOUGH or 2 * len(found) >= sum(map(len, parts))
    return long_enough and any(found in part for part in parts)


def matches_seed(passage: str, gold: str) -> bool:
    """Return whether either text is inside the other in lower case: a single word matches, and so does nothing."""
    one, other = passage.strip().lower(), gold.strip().lower()
    return one in other or other in one


@lru_cache(maxsize=16384)
def _folded(text: str) -> str:
    return fold(text, loose=True)


def credited_ranks(matched: Matches) -> list[int]:
    """Return the ranks (from 0) that are credited when each gold is credited once, and each passage with one.

    Where a passage matches several golds it takes the one that leaves most to the others, best ranks first.
    """
    holder: dict[int, int] = {}

    def place(rank: int, seen: set[int]) -> bool:
        for gold in matched[rank]:
            if gold not in seen:
                seen.add(gold)
                if gold not in holder or place(holder[gold], seen):
                    holder[gold] = rank
                    return True
        return False

    return [rank for rank in range(len(matched)) if place(rank, set())]


def found_golds(matched: Sequence[Sequence[int]]) -> set[int]:
    """Return the golds that any passage matches."""
    return {gold for golds in matched for gold in golds}
