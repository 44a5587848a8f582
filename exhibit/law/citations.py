"""Finds the citations of an answer, normalises them, assigns them to claims, and checks them against the sources."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from exhibit.evidence import Span
from exhibit.law.language import list_content_words
from exhibit.law.provisions import without_version
from exhibit.law.sentences import CITATION, split_sentences
from exhibit.law.values import has_missing_figures, read_statement

OVERLAP = 0.4  # the share of a claim's content words that its sources must contain

BRACKETED = re.compile(r"\[([^\[\]]+)\]")  # any text in square brackets: a source's name, a number, an editor's word
SOURCES = "Sources:"  # the line above the list of sources of an answer
_LISTED = re.compile(rf"\n{SOURCES}(?:\n\[\d{{1,3}}\] [^\n]*+)+$")
_SINGLE = re.compile(r"\[\d{1,3}\]")
_NUMBERS = re.compile(r"(\d{1,9})(?:\s{0,9}[-–—]\s{0,9}(\d{1,9}))?")
# The text before a paragraph number of a judgment: "[2024] EWCA Civ 123 at [45]".
_PINPOINT = re.compile(r"\[\d{4}\][^\[\]\n]{2,40}\s(?:at|paras?\.?|paragraphs?)\s*$")
_BULLET = re.compile(r"(?i)(?:[-*•▪◦●–]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s+")
_MARKUP = re.compile(r"\*\*|__|^#+\s*")
_MARKS = re.compile(r"\bhttps?://\S+[^\s.,;:!?]|\[(?:doc|document|source|ref)\w*[ .:#-]{0,2}\d+\]", re.IGNORECASE)
"""Addresses and source marks, whose numbers do not belong to a claim."""
_GAPS = re.compile(r"\s+(?=[.,;:!?])|\s+(?=\s)")
_CITATION = re.compile(CITATION)
_NUMBER = re.compile(r"\d+")
_MAX_RANGE_PASSAGES = 30  # an answer has fewer sources, so a longer range is not a list of sources


class Citation(NamedTuple):
    numbers: tuple[int, ...]
    span: Span
    well_formed: bool  # False for `[1, 2]` and `[1-3]`, which the prompt does not ask for


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer without its citations, and the numbers of the sources that it cites."""

    text: str
    citations: tuple[int, ...] = ()


class Verdict(NamedTuple):
    """The result of checking an answer's citations: the supported citations, and the unsupported claims."""

    citations: tuple[int, ...]  # cited sources that exist and have the claim's words and numbers; ascending
    unsupported: tuple[str, ...]  # claims without a supporting citation


def find_citations(text: str) -> list[Citation]:
    """Return every citation of a text in order; a year or a paragraph of a judgment is not a citation."""
    return [
        Citation(_list_numbers(match.group()), Span(*match.span()), bool(_SINGLE.fullmatch(match.group())))
        for match in _CITATION.finditer(text)
        if not _PINPOINT.search(text, match.start() - 60, match.start())
    ]


def normalise(text: str) -> str:
    """Return the text with every citation in the form `[1][2]`."""
    return rewrite_citations(text, lambda _, numbers: "".join(f"[{number}]" for number in numbers))


def rewrite_citations(text: str, write: Callable[[str, Sequence[int]], str]) -> str:
    pieces, last = [], 0
    for citation in find_citations(text):
        start, end = citation.span
        pieces += [text[last:start], write(text[start:end], citation.numbers)]
        last = end
    return "".join([*pieces, text[last:]])


def _list_numbers(citation: str) -> tuple[int, ...]:
    """Return the distinct numbers that a citation names; `[1-3]` names 1, 2 and 3."""
    numbers: list[int] = []
    for first, last in _NUMBERS.findall(citation):
        low, high = sorted((int(first), int(last or first)))
        # only the ends of a longer range count, because no answer cites thirty sources at once
        numbers += range(low, high + 1) if high - low < _MAX_RANGE_PASSAGES else (low, high)
    return tuple(dict.fromkeys(numbers))


def without_places(text: str) -> str:
    listed = _LISTED.search(whole := text.rstrip())
    return whole[: listed.start()].rstrip() if listed else text


# Matches a paragraph that is a quote, possibly after a short answer: the citation at its end supports all its sentences
_QUOTATION = re.compile(
    rf"^(?:[^“”\n]{{1,600}}:\s)?“(?:(?!\n\n).)*”(?P<cites>(?:\s*{CITATION})+)", re.MULTILINE | re.DOTALL
)


