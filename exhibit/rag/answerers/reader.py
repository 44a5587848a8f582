"""An answerer that quotes the text spans which the reader (an extractive question-answering model) selects."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from exhibit.evidence import Span, subtract_spans
from exhibit.law.citations import claims_of, verify
from exhibit.law.counting import asked_to_count, count_items
from exhibit.law.language import language_of, list_content_words
from exhibit.law.numerals import SPELT
from exhibit.law.sentences import extend_to_sentences
from exhibit.law.yes_or_no import asks_yes_or_no, denies, has_exception, says_contrary
from exhibit.models.llms import LLM
from exhibit.models.reader import EMBEDDER, Also, AnswerSpan, QuestionKind, Reader, Reading, shared_kinds, shared_reader
from exhibit.rag.answerers.extractive import TITLE, ExtractiveAnswerer, format_quotable
from exhibit.rag.config import Config
from exhibit.rag.protocols import Answer, AnswerContext, Source
from exhibit.rag.questions import understand
from exhibit.rag.retrieval.completion import WIDEST
from exhibit.schemas import IMPOSSIBLE_ANSWER

_WHOLE = 3600
"""The most characters of a short document: its passages are nearly all of it, and its confidence was fitted apart."""
SURE = 0.95
"""The confidence above which no further passage is read.

Measured on 736 questions that people wrote about the documents for tuning, with weights that were not trained on them,
and with an earlier confidence model, in which this value was 0.9: 0.8, 0.9 and 0.95 read 2.5, 2.8 and 3.1 passages, and
0.698, 0.703 and 0.707 of the answers are as expected.
"""
HOPELESS = 0.002
"""The confidence below which no further passage is read, either.

At 0.03, with an earlier confidence model, 1 to 3% of the answerable questions about the documents for tuning were given
up. At 0.005, two more of the answerable questions about our samples are given up after the first passage.
"""
NEXT_BEST = 1.0
"""The greatest distance from the best score, in log-odds, at which a further passage's words join the answer.

An answer that stands in several places needs it. 0, 0.5 and 1 give 0.698, 0.698 and 0.704 of the expected answers to
the same 736 questions.
"""
BEHIND = 0.25
"""The margin that a passage needs for each passage that retrieval ranks before it, since retrieval knows which document
is meant. From 0 to 1 the share of expected answers to the same questions falls from 0.704 to 0.700.
"""
ELSEWHERE = 3.0
"""The margin that a passage needs if its document is not the first one of retrieval. A clause of the same kind seems to
answer the question as well, but belongs to another agreement. Set by hand.
"""
UNREAD = frozenset({"rules", "practice direction", "court guide", "legislation", "judgment"})
"""Kinds of documents with few examples in the reader's training data. For these the extractive answerer is better: on
62 questions about court rules the reader refused 15 and gave 0.30 of the references, the extractive answerer 1 and
0.38.
"""
MOST = 5
"""The most quoted spans in an answer."""
_NAMED = r"(?<!\bthe )(?<!\bthis )(?<!\bits )\b"
_KIND = rf"{_NAMED}(agreement|contract|policy|nda|lease)\b"
_SEVERAL = re.compile(
    rf"^\W*(?:list|compare)\b|\b(?:both|respectively)\b|{_KIND}.{{1,200}}\b(?:and|or)\b.{{1,200}}{_NAMED}\1\b",
    re.I | re.DOTALL,
)
"""Words of a question whose answer stands in several places or in several documents."""
_FURTHER = 4.0
"""The greatest distance from the best score of a further span, where the question asks for several. Set by hand."""
_PLAIN = 10
"""The most words of a short question: the confidence on short documents was fitted to questions of three to nine
words.
"""
YES_SLOPE, YES_OFFSET, YES_DENIED = 0.2753, 1.1425, -1.3898
"""The log-odds of a yes, computed from those of the reader; they are lower where the quote denies or restricts
something. Fitted to 247 questions that people wrote about the documents for tuning, with weights that were not
trained on them.
"""
DECIDED = 0.5
"""The least log-odds of an answer Yes or No: 0.80 of these questions get one, and 0.85 of these answers are right."""
_SHORT_SHARE = 0.8
"""The greatest share of its quote that a short answer may have; a longer one adds nothing to the quote."""
SHORT_SURE = 1.0
"""The least mean log-odds of the words of a short answer; a less certain one is not given, and the quote answers alone.

