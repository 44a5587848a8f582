"""An answerer that quotes the text spans which the reader (an extractive question-answering model) selects."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from exhibit.evidence import Span, subtract_spans
from exhibit.law.citations import claims_of, verify
from exhibit.law.language import language_of, list_content_words
from exhibit.law.questions import asks_yes_or_no, denies, has_exception, says_contrary
from exhibit.law.sentences import extend_to_sentences
from exhibit.models.llms import LLM
from exhibit.models.reader import (
    Also,
    AnswerSpan,
    QuestionKind,
    Reader,
    Reading,
    shared_kinds,
    shared_reader,
    shared_verdicts,
)
from exhibit.rag.answerers import Answer, AnswerContext, Source, extractive
from exhibit.rag.answerers.extractive import TITLE, format_quotable
from exhibit.rag.config import Config
from exhibit.rag.passages import MAX_COMPLETED_CHARS
from exhibit.schemas import IMPOSSIBLE_ANSWER

LOCAL = True
MAX_WINDOWS = 6  # most windows that are read for an answer; a high confidence stops the reading earlier
MAX_QUOTES = 5
# on 736 tuning questions, values of 0.8, 0.9 and 0.95 read 2.5, 2.8 and 3.1 passages each, and the shares of right
# answers are 0.698, 0.703 and 0.707
SURE = 0.95  # confidence above which no further passage is read
# confidence below which reading stops; with 0.03, it stops too early on 1 to 3% of the answerable tuning questions
HOPELESS = 0.002
NEXT_BEST = 1.0  # the greatest distance from the best score, in log-odds, at which a further passage is also quoted
# a passage ranked lower by retrieval may be about another document; with values from 0 to 1, the share of right answers
# falls from 0.704 to 0.700
BEHIND = 0.25  # the margin, in log-odds, that a passage needs for each passage ranked before it by retrieval
ELSEWHERE = 3.0  # the margin for a passage of another document than the first-ranked one; set by hand
# Kinds of documents with few examples in the training data: on 62 questions about court rules, the reader's answers
# contain 0.30 of the expected references, and the extractive answerer's contain 0.38.
UNREAD = frozenset({"rules", "practice direction", "court guide", "legislation", "judgment"})
# coefficients of the log-odds of Yes: a model's log-odds, a constant, and a denial in the quote; for a benchmark's
# wording, the model is the reader (247 tuning questions), else the one for yes-no questions (305 tuning questions)
KNOWN_YES, UNKNOWN_YES = (0.2753, 1.1425, -1.3898), (0.8328, 0.5656, -0.997)
# least absolute log-odds to answer Yes or No: 88% of yes-no questions get such an answer, and 88% of these are right
DECIDED = 0.5
SHORT_SURE = 1.0  # the least mean log-odds of the words of a short answer
# the greatest share of the quote that a short answer may have; a longer one would only repeat the quote
_SHORT_SHARE = 0.8
# most characters of a short document, which is read almost completely; its confidence was fitted separately
_WHOLE_CHARS = 3600
# most words of a short question; the confidence for short documents was fitted to questions of three to nine words
_SHORT_WORDS = 10
_FURTHER = 4.0  # the greatest distance from the best score if the question asks for several spans; set by hand
_BRACKET_CHARS = 40  # a short answer ends before a bracketed text that is longer
_GAP_CHARS = 4  # most characters between two adjacent passages: a space, a punctuation mark, a line end
_NAMED = r"(?<!\bthe )(?<!\bthis )(?<!\bits )\b"
_KIND = rf"{_NAMED}(agreement|contract|policy|nda|lease)\b"
# words of questions whose answer is in several sections or documents
_SEVERAL = re.compile(
    rf"^\W*(?:list|compare)\b|\b(?:both|respectively)\b|{_KIND}.{{1,200}}\b(?:and|or)\b.{{1,200}}{_NAMED}\1\b",
    re.I | re.DOTALL,
)


def answer_all(questions: Sequence[tuple[str, AnswerContext]], config: Config, _llm: LLM | None) -> list[Answer]:
    return [answer(question, context, refuse_below=config.refuse_below or 0.0) for question, context in questions]


def can_read(question: str, kind: str) -> bool:
    """Return whether the reader can answer: questions in English, except about court rules, laws and judgments."""
    return kind not in UNREAD and language_of(question) == "en"


class _Run:
    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources, self.text = sources, ""
        self.spans: list[Span] = []  # the span of each passage in the text
        for at, source in enumerate(sources):
            if at and source.span.start > sources[at - 1].span.end:
                self.text += " "
            self.spans.append(Span(len(self.text), len(self.text) + len(source.text)))
            self.text += source.text


@dataclass(frozen=True)
class ReadingWindow:
    run: _Run
    span: Span

    @property
    def document(self) -> str:
        return self.run.sources[0].document

    @cached_property
    def text(self) -> str:
        return self.run.text[slice(*self.span)]

    def parts(self, start: int, end: int) -> Iterator[tuple[Source, Span]]:
        """Yield each source that overlaps a range of this window's text, with the overlap as a span of the source."""
        first = self.span.start
        for source, span in zip(self.run.sources, self.run.spans, strict=True):
            low, high = max(first + start, span.start), min(first + end, span.end)
            if low < high:
                yield source, Span(low - span.start, high - span.start)