def claims_of(text: str) -> list[Claim]:
    text = without_version(without_places(text))
    claims: list[Claim] = []
    quotations = list(_QUOTATION.finditer(text))
    for span in split_sentences(text):
        raw = text[span.start : span.end]
        citations = find_citations(raw)
        bare = rewrite_citations(raw, lambda *_: "")
        unlisted = _BULLET.sub("", bare.strip(), count=1) if _BULLET.match(bare) else bare
        words = _GAPS.sub("", _MARKS.sub("", _MARKUP.sub("", unlisted))).strip()
        inside = next(
            (quotation["cites"] for quotation in quotations if quotation.start() <= span.start < quotation.end()), ""
        )
        cited = [*citations, *find_citations(inside)]
        numbers = tuple(dict.fromkeys(number for citation in cited for number in citation.numbers))
        if not list_content_words(words) and not read_statement(words).numbers:
            # the citation belongs to the claim before it: "… two years.\n\n[1]", or "Yes. [1]" after a claim
            if claims and numbers:
                last = claims[-1]
                claims[-1] = Claim(last.text, tuple(dict.fromkeys(last.citations + numbers)))
            elif words.strip(".") and numbers:  # "Yes [1]." has a citation, but no words to compare
                claims.append(Claim(words, numbers))
            continue
        if not numbers and (words.endswith(":") or raw.startswith("#")):
            continue
        claims.append(Claim(words, numbers))
    return claims


class NumberedSource(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def document(self) -> str: ...
    @property
    def page(self) -> int | None: ...


class _Evidence(NamedTuple):
    words: frozenset[str]
    labels: frozenset[str]  # labels of the document's name, which neither support nor contradict a claim
    text: str


def verify(claims: Sequence[Claim], sources: Sequence[NumberedSource], *, given: str = "") -> Verdict:
    evidence = {source.number: _read_evidence(source) for source in sources}
    given_words = frozenset(list_content_words(given))
    valid: set[int] = set()
    unsupported = []
    for claim in claims:
        holding = _find_supporting(claim, evidence, given_words, given)
        valid.update(holding)
        if not holding:
            unsupported.append(claim.text)
    return Verdict(tuple(sorted(valid)), tuple(unsupported))


def _find_supporting(
    claim: Claim, evidence: dict[int, _Evidence], given_words: frozenset[str], given: str
) -> list[int]:
    cited = [number for number in claim.citations if number in evidence]
    words = frozenset(list_content_words(claim.text))
    neutral = given_words.union(*(evidence[number].labels for number in cited))
    content_words = words - neutral if len(words - neutral) > 1 else words
    # two sources may each contain a part of the claim
    holding = [n for n in cited if _compute_share(content_words, evidence[n].words) >= OVERLAP / len(cited)]
    if len(cited) > 1 and content_words <= frozenset[str]().union(*(evidence[number].words for number in cited)):
        # a quote may begin in one source and end in the next, so a source may have only a few of its words
        holding = [n for n in cited if n in holding or _has_own_part(n, cited, evidence, claim.text)]
    together = frozenset[str]().union(*(evidence[number].words for number in holding))
    if not holding or _compute_share(content_words, together) < OVERLAP:
        return []
    stated = "\n\n".join([given, *(evidence[number].text for number in holding)])
    return [] if has_missing_figures(claim.text, stated) else holding


def _has_own_part(number: int, cited: Sequence[int], evidence: dict[int, _Evidence], claim: str) -> bool:
    others = frozenset[str]().union(*(_list_terms(evidence[other].text) for other in cited if other != number))
    return not _list_terms(claim).isdisjoint(_list_terms(evidence[number].text) - others)


def _list_terms(text: str) -> frozenset[str]:
    return frozenset(list_content_words(text)).union(_NUMBER.findall(text))


def _compute_share(words: frozenset[str], among: frozenset[str]) -> float:
    return len(words & among) / len(words) if words else 1.0


def _read_evidence(source: NumberedSource) -> _Evidence:
    page = "" if source.page is None else f"page {source.page}"
    text = "\n\n".join(part for part in (source.text, source.section, source.document, page) if part)
    words = list_content_words(f"{source.text}\n\n{source.section}")
    return _Evidence(frozenset(words), frozenset(list_content_words(Path(source.document).stem)), text)
