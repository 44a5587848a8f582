"""A question with its truth and a system's reply: what every metric is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exhibit.evidence import Span

Place = tuple[Span, ...]
"""Where a passage stands: several spans when it is interrupted."""


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A passage that answers the question; any of its places will do."""

    filename: str | None
    text: str | None
    places: tuple[Place, ...] = ()
    """Empty when the source quotes no words, or they were not located."""
    pages: tuple[int, ...] = ()
    """The pages that it stands on, where the document has pages."""
    absent: bool = False
    """Whether its words were looked for in its document and are not there: no passage can be held against it."""

    @property
    def located(self) -> bool:
        """Whether its place is known."""
        return self.filename is not None and any(span.start < span.end for place in self.places for span in place)

    @property
    def worded(self) -> bool:
        """Whether passages can be held against it: its place is known, or its words are and nothing says they err."""
        return self.located or (not self.absent and bool(self.text and self.text.strip()))


@dataclass(frozen=True)
class Passage:
    """A passage that a system retrieved, in the order of its ranking."""

    text: str
    filename: str | None = None
    """The file of the corpus that it is from; None where that is not known."""
    span: Span | None = None
    score: float | None = None
    page: int | None = None
    """The page it begins on, where the document has pages."""
    told_page: int | None = None
    """The page that the system itself gives for it, right or wrong."""
    pages: tuple[int, ...] = ()
    """The pages that its words really stand on, where that is known."""
    told_box: tuple[float, ...] | None = None
    """Left, top, right and bottom that the system gives for it on that page, from the top left corner."""
    told_size: tuple[float, ...] | None = None
    """Width and height of the page that the box is measured on; None = in points."""
    box_overlap: float | None = None
    """How far that box is the one of its words: what they share over what they cover together."""
    told_filename: str | None = None
    """The name that the system gives for its file, empty where it gives none; None where that is `filename`."""
    also_in: tuple[str, ...] = ()
    """The files that have its words, where several do and no name tells which: it is ambiguous."""

    @property
    def source(self) -> str | None:
        """The file that its span counts in: its own, or, where it is ambiguous, the one with the same words as gold."""
        return self.filename or (self.also_in[0] if self.also_in and self.span else None)


@dataclass(frozen=True)
class Reply:
    """What a system answered; `error` when it did not, and then nothing else counts."""

    answer: str | None = None
    passages: tuple[Passage, ...] = ()
    selected: int | None = None
    """How many of the passages the answer was made from, where that is known."""
    context: tuple[int, ...] | None = None
    """Which of the passages, counted from 1, where that is known; without it they are the first `selected`."""
    seconds: float | None = None
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    """What it cost as the system tells: `tokens_in`, `tokens_out`, `cost`."""
    first_token: float | None = None
    """Seconds until the first words of a streamed answer."""
    confidence: float | None = None
    """How likely it is that an answer exists, from 0 to 1, where the system tells."""

    def numbers_read(self, k: int) -> list[int]:
        """Return the numbers of the passages that the answer was made from; of the first k where it does not tell."""
        if self.context is not None:
            return [number for number in self.context if 1 <= number <= len(self.passages)]
        return list(range(1, min(k if self.selected is None else self.selected, len(self.passages)) + 1))

    def read(self, k: int) -> list[Passage]:
        """Return those passages."""
        return [self.passages[number - 1] for number in self.numbers_read(k)]


NO_REPLY = Reply()
"""What a question has before it is asked: one for all of them."""


class Turn(NamedTuple):
    """Something that was said earlier in a conversation."""

    role: str
    """`user` or `assistant`."""
    content: str


@dataclass(frozen=True, slots=True)
class Case:
    """One question of a dataset."""

    id: int | str
    question: str
    truth: str
    gold: tuple[GoldPassage, ...] = ()
    is_impossible: bool = False
    filename: str | None = None
    """The document it is about, if one is known."""
    labels: dict[str, Any] = field(default_factory=dict)
    reply: Reply = NO_REPLY
    history: tuple[Turn, ...] = ()
    """What was said before the question, where it is one of a conversation."""
    grades: dict[str, int] = field(default_factory=dict)
    """How well each file that was judged serves the question, 0 to 4; empty where the source has no grades."""
    choices: tuple[str, ...] = ()
    """The labels that the system is asked to choose from; empty where it is not."""
    label: str | None = None
    """The one that the source gives."""

    @property
    def session(self) -> str | None:
        """The conversation that the question is a turn of, by the label `session`; None where it stands alone."""
        session = self.labels.get("session")
        return None if session is None else str(session)


Values = list[float | None]
"""One value a case; None where the metric does not apply, never 0."""
Metric = Callable[[Sequence[Case]], Values]
