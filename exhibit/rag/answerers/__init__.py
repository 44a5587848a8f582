"""Answerers: each module is one method of answering from sources. `--answerer` selects a module by file name."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Literal, Protocol

from exhibit.law.citations import SOURCES, find_citations
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.rag.context import Answer, AnswerContext, Source
from exhibit.runtime.plugins import load_plugin

Form = Literal["numbers", "places"]

_NUMBER = re.compile(
    r"(?:(?:section|clause|rule|article|part|schedule|annex|appendix|§+)\s*)?(\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*)\b\.?", re.I
)
"""A heading that begins with its citation number: `24.2`, `Section 9.10`, `§ 12`."""
_OUTER = re.compile(r"(article|part|chapter|schedule|annex)\s+([IVXLC]+|\d+[A-Z]?|[A-Z])\b", re.I)
_INNER = re.compile(r"\(\w{1,4}\)")
_RULES = re.compile(r"part\s+(\d+[A-Z]?)\b", re.I)
_DIRECTION = re.compile(r"(?:practice direction|pd)\s+(\d+[A-Z]*)", re.I)
# to the last mark: a quote has marks of its own around defined terms
_QUOTES = (re.compile(r"\A[^“]*“(.+)”", re.DOTALL), re.compile(r'\A[^"]*"(.+)"', re.DOTALL))
_LOCATING_WORDS = 8  # of a quoted sentence that suffice to locate it in its source
_MAX_HEADING_CHARS = 80  # a longer one includes the start of the text


class Answerer(Protocol):
    """Answers questions from sources, with citations."""

    name: str

    def answer_all(self, asked: Sequence[tuple[str, AnswerContext]]) -> list[Answer]:
        """Return one answer per question, in order: from the sources alone, a refusal, or an error."""


def answer_all(asked: Sequence[tuple[str, AnswerContext]], config: Config, llm: LLM | None) -> list[Answer]:
    """Return one answer per question, in order, with the document, section and page of each citation."""
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    answerer: Answerer = load_plugin(__name__, wanted)[0].open(config, llm=llm)
    answers = answerer.answer_all(asked)
    return [
        answer
        if answer.refused or answer.error
        else replace(answer, text=add_locations(answer.text, context.sources, config.cite))
        for answer, (_, context) in zip(answers, asked, strict=True)
    ]


def add_locations(text: str, sources: Sequence[Source], form: Form) -> str:
    """Return the text of an answer, with the document, section and page of each citation added."""
    known = {source.number: source for source in sources}
    citations, lines = find_citations(text), dict[int, dict[str, None]]()
    shown, claims, end = text, list[str](), 0
    for citation in citations:  # two adjacent citations cite the same words
        words, end = text[end : citation.span.start], citation.span.end
        claims.append(words if words.strip() or not claims else claims[-1])
    for citation, words in zip(reversed(citations), reversed(claims), strict=True):
        cited = [known[number] for number in citation.numbers if number in known]
        named = "".join(_name_citation(source, words) for source in cited)
        shown = shown[: citation.span.start] + named + shown[citation.span.end :]
        for source in cited:
            lines[source.number] = {describe_location(source, words): None, **lines.get(source.number, {})}
    if form == "places" or not lines:
        return shown if form == "places" else text
    listed = [f"[{number}] {'; '.join(lines[number])}" for number in sorted(lines)]
    return "\n".join([f"{text}\n\n{SOURCES}", *listed])


def describe_location(source: Source, words: str) -> str:
    """Return, on one line, the document, section and page of the words that an answer cites from a source."""
    section, page = _locate(source, words)
    parts = [PurePath(source.document).name, cite_section(source.document, section)]
    parts += [f"page {page}"] if page is not None else []
    return ", ".join(" ".join(part.split()) for part in parts if part)


def _name_citation(source: Source, words: str) -> str:
    """Return a citation such as `[Part 36#page=3]` for words of an answer; the section replaces a missing page."""
    section, page = _locate(source, words)
    stem = re.sub(r"[\[\]#]", " ", PurePath(source.document).stem)
    short = re.split(r"\s[–—-]\s", stem, maxsplit=1)[0].strip()
    return f"[{short}#page={page or cite_section(source.document, section)}]"


def _locate(source: Source, words: str) -> tuple[str, int | None]:
    """Return the section and the page of the quote in an answer's words, else of the words, else of the source."""
    quotes = [match[1] for pattern in _QUOTES if (match := pattern.search(words))]
    for part in (*quotes, words):
        first = [re.escape(word) for word in part.strip(" …").split()[:_LOCATING_WORDS]]
        match = re.search(r"\s+".join(first), source.text) if first else None
        if match is not None:
            return source.hit.chunk.locate(source.span.start + match.start())
    return source.section, source.page


def cite_section(document: str, path: str) -> str:
    """Return a section as a lawyer cites it: `CPR 36.14(3)`, `Article III, 3.2(b)`, `9.10 Specific Performance`."""
    headings = [part.strip() for part in path.split(" > ") if part.strip()]
    inner: list[str] = []
    while headings and _INNER.fullmatch(headings[-1].split(" ")[0]):
        inner.insert(0, headings.pop().split(" ")[0])
    if not headings:
        return "".join(inner)
    number = _NUMBER.match(headings[-1])
    label = (number[1] if number else "") + "".join(inner)
    stem = PurePath(document).stem
    if number and (direction := _DIRECTION.match(stem)):
        return f"PD {direction[1].upper()} para {label}"
    if number and (rules := _RULES.match(stem)) and number[1].partition(".")[0] == rules[1]:
        return f"CPR {label}"
    shown = headings[-1]
    if len(shown) > _MAX_HEADING_CHARS:
        shown = shown[:_MAX_HEADING_CHARS].rsplit(" ", 1)[0] + " …"
    if not number:
        return f"{shown} {''.join(inner)}".strip()
    outer = next((match[0] for part in headings[-2::-1] if (match := _OUTER.match(part))), "")
    if inner or shown == number[0]:
        shown = label
    return f"{outer.title() if outer.islower() else outer}, {shown}" if outer else shown
