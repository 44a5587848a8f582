"""An answerer without a language model: it quotes the sentences of the sources that match the question best."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from exhibit.law.citations import claims_of, find_citations, verify
from exhibit.law.language import list_content_words
from exhibit.law.sentences import split_sentences
from exhibit.models.llms import LLM
from exhibit.rag.answerers import Answer, AnswerContext, Source
from exhibit.rag.config import Config
from exhibit.schemas import IMPOSSIBLE_ANSWER

LOCAL = True
NEAR = 0.2
"""The least share of the question's words, weighted by rarity, that a sentence must contain to be an answer.

Values from 0.05 to 0.6 were tried on 1,200 CUAD questions: with 0.2, 47% of the questions without an answer are
refused, and 17% of the others.
"""
MAX_SENTENCES = 3
_MAX_QUOTE_CHARS = 600  # about a paragraph
_NEXT_BEST = 0.7  # the least share of the best sentence's score for a further sentence of the answer
_RANK_WEIGHT = 0.2  # the weight of the retrieval score; the score of the words has weight 1
_FULL_WORDS = 5  # the least number of content words in a full sentence; headings have fewer, and their score is reduced
_CLOSED = re.compile(r"[.!?…][\"'”’)]*$")
_ITEM = re.compile(r"[a-z]{1,4}[.)]\s")
TITLE = re.compile(r"(?<!\s)\s*consider\b[^;]{1,1000};\s*(?=\S)", re.IGNORECASE)
"""Matches the clause before the question that names the document: "Consider the Lease of X; when does it end?"."""


@dataclass(frozen=True)
class _Candidate:
    source: Source
    position: int
    text: str
    words: frozenset[str]


def answer_all(questions: Sequence[tuple[str, AnswerContext]], config: Config, _llm: LLM | None) -> list[Answer]:
    # With a reranker, its confidence has already decided on a refusal; it is more reliable than this share of words
    # (bench/results/models.md).
    near = NEAR if config.refuse_below is None or config.reranker == "none" else 0.0
    return [answer(question, context, near=near) for question, context in questions]


def answer(question: str, context: AnswerContext, *, near: float = NEAR) -> Answer:
    question_words = frozenset(list_content_words(TITLE.sub("", question, count=1)))
    candidates = [candidate for source in context.sources for candidate in _list_candidates(source)]
    chosen = _choose(question_words, candidates, context.sources, least=near)
    if not chosen:
        return Answer(IMPOSSIBLE_ANSWER, refused=True)
    text = " ".join(f"{candidate.text} [{candidate.source.number}]" for candidate in chosen)
    verdict = verify(claims_of(text), context.sources, given=question)
    return Answer(text, verdict.citations, verdict.unsupported)


def _list_candidates(source: Source) -> list[_Candidate]:
    text = source.text
    return [
        _Candidate(source, position, format_quotable(text[span.start : span.end]), frozenset(words))
        for position, span in enumerate(split_sentences(text))
        if (words := list_content_words(text[span.start : span.end]))
    ]


def _choose(
    question_words: frozenset[str], candidates: Sequence[_Candidate], sources: Sequence[Source], *, least: float
) -> list[_Candidate]:
    """Return the best sentences in reading order; an empty list if no sentence scores at least `least`."""
    counts = Counter(word for candidate in candidates for word in candidate.words & question_words)
    # a word weighs more if fewer sentences contain it
    rarity = {word: math.log(1 + (len(candidates) + 1) / (counts[word] + 0.5)) for word in sorted(question_words)}
    whole = sum(rarity.values())
    top = max((source.score for source in sources), default=0.0)
    ranked = []
    for candidate in candidates:
        shared = sum(rarity[word] for word in sorted(question_words & candidate.words))
        near = shared / whole if whole else 0.0
        if near >= least:
            score = max(0.0, candidate.source.score / top) if top > 0 else 0.0
            ranked.append((near * min(1.0, len(candidate.words) / _FULL_WORDS) + _RANK_WEIGHT * score, candidate))
    # ties keep the order of the sources, so that the result is deterministic
    ranked.sort(key=lambda pair: (-pair[0], pair[1].source.number, pair[1].position))
    chosen: dict[str, _Candidate] = {}
    for rank, candidate in ranked:
        if len(chosen) < MAX_SENTENCES and rank >= _NEXT_BEST * ranked[0][0]:
            chosen.setdefault(candidate.text.casefold(), candidate)
    return sorted(chosen.values(), key=lambda candidate: (candidate.source.number, candidate.position))


def format_quotable(sentence: str) -> str:
    for citation in reversed(find_citations(sentence)):
        inside = sentence[citation.span.start + 1 : citation.span.end - 1]
        sentence = f"{sentence[: citation.span.start]}({inside}){sentence[citation.span.end :]}"
    line = " ".join(sentence.split())
    if len(line) > _MAX_QUOTE_CHARS:
        line = line[:_MAX_QUOTE_CHARS].rsplit(" ", 1)[0]
    # the first and last sentences of a passage that was cut are fragments
    return ("… " if line[0].islower() and not _ITEM.match(line) else "") + line + ("" if _CLOSED.search(line) else " …")
