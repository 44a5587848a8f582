"""Turns documents into an index: workers read, split and describe documents; this process embeds them in batches.

All documents are read and their words indexed before the first is embedded. The workers do all work that concerns one
document: they count its words, and write its summary if this needs no language model. The one process that has the
index open embeds and stores.
"""

import json
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageSequence

from exhibit.engine import Engine, shutdown_idle, track
from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.hidden import blank_hidden
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, choose_ocr, read_scan
from exhibit.law.language import language_of
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import format_section_path, read_structure
from exhibit.law.structure.tree import Section
from exhibit.models.protocols import Embedder, Vectors
from exhibit.rag.config import Config
from exhibit.rag.database import Waiting
from exhibit.rag.index import Entry, Index
from exhibit.rag.lexicon import DocumentWords, read_words
from exhibit.rag.live_index import Building
from exhibit.rag.protocols import make_section_keys
from exhibit.rag.summaries import Summariser
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError, DocumentError, ServiceError, escape_surrogates
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, fetch_file

_TOLD_BY = 20_000
"""The number of a document's first characters that determine its language; stop words occur throughout a text."""
_BATCH = 512
"""The number of strings in one batch of embedding, across documents."""
_MANY = 1 << 17
"""The number of strings to embed from which idle workers are stopped: each holds 60 MB, and vectors take memory. The
next map starts new workers, in 0.8 s of processor time each; the embedder `hashing`, which has no model, takes 12 s
for so many strings.
"""


@dataclass(frozen=True)
class Summary:
    """The summaries of a document: one line on the document and, with `layers = all`, one line on each section."""

    document: str
    sections: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A document that a worker has read; its vectors are computed later.

    Its summary is also still missing if a language model has to write it.
    """

    entry: Entry
    """The document's entry, without its number and its summary."""
    text: str
    notes: tuple[str, ...]
    chunks: npt.NDArray[np.int64]
    """One row for each chunk: start, end, page, section."""
    texts: tuple[str, ...]
    """Each chunk's text without the page furniture (headers, footers, page numbers) that interrupts it."""
    words: DocumentWords | None
    summary: Summary | None
    whole: tuple[Document, Section] | None
    """The document and its section tree, for a summary that is still to be written."""


@dataclass(frozen=True)
class Report:
    """The result of indexing documents: counts, the time, the files set aside with reasons, and notes."""

    documents: int
    pages: int
    chunks: int
    seconds: float
    set_aside: tuple[str, ...] = ()
    """Documents that could not be indexed, with the reason."""
    notes: tuple[str, ...] = ()
    """Remarks on indexed documents: pages that are damaged, or were read by OCR."""


@dataclass(frozen=True)
class Preparation:
    """The work on one document before it is indexed, such as reading it and splitting it into chunks.

    The object can be pickled, so that a worker process can do this work.
    """

    config: Config
    summarise: Summariser | None = None
    """The summariser, if it needs nothing but the document."""
    ocr: Ocr | None = None
    """The OCR settings for pages without text."""

    def __call__(self, path: Location) -> Prepared:
        """Read a document and return its text, sections, chunks, words and summary.

        The local copy of a remote document is deleted afterwards.
        """
        with fetch_file(path):
            return self._prepare(path)

    def _prepare(self, path: Location) -> Prepared:
        config = self.config
        if escape_surrogates(path.name) != path.name:
            raise DocumentError(f"{path}: its name is not UTF-8, so that no answer could cite it; rename the file")
        sha256 = _compute_sha256(path)
        document = read_with_ocr(path, self.ocr) if self.ocr else read_document(path)
        if _compute_sha256(path) != sha256:
            raise DocumentError(f"{path}: changed while it was read; index it again when no program writes to it")
        if not document.has_text:
            if not document.pages:
                raise DocumentError(f"{path}: no words in it; is the file empty?")
            hint = "OCR found no words in it either" if self.ocr else "--ocr true can read it (needs the extra 'ocr')"
            raise DocumentError(f"{path}: no text in it, only pictures; {hint}")
        if config.hidden_text == "skip":
            document = blank_hidden(document)
            if not document.has_text:
                raise DocumentError(
                    f"{path}: all its words are hidden on the page; include them with --hidden-text index"
                )
        root, profile = read_structure(document), read_profile(document)
        leaves = _list_leaves(root)
        module, argument = load_plugin("exhibit.rag.splitters", config.splitter)
        spans: list[Span] = module.open(argument)(
            document.text, size=config.chunk_size, overlap=config.overlap, sections=[leaf.span for leaf in leaves]
        )
        chunks = _make_table(document, spans, leaves)
        sections = tuple((format_section_path(root, leaf.span), *leaf.span) for leaf in leaves)
        texts = tuple(read_chunk_texts(document, chunks))
        name, pages = document.filename, len(document.pages) or None
        entry = Entry(-1, name, sha256, len(document.text), pages, profile, "", sections)
        headings = [path for path, _, _ in sections]
        words = read_words(name, profile, document.text, chunks=texts, headings=headings) if config.lexicon else None
        summary = _make_summary(self.summarise, document, root, profile, config) if self.summarise else None
        return Prepared(
            entry,
            document.text,
            tuple(document.notes),
            chunks,
            texts,
            words,
            summary,
            None if self.summarise else (document, root),
        )


