"""The stages of retrieval after the search, each switched on by a setting, and the context of an answer."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.evidence import Span, fold
from exhibit.law.language import list_content_words
from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.models.rerankers import Reranker, find_retrieval_weight
from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.protocols import AnswerContext, Hit, Source
from exhibit.schemas.errors import ToolkitError

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


Tokens = Callable[[str], int]


@dataclass(frozen=True)
class Parts:
    """The index, the models and the settings that retrieval uses."""

    index: Index
    embedder: Embedder
    config: Config
    tokens: Tokens
    """Counts the tokens of a text."""
    reranker: Reranker | None = None
    llm: LLM | None = None
    only: tuple[int, ...] | None = None
    """The numbers of the documents that are searched; None = all."""

    @property
    def chunk_keys(self) -> Keys | None:
        """The keys of the chunks that are searched; None = all."""
        return None if self.only is None else self.index.chunk_keys(self.only)


@dataclass
class SearchState:
    """One question during retrieval: ranked chunks, and a trace of each stage."""

    question: str
    vector: npt.NDArray[np.float32]
    keys: Keys
    scores: Scores
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Retrieved:
    """The passages that were retrieved for a question."""

    question: str
    ranked: tuple[Hit, ...]
    """All passages in order, to the depth of the search: metrics at k use prefixes of this list."""
    selected: tuple[Hit, ...]
    """The few passages that are the sources of the answer."""
    trace: dict[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    """The probability that the first passages answer the question; None if no model computes it."""
    note: str = ""
    """The version of the law that the passages come from, in the law's own words; the answer repeats it."""
    named: int = 0
    """The number of first passages that the question cites by paragraph number: these are the answer."""
    changes: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """A sentence on the amendment that changed a passage, by the passage's document and first character."""
    before: tuple[Hit, ...] | None = None
    """The passages, or the chunks, in their order before the reranker; None if there is no reranker."""
    cut_by: str = ""
    """The limit that shortened `selected`: `budget`, `number`, `threshold` or `confidence`; empty if it has all
    passages.
    """
    beside: tuple[Hit, ...] = ()
    """The text around the selected passages that completes their sentences: further sources of the answer."""


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, *, first: int = 32) -> list[Hit]:
    """Sort the first hits (as many as `first` says) again with a reranker, and return all hits.

    The first hits are sorted by the reranker's score. For some rerankers, the weighted retrieval score is added
    to it. Ties and all later hits keep their order. A hit that moves to another rank gets the retrieval score
    of that rank, so that the scores in the list still decrease. The hits do not get the reranker's scores,
    because these are not comparable with the scores of the later hits.
    """
    head = list(hits[:first])
    scores = reranker.score(question, [hit.text for hit in head])
    order = order_by(scores, [hit.score for hit in head], weight=find_retrieval_weight(reranker))
    moved = [replace(head[at], score=place.score) for place, at in zip(head, order, strict=True)]
    return [*moved, *hits[first:]]


def order_by(judged: Sequence[float], retrieved: Sequence[float], *, weight: float | None) -> list[int]:
    """Return the positions of the texts, best first, by the reranker's score plus the weighted retrieval score.

    If `weight` is None, the order is by the reranker's score alone.
    """
    if not len(judged):
        return []
    scores = np.asarray(judged, np.float64)
    if weight is not None:
        scores = _standardise(scores) + weight * _standardise(np.asarray(retrieved, np.float64))
    return [int(at) for at in np.argsort(-scores, kind="stable")]