Measured on the 340 short answers to the same 736 questions: of 93 below this value 0.47 have hardly a word of the
expected answer, of the other 247 0.17.
"""
_BRACKET = 40
"""The most characters from the start of a bracket in a short answer to its end; the answer ends before a longer
bracket.
"""
_GAP = 4
"""The most characters between two passages that are adjacent in the document: a space, a mark, the end of a line."""


LOCAL = True


def open(config: Config, *, llm: LLM | None) -> "ReaderAnswerer":  # noqa: ARG001
    """Return an answerer that uses the reader (an extractive question-answering model) and no language model."""
    return ReaderAnswerer(refuse_below=config.refuse_below, most=config.reader_passages)


def can_read(question: str, kind: str) -> bool:
    """Return whether the reader model answers a question about a document of this kind.

    It answers English questions, except about court rules, laws and judgments.
    """
    return kind not in UNREAD and language_of(question) == "en"


class _Run:
    """Adjacent passages of one document, as one text."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources, self.text = sources, ""
        self.places: list[Span] = []
        """The place of each passage in the text."""
        for at, source in enumerate(sources):
            if at and source.hit.chunk.span.start > sources[at - 1].hit.chunk.span.end:
                self.text += " "
            self.places.append(Span(len(self.text), len(self.text) + len(source.text)))
            self.text += source.text


@dataclass(frozen=True)
class ReadingWindow:
    """A part of a run of adjacent passages that the reader model reads at once."""

    run: _Run
    span: Span

    @property
    def document(self) -> str:
        """The file that the window's text comes from."""
        return self.run.sources[0].document

    @cached_property
    def text(self) -> str:
        """The text that the model reads."""
        return self.run.text[slice(*self.span)]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages that the window overlaps."""
        return tuple(source for source, _ in self.parts(0, len(self.text)))

    def parts(self, start: int, end: int) -> Iterator[tuple[Source, Span]]:
        """Yield the sources that the range from `start` to `end` of this window's text overlaps.

        Each source comes with the overlap as a span of the source's own text.
        """
        first = self.span.start
        for source, place in zip(self.run.sources, self.run.places, strict=True):
            low, high = max(first + start, place.start), min(first + end, place.end)
            if low < high:
                yield source, Span(low - place.start, high - place.start)


@dataclass(frozen=True)
class _Words:
    """A quoted span of an answer, with its score and the sources that contain it."""

    score: float
    parts: tuple[tuple[Source, Span], ...]
    text: str
    short: str = ""
    """The words of the span that answer in short; "" if they are nearly the whole span."""
    yes: float = 0.0
    """The reader's log-odds that the answer is yes."""

    @property
    def cited(self) -> str:
        """The quoted text in quotation marks, then its citations: `“thirty days” [2]`."""
        return f"“{self.text}” " + "".join(f"[{source.number}]" for source, _ in self.parts)