def make_windows(sources: Sequence[Source]) -> list[ReadingWindow]:
    """Extend each passage to whole sentences, and to adjacent passages while the result is short enough to read.

    Return the extended passages as windows that do not overlap.
    """
    located = {
        source.number: (run, span)
        for run in _join_adjacent(sources)
        for source, span in zip(run.sources, run.spans, strict=True)
    }
    windows: list[ReadingWindow] = []
    for _, (run, span) in sorted(located.items()):
        taken = [window.span for window in windows if window.run is run]
        free = next(iter(subtract_spans([span], taken)), None)
        if free is None or not run.text[slice(*free)].strip():
            continue
        whole = extend_to_sentences(run.text, free, widest=MAX_COMPLETED_CHARS)
        for other in sorted(run.spans, key=lambda other: abs(other.start - whole.start)):
            wider = Span(min(whole.start, other.start), max(whole.end, other.end))
            if wider.end - wider.start <= MAX_COMPLETED_CHARS:
                whole = wider
        [part] = [part for part in subtract_spans([whole], taken) if part.start <= free.start < part.end]
        windows.append(ReadingWindow(run, part))
    return windows


def _join_adjacent(sources: Sequence[Source]) -> list[_Run]:
    runs: list[list[Source]] = []
    for source in sorted(sources, key=lambda source: (source.document, source.span.start)):
        last = runs[-1][-1] if runs else None
        if last and last.document == source.document and 0 <= source.span.start - last.span.end <= _GAP_CHARS:
            runs[-1].append(source)
        else:
            runs.append([source])
    return list(map(_Run, runs))


@dataclass(frozen=True)
class _Quote:
    score: float
    parts: tuple[tuple[Source, Span], ...]
    text: str
    short: str  # the short answer within the span; "" if it is nearly the whole span
    yes: float  # the reader's log-odds that the answer is yes

    @property
    def cited(self) -> str:
        """The quoted text in quotation marks, then its citations: `“thirty days” [2]`."""
        return f"“{self.text}” " + "".join(f"[{source.number}]" for source, _ in self.parts)


def answer(question: str, context: AnswerContext, *, refuse_below: float, reader: Reader | None = None) -> Answer:
    if not can_read(question, context.kind):
        return extractive.answer(question, context)
    several = bool(_SEVERAL.search(TITLE.sub("", question, count=1)))
    windows = make_windows(context.sources)[: None if several else MAX_WINDOWS]
    if not windows:
        return Answer(IMPOSSIBLE_ANSWER, refused=True, confidence=context.confidence)
    asks, meant = context.asks or question, "" if several else windows[0].document
    also = _list_cases(asks, context)
    kind = QuestionKind()
    if "short" not in also and context.vector is not None:  # these kinds are from long contracts
        kind = shared_kinds().of(asks, context.vector)
    reader = reader or shared_reader()
    read: list[tuple[ReadingWindow, Reading]] = []
    # if the question is about one document, the first window is read alone; others follow only if its probability is
    # neither very high nor very low
    sure, first = 0.0, 1 if meant else len(windows)
    for part in (windows[:first], windows[first:]):
        read += zip(part, reader.read(asks, [window.text for window in part], kind.asks), strict=True)
        scores = [reading.score - _weigh_document(window, meant) for window, reading in read]
        sure = reader.confidence(scores, found=context.confidence, usual=kind.usual, also=also)
        if len(windows) == len(read) or not HOPELESS <= sure < SURE:
            break
    if sure < refuse_below:
        return Answer(IMPOSSIBLE_ANSWER, refused=True, confidence=sure)
    quotes = _choose_quotes(read, meant, whole=asks.strip().lower() != kind.asks.lower())
    if not quotes:  # a passage probably answers, but no span in it is probable enough
        best = max(read, key=lambda pair: pair[1].score)[0]
        few = replace(context, sources=tuple(source for source, _ in best.parts(0, len(best.text))))
        return replace(extractive.answer(question, few, near=0.0), confidence=sure)
    value = _find_short_answer(question, asks, kind, quotes, several=several)
    text = (f"{value}: " if value else "") + "\n\n".join(quote.cited for quote in quotes)
    verdict = verify(claims_of(text), context.sources, given=question)
    sentence = tuple((source.number, span) for source, span in max(quotes, key=lambda quote: quote.score).parts)
    return Answer(text, verdict.citations, verdict.unsupported, confidence=sure, best=sentence)


