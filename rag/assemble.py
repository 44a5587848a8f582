"""The context of an answer: numbered sources in the documents' own words, within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from exhibit.evidence import Span, fold
from exhibit.law.words import content_words
from exhibit.rag.protocols import Context, Hit, Source
from exhibit.schemas.errors import ToolkitError

_FENCE = "~~~"
_TILDES = re.compile(r"~{3,}")
_WORD = re.compile(r"\S+")
_CUT = "cut to fit"
_STEPS = 4
"""Windows of an over-long source start at every fourth part of their width."""


def assemble(
    question: str,
    hits: Sequence[Hit],
    *,
    summaries: Mapping[str, str],
    budget: int = 2500,
    tokens: Callable[[str], int],
    confidence: float | None = None,
) -> Context:
    """Return the best hits that fit the budget as numbered sources, then what their documents are.

    There is a source whenever there is a hit with words: one that is longer than the budget is cut at a word, to the
    stretch nearest the question, and says so. Beyond the first, sources stop before the budget is passed.
    """
    if budget < 1:
        raise ToolkitError(f"a token budget of {budget} holds no source; give at least 1")
    distinct = _distinct(hits)
    if not distinct:
        return Context("", (), 0, confidence)
    # all of them, as a rule: then nothing needs to be counted twice
    fitting = _fitting(distinct, summaries, budget, tokens)
    if fitting is None:
        for count in range(1, len(distinct)):
            more = _fitting(distinct[:count], summaries, budget, tokens)
            if more is None:
                break
            fitting = more
    fitting = fitting or _cut_to_fit(question, distinct[0], summaries=summaries, budget=budget, tokens=tokens)
    return replace(fitting, confidence=confidence)


def _fitting(
    hits: Sequence[Hit], summaries: Mapping[str, str], budget: int, tokens: Callable[[str], int]
) -> Context | None:
    """Return the context of these hits; None where it passes the budget."""
    text = _render(hits, summaries)
    size = tokens(text)
    return _context(hits, text, size) if size <= budget else None


def _context(hits: Sequence[Hit], text: str, size: int) -> Context:
    return Context(text, tuple(Source(number, hit) for number, hit in enumerate(hits, 1)), size)


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without blanks, passages inside an earlier one, and repeated words of one document."""
    kept: list[Hit] = []
    seen: set[tuple[str, str]] = set()
    for hit in hits:
        chunk, words = hit.chunk, fold(hit.text)
        inside = any(
            chunk.document == other.chunk.document
            and other.chunk.span.start <= chunk.span.start
            and chunk.span.end <= other.chunk.span.end
            for other in kept
        )
        if words and not inside and (chunk.document, words) not in seen:
            # the same clause in another document is another source: which document says it matters
            seen.add((chunk.document, words))
            kept.append(hit)
    return kept


# ---------------------------------------------------------------- as text


def _render(hits: Sequence[Hit], summaries: Mapping[str, str], *, note: str = "") -> str:
    """Return the sources between fences, then a line on each of their documents that has a summary."""
    if not hits:
        return ""
    # longer than any in the sources, so that no document can close its quotation and speak as if it were us
    fence = max([_FENCE, *(run + "~" for hit in hits for run in _TILDES.findall(hit.text))], key=len)
    blocks = [
        f"[{number}] {_label(hit, note)}\n{fence}\n{hit.text.strip()}\n{fence}" for number, hit in enumerate(hits, 1)
    ]
    named = dict.fromkeys(hit.chunk.document for hit in hits)
    about = [f"- {_line(name)}: {_line(summaries[name])}" for name in named if summaries.get(name, "").strip()]
    return "\n\n".join(["SOURCES", *blocks, *(["\n".join(["DOCUMENTS", *about])] if about else [])])


def _label(hit: Hit, note: str) -> str:
    chunk = hit.chunk
    parts = [f"Document: {_line(chunk.document)}"]
    if chunk.section.strip():
        parts.append(f"Section: {_line(chunk.section)}")
    if chunk.page is not None:
        parts.append(f"Page: {chunk.page}")
    return " | ".join([*parts, *([note] if note else [])])


def _line(text: str) -> str:
    """Return a text on one line: a heading must not look like a source of its own."""
    return " ".join(text.split())


# ---------------------------------------------------------------- a source longer than the budget


def _cut_to_fit(
    question: str, hit: Hit, *, summaries: Mapping[str, str], budget: int, tokens: Callable[[str], int]
) -> Context:
    """Return a context with the largest part of one hit that fits; never less than a word."""

    def text_of(part: Hit, about: Mapping[str, str]) -> str:
        return _render([part], about, note=_CUT)

    words = [match.span() for match in _WORD.finditer(hit.text)]
    if len(words) == 1:  # no word to cut at: a character will do
        words = [(at, at + 1) for at in range(*words[0])]
    about = summaries if tokens(text_of(_part(hit, *words[0]), summaries)) <= budget else {}
    fits = _most(words, 0, lambda start, end: tokens(text_of(_part(hit, start, end), about)) <= budget)
    first = _nearest(question, hit.text, words, width=fits)
    count = _most(words, first, lambda start, end: tokens(text_of(_part(hit, start, end), about)) <= budget)
    part = _part(hit, words[first][0], words[first + count - 1][1])
    text = text_of(part, about)
    return _context([part], text, tokens(text))


def _most(words: Sequence[tuple[int, int]], first: int, fits: Callable[[int, int], bool]) -> int:
    """Return how many words from the first on fit, at least one; by halving, as a source can be a whole book."""
    low, high = 1, len(words) - first
    step = 64
    while low + step < high and fits(words[first][0], words[first + low + step - 1][1]):
        low, step = low + step, step * 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(words[first][0], words[first + middle - 1][1]):
            low = middle
        else:
            high = middle - 1
    return low


def _nearest(question: str, text: str, words: Sequence[tuple[int, int]], *, width: int) -> int:
    """Return the first word of the window that has most of the question's words; the earliest of equals."""
    asked = frozenset(content_words(question))
    best = (0, 0)
    for first in range(0, max(1, len(words) - width + 1), max(1, width // _STEPS)):
        end = words[min(first + width, len(words)) - 1][1]
        shared = len(asked.intersection(content_words(text[words[first][0] : end])))
        best = max(best, (shared, -first))
    return -best[1]


def _part(hit: Hit, start: int, end: int) -> Hit:
    """Return a hit on a part of its own span."""
    origin = hit.chunk.span.start
    return replace(hit, chunk=replace(hit.chunk, span=Span(origin + start, origin + end)), text=hit.text[start:end])