def _compute_sha256(path: Location) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror or error}") from error


def _list_leaves(root: Section) -> list[Section]:
    return [section for section in root.walk() if not section.children]


def _make_summary(
    summarise: Summariser, document: Document, root: Section, profile: Profile, config: Config
) -> Summary:
    line = summarise(document, root, profile)
    if config.layers != "all":
        return Summary(line)
    lines = summarise.summarise_sections(document, _list_leaves(root), profile, characters=config.section_characters)
    return Summary(line, tuple(lines))


def _make_table(document: Document, spans: Sequence[Span], leaves: Sequence[Section]) -> npt.NDArray[np.int64]:
    pages = [page.span.start for page in document.pages]
    starts = [leaf.span.start for leaf in leaves]
    rows = []
    for span in spans:
        words = document.text[span.start : span.end]
        if not words.strip():
            continue  # white space alone is no passage
        # a chunk begins with the break before it, which still belongs to the previous section and page
        first = span.end - len(words.lstrip())
        rows.append((span.start, span.end, bisect_right(pages, first), bisect_right(starts, first) - 1))
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def ingest(
    paths: Collection[Location],
    index: Index,
    config: Config,
    *,
    engine: Engine,
    embedder: Embedder,
    summarise: Summariser,
    askable: bool = False,
    sha256: Mapping[Location, str] | None = None,
) -> Report:
    """Add documents to an index; the report names each document that cannot be indexed.

    All words are indexed before the first vector is computed. With `askable` they are saved at that point, so that a
    new index can be searched while its vectors are computed. If the checksum of a file differs from the one in
    `sha256`, the file has changed meanwhile: an error is raised and nothing is indexed.
    """
    started = time.monotonic()
    set_aside: list[str] = []
    notes: list[str] = []
    documents = pages = chunks = 0
    vectors = _Vectors(index, embedder)
    alike = {name for name, number in Counter(path.name for path in paths).items() if number > 1}
    ocr = choose_ocr(config.ocr_language, config.ocr_engine) if config.ocr else None
    work = Preparation(config, summarise if summarise.alone else None, ocr)
    outcomes = track(engine.map(work, iter(paths)), total=len(paths), label="ingest")
    for path, outcome in zip(paths, outcomes, strict=True):
        if isinstance(outcome.error, ServiceError):
            raise outcome.error  # an unreachable store is no fault of a document, and every document would fail
        if sha256 and (outcome.error is not None or outcome.unwrap().entry.sha256 != sha256[path]):
            _check_unchanged(path, sha256[path])
        if outcome.error is not None:
            set_aside.append(str(outcome.error))
            continue
        prepared = outcome.unwrap()
        if prepared.entry.filename in alike:
            prepared = replace(prepared, entry=replace(prepared.entry, filename=_name_by_path(path, index)))
        notes += [f"{prepared.entry.filename}: {note}" for note in prepared.notes]
        vectors.add(prepared, summarise, config)
        documents += 1
        pages += prepared.entry.pages or 0
        chunks += len(prepared.chunks)
    if len(vectors) >= _MANY:
        shutdown_idle()
    vectors.make(Building(index) if askable and len(index) else None)
    return Report(documents, pages, chunks, time.monotonic() - started, tuple(set_aside), tuple(notes))


def _name_by_path(path: Location, index: Index) -> str:
    """Return a unique name, such as `2019/lease.pdf`, for a file that shares its file name with another file.

    The name is made of the last parts of the path: at least two, and as few as make a name that no document of
    the index has yet.
    """
    parts = str(path).replace("\\", "/").split("/")
    names = ("/".join(parts[-length:]) for length in range(2, len(parts) + 1))
    return next((name for name in names if name not in index), parts[-1])


def _check_unchanged(path: Location, sha256: str) -> None:
    """Raise an error if a file's checksum is no longer the given one or the file cannot be read."""
    with suppress(DocumentError):
        if _compute_sha256(path) == sha256:
            return
    raise BundleError(
        f"{path}: changed or deleted while documents were indexed; run again when no program writes to it"
    )


