"""The locations of a quote in a document, and the joining of the locations of its parts."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhibit.evidence.document import Span
from exhibit.schemas.layout import How

MOST_PLACES = 5000
"""Most locations of one quote: a party's name occurs 1,029 times in one contract of CUAD."""


@dataclass(frozen=True)
class Match:
    """One location of a quote; it has several spans if other words interrupt the quote."""

    spans: tuple[Span, ...]
    how: How
    score: float = 1.0
    whole: bool = True
    """Whether the match neither begins nor ends inside a longer word; False for `MA` in `MAY`."""

    @property
    def span(self) -> Span:
        """The range from the first character to the last."""
        return Span(self.spans[0].start, self.spans[-1].end)


def prefer_whole_words(matches: Sequence[Match]) -> list[Match]:
    """Return the matches to keep as gold: those that begin and end at word boundaries, or all if none does."""
    return [match for match in matches if match.whole] or list(matches)


def find_tightest(places: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Return the shortest chains of matches: one match for each piece of a quote, in reading order.

    Chains more than twice as long as the shortest are left out. Of chains that differ only in the first match,
    only the shortest is returned. If the pieces never occur in this order, return one chain of their first
    occurrences.
    """
    # for a quote in very many pieces, try only the first locations
    firsts = places[0][: max(1, MOST_PLACES * 100 // len(places))]
    # keep the last: a later first piece with the same tail is a shorter combination
    chains = {
        tuple(match.span for match in chain[1:]) or (chain[0].span,): chain
        for chain in chain_in_order([firsts, *places[1:]])
    }
    if chains:
        shortest = min(map(measure_stretch, chains.values()))
        return [chain for chain in chains.values() if measure_stretch(chain) <= 2 * shortest]
    # the annotator joined the pieces in another order: take the first occurrence of each
    return [sorted((choices[0] for choices in places), key=lambda match: match.span)]


def chain_in_order(places: Sequence[Sequence[Match]]) -> Iterator[list[Match]]:
    """Yield a chain for each match of the first quote: that match, then the next match of each following quote.

    `places` has the matches of each quote in reading order. A first match gives no chain if a later quote has
    no match after it.
    """
    for first in places[0] if places else ():
        chain = [first]
        for choices in places[1:]:
            at = bisect_left(choices, chain[-1].span.end, key=lambda match: match.span.start)
            if at == len(choices):
                break
            chain.append(choices[at])
        if len(chain) == len(places):
            yield chain


def measure_stretch(chain: Sequence[Match]) -> int:
    """Return the number of characters from the first match's start to the last one's end."""
    return chain[-1].span.end - chain[0].span.start


def join_matches(chain: Sequence[Match]) -> Match:
    """Join the matches of a quote's parts into one match, and merge overlapping spans."""
    spans: list[Span] = []
    for span in sorted({span for match in chain for span in match.spans}):
        if spans and span.start < spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(spans[-1].end, span.end))
        else:
            spans.append(span)
    fuzzy = any(match.how == "fuzzy" for match in chain)
    score = min(match.score for match in chain)
    return Match(tuple(spans), "fuzzy" if fuzzy else "parts", score, all(match.whole for match in chain))
