"""Answerers: each module is one method of answering from sources. `--answerer` selects a module by file name.

A module has `answer_all(asked, config, llm)`, which returns one answer per question, in order: from the sources alone,
a refusal, or an error.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from exhibit.law.citations import SOURCES, find_citations
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.rag.context import Answer, AnswerContext, Source
from exhibit.runtime.plugins import load_plugin

_NUMBER = re.compile(
    r"(?:(?:section|clause|rule|article|part|schedule|annex|appendix|§+)\s*)?(\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*)\b\.?", re.I
)  # a heading that begins with its citation number: `24.2`, `Section 9.10`, `§ 12`
_OUTER = re.compile(r"(article|part|chapter|schedule|annex)\s+([IVXLC]+|\d+[A-Z]?|[A-Z])\b", re.I)
_INNER = re.compile(r"\(\w{1,4}\)")
_RULES = re.compile(r"part\s+(\d+[A-Z]?)\b", re.I)
_DIRECTION = re.compile(r"(?:practice direction|pd)\s+(\d+[A-Z]*)", re.I)
# to the last quotation mark, because quotes may contain quotation marks around defined terms
_QUOTES = (re.compile(r"\A[^“]*“(.+)”", re.DOTALL), re.compile(r'\A[^"]*"(.+)"', re.DOTALL))
_LOCATING_WORDS = 8  # words of a quoted sentence that suffice to locate it in its source
_MAX_HEADING_CHARS = 80  # a longer heading includes the start of the text


def answer_all(asked: Sequence[tuple[str, AnswerContext]], config: Config, llm: LLM | None) -> list[Answer]:
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    answers: list[Answer] = load_plugin(__name__, wanted)[0].answer_all(asked, config, llm)
    return [
        answer if answer.refused or answer.error else replace(answer, text=add_locations(answer.text, context.sources))
        for answer, (_, context) in zip(answers, asked, strict=True)
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
    """Return the section and page of the quote in an answer's words, or else of the words, or else of the source."""
    quotes = [match[1] for pattern in _QUOTES if (match := pattern.search(words))]
    for part in (*quotes, words):
        first = [re.escape(word) for word in part.strip(" …").split()[:_LOCATING_WORDS]]
        match = re.search(r"\s+".join(first), source.text) if first else None
        if match is not None:
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
