"""A question with its truth and a system's reply: what every metric is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence import Span

Place = tuple[Span, ...]
"""Where a passage stands: several spans when it is interrupted."""


@dataclass(frozen=True)
class GoldPassage:
    """A passage that answers the question; any of its places will do."""

    filename: str | None
    text: str | None
    places: tuple[Place, ...] = ()
    """Empty when the source quotes no words, or they were not located."""


@dataclass(frozen=True)
class Passage:
    """A passage that a system retrieved, in the order of its ranking."""

    text: str
    filename: str | None = None
    span: Span | None = None
    score: float | None = None
    page: int | None = None
    """The page it begins on, where the document has pages."""


@dataclass(frozen=True)
class Reply:
    """What a system answered; `error` when it did not, and then nothing else counts."""

    answer: str | None = None
    passages: tuple[Passage, ...] = ()
    selected: int | None = None
    """How many of the passages the answer was made from, where that is known."""
    seconds: float | None = None
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    """How likely it is that an answer exists, from 0 to 1, where the system tells."""


@dataclass(frozen=True)
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
    reply: Reply = field(default_factory=Reply)


Values = list[float | None]
"""One value a case; None where the metric does not apply, never 0."""
Metric = Callable[[Sequence[Case]], Values]