def _standardise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values in standard deviations from their mean; zero where they do not differ."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def choose_documents(state: SearchState, index: Index, config: Config) -> None:
    """Keep only the chunks of the best documents, at most `document_limit` documents; 0 means all documents.

    A document's score combines the highest and the mean score of its chunks among the first candidates. Without
    document and section layers, these documents are then searched again.
    """
    if not config.document_limit or not len(state.keys):
        return
    first = state.keys[: config.candidates * config.k]
    scores: dict[int, list[float]] = defaultdict(list)
    for number, score in zip(index.find_document_numbers(first), state.scores, strict=False):
        scores[int(number)].append(float(score))
    judged = {
        number: config.document_max * max(cosines) + config.document_mean * float(np.mean(cosines))
        for number, cosines in scores.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    state.trace["documents"] = {index.document(number).filename: round(judged[number], 4) for number in best}
    if config.layer_documents or config.layer_sections:  # chunks that the upper layers excluded stay excluded
        kept = np.isin(index.find_document_numbers(state.keys), best)
        state.keys, state.scores = state.keys[kept], state.scores[kept]
        return
    [scores_within], [keys_within] = index.store("chunk").search(
        state.vector[None], len(state.keys), within=index.chunk_keys(best)
    )
    kept = keys_within >= 0
    state.keys, state.scores = keys_within[kept], scores_within[kept]


def finish(
    question: str,
    hits: list[Hit],
    parts: Parts,
    trace: dict[str, Any],
    *,
    reranked: bool = False,
    confidence: float | None = None,
    before: Sequence[Hit] | None = None,
) -> Retrieved:
    """Return the result of retrieval: the ranked passages, and those selected for the answer.

    If there is a reranker and `reranked` is False, the passages are reranked first.

    Args:
        question: the question.
        hits: the passages, best first.
        parts: the index, the models and the settings.
        trace: the trace, to which this stage adds its entry.
        reranked: whether the passages must keep their order, for example because they are already reranked.
        confidence: the probability that the passages answer the question. If it is below `refuse_below`, no
            passages are selected, so that the answerer refuses. Only the answerer `reader` still gets the
            passages, because it uses the confidence itself.
        before: the passages in their order before reranking, if they are already reranked.
    """
    config = parts.config
    if parts.reranker is not None and not reranked:
        before = hits
        hits = rerank(question, hits, parts.reranker, first=config.rerank)
        trace["reranked"] = {"by": parts.reranker.name, "passages": min(config.rerank, len(hits))}
    candidates = hits[: config.candidates * config.k]
    near = keep_near_best(candidates, config)
    fitting = keep_within_budget(near, config, parts.tokens)
    selected = fitting[: config.k]
    cut_by = "number" if len(hits) > len(selected) else ""
    if len(selected) < min(config.k, len(candidates)):
        cut_by = "budget" if len(fitting) < len(near) else "threshold"
    unlikely = confidence is not None and confidence < (config.refuse_below or 0.0)
    if unlikely and not config.reads:
        selected, cut_by = [], "confidence"
    trace["selected"] = {"near": len(near), "within budget": len(fitting), "k": len(selected)}
    first = None if before is None else tuple(before[: config.depth])
    ranked = tuple(hits[: config.depth])
    return Retrieved(question, ranked, tuple(selected), trace, confidence, before=first, cut_by=cut_by)


def keep_near_best(hits: list[Hit], config: Config) -> list[Hit]:
    """Drop passages that score lower than the best by more than the threshold, but keep at least `min_chunks`."""
    if config.threshold is None or not hits:
        return hits
    least = hits[0].score - config.threshold
    return [hit for place, hit in enumerate(hits) if hit.score >= least or place < config.min_chunks]


def keep_within_budget(hits: list[Hit], config: Config, tokens: Tokens) -> list[Hit]:
    """Keep the first passages that fit the token budget; the first one is always kept."""
    kept: list[Hit] = []
    spent = 0
    for hit in hits:
        spent += tokens(hit.text)
        if kept and spent > config.budget:
            break
        kept.append(hit)
    return kept


# ---------------------------------------------------------------- the context of an answer


_FENCE = "~~~"
_TILDES = re.compile(r"~{3,}")
_WORD = re.compile(r"\S+")
_CUT = "cut to fit"
_STEPS = 4
"""The number of windows per width of a window: windows of a source that is too long start at every fourth of it."""


def assemble(
    question: str,
    hits: Sequence[Hit],
    *,
    summaries: Mapping[str, str],
    budget: int = 2500,
    tokens: Callable[[str], int],
    confidence: float | None = None,
) -> AnswerContext:
    """Return a context: the best hits that fit the budget as numbered sources, then their documents' summaries.

    If any hit has text, there is at least one source. If even the first hit is longer than the budget, only the
    part that shares the most words with the question is used, and its label says that the text was cut.
    """
    if budget < 1:
        raise ToolkitError(f"a token budget of {budget} is too small for a source; give at least 1")
    distinct = _drop_repeats(hits)
    if not distinct:
        return AnswerContext("", (), 0, confidence)
    # usually all hits fit, so that tokens are counted once
    parts = (_fit_context(distinct[:count], summaries, budget, tokens) for count in range(len(distinct), 0, -1))
    fitting = next(filter(None, parts), None)
    fitting = fitting or _cut_to_fit(question, distinct[0], summaries=summaries, budget=budget, tokens=tokens)
    return replace(fitting, confidence=confidence, left_out=len(distinct) - len(fitting.sources))


def _fit_context(
    hits: Sequence[Hit], summaries: Mapping[str, str], budget: int, tokens: Callable[[str], int]
) -> AnswerContext | None:
    """Return the answer context with the texts of the hits and the summaries of their documents.

    Return None if the context has more than `budget` tokens.
    """
    text = _render(hits, summaries)
    size = tokens(text)
    return _make_context(hits, text, size) if size <= budget else None


def _make_context(hits: Sequence[Hit], text: str, size: int) -> AnswerContext:
    return AnswerContext(text, tuple(Source(number, hit) for number, hit in enumerate(hits, 1)), size)


def _drop_repeats(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without blank passages, and without passages that repeat an earlier passage of the document.

    A passage repeats an earlier passage if it is inside that passage, or if both have the same text.
    """
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
            # the same clause in another document is another source, since the answer must name the document
            seen.add((chunk.document, words))
            kept.append(hit)
    return kept


# ---------------------------------------------------------------- the context as text


def _render(hits: Sequence[Hit], summaries: Mapping[str, str], *, note: str = "") -> str:
    """Return the context as text: the sources between fences (`~~~`), then the summaries of their documents."""
    if not hits:
        return ""
    # longer than any fence in the sources, so that no document can close its quotation and imitate the prompt
    fence = max([_FENCE, *(run + "~" for hit in hits for run in _TILDES.findall(hit.text))], key=len)
    blocks = [
        f"[{number}] {_label(hit, note)}\n{fence}\n{hit.text.strip()}\n{fence}" for number, hit in enumerate(hits, 1)
    ]
    named = dict.fromkeys(hit.chunk.document for hit in hits)
    about = [
        f"- {_join_lines(name)}: {_join_lines(summaries[name])}" for name in named if summaries.get(name, "").strip()
    ]
    return "\n\n".join(["SOURCES", *blocks, *(["\n".join(["DOCUMENTS", *about])] if about else [])])


def _label(hit: Hit, note: str) -> str:
    chunk = hit.chunk
    parts = [f"Document: {_join_lines(chunk.document)}"]
    if chunk.section.strip():
        parts.append(f"Section: {_join_lines(chunk.section)}")
    if chunk.page is not None:
        parts.append(f"Page: {chunk.page}")
    return " | ".join([*parts, *([note] if note else [])])


def _join_lines(text: str) -> str:
    """Return a text on one line, so that a heading with line breaks cannot look like a new source."""
    return " ".join(text.split())


# ---------------------------------------------------------------- a source longer than the budget


def _cut_to_fit(
    question: str, hit: Hit, *, summaries: Mapping[str, str], budget: int, tokens: Callable[[str], int]
) -> AnswerContext:
    """Return a context with the part of a hit that fits the budget and shares the most words with the question.

    The hit is cut between words; a hit of a single word is cut between characters.
    """

    def text_of(part: Hit, about: Mapping[str, str]) -> str:
        return _render([part], about, note=_CUT)

    words = [match.span() for match in _WORD.finditer(hit.text)]
    if len(words) == 1:  # no word boundary: cut at a character
        words = [(at, at + 1) for at in range(*words[0])]
    about = summaries if tokens(text_of(cut_hit(hit, *words[0]), summaries)) <= budget else {}
    fits = _count_fitting(words, 0, lambda start, end: tokens(text_of(cut_hit(hit, start, end), about)) <= budget)
    first = _find_nearest(question, hit.text, words, width=fits)
    count = _count_fitting(words, first, lambda start, end: tokens(text_of(cut_hit(hit, start, end), about)) <= budget)
    part = cut_hit(hit, words[first][0], words[first + count - 1][1])
    text = text_of(part, about)
    return _make_context([part], text, tokens(text))


def _count_fitting(words: Sequence[tuple[int, int]], first: int, fits: Callable[[int, int], bool]) -> int:
    """Return how many consecutive words, from the word number `first`, fit into the budget; at least one.

    `words` has the offsets of the words. `fits` says whether the text between two offsets fits. The number is
    found by bisection, since a text may be as long as a book.
    """
    more = range(first + 1, len(words))
    return 1 + bisect_left(more, True, key=lambda last: not fits(words[first][0], words[last][1]))


def _find_nearest(question: str, text: str, words: Sequence[tuple[int, int]], *, width: int) -> int:
    """Return the index of the first word of the window that shares the most words with the question.

    Of equal windows the earliest is chosen.
    """
    asked = frozenset(list_content_words(question))
    best = (0, 0)
    for first in range(0, max(1, len(words) - width + 1), max(1, width // _STEPS)):
        end = words[min(first + width, len(words)) - 1][1]
        shared = len(asked.intersection(list_content_words(text[words[first][0] : end])))
        best = max(best, (shared, -first))
    return -best[1]


def cut_hit(hit: Hit, start: int, end: int) -> Hit:
    """Return a hit for the part of a hit's text from offset `start` to offset `end` in this text.

    The new hit has the section and the page on which the part begins.
    """
    origin = hit.chunk.span.start
    span = Span(origin + start, origin + end)
    section, page = hit.chunk.place(span.start)
    inner = tuple(one for one in hit.chunk.inner if span.start < one[0] < span.end)
    chunk = replace(hit.chunk, span=span, section=section, page=page, inner=inner)
    return replace(hit, chunk=chunk, text=hit.text[start:end])
