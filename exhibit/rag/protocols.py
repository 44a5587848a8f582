"""The shapes that the parts of the pipeline hand to each other, and the protocols that plug-ins keep."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exhibit.evidence import Span
from exhibit.models.protocols import Vectors

Keys = npt.NDArray[np.int64]
Layer = Literal["document", "section", "chunk"]

Number = TypeVar("Number", int, Keys)
SECTION_BITS = 20
"""A million sections a document leave room for 2**43 documents in a key."""


def section_key(document: Number, section: Number) -> Number:
    """Return the key of a section's vector, document and section in one number; or those of whole columns."""
    return document << SECTION_BITS | section


def section_keys(document: int, sections: int) -> Keys:
    """Return the keys of all sections of a document, in order."""
    return section_key(document, 0) + np.arange(sections, dtype=np.int64)


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class Chunk:
    """A passage to be retrieved: a span, never a copy; its text is always `document.text[span]`."""

    document: str
    span: Span
    section: str = ""
    """The headings above it, outermost first, joined by " > "."""
    page: int | None = None
    inner: tuple[tuple[int, str, int | None], ...] = ()
    """Where other headings or pages begin inside it: at which character of the document, which headings, which page."""

    def place(self, at: int) -> tuple[str, int | None]:
        """Return the headings above a character of the document inside it, and its page."""
        before = [(section, page) for start, section, page in self.inner if start <= at]
        return before[-1] if before else (self.section, self.page)


@dataclass(frozen=True)
class Hit:
    """A chunk that was retrieved, and how near it is."""

    chunk: Chunk
    score: float
    text: str = ""


# ---------------------------------------------------------------- plug-ins


class VectorStore(Protocol):
    """Vectors with integer keys, 0 and up. A module in `rag/stores/` has `open(folder, argument, *, name, dimensions)`.

    One that keeps vectors outside the folder leaves `store/NAME.json` there, and has `drop(folder, named)`. One
    that a second process can search while rows are added has `peek(folder, argument, *, name, dimensions, keys)`.
    """

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add rows under keys that are new; a store may write them at once."""

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; keys that are not there are no error."""

    def keep(self, keys: Keys) -> None:
        """Remove every row that has none of these keys."""

    def fence(self, last: int) -> None:
        """Find no row with a greater key from now on, unless it is added here: another process may be adding some."""

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return scores and keys, best first, `-1` where there are fewer than k; `within` limits the keys."""

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the rows under these keys, in their order; keys that are not there are left out."""

    def save(self) -> None:
        """Have everything written that was added or removed."""

    def close(self) -> None:
        """Let go of files and connections: the folder may be moved then."""

    def __len__(self) -> int:
        """Return how many rows there are."""


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Source:
    """A numbered passage of the context that an answer may cite."""

    number: int
    hit: Hit

    @property
    def document(self) -> str:
        """The file it comes from."""
        return self.hit.chunk.document

    @property
    def text(self) -> str:
        """Its words."""
        return self.hit.text

    @property
    def section(self) -> str:
        """The headings above it."""
        return self.hit.chunk.section

    @property
    def page(self) -> int | None:
        """The page it begins on, where the document has pages."""
        return self.hit.chunk.page


class QueryVector(NamedTuple):
    """A question's vector, and the name of the embedder that made it."""

    embedder: str
    vector: Vectors


@dataclass(frozen=True)
class AnswerContext:
    """What an answerer is given: numbered sources in raw words, then what the documents are."""

    text: str
    sources: tuple[Source, ...]
    tokens: int
    confidence: float | None = None
    """How likely retrieval holds it that an answer is among them; None where it cannot tell."""
    kind: str = ""
    """What kind of document the best source is from, where that is known: contract, rules, court guide …"""
    characters: int = 0
    """How long that document is; 0 where that is not known."""
    asked: QueryVector | None = field(default=None, compare=False)
    """The question's vector, for an answerer that tells its kind from it."""


@dataclass(frozen=True)
class Answer:
    """An answer with its citations checked."""

    text: str
    citations: tuple[int, ...] = ()
    """Numbers of sources that are cited, exist, and share words with the claim."""
    unsupported: tuple[str, ...] = ()
    """Claims whose citation names no source, or one that does not share their words."""
    refused: bool = False
    retried: bool = False
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    """How likely it is that the documents answer; None where the answerer cannot tell."""
