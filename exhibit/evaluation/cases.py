"""Cases: a case is a question with its expected answer, gold and reply. Every metric is computed from cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from exhibit.evidence import Span
from exhibit.schemas.models import How

Place = tuple[Span, ...]  # the location of a passage in a document: several spans if the passage is interrupted


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """Words of a document that answer the question."""

    filename: str | None
    text: str | None
    places: tuple[Place, ...] = ()  # empty if the source quotes no words, or if the words were not located
    pages: tuple[int, ...] = ()  # the pages of the passage, if the document has pages
    absent: bool = False  # whether the document lacks the words; then no passage is compared with this gold
    how: How | None = None  # how the passage was located; None if the source quotes no words
    ambiguous: bool = False  # whether so few words occur many times, and nothing shows which occurrence is meant

    @property
    def located(self) -> bool:
        somewhere = any(span.start < span.end for place in self.places for span in place)
        return somewhere and self.filename is not None and not self.ambiguous

    @property
    def worded(self) -> bool:
        """Whether retrieved passages can be compared with this gold passage, by position or by text."""
        return self.located or (not self.absent and not self.ambiguous and bool(self.text and self.text.strip()))


@dataclass(frozen=True)
class Passage:
    """A passage that a system retrieved; a reply lists its passages by rank."""

    text: str = ""
    filename: str | None = None  # the corpus file of the passage; None if it is unknown
    span: Span | None = None
    score: float | None = None
    page: int | None = None  # the page on which the passage begins, if the document has pages
    told_page: int | None = None  # the page that the system reports for the passage, right or wrong
    pages: tuple[int, ...] = ()  # the pages that really contain the words of the passage, if known
    told_filename: str | None = None  # the file name that the system reports, or ""; None if it equals `filename`
    also_in: tuple[str, ...] = ()  # the files that contain the words, if several and no file name decides
    more: tuple[Span, ...] = ()  # the spans of the passage's other pieces; `span` is the longest piece
    added: tuple[Span, ...] = ()  # the ranges of its text that no document has, such as a summary before it
    misnamed: bool = False  # whether the system names another corpus file than the one that contains the words
    unplaced: bool = False  # whether the words were sought, and occur nowhere or almost everywhere

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans of all fragments of the passage in its document; empty if they are unknown."""
        return () if self.span is None else (self.span, *self.more)

    @property
    def has_content(self) -> bool:
        elsewhere = bool(self.told_filename) and self.filename is None
        return bool(self.span) or (bool(self.text.strip()) and (elsewhere or not self.unplaced))

    @property
    def source(self) -> str | None:
        """The file that the passage's spans refer to; None if that file is unknown."""
        return self.filename or (self.also_in[0] if self.also_in and self.span else None)


@dataclass(frozen=True)
class Reply:
    """The reply of a system. If it has an `error`, it has no answer, and its other fields are ignored."""

    answer: str | None = None
    passages: tuple[Passage, ...] = ()
    selected: int | None = None  # the number of passages from which the answer was made, if known
    # the numbers, from 1, of the passages used for the answer; if unknown, the first `selected` were used
    context: tuple[int, ...] | None = None
    reranked: tuple[int, ...] | None = None  # the numbers of the passages that the reranker kept, in its order
    retrieved: tuple[Passage, ...] | None = None  # the passages before reranking, if they differ from `passages`
    cut_by: str = ""  # the limit that shortened the context: `budget`, `number`, `threshold` or `confidence`
    seconds: float | None = None
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)  # as the system reports it: `tokens_in`, `tokens_out`, `cost`
    confidence: float | None = None  # the probability that an answer exists, from 0 to 1, if the system reports one

    def list_numbers_read(self, k: int) -> list[int]:
        """Return the numbers, from 1, of the passages from which the answer was made."""
        numbers = range(1, len(self.passages) + 1)
        if self.context is not None:
            return [number for number in self.context if number in numbers]
        return list(numbers[: k if self.selected is None else self.selected])

    def choose_passages(self, numbers: Iterable[int]) -> list[Passage]:
        return [self.passages[number - 1] for number in numbers if 1 <= number <= len(self.passages)]

    def read(self, k: int) -> list[Passage]:
        """Return the passages from which the answer was made; if the system does not report them, the first k."""
        return self.choose_passages(self.list_numbers_read(k))


@dataclass(frozen=True, slots=True, eq=False)  # a case equals only itself, so that results are cached by case
class Case:
    """One question of a dataset, with its gold and the system's reply."""

    id: int | str
    question: str
    truth: str
    gold: tuple[GoldPassage, ...] = ()
    is_impossible: bool = False
    filename: str | None = None  # the document that the question is about, if it is known
    labels: dict[str, Any] = field(default_factory=dict)
    reply: Reply = Reply()  # also if the question has not been asked yet
    grades: dict[str, int] = field(default_factory=dict)  # the relevance of each judged file, 0 to 4
    choices: tuple[str, ...] = ()  # the labels that the system must choose from; empty if no label is requested
    label: str | None = None  # the label that the source gives

    @property
    def document(self) -> str:
        """The first document that the question is about; a unique name if no document is known."""
        return next(iter(self.ends), f"\0{self.id}")

    @property
    def ends(self) -> dict[str, int]:
        """For each document that the question is about, the end offset of its last gold passage; 0 if it has none."""
        ends = {self.filename: 0} if self.filename else {}
        for gold in self.gold:
            if gold.filename:
                spans = (span.end for place in gold.places for span in place)
                ends[gold.filename] = max([ends.get(gold.filename, 0), *spans])
        return ends


Values = list[float | None]  # one value for each case; None, never 0, if the metric does not apply

_MARK = "\n\n"  # the text between a question and the labels that it offers


def with_choices(question: str, choices: Sequence[str], subject: str = "") -> str:
    """Return the question followed by a request to begin the reply with one of the labels in `choices`."""
    begin = f"On {subject!r} begin" if subject else "Begin"
    request = f"{_MARK}{begin} your reply with one of these labels: {'; '.join(choices)}."
    return f"{question}{request}" if choices else question


def without_choices(case: Case) -> str:
    """Return the question without the request for a label; this text is the search query."""
    return case.question.partition(_MARK)[0] if case.choices else case.question