class ReaderAnswerer:
    """An answerer that quotes the spans which the reader model selects, or refuses; it is deterministic."""

    name = "reader"

    def __init__(self, *, refuse_below: float | None, most: int, reader: Reader | None = None) -> None:
        self._refuse_below, self._most = refuse_below or 0.0, most
        self._reader = reader

    def answer(self, question: str, context: AnswerContext) -> Answer:
        """Return an answer of quoted spans, with citations and a confidence; refuse if the confidence is low.

        Questions that are not in English, and questions about court rules, laws and judgments, go to the extractive
        answerer instead.
        """
        if not can_read(question, context.kind):
            return ExtractiveAnswerer().answer(question, context)
        several = bool(_SEVERAL.search(TITLE.sub("", question, count=1)))
        windows = make_windows(context.sources)[: None if several else self._most]
        if not windows:
            return Answer(IMPOSSIBLE_ANSWER, refused=True, confidence=context.confidence)
        asks = understand(question).asks
        whole = 0 < context.characters <= _WHOLE
        short = whole and len(asks.split()) <= _PLAIN
        facts: dict[Also, bool] = {
            "short": short,
            "whole": whole and not short,
            "policy": context.kind == "privacy policy",
        }
        also = [name for name, holds in facts.items() if holds]
        kind = QuestionKind() if short else _kind(asks, context)  # kinds were learnt from benchmarks' contracts
        judge = partial(self._opened.confidence, found=context.confidence, usual=kind.usual, also=also)
        meant = "" if several else windows[0].document
        read, sure = self._read((asks, kind.asks), windows, judge, meant)
        if sure < self._refuse_below:
            return Answer(IMPOSSIBLE_ANSWER, refused=True, confidence=sure)
        found = _choose(read, meant, whole=asks.strip().lower() != kind.asks.lower())
        if not found:  # an answer is probable, but no span is probable enough
            best = max(read, key=lambda one: one[1].score)[0]
            few = AnswerContext(context.text, best.sources, context.tokens)
            return replace(ExtractiveAnswerer(near=0.0).answer(question, few), confidence=sure)
        value = _short(question, asks, kind, found, several=several)
        front = f"{value}: " if value else ""
        text = front + "\n\n".join(words.cited for words in found)
        verdict = verify(claims_of(text), context.sources, given=question)
        quotes = tuple(words.text for words in found)
        return Answer(text, verdict.citations, verdict.unsupported, confidence=sure, short=value, quotes=quotes)

    def answer_all(self, asked: Sequence[tuple[str, AnswerContext]]) -> list[Answer]:
        """Return one answer per question, in order."""
        return [self.answer(question, context) for question, context in asked]

    @property
    def _opened(self) -> Reader:
        return self._reader or shared_reader()

    def _read(
        self, asks: tuple[str, str], windows: Sequence[ReadingWindow], judge: Callable[[list[float]], float], meant: str
    ) -> tuple[list[tuple[ReadingWindow, Reading]], float]:
        """Return the text windows that the model has read, with its outputs, and the probability of an answer in them.

        `asks` has the question and a hint: a benchmark's wording for this kind of question. `judge` computes
        the probability from the windows' scores. If the question is about one document (`meant`), the first window
        is read alone. The other windows are then read only if the probability is neither very high nor very low.
        """
        read: list[tuple[ReadingWindow, Reading]] = []
        sure, first = 0.0, 1 if meant else len(windows)
        for few in (windows[:first], windows[first:]):
            read += zip(few, self._opened.read(asks[0], [window.text for window in few], asks[1]), strict=True)
            sure = judge([reading.score - _elsewhere(window, meant) for window, reading in read])
            if len(windows) == len(read) or not HOPELESS <= sure < SURE:
                break
        return read, sure


def _kind(asks: str, context: AnswerContext) -> QuestionKind:
    """Return the kind of the question, such as "governing law"; an empty kind if no kind is likely.

    The question's vector must come from the embedder `legal`. With any other embedder the kind is empty.
    """
    asked = context.asked
    return shared_kinds().of(asks, asked.vector) if asked and asked.embedder.startswith(EMBEDDER) else QuestionKind()


def make_windows(sources: Sequence[Source]) -> list[ReadingWindow]:
    """Return the texts for the reader model, best first.

    A text is a window: a passage with the rest of the sentences in which it begins and ends, and with the adjacent
    passages that fit. Windows do not overlap: a better passage takes the text first.
    """
    places = {
        source.number: (run, place)
        for run in _join_adjacent(sources)
        for source, place in zip(run.sources, run.places, strict=True)
    }
    windows: list[ReadingWindow] = []
    for _, (run, place) in sorted(places.items()):
        taken = [window.span for window in windows if window.run is run]
        free = next(iter(subtract_spans([place], taken)), None)
        if free is None or not run.text[slice(*free)].strip():
            continue
        whole = extend_to_sentences(run.text, free, widest=WIDEST)
        for other in sorted(run.places, key=lambda other: abs(other.start - whole.start)):
            wider = Span(min(whole.start, other.start), max(whole.end, other.end))
            if wider.end - wider.start <= WIDEST:
                whole = wider
        [mine] = [part for part in subtract_spans([whole], taken) if part.start <= free.start < part.end]
        windows.append(ReadingWindow(run, mine))
    return windows


def _join_adjacent(sources: Sequence[Source]) -> list[_Run]:
    """Return the passages in runs: the passages of a run follow one another in a document."""
    runs: list[list[Source]] = []
    for source in sorted(sources, key=lambda source: (source.document, source.hit.chunk.span.start)):
        last = runs[-1][-1] if runs else None
        span = source.hit.chunk.span
        if last and last.document == source.document and 0 <= span.start - last.hit.chunk.span.end <= _GAP:
            runs[-1].append(source)
        else:
            runs.append([source])
    return list(map(_Run, runs))


