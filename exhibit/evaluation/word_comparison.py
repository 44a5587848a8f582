"""Compares single words and figures of a reply with those of the expected answer."""

import re
from collections.abc import Iterator, Sequence

from exhibit.law.meaning import FIGURE, Meaning
from exhibit.law.meaning_words import carries_meaning, find_canonical, read_contrasts, read_small_contrasts
from exhibit.law.quantities import UNITS, Quantity, find_quantities

_PAIRED = 120
"""In texts of at most this many words, every pair of words is checked for having changed places."""
_ROLE = re.compile(r"(?:ed|ing|or|ee)\b")
"""Endings that distinguish the one who acts from the one acted upon: threatening and threatened."""


def is_among(one: Quantity, others: Sequence[Quantity]) -> bool:
    """Return whether a figure equals one of several others."""
    return any(one.equals(other) for other in others)


def is_rival(one: Quantity, other: Quantity) -> bool:
    """Return whether two figures can contradict each other.

    They can if they have the same kind. Figures of the kind `label` (`section 8`) or `measure` (`5 km`) must
    also have the same unit. A count and an amount of money can also contradict each other.
    """
    if other.is_place and one.kind != "label":
        return False
    return one.dimension == other.dimension or {one.kind, other.kind} == {"count", "money"}


def format_quantity(one: Quantity) -> str:
    """Return a quantity as text: its value, followed by its unit."""
    value = one.value if isinstance(one.value, str) else f"{one.value:f}"
    return f"{value} {one.unit}".strip()


def join_first_words(words: Sequence[str]) -> str:
    """Return the first three words, joined by commas, for a message."""
    return ", ".join(words[:3]) + (" …" if len(words) > 3 else "")


def say_the_same(gone: Sequence[str], come: Sequence[str]) -> bool | None:
    """Return whether two wordings mean the same; None if the rules cannot decide.

    `gone` are words of the expected answer; `come` are the words that the reply has in their place.
    """
    if any({one, other} in read_small_contrasts() for one in gone for other in come):
        return False
    if _are_equal_figures(gone, come):
        return True
    mine, other = ([token for token in side if carries_meaning(token) or token[0].isdigit()] for side in (gone, come))
    if not mine or not other:
        return None if mine or other else True
    if sorted(map(find_canonical, mine)) != sorted(map(find_canonical, other)):
        rest = [[token for token in side if token not in kept] for side, kept in ((gone, mine), (come, other))]
        return False if rest[0] == rest[1] else None
    endings = {frozenset(_ROLE.findall(" ".join(side))) for side in (mine, other)}
    return len(endings) == 1 or not all(endings)


def _are_equal_figures(gone: Sequence[str], come: Sequence[str]) -> bool:
    """Return whether two lists of words are the same figure in two units: "30 days" and "720 hours"."""
    units = [token for token in (*gone, *come) if not token[0].isdigit()]
    mine, other = (find_quantities(" ".join(side)).quantities for side in (gone, come))
    plain = all(token.removesuffix("s") in UNITS for token in units)
    return plain and len(mine) == len(other) == 1 and mine[0].equals(other[0])


def find_near(meaning: Meaning, term: str) -> frozenset[str]:
    """Return the words and figures that are between the same punctuation marks or conjunctions as a given word."""
    segments = {word.segment for word in meaning.words if word.term == term}
    return frozenset(word.term for word in meaning.words if word.segment in segments and word.term != term)


def find_pairs(
    wanted: Meaning, given: Meaning
) -> Iterator[tuple[str, str, list[frozenset[str]], list[frozenset[str]]]]:
    """Yield each pair of figures, or of opposite words, if the expected answer has both and the reply has both.

    A tuple has four items: the first word, the second word, the neighbours of each word in the expected answer,
    and the neighbours of each word in the reply. Neighbours are the words of the same segment, without figures.
    """
    terms = list(dict.fromkeys(word.term for word in wanted.words))[:_PAIRED]
    there = {word.term for word in given.words}
    for at, one in enumerate(terms):
        for two in terms[at + 1 :]:
            figures = one.startswith(FIGURE) and two.startswith(FIGURE)
            if one == two or not (figures or any(two in group for group in read_contrasts().get(one, ()))):
                continue
            if {one, two} <= there:
                yield (
                    one,
                    two,
                    [_find_beside(wanted, one), _find_beside(wanted, two)],
                    [_find_beside(given, one), _find_beside(given, two)],
                )


def _find_beside(meaning: Meaning, term: str) -> frozenset[str]:
    segments = {word.segment for word in meaning.words if word.term == term}
    return frozenset(
        word.term for word in meaning.words if word.segment in segments and not word.term.startswith(FIGURE)
    )
