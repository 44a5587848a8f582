"""Playbooks: TOML files with the questions that a reviewer asks about a kind of document; an `Asker` asks them."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, Field, ValidationError, model_validator

from exhibit.drafting.drafts import Draft, Status
from exhibit.evidence import Span
from exhibit.law.profile import AGREED, Profile
from exhibit.law.sentences import split_sentences
from exhibit.models.network import read_record
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.reader import EMBEDDER, KINDS, QuestionKind, Reader, Reading, shared_kinds
from exhibit.models.rerankers import Reranker, estimate_confidence
from exhibit.rag.ingest import Prepared
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import LARGEST_FILE, format_faults, parse_toml, read_text

SHIPPED = Path(__file__).parent / "playbooks"

SURE, ABSENT = 0.85, 0.1  # Default thresholds, chosen with contracts of CUAD (bench/results/models.md)

Words = Annotated[str, Field(pattern=r"\S", max_length=400)]


class PlaybookQuestion(BaseModel, extra="forbid", frozen=True):
    name: Words
    ask: Words
    seek: Words | None = None  # The wording for the models, if the wording for people is not precise enough
    trained: str = ""  # a wording in the reader's training data, such as `maud/No-Shop`, that replaces `seek`


class Playbook(BaseModel, extra="forbid", frozen=True):
    name: str
    title: Words
    kinds: Annotated[list[Words], Field(min_length=1)]  # as `exhibit index --inspect` names them, such as contract
    words: list[Words] = []  # The title must contain at least one of these words, unless the list is empty
    sure: Annotated[float, Field(ge=0, le=1)] = SURE  # the confidence above which an answer is certain
    absent: Annotated[float, Field(ge=0, le=1)] = ABSENT  # the confidence below which an absence is certain
    again: bool = True  # whether a reranker checks apparent absences, which is unnecessary for some kinds
    trained: str = ""  # dataset of the reader's training data whose wording for its name is each question's `seek`
    questions: Annotated[list[PlaybookQuestion], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [question.name for question in self.questions]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"several questions have the same name ({', '.join(sorted(twice))}); rename them")
        return self

    def applies_to(self, profile: Profile) -> bool:
        named = not self.words or any(word.casefold() in profile.title.casefold() for word in self.words)
        return profile.kind in self.kinds and named


def read_playbook(path: Path) -> Playbook:
    """Return a playbook from its file; raise an error that names its first fault."""
    try:
        content = parse_toml(read_text(path, error=SourceError, most=LARGEST_FILE), where=path, error=SourceError)
        playbook = Playbook.model_validate({**content, "name": path.stem.replace("_", "-")})
    except ValidationError as error:
        raise SourceError(f"{path}: {format_faults(error, most=1)}; docs/draft.md shows the form") from error
    wordings = {name.lower(): wording for name, wording in read_record(KINDS)["kinds"].items()}
    questions = []
    for question in playbook.questions:
        seek = wordings.get(f"{playbook.trained}/{question.name}", question.seek)
        if question.trained and not (seek := wordings.get(question.trained.lower())):
            raise SourceError(f"{path}: {question.name}: unknown wording {question.trained!r}; correct `trained`")
        capital = seek[:1].upper() + seek[1:] if seek and question.trained else seek
        questions.append(question.model_copy(update={"seek": capital}))
    return playbook.model_copy(update={"questions": questions})


def find_playbooks(names: Sequence[str] = ()) -> list[Playbook]:
    """Return the playbooks with the given names or files; without names, all playbooks of the package."""
    shipped = {path.stem.replace("_", "-"): path for path in sorted(SHIPPED.glob("*.toml"))}
    for name in names:
        if name not in shipped and not name.endswith(".toml"):
            raise SourceError(f"no playbook {name!r}; choose one of {', '.join(shipped)}, or a file FILE.toml")
    return [read_playbook(shipped.get(name, Path(name))) for name in names or shipped]


_OPERATIVE = re.compile(
    r"\b(?:shall|hereby|hereunder|hereof|agrees?|undertakes?|covenants?|whereas|part(?:y|ies)|governed by|means"
    r"|agreement is (?:made|entered))\b",
    re.IGNORECASE,
)
# a text of at most this many characters needs at least this many words of obligation to be an agreement
_MAX_NOTE_CHARS, _MIN_OPERATIVE_WORDS = 1500, 2
_MAIL_HEAD = re.compile(r"\s*(?:(?:from|to|cc|sent|date|subject):[^\n]*\n\s*){2}", re.IGNORECASE)


def only_mentions_agreement(profile: Profile, text: str) -> bool:
    """Return whether a text that is titled as an agreement is in fact only an e-mail or a note about one."""
    binding = len(text) > _MAX_NOTE_CHARS or len(_OPERATIVE.findall(text)) >= _MIN_OPERATIVE_WORDS
    return profile.kind in AGREED and (not binding or _MAIL_HEAD.match(text) is not None)


def choose_playbook(playbooks: Sequence[Playbook], profile: Profile, text: str | None = None) -> Playbook | None:
    """Return the playbook for a document; None if no playbook applies."""
    if text is not None and only_mentions_agreement(profile, text):
        return None
    fitting = [playbook for playbook in playbooks if playbook.applies_to(profile)]
    return min(fitting, key=lambda playbook: not playbook.words, default=None)


# most chunks that are read with each question: at the threshold that finds half of the experts' gold, 1, 2 and 3 chunks
# give a precision of 0.87, 0.93 and 0.96 on the tuning documents of CUAD, and of 0.89, 0.92 and 0.95 on ContractNLI's
MAX_READ_CHUNKS = 3
_MIN_VECTOR_PROBABILITY = 0.02  # no chunk is read if the probability of an answer, by the vectors, is not above this
_MIN_READ_PROBABILITY = 0.05  # no further chunk is read if the probability of an answer is not above this
# least log-odds from its own vector of a chunk that is read after the best chunk. With these limits, 60 of 123 pairs of
# question and chunk are read on CUAD's 26 contracts for tuning, and AUROC is 0.954 (0.957 if all are read)
_MIN_CHUNK_ODDS = -3.0
# the reranker's confidence in the same chunks above which an absence is uncertain: on the 15 agreements for tuning, 80
# absences are certain without this check, of which 6 are wrong, and 65 with it, of which 1 is wrong
_MAX_DOUBT = 0.2
_MAX_DISPUTED_CONFIDENCE = 0.5  # the greatest confidence of a draft if the models disagree
_COSINE_WEIGHT = 5.0  # factor of the cosine that is added to a chunk's log-odds to rank chunks for reading
MAX_PROPOSED_PASSAGES = 3  # most passages of an uncertain draft that a reviewer sees
_SENTENCE_CHARS = 700  # most characters by which a passage is extended to complete a sentence
_MAX_ODDS_BELOW_BEST = 1.5  # a chunk's passages are gold if its log-odds are at most this far below the best chunk's


class Judged(NamedTuple):
    status: Status
    spans: tuple[Span, ...]
    confidence: float


@dataclass
class Asker:
    """Asks the questions of playbooks; the models are opened once for many documents."""

    embedder: Embedder
    reader: Reader
    reranker: Reranker
    _questions: dict[tuple[str, ...], Vectors] = field(default_factory=dict)

    def ask(self, playbook: Playbook, prepared: Prepared) -> list[Draft]:
        """Return a draft for each question of a playbook: the question about this document, with proposed gold."""
        chunks = self.embedder.embed(list(prepared.texts), role="passage")

        def draft(question: PlaybookQuestion) -> Draft:
            wordings = [question.seek, question.ask] if question.seek else [question.ask]
            status, spans, confidence = self.judge(
                wordings, prepared, chunks, sure=playbook.sure, absent=playbook.absent, again=playbook.again
            )
            name = f"{playbook.name}/{question.name}"
            return Draft(prepared.entry.filename, question.ask, "playbook", status, name, spans, confidence)

        with ThreadPoolExecutor(self.reader.threads) as pool:
            return list(pool.map(draft, playbook.questions))

    def judge(
        self, wordings: Sequence[str], prepared: Prepared, chunks: Vectors, *,
        sure: float = SURE, absent: float = ABSENT, again: bool = True,
    ) -> Judged:  # fmt: skip
        """Judge whether a document answers a question, whose most precise wording comes first.

        `sure` and `absent` are thresholds of the probability. With `again`, a reranker must confirm an absence.
        """
        if not len(chunks):
            return Judged("absent", (), 1.0)
        question = wordings[0]
        kind, best, odds, spot = self._choose_chunks(wordings, chunks)
        texts = [prepared.texts[at] for at in best]
        readings: list[Reading] = []
        likely = 1.0 if spot is None else self.reader.confidence((), spot=spot)
        for text, own_odds in zip(texts, odds, strict=True):
            least = min(_MIN_READ_PROBABILITY if readings else _MIN_VECTOR_PROBABILITY, absent)
            if spot is not None and (likely <= least or (readings and own_odds < _MIN_CHUNK_ODDS and absent > 0)):
                break
            readings += self.reader.read(question, [text], kind.asks)
            likely = self.reader.confidence([reading.score for reading in readings], spot=spot)
        if likely <= absent:
            doubt = 0.0
            if again:
                doubt = estimate_confidence(self.reranker, self.reranker.score(question, texts)) or 0.0
            if doubt <= _MAX_DOUBT:
                return Judged("absent", (), round(1 - likely, 3))
            likely = min(doubt, _MAX_DISPUTED_CONFIDENCE)
            readings += self.reader.read(question, texts[len(readings) :], kind.asks)
        spans = self._locate_spans(best, readings, prepared) or [Span(*map(int, prepared.chunks[best[0]][:2]))]
        if likely >= sure:
            return Judged("sure", tuple(spans), round(likely, 3))
        return Judged("unsure", tuple(spans[:MAX_PROPOSED_PASSAGES]), round(likely, 3))

    def _choose_chunks(
        self, wordings: Sequence[str], chunks: Vectors
    ) -> tuple[QuestionKind, list[int], list[float], float | None]:
        """Return the question's kind, and the chunks that the reader reads, best first, chosen by their vectors.

        Also return the log-odds that each of these chunks answers, and that any chunk does: None if that is unknown.
        """
        near = _COSINE_WEIGHT * np.mean(chunks @ self._embed(tuple(wordings)).T, axis=1)
        odds = np.zeros(len(chunks), np.float32)
        spot: float | None = None
        known = self.embedder.name.startswith(EMBEDDER)
        kind = shared_kinds().of(wordings[0], self._embed((wordings[0],))[0]) if known else QuestionKind()
        # A short document is read completely and needs no choice by vectors: the vector of a page with many clauses
        # represents none of them.
        if kind.number >= 0 and len(chunks) > MAX_READ_CHUNKS:
            odds = shared_kinds().answers(kind, chunks)
            near, spot = near + odds, shared_kinds().together(kind, odds)
        best = [int(at) for at in np.argsort(-near, kind="stable")[:MAX_READ_CHUNKS]]
        return kind, best, [float(odds[at]) for at in best], spot

    def _locate_spans(self, chunks: Sequence[int], readings: Sequence[Reading], prepared: Prepared) -> list[Span]:
        ranked = sorted(zip(chunks, readings, strict=False), key=lambda pair: -pair[1].score)
        least = ranked[0][1].score - _MAX_ODDS_BELOW_BEST
        spans: list[Span] = []
        for chunk, reading in ranked:
            start, end = (int(at) for at in prepared.chunks[chunk][:2])
            words, whole = prepared.texts[chunk], prepared.text[start:end]
            for marked in sorted(reading.spans, key=lambda answer: -answer.sure) if reading.score >= least else ():
                at = marked.start if words == whole else whole.find(words[marked.start : marked.end])
                if at >= 0:
                    span = Span(start + at, start + at + marked.end - marked.start)
                    spans.append(complete_passage(prepared.text, span, marked.start == 0, marked.end == len(words)))
        return list(dict.fromkeys(spans))

    def confidence(self, question: str, passages: Sequence[str]) -> float:
        """Return the probability that one of the passages answers the question."""
        return round(self.reader.confidence([reading.score for reading in self.reader.read(question, passages)]), 3)

    def _embed(self, wordings: tuple[str, ...]) -> Vectors:
        if wordings not in self._questions:
            self._questions[wordings] = self.embedder.embed(list(wordings), role="query")
        return self._questions[wordings]


def complete_passage(text: str, span: Span, at_start: bool, at_end: bool) -> Span:
    """Return a passage whose ends are extended to whole words, and to whole sentences at the ends of a chunk."""
    start, end = span
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end - 1].isspace()):
        end += 1
    low, high = max(0, start - _SENTENCE_CHARS), min(len(text), end + _SENTENCE_CHARS)
    for sentence in split_sentences(text[low:high]) if at_start or at_end else ():
        whole = Span(sentence.start + low, sentence.end + low)
        if at_start and whole.start < start < whole.end and (not low or text[low : whole.start].strip()):
            start = whole.start
        if at_end and whole.start < end < whole.end and (high == len(text) or text[whole.end : high].strip()):
            end = whole.end
    return Span(start, end)