class _Vectors:
    """A queue of all texts of all documents that need vectors; it embeds and stores them in batches."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._batch = max(_BATCH, getattr(embedder, "many", 0))
        self._waiting = {layer: Waiting(index.folder) for layer in index.layers}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, prepared: Prepared, summarise: Summariser, config: Config) -> None:
        index, entry, summary = self._index, prepared.entry, prepared.summary
        if prepared.whole is not None:
            summary = _make_summary(summarise, *prepared.whole, entry.profile, config)
        line = summary.document if summary else ""
        number = index.find_next_number()
        keys = index.add(replace(entry, number=number, summary=line), prepared.text, prepared.chunks)
        sections = make_section_keys(number, len(entry.sections))
        if prepared.words is not None:
            index.lexicon.add(number, prepared.words, chunks=keys, sections=sections)
        front = f"{line}\n" if config.augment == "summary" and line else ""
        known = self._knows(prepared)
        self._waiting["chunk"].add(keys, [front + words if known else "" for words in prepared.texts])
        if config.layers == "all":
            self._waiting["document"].add([number], [line or entry.filename])
            lines = zip(summary.sections if summary else (), entry.sections, strict=True)
            self._waiting["section"].add(sections, [words or path or " " for words, (path, _, _) in lines])

    def make(self, building: Building | None) -> None:
        """Embed and store all waiting texts in batches; if `building` is given, record progress after each batch."""
        for layer, waiting in self._waiting.items():
            done = 0
            batches = track(
                waiting.batches(self._batch),
                total=-(-len(waiting) // self._batch),
                label=f"{layer} vectors",
                unit="part",
            )
            for keys, texts in batches:
                self._index.store(layer).add(keys, self._embed(texts))
                done += len(keys)
                if building is not None:
                    building.tell(layer, done)
            waiting.close()

    def _knows(self, prepared: Prepared) -> bool:
        """Return whether a document is to be embedded: whether the embedder supports its language.

        Return True if the embedder states no languages. Also return True if the index has no lexicon, since the
        document could then be found by its vectors only.
        """
        languages: Collection[str] | None = getattr(self._embedder, "languages", None)
        if languages is None or prepared.words is None:
            return True
        return language_of(prepared.text[:_TOLD_BY]) in languages

    def _embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text; the vector of an empty text is all zeros."""
        rows = [row for row, text in enumerate(texts) if text]
        vectors: Vectors = np.zeros((len(texts), self._embedder.dimensions), np.float32)
        if rows:
            vectors[rows] = self._embedder.embed([texts[row] for row in rows], role="passage")
        return vectors


def read_chunk_texts(document: Document, chunks: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield each chunk's text without the page furniture (headers, footers, page numbers) that interrupts it."""
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


_DPI = 200.0
"""The resolution of a PDF page that is made from a picture without a stated resolution."""


def read_with_ocr(path: Location | str, how: Ocr) -> Document:
    """Read a file like `read_document`, but run OCR if a page has no text.

    The document's notes name the pages that OCR has read. The PDF with the recognised text is cached, so that
    OCR runs only once for each file.
    """
    document = read_document(path)
    texts = (document.text[page.span.start : page.span.end] for page in document.pages)
    if document.path is None or all(text.strip() for text in texts):
        return document
    place = find_cache_folder() / "ocr" / f"{sha256_of(document.path)[:32]}-{how.engine}-{how.language}.pdf"
    notes = place.with_suffix(".json")
    if notes.is_file():  # written last: without this file the copy may be incomplete
        kept = replace(read_document(place), filename=document.filename)
        return replace(kept, notes=tuple(json.loads(notes.read_text(encoding="utf-8"))))
    place.parent.mkdir(parents=True, exist_ok=True)
    with fetch_file(document.path) as here:
        source = _as_pdf(here, place) if here.suffix.lower() in picture.SUFFIXES else here
        scanned = read_scan(replace(read_document(source), filename=document.filename), place, how)
    if scanned is None:
        return document
    write_whole(notes, json.dumps(scanned.document.notes))
    return scanned.document


def _as_pdf(path: Path, place: Path) -> Path:
    """Write an image as a PDF, one page per frame; return its path, `place` with the suffix `.pages.pdf`."""
    target = place.with_suffix(".pages.pdf")
    with Image.open(path) as image:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        resolution = float(image.info.get("dpi", (_DPI, _DPI))[0]) or _DPI
    frames[0].save(target, save_all=True, append_images=frames[1:], resolution=resolution)
    return target
