"""The data classes that the parts of the pipeline exchange, and the protocols that plug-ins implement."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exhibit.evidence import Span
from exhibit.law.citations import find_citations
from exhibit.models.protocols import Vectors

Keys = npt.NDArray[np.int64]
Layer = Literal["document", "section", "chunk"]

Number = TypeVar("Number", int, Keys)
SECTION_BITS = 20
"""The bits of a key for the section's number: a million sections per document, and 2**43 documents."""


def make_section_key(document: Number, section: Number) -> Number:
    """Return the key of a section's vector: document and section in one number. Both may be arrays."""
    return document << SECTION_BITS | section


def make_section_keys(document: int, sections: int) -> Keys:
    """Return the integer keys of a document's sections, under which the sections' vectors are stored, in order.

    `document` is the document's number, and `sections` is how many sections it has.
    """
    return make_section_key(document, 0) + np.arange(sections, dtype=np.int64)


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class Chunk:
    """A unit of retrieval: a span of a document. The text of the chunk is always `document.text[span]`."""

    document: str
    span: Span
    section: str = ""
    """The headings above the chunk, outermost first, joined by " > "."""
    page: int | None = None
    inner: tuple[tuple[int, str, int | None], ...] = ()
    """The headings and pages that begin inside the chunk: each with its offset in the document, the headings and the
    page.
    """

    def place(self, at: int) -> tuple[str, int | None]:
        """Return the headings and the page number at an offset of the document that is inside this chunk.

        The headings are those above that offset, outermost first, joined by " > ".
        """
        before = [(section, page) for start, section, page in self.inner if start <= at]
        return before[-1] if before else (self.section, self.page)


@dataclass(frozen=True)
class Hit:
    """A chunk that was retrieved, with its score."""

    chunk: Chunk
    score: float
    text: str = ""


# ---------------------------------------------------------------- plug-ins


class VectorStore(Protocol):
    """A store of vectors under integer keys from 0; each module in `rag/stores/` implements one.

    The module has `open(folder, argument, *, name, dimensions)`. If it stores vectors outside the folder, it
    writes their address to `store/NAME.json` in the folder, and has `drop(folder, named)`. If a second
    process can search the vectors while rows are added, it has `peek(folder, argument, *, name, dimensions,
    keys)`.
    """

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add vectors under new keys; a store may write them now or only at the next `save`."""

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; unknown keys are no error."""

    def keep(self, keys: Keys) -> None:
        """Remove every row whose key is not in `keys`."""

    def fence(self, last: int) -> None:
        """Hide rows whose key is greater than `last`, except rows that this process adds.

        Another process may be adding the hidden rows.
        """

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the scores and keys of the k best rows of each query, best first; a missing row has the key -1.

        `within` limits the search to these keys.
        """

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the vectors of the rows with these keys, in the order of `keys`; unknown keys are left out."""

    def save(self) -> None:
        """Write all additions and removals."""

    def close(self) -> None:
        """Close files and connections, so that the folder can be moved."""

    def __len__(self) -> int:
        """Return the number of rows."""


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Source:
    """A numbered passage of the context that an answer may cite."""

    number: int
    hit: Hit

    @property
    def document(self) -> str:
        """The file that the source comes from."""
        return self.hit.chunk.document

    @property
    def text(self) -> str:
        """The text of the passage that this source stands for."""
        return self.hit.text

    @property
    def section(self) -> str:
        """The headings above the source in its document, outermost first, joined by " > "."""
        return self.hit.chunk.section

    @property
    def page(self) -> int | None:
        """The page on which the source begins, if the document has pages."""
        return self.hit.chunk.page


class QueryVector(NamedTuple):
    """A question's vector, and the name of the embedder that made it."""

    embedder: str
    vector: Vectors


@dataclass(frozen=True)
class AnswerContext:
    """The input of an answerer: numbered sources, and the summaries of their documents."""

    text: str
    sources: tuple[Source, ...]
    tokens: int
    confidence: float | None = None
    """The probability by retrieval that a source answers the question; None if retrieval computes none."""
    kind: str = ""
    """The kind of the best source's document, if it is known: contract, rules, court guide …"""
    characters: int = 0
    """The length of that document in characters; 0 if it is unknown."""
    left_out: int = 0
    """The number of passages that did not fit the token budget."""
    asked: QueryVector | None = field(default=None, compare=False)
    """The question's vector, from which an answerer may compute the question's kind."""

    def find_cited_sources(self, text: str) -> list[Source]:
        """Return the sources whose numbers a text cites, whether or not they support the text."""
        numbers = {number for citation in find_citations(text) for number in citation.numbers}
        return [source for source in self.sources if source.number in numbers]


@dataclass(frozen=True)
class Answer:
    """An answer with its citations checked."""

    text: str
    citations: tuple[int, ...] = ()
    """The numbers of the cited sources that exist and share words with the claim."""
    unsupported: tuple[str, ...] = ()
    """Claims whose citation names no source, or a source that does not share their words."""
    refused: bool = False
    retried: bool = False
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    """The probability that the documents contain an answer; None if the answerer computes none."""
    short: str = ""
    """The short answer: a value, a name, Yes or No; "" if the question asks for none or the answerer is unsure."""
    quotes: tuple[str, ...] = ()
    """The quoted words, exactly as in the text of the documents."""
