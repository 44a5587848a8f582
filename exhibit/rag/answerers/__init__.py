"""Answerers: each module is one method of answering from sources. `--answerer` selects a module by file name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, Protocol, cast

from exhibit.law.citations import SOURCES, find_citations
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.rag.protocols import Answer, AnswerContext, Source
from exhibit.runtime.plugins import load_plugin


class Answerer(Protocol):
    """Answers questions from sources, with citations.

    A module in `rag/answerers/` has `open(config, *, llm) -> Answerer`.
    """

    name: str

    def answer(self, question: str, context: AnswerContext) -> Answer:
        """Return an answer from the context's sources alone, a refusal, or an error."""

    def answer_all(self, asked: Sequence[tuple[str, AnswerContext]]) -> list[Answer]:
        """Return one answer per question, in order, with the document, section and page of each citation."""


def open_answerer(config: Config, *, llm: LLM | None = None) -> Answerer:
    """Return the answerer that the config names; each citation in its answers names document, section and page."""
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    module, _ = load_plugin(__name__, wanted)
    inner = cast(Answerer, module.open(config, llm=llm))
    return PlacingAnswerer(inner.name, inner, config.cite)


@dataclass
class PlacingAnswerer:
    """An answerer that adds the document, section and page of each citation to the answers of another answerer."""

    name: str
    inner: Answerer
    form: "Form"

    def answer(self, question: str, context: AnswerContext) -> Answer:
        """Return the answer with the document, section and page of each citation."""
        return self.answer_all([(question, context)])[0]

    def answer_all(self, asked: Sequence[tuple[str, AnswerContext]]) -> list[Answer]:
        """Return one answer per question, in order, with the document, section and page of each citation."""
        answers = self.inner.answer_all(asked)
        return [self._add_places(answer, context) for answer, (_, context) in zip(answers, asked, strict=True)]

    def _add_places(self, answer: Answer, context: AnswerContext) -> Answer:
        if answer.refused or answer.error:
            return answer
        return replace(answer, text=with_places(answer.text, context.sources, self.form))


Form = Literal["numbers", "places"]

_WORDS = r"(?:section|clause|rule|article|part|schedule|annex|appendix|§+)"
_NUMBER = re.compile(rf"(?:{_WORDS}\s*)?(\d+[A-Z]{{0,2}}(?:\.\d+[A-Z]?)*)\b\.?", re.I)
"""A heading that begins with its citation number: `24.2`, `Section 9.10`, `§ 12`."""
_OUTER = re.compile(r"(article|part|chapter|schedule|annex)\s+([IVXLC]+|\d+[A-Z]?|[A-Z])\b", re.I)
_INNER = re.compile(r"\(\w{1,4}\)")
_RULES = re.compile(r"part\s+(\d+[A-Z]?)\b", re.I)
_DIRECTION = re.compile(r"(?:practice direction|pd)\s+(\d+[A-Z]*)", re.I)
_QUOTE = re.compile(r"\A[^“]*“(.+)”", re.DOTALL)  # to the last mark: a quote has marks of its own around defined terms
_ENOUGH = 8  # words of a quoted sentence that suffice to locate it in its source
_LONGEST = 80  # characters of a heading; a longer one includes the start of the text


def section_of(document: str, path: str) -> str:
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
    shown = headings[-1] if len(headings[-1]) <= _LONGEST else headings[-1][:_LONGEST].rsplit(" ", 1)[0] + " …"
    if not number:
        return f"{shown} {''.join(inner)}".strip()
    outer = next((match[0] for part in headings[-2::-1] if (match := _OUTER.match(part))), "")
    if inner or shown == number[0]:
        shown = label
    return f"{outer.title() if outer.islower() else outer}, {shown}" if outer else shown


def place_of(source: Source, words: str) -> str:
    """Return, on one line, the document, section and page of the words that an answer cites from a source.

    If the source does not contain the words, return the section and page at which the source begins.
    """
    section, page = _find_place(source, words)
    parts = [PurePath(source.document).name, section_of(source.document, section)]
    parts += [f"page {page}"] if page is not None else []
    return ", ".join(" ".join(part.split()) for part in parts if part)


def with_places(text: str, sources: Sequence[Source], form: Form) -> str:
    """Return the text of an answer, with the document, section and page of each citation added.

    With the form `places`, a short name such as `[Part 36#page=3]` replaces the number of each citation. With
    `numbers`, the text keeps its citation numbers, and a list below it gives document, section and page.
    """
    known = {source.number: source for source in sources}
    cited, lines = find_citations(text), dict[int, dict[str, None]]()
    shown, claims, end = text, list[str](), 0
    for citation in cited:  # two adjacent citations cite the same words
        words, end = text[end : citation.span.start], citation.span.end
        claims.append(words if words.strip() or not claims else claims[-1])
    for citation, words in zip(reversed(cited), reversed(claims), strict=True):
        there = [known[number] for number in citation.numbers if number in known]
        named = "".join(_name_citation(source, words) for source in there)
        shown = shown[: citation.span.start] + named + shown[citation.span.end :]
        for source in there:
            lines[source.number] = {place_of(source, words): None, **lines.get(source.number, {})}
    if form == "places" or not lines:
        return shown if form == "places" else text
    listed = [f"[{number}] {'; '.join(lines[number])}" for number in sorted(lines)]
    return "\n".join([f"{text}\n\n{SOURCES}", *listed])


def _name_citation(source: Source, words: str) -> str:
    """Return a citation such as `[Part 36#page=3]` for words of an answer; the section replaces a missing page."""
    section, page = _find_place(source, words)
    stem = re.sub(r"[\[\]#]", " ", PurePath(source.document).stem)
    short = re.split(r"\s[–—-]\s", stem, maxsplit=1)[0].strip()
    return f"[{short}#page={page or section_of(source.document, section)}]"


def _find_place(source: Source, words: str) -> tuple[str, int | None]:
    """Return where in a source an answer's words occur: the section headings and the page.

    If the words contain a quote, the quote is searched for before the words as a whole. If neither is found,
    return the section and page at which the source begins.
    """
    for part in (*_QUOTE.findall(words), words):
        first = [re.escape(word) for word in part.strip(" …").split()[:_ENOUGH]]
        match = re.search(r"\s+".join(first), source.text) if first else None
        if match is not None:
            return source.hit.chunk.place(source.hit.chunk.span.start + match.start())
    return source.section, source.page
