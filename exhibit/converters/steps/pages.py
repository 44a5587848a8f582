"""Uses the pages that a source states to choose between equal locations of a quote.

It also decides whether the source counts pages from 0 or from 1.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from exhibit.converters.benchmark import Quote, Tally
from exhibit.converters.steps.materialise import Done, QuotePlace

ELSEWHERE = "quote that does not stand on the page that the source states (its words decide)"


def settle_pages(done: Mapping[str, Done], quotes: Iterable[Quote], tally: Tally) -> None:
    """Choose, among the locations of each quote, those on the page that the source states.

    The source may count pages from 0 or from 1. The count that puts more quotes on their stated pages is used.
    """
    stated = [quote for quote in dict.fromkeys(quotes) if quote.stated is not None and quote.filename in done]
    # a quote that fits both ways of counting does not decide
    votes: Counter[int] = Counter()
    for quote in stated:
        first = {base for base in (0, 1) if list(_on_page(quote, done[quote.filename], base))}
        votes.update(first if len(first) == 1 else ())
    base = 0 if votes[0] > votes[1] else 1
    if stated and votes:
        others = f", {votes[1 - base]} as if from {1 - base}" if votes[1 - base] else ""
        tally.note("pages that the source states", f"counted from {base}: {votes[base]} quotes stand so{others}")
    for quote in stated:
        one = done[quote.filename]
        place = one.places[quote]
        here = list(_on_page(quote, one, base))
        if here:
            spans, *alternatives = here
            pages = sorted({number for span in spans for number in _find_pages(span, one.page_starts)})
            one.places[quote] = replace(place, spans=spans, alternatives=alternatives, pages=pages)
        elif place.spans and one.page_starts:
            where = f"{quote.filename}: page {place.pages[0]}, stated {quote.stated}"
            tally.note(ELSEWHERE, f"{where}: {(quote.text or quote.provision)[:60]!r}")


def _on_page(quote: Quote, done: Done, base: int) -> Iterator[list[tuple[int, int]]]:
    """Yield each location (a list of spans) of a quote on its stated page; pages are counted from `base` (0 or 1)."""
    place: QuotePlace = done.places[quote]
    wanted = (quote.stated or 0) + 1 - base
    for spans in (place.spans, *place.alternatives):
        if any(wanted in _find_pages(span, done.page_starts) for span in spans):
            yield spans


def _find_pages(span: tuple[int, int], starts: tuple[int, ...]) -> range:
    """Return the numbers of the pages that a span touches, from 1."""
    return (
        range(max(bisect_right(starts, span[0]), 1), bisect_right(starts, max(span[1] - 1, span[0])) + 1)
        if starts
        else range(0)
    )