def _choose(read: Sequence[tuple[ReadingWindow, Reading]], meant: str, *, whole: bool) -> list[_Words]:
    """Return the spans to quote in the answer, in the order of the sources.

    The spans come from the window with the best score, and from windows that score nearly as well. If `whole`
    is true, each span is extended to whole sentences. `whole` is false for kinds of questions from benchmarks,
    because benchmarks expect shorter spans.
    """
    behind = BEHIND if meant else 0.0
    found = [
        _Words(
            reading.score - behind * rank - _elsewhere(window, meant),
            tuple(window.parts(*quote)),
            format_quotable(window.text[slice(*quote)].strip()),
            _value(window.text, span, reading.short),
            reading.yes,
        )
        for rank, (window, reading) in enumerate(read)
        for span in reading.spans
        if window.text[span.start : span.end].strip()
        for own in [Span(span.start, span.end)]
        for quote in [extend_to_sentences(window.text, own, widest=len(window.text)) if whole else own]
    ]
    best = max((one.score for one in found), default=0.0)
    least = best - (NEXT_BEST if meant else _FURTHER)
    near = sorted((one for one in found if one.score >= least), key=lambda one: -one.score)
    if meant and near:  # a question about one document is answered from that document
        near = [one for one in near if one.parts[0][0].document == near[0].parts[0][0].document]
    distinct: dict[str, _Words] = {}
    for one in near[:MOST]:
        distinct.setdefault(one.text.casefold(), one)
    return sorted(distinct.values(), key=lambda one: (one.parts[0][0].number, one.parts[0][1].start))


def _value(text: str, span: AnswerSpan, short: AnswerSpan | None) -> str:
    """Return the text of the short answer `short` if it is inside `span`, else "".

    Also return "" if the short answer is uncertain, or nearly as long as the span.
    """
    if short is None or short.sure < SHORT_SURE or not span.start <= short.start < short.end <= span.end:
        return ""
    if short.end - short.start > _SHORT_SHARE * (span.end - span.start):
        return ""
    return " ".join(text[slice(*_whole_words(short, text))].split()).strip(" ,;:.")


def _whole_words(span: AnswerSpan, text: str) -> Span:
    """Return a span extended to whole words.

    If a bracket opens in the span and does not close in it, the rest of the bracket is added if it is short.
    Otherwise the span ends before the bracket.
    """
    start, end = span.start, span.end
    while start and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    if text.count("(", start, end) > text.count(")", start, end):
        closed = text.find(")", end, end + _BRACKET)
        end = closed + 1 if closed >= 0 else text.rfind("(", start, end)
    return Span(start, end)


def _short(question: str, asks: str, kind: QuestionKind, found: Sequence[_Words], *, several: bool) -> str:
    """Return a short answer from the best span: Yes or No if the question asks for one, else a value or a count.

    Return "" if a Yes or No is too uncertain, or if the value adds nothing to the question.
    """
    best = max(found, key=lambda words: words.score)
    if asks_yes_or_no(TITLE.sub("", question, count=1)):
        if kind.clause and asks == kind.asks:  # the question asks whether such a clause exists, and this span is one
            contrary = says_contrary(asks, best.text)
            return ("" if has_exception(best.text) else "No") if contrary else "Yes"
        odds = YES_SLOPE * best.yes + YES_OFFSET + YES_DENIED * denies(best.text)
        return ("Yes" if odds > 0 else "No") if abs(odds) >= DECIDED else ""
    values = [words.short for words in (found if several else [best]) if _is_new(words.short, question)]
    noun = asked_to_count(asks)
    if noun and not any(map(_has_number, values)) and (count := count_items(noun, best.text)):
        return str(count)
    return "; ".join(dict.fromkeys(values))


def _has_number(text: str) -> bool:
    return any(map(str.isdigit, text)) or re.search(rf"\b{SPELT}\b", text, re.IGNORECASE) is not None


def _is_new(short: str, question: str) -> bool:
    """Return whether a short answer tells more than the question.

    It does if it contains a digit, or a content word that is not in the question.
    """
    return any(map(str.isdigit, short)) or not frozenset(list_content_words(question)).issuperset(
        list_content_words(short)
    )


def _elsewhere(window: ReadingWindow, meant: str) -> float:
    """Return the penalty on the score of a window that is not from the document `meant`; 0 if `meant` is empty."""
    return ELSEWHERE if meant and window.document != meant else 0.0
