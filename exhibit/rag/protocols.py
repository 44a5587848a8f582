"""The data classes that the parts of the pipeline exchange, and the protocol of vector stores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from exhibit.evidence import Span
from exhibit.models.protocols import Vectors
from exhibit.rag.questions import Query

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Layer = Literal["document", "section", "chunk"]

SECTION_BITS = 20  # the bits of a key for the section's number: a million sections per document, and 2**43 documents


def make_section_keys(document: int, sections: int) -> Keys:
    """Return the keys of a document's sections: document and section in one number."""
    return (document << SECTION_BITS) + np.arange(sections, dtype=np.int64)


@dataclass(frozen=True)
class Hit:
    """A chunk or passage: a span of a document with its section (headings joined by " > "), its page and its score."""

    document: str
    span: Span
    text: str = ""
    score: float = 0.0
    section: str = ""
    page: int | None = None
    inner: tuple[tuple[int, str, int | None], ...] = ()  # sections and pages that begin inside: offset, section, page

    def contains(self, other: "Hit") -> bool:
        inside = self.span.start <= other.span.start and other.span.end <= self.span.end
        return inside and self.document == other.document

    def locate(self, offset: int) -> tuple[str, int | None]:
        before = [(section, page) for start, section, page in self.inner if start <= offset]
        return before[-1] if before else (self.section, self.page)


@dataclass(frozen=True)
class Retrieved:
    query: Query  # the parsed question
    ranked: tuple[Hit, ...]  # all passages in order, to the depth of the search: metrics at k use prefixes of this list
    selected: tuple[Hit, ...]  # the few passages that are the sources of the answer
    # the vector of `query.asks`, if passages were ranked by it
    vector: Vectors | None = field(default=None, compare=False)
    confidence: float | None = None  # the probability that the first passages answer; None if no model computes it
    note: str = ""  # the version of the law that the passages come from, in the law's own words; the answer repeats it
    named: int = 0  # the number of first passages that the question cites by paragraph number; these are the answer
    before: tuple[Hit, ...] | None = None  # the passages or chunks before a reranker sorted them
    cut_by: str = ""  # the limit that shortened `selected`: `budget`, `number`, `threshold` or `confidence`
    beside: tuple[Hit, ...] = ()  # the text that completes the sentences of the selected passages

    @property
    def question(self) -> str:
        return self.query.question


class VectorStore(Protocol):
    """A store of vectors under integer keys from 0; each module in `rag/stores/` implements one store.

    The module has `open(folder, argument, *, name, dimensions)`. If it stores vectors outside the folder, it writes
    their address to `store/NAME.json` in the folder, and has `drop(folder, named)`.
    """

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add vectors under new keys; a store may write them now or only at the next `save`."""

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; unknown keys are ignored."""

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the scores and keys of the k best rows among `within`, best first; the key of a missing row is -1."""

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the vectors of the rows with these keys, in the order of `keys`; unknown keys are left out."""

    def save(self, keys: Keys) -> None:
        """Write all additions and removals; rows under other keys than `keys` are removed first."""

    def close(self) -> None:
        """Close files and connections, so that the folder can be moved."""

    def __len__(self) -> int: ...
