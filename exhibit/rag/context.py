"""The numbered sources of an answer within a token budget, and the answer itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from exhibit.evidence import Span, fold
from exhibit.models.llms import count_tokens
from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Hit
from exhibit.schemas.errors import ToolkitError

_FENCE = "~~~"
_TILDES = re.compile(r"~{3,}")
_WORD = re.compile(r"\S{1,40}")


@dataclass(frozen=True)
class Source(Hit):
    number: int = 0


@dataclass(frozen=True)
class AnswerContext:
    text: str  # the sources and the summaries of their documents, for the prompt of a language model
    sources: tuple[Source, ...]
    confidence: float | None = None  # retrieval's probability that a source answers; None if unknown
    left_out: int = 0  # the number of passages that did not fit the token budget
    asks: str = ""  # the question's words without the document's name
    kind: str = ""  # the kind of the best source's document, if it is known: contract, rules, court guide …
    characters: int = 0  # the length of that document in characters; 0 if it is unknown
    vector: Vectors | None = field(default=None, compare=False)  # of `asks`, to find the reader's kind of question


@dataclass(frozen=True)
class Answer:
    text: str
    citations: tuple[int, ...] = ()  # the numbers of the cited sources that exist and share words with the claim
    unsupported: tuple[str, ...] = ()  # claims whose citation names no source, or a source without their words
    refused: bool = False
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None  # the probability that the documents contain an answer; None if unknown
    best: tuple[tuple[int, Span], ...] = ()  # the reader's best quote, as source numbers with spans in their texts


def assemble(hits: Sequence[Hit], *, summaries: Mapping[str, str], budget: int = 2500) -> AnswerContext:
    """Return the best hits that fit the budget as numbered sources; if even the first hit is too long, it is cut."""
    if budget < 1:
        raise ToolkitError(f"a token budget of {budget} is too small for a source; give at least 1")
    distinct = _drop_repeats(hits)
    fitting, text = distinct, _render(distinct, summaries) if distinct else ""
    while len(fitting) > 1 and count_tokens(text) > budget:
        fitting = fitting[:-1]
        text = _render(fitting, summaries)
    if count_tokens(text) > budget:
        part, text = _cut_to_fit(fitting[0], summaries, budget)
        fitting = [part]
    sources = tuple(Source(**vars(hit), number=number) for number, hit in enumerate(fitting, 1))
    return AnswerContext(text, sources, left_out=len(distinct) - len(fitting))


def _drop_repeats(hits: Sequence[Hit]) -> list[Hit]:
    distinct: list[Hit] = []
    seen: set[tuple[str, str]] = set()
    for hit in hits:
        name, (start, end), words = hit.document, hit.span, fold(hit.text)
        around = (other.span for other in distinct if other.document == name)
        if words and (name, words) not in seen and not any(span.start <= start and end <= span.end for span in around):
            # the same clause in another document is a separate source, because the answer must name the document
            seen.add((name, words))
            distinct.append(hit)
    return distinct


def _render(hits: Sequence[Hit], summaries: Mapping[str, str], *, note: str = "") -> str:
    """Return the sources between fences (`~~~`), then the summaries of their documents."""
    # longer than any fence in the sources, so that no document can close the fence and imitate the prompt
    fence = max([_FENCE, *(run + "~" for hit in hits for run in _TILDES.findall(hit.text))], key=len)
    blocks = [
        f"[{number}] {_label(hit, note)}\n{fence}\n{hit.text.strip()}\n{fence}" for number, hit in enumerate(hits, 1)
    ]
    names = [name for name in dict.fromkeys(hit.document for hit in hits) if summaries.get(name, "").strip()]
    about = [f"- {_join_lines(name)}: {_join_lines(summaries[name])}" for name in names]
    return "\n\n".join(["SOURCES", *blocks, *(["\n".join(["DOCUMENTS", *about])] if about else [])])


def _label(hit: Hit, note: str) -> str:
    section = f"Section: {_join_lines(hit.section)}" if hit.section.strip() else ""
    page = f"Page: {hit.page}" if hit.page is not None else ""
    return " | ".join(filter(None, (f"Document: {_join_lines(hit.document)}", section, page, note)))


def _join_lines(text: str) -> str:
    """Return a text on one line, so that a heading with line breaks cannot look like a new source."""
    return " ".join(text.split())


def _cut_to_fit(hit: Hit, summaries: Mapping[str, str], budget: int) -> tuple[Hit, str]:
    ends = [match.end() for match in _WORD.finditer(hit.text)]
    size, start = min(len(ends), budget), hit.span.start
    while True:
        part = replace(hit, span=Span(start, start + ends[size - 1]), text=hit.text[: ends[size - 1]])
        text = _render([part], summaries if size > 1 else {}, note="cut to fit")
        if size == 1 or count_tokens(text) <= budget:
            return part, text
        size = size * 3 // 4
