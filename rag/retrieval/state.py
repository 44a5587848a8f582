"""What passes through the stages of retrieval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.models.rerankers import Reranker
from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


Tokens = Callable[[str], int]


@dataclass(frozen=True)
class Parts:
    """What retrieval works with."""

    index: Index
    embedder: Embedder
    config: Config
    tokens: Tokens
    """How many tokens a text has."""
    reranker: Reranker | None = None
    llm: LLM | None = None
    only: tuple[int, ...] | None = None
    """The numbers of the documents that are searched; None = all."""

    @property
    def chunk_keys(self) -> Keys | None:
        """The keys of the chunks that are searched; None = all."""
        return None if self.only is None else self.index.chunk_keys(self.only)


@dataclass
class State:
    """One question on its way: ranked chunks, and what each stage did."""

    question: str
    vector: npt.NDArray[np.float32]
    keys: Keys
    scores: Scores
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Retrieved:
    """What was found for a question."""

    question: str
    ranked: tuple[Hit, ...]
    """All passages in order, as deep as was asked: metrics at k are prefixes of this."""
    selected: tuple[Hit, ...]
    """The few that an answer is made from."""
    trace: dict[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    """How likely it is that an answer is among the first passages; None where nobody can tell."""
    note: str = ""
    """Which version of a law the passages are from, as it says itself; an answer says it, too."""
    named: int = 0
    """How many of the first passages the question names by their number: they are the answer, whatever its words."""