def _list_cases(asks: str, context: AnswerContext) -> list[Also]:
    whole = 0 < context.characters <= _WHOLE_CHARS
    short = whole and len(asks.split()) <= _SHORT_WORDS
    cases: dict[Also, bool] = {"short": short, "whole": whole and not short, "policy": context.kind == "privacy policy"}
    return [name for name, holds in cases.items() if holds]


def _weigh_document(window: ReadingWindow, meant: str) -> float:
    return ELSEWHERE if meant and window.document != meant else 0.0


def _choose_quotes(read: Sequence[tuple[ReadingWindow, Reading]], meant: str, *, whole: bool) -> list[_Quote]:
    """Return the spans to quote in the answer, in the order of the sources.

    They come from the window with the best score and from windows that score nearly as well. With `whole`, each span
    is extended to whole sentences; without it, spans stay short, as the benchmark of the question expects.
    """
    quotes = []
    for rank, (window, reading) in enumerate(read):
        score = reading.score - (BEHIND * rank if meant else 0.0) - _weigh_document(window, meant)
        for answer in reading.spans:
            span = Span(answer.start, answer.end)
            if not window.text[slice(*span)].strip():
                continue
            if whole:
                span = extend_to_sentences(window.text, span, widest=len(window.text))
            text = format_quotable(window.text[slice(*span)].strip())
            short = _read_value(window.text, answer, reading.short)
            quotes.append(_Quote(score, tuple(window.parts(*span)), text, short, reading.yes))
    best = max((quote.score for quote in quotes), default=0.0)
    least = best - (NEXT_BEST if meant else _FURTHER)
    near = sorted((quote for quote in quotes if quote.score >= least), key=lambda quote: -quote.score)
    if meant and near:  # a question about one document is answered from that document
        near = [quote for quote in near if quote.parts[0][0].document == near[0].parts[0][0].document]
    distinct: dict[str, _Quote] = {}
    for quote in near[:MAX_QUOTES]:
        distinct.setdefault(quote.text.casefold(), quote)
    return sorted(distinct.values(), key=lambda quote: (quote.parts[0][0].number, quote.parts[0][1].start))


def _read_value(text: str, span: AnswerSpan, short: AnswerSpan | None) -> str:
    """Return the short answer if it is inside a span, certain and clearly shorter than the span, else ""."""
    if short is None or short.sure < SHORT_SURE or not span.start <= short.start < short.end <= span.end:
        return ""
    if short.end - short.start > _SHORT_SHARE * (span.end - span.start):
        return ""
    start, end = short.start, short.end
    while start and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    if text.count("(", start, end) > text.count(")", start, end):
        closed = text.find(")", end, end + _BRACKET_CHARS)
        end = closed + 1 if closed >= 0 else text.rfind("(", start, end)
    return " ".join(text[start:end].split()).strip(" ,;:.")


def _find_short_answer(question: str, asks: str, kind: QuestionKind, quotes: Sequence[_Quote], *, several: bool) -> str:
    """Return Yes or No for a yes-no question, else a value; "" if that is uncertain or only repeats the question."""
    best = max(quotes, key=lambda quote: quote.score)
    if asks_yes_or_no(TITLE.sub("", question, count=1)):
        if kind.clause and asks == kind.asks:  # the question is whether such a clause exists
            contrary = says_contrary(asks, best.text)
            return ("" if has_exception(best.text) else "No") if contrary else "Yes"
        known = asks == kind.asks  # a benchmark's wording, which the reader has learnt
        yes = best.yes if known else shared_verdicts().score(asks, [best.text])[0]
        slope, offset, denied = KNOWN_YES if known else UNKNOWN_YES
        odds = slope * yes + offset + denied * denies(best.text)
        return ("Yes" if odds > 0 else "No") if abs(odds) >= DECIDED else ""
    words = frozenset(list_content_words(question))
    shown = dict.fromkeys(quote.short for quote in (quotes if several else [best]))
    # a value is new if it has a digit, or a content word that is not in the question
    return "; ".join(
        short for short in shown if any(map(str.isdigit, short)) or not words.issuperset(list_content_words(short))
    )
