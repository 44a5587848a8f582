"""Answerers: each module is one method of answering from numbered sources. `--answerer` selects a module by file name.

A module has `answer_all(asked, config, llm)`, which returns one result per question, in order: an answer from the
sources alone, a refusal, or an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from exhibit.evidence import Span, fold
from exhibit.law.citations import SOURCES, find_citations
from exhibit.models.llms import LLM, count_tokens
from exhibit.models.protocols import Vectors
from exhibit.rag.config import Config
from exhibit.rag.protocols import Hit
from exhibit.runtime.plugins import load_plugin

_FENCE = "~~~"
_TILDES = re.compile(r"~{3,}")
_WORD = re.compile(r"\S{1,40}")
_NUMBER = re.compile(
    r"(?:(?:section|clause|rule|article|part|schedule|annex|appendix|§+)\s*)?(\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*)\b\.?", re.I
)  # a heading that begins with its citation number: `24.2`, `Section 9.10`, `§ 12`
_OUTER = re.compile(r"(article|part|chapter|schedule|annex)\s+([IVXLC]+|\d+[A-Z]?|[A-Z])\b", re.I)
_INNER = re.compile(r"\(\w{1,4}\)")
_RULES = re.compile(r"part\s+(\d+[A-Z]?)\b", re.I)
_DIRECTION = re.compile(r"(?:practice direction|pd)\s+(\d+[A-Z]*)", re.I)
# a quote ends at the last quotation mark, because it may contain quotation marks around defined terms
_QUOTES = (re.compile(r"\A[^“]*“(.+)”", re.DOTALL), re.compile(r'\A[^"]*"(.+)"', re.DOTALL))
_LOCATING_WORDS = 8  # words of a quoted sentence that suffice to locate it in its source
_MAX_HEADING_CHARS = 80  # a longer heading includes the start of the text


@dataclass(frozen=True)
class Source(Hit):
    number: int = 0


@dataclass(frozen=True)
class AnswerContext:
    text: str  # the sources and the summaries of their documents, for the prompt of a language model
    sources: tuple[Source, ...]
    confidence: float | None = None  # retrieval's probability that a source answers; None if unknown
    asks: str = ""  # the question's words without the document's name
    kind: str = ""  # the kind of the best source's document, if it is known: contract, rules, court guide …
    characters: int = 0  # the length of that document in characters; 0 if it is unknown
    # the vector of `asks`, which selects the reader's kind of question
    vector: Vectors | None = field(default=None, compare=False)
    left_out: int = 0  # the number of passages that did not fit the token budget


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
    """Return the best hits as numbered sources, as many as fit the budget; if even the first is too long, it is cut."""
    distinct = fitting = _drop_repeats(hits)
    text = _render(fitting, summaries) if fitting else ""
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
    # make the fence longer than any fence in the sources, so that no document can close it and imitate the prompt
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


# ---------------------------------------------------------------- answers with their locations


def answer_all(questions: Sequence[tuple[str, AnswerContext]], config: Config, llm: LLM | None) -> list[Answer]:
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    answers: list[Answer] = load_plugin(__name__, wanted)[0].answer_all(questions, config, llm)
    return [
        answer if answer.refused or answer.error else replace(answer, text=add_locations(answer.text, context.sources))
        for answer, (_, context) in zip(answers, questions, strict=True)
    ]


def add_locations(text: str, sources: Sequence[Source]) -> str:
    """Return the text of an answer with a list of its sources: document, section and page of each citation."""
    known = {source.number: source for source in sources}
    lines: dict[int, dict[str, None]] = {}
    words, end = "", 0
    for citation in find_citations(text):  # two adjacent citations support the same words
        between, end = text[end : citation.span.start], citation.span.end
        words = between if between.strip() or not words else words
        for source in (known[number] for number in citation.numbers if number in known):
            section, page = _locate(source, words)
            parts = [PurePath(source.document).name, cite_section(source.document, section)]
            parts += [f"page {page}"] if page is not None else []
            line = ", ".join(" ".join(part.split()) for part in parts if part)
            lines.setdefault(source.number, {})[line] = None
    listed = [f"[{number}] {'; '.join(lines[number])}" for number in sorted(lines)]
    return "\n".join([f"{text}\n\n{SOURCES}", *listed]) if lines else text


def _locate(source: Source, words: str) -> tuple[str, int | None]:
    """Return the section and page at which a source contains the quotation in `words`, or else `words` themselves.

    If the source contains neither, return the section and page at which it starts.
    """
    quotes = [match[1] for pattern in _QUOTES if (match := pattern.search(words))]
    for part in (*quotes, words):
        first = part.strip(" …").split()[:_LOCATING_WORDS]
        wanted = ""
        for word in reversed(first):  # the source may end within the quote, for instance after its heading
            wanted = re.escape(word) + (rf"(?:\s+{wanted}|\s*\Z)" if wanted else "")
        if wanted and (match := re.search(wanted, source.text)):
            return source.locate(source.span.start + match.start())
    return source.section, source.page


def cite_section(document: str, path: str) -> str:
    """Return a section as a lawyer cites it: `CPR 36.14(3)`, `Article III, 3.2(b)`, `9.10 Specific Performance`."""
    headings = [part.strip() for part in path.split(" > ") if part.strip()]
    inner = ""
    while headings and _INNER.fullmatch(headings[-1].split(" ")[0]):
        inner = headings.pop().split(" ")[0] + inner
    if not headings:
        return inner
    shown, stem = headings[-1], PurePath(document).stem
    number = _NUMBER.match(shown)
    if len(shown) > _MAX_HEADING_CHARS:
        shown = shown[:_MAX_HEADING_CHARS].rsplit(" ", 1)[0] + " …"
    if number is None:
        return f"{shown} {inner}".strip()
    label = number[1] + inner
    if direction := _DIRECTION.match(stem):
        return f"PD {direction[1].upper()} para {label}"
    if (rules := _RULES.match(stem)) and number[1].partition(".")[0] == rules[1]:
        return f"CPR {label}"
    outer = next((match[0] for part in headings[-2::-1] if (match := _OUTER.match(part))), "")
    if inner or shown == number[0]:
        shown = label
    return f"{outer.title() if outer.islower() else outer}, {shown}" if outer else shown
