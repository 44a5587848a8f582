"""Documents to an index: read, split and described by workers; embedded here, in batches, through the cache."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine import Engine, track
from evidence import Document, Span, read_document
from rag.config import Config
from rag.index import Entry, Index, section_key
from rag.ocr import read_with_ocr
from rag.plugins import load_plugin
from rag.seams import Embedder, Profile, Section, Vectors
from rag.structure import read_structure, section_path
from rag.structure.profile import read_profile
from rag.summaries import Summariser
from schemas.bundle import sha256_of
from schemas.errors import DocumentError, ServiceError
from schemas.locations import Location, fetched

_BATCH = 512
"""Strings embedded at once; documents wait until there are so many, so that small ones share a batch."""


@dataclass(frozen=True)
class Prepared:
    """A document ready to be embedded: everything but its vectors, and its summary if that needs an LLM."""

    document: Document
    sha256: str
    root: Section
    profile: Profile
    chunks: npt.NDArray[np.int64]
    """start, end, page, section: one row a chunk."""
    sections: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Report:
    """What became of a corpus."""

    documents: int
    pages: int
    chunks: int
    seconds: float
    set_aside: tuple[str, ...] = ()
    """Documents that could not be used, with the reason."""
    notes: tuple[str, ...] = ()
    """What is odd about documents that were used: pages that are damaged, or were read by OCR."""


@dataclass(frozen=True)
class Preparation:
    """The work of one worker on one document: picklable, so that any engine can run it."""

    splitter: str
    size: int
    overlap: int
    ocr: bool = False

    def __call__(self, path: Location) -> Prepared:
        """Read, structure and split a document; a remote one is on this machine for so long and no longer."""
        with fetched(path):
            return self._prepare(path)

    def _prepare(self, path: Location) -> Prepared:
        document = read_with_ocr(path) if self.ocr else read_document(path)
        if not document.has_text:
            raise DocumentError(f"{path}: no text in it, only pictures; --ocr true can read it (the extra 'ocr')")
        root = read_structure(document)
        leaves = [section for section in root.walk() if not section.children]
        module, argument = load_plugin("rag.splitters", self.splitter)
        spans: list[Span] = module.open(argument)(
            document.text, size=self.size, overlap=self.overlap, sections=[leaf.span for leaf in leaves]
        )
        sections = tuple((section_path(root, leaf.span), *leaf.span) for leaf in leaves)
        return Prepared(
            document, sha256_of(path), root, read_profile(document), _table(document, spans, leaves), sections
        )


def _table(document: Document, spans: Sequence[Span], leaves: Sequence[Section]) -> npt.NDArray[np.int64]:
    pages = [page.span.start for page in document.pages]
    starts = [leaf.span.start for leaf in leaves]
    rows = [
        (span.start, span.end, bisect_right(pages, span.start), bisect_right(starts, span.start) - 1)
        for span in spans
        if document.text[span.start : span.end].strip()  # white space alone answers nothing
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def ingest(
    paths: Sequence[Location],
    index: Index,
    config: Config,
    *,
    engine: Engine,
    embedder: Embedder,
    summarise: Summariser,
) -> Report:
    """Add documents to an index; one that cannot be used is set aside and named, and the rest goes on."""
    started = time.monotonic()
    set_aside: list[str] = []
    notes: list[str] = []
    pages = documents = 0
    buffer = _Buffer(index, embedder)
    work = Preparation(config.splitter, config.size, config.overlap, config.ocr)
    outcomes = track(engine.map(work, iter(paths)), total=len(paths), label="ingest")
    for outcome in outcomes:
        if isinstance(outcome.error, ServiceError):
            raise outcome.error  # a store that is away is not the fault of its documents, and would cost them all
        if outcome.error is not None:
            set_aside.append(str(outcome.error))
            continue
        prepared = outcome.unwrap()
        notes += [f"{prepared.document.filename}: {note}" for note in prepared.document.notes]
        buffer.add(prepared, summarise, config)
        documents += 1
        pages += len(prepared.document.pages)
    buffer.flush()
    return Report(documents, pages, len(index), time.monotonic() - started, tuple(set_aside), tuple(notes))


class _Buffer:
    """Collects strings of several documents until a batch is full, then embeds and stores them."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._waiting: dict[str, tuple[list[int], list[str]]] = {layer: ([], []) for layer in index.layers}

    def add(self, prepared: Prepared, summarise: Summariser, config: Config) -> None:
        document, index = prepared.document, self._index
        summary = summarise(document, prepared.root, prepared.profile)
        number = index.next_number()
        entry = Entry(
            number=number,
            filename=document.filename,
            sha256=prepared.sha256,
            characters=len(document.text),
            pages=len(document.pages) or None,
            profile=prepared.profile,
            summary=summary,
            sections=prepared.sections,
        )
        keys = index.add(entry, document.text, prepared.chunks)
        front = f"{summary}\n" if config.augment == "summary" and summary else ""
        texts = list(_chunk_texts(document, prepared.chunks))
        self._wait("chunk", keys.tolist(), [front + words for words in texts])
        if config.lexicon:
            lexicon = index.lexicon
            lexicon.add_document(number, filename=entry.filename, profile=entry.profile, text=document.text)
            lexicon.add_chunks(keys, texts)
            places = range(len(entry.sections))
            lexicon.add_sections([section_key(number, i) for i in places], [path for path, _, _ in entry.sections])
        if config.layers == "all":
            self._wait("document", [number], [summary or document.filename])
            leaves = [section for section in prepared.root.walk() if not section.children]
            lines = summarise.summarise_sections(
                document, leaves, prepared.profile, characters=config.section_characters
            )
            texts = [line or path or " " for line, (path, _, _) in zip(lines, prepared.sections, strict=True)]
            self._wait("section", [section_key(number, i) for i in range(len(texts))], texts)

    def flush(self) -> None:
        for layer, (keys, texts) in self._waiting.items():
            if keys:
                vectors: Vectors = self._embedder.embed(texts, role="passage")
                self._index.store(layer).add(keys, vectors)  # type: ignore[arg-type]
                keys.clear()
                texts.clear()

    def _wait(self, layer: str, keys: Iterable[int], texts: Iterable[str]) -> None:
        waiting_keys, waiting_texts = self._waiting[layer]
        waiting_keys.extend(keys)
        waiting_texts.extend(texts)
        if sum(len(k) for k, _ in self._waiting.values()) >= _BATCH:
            self.flush()


def _chunk_texts(document: Document, chunks: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield each chunk's words without the page furniture that interrupts them."""
    furniture = document.furniture
    starts = [line.start for line in furniture]
    for start, end, _, _ in chunks.tolist():
        first = max(bisect_right(starts, start) - 1, 0)
        pieces, at = [], start
        for line in furniture[first:]:
            if line.start >= end:
                break
            if line.end > at:
                pieces.append(document.text[at : max(line.start, at)])
                at = min(line.end, end)
        pieces.append(document.text[at:end])
        words = "".join(pieces)
        yield words if words.strip() else document.text[start:end]
