"""Turns documents into an index: workers read, split and describe documents; this process embeds and stores them."""

import json
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from exhibit.engine import Engine, track
from exhibit.evidence import Document, Span, read_document, subtract_spans
from exhibit.evidence.hidden import blank_hidden
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, choose_ocr, read_scan
from exhibit.law.language import language_of
from exhibit.law.profile import read_profile
from exhibit.law.structure import format_section_path, read_structure
from exhibit.law.structure.tree import Section
from exhibit.models.protocols import Embedder
from exhibit.rag.config import Config
from exhibit.rag.documents import read_names
from exhibit.rag.index import Entry, Index
from exhibit.rag.lexicon import DocumentWords, count_terms
from exhibit.rag.protocols import Keys, Layer, make_section_keys
from exhibit.rag.summaries import Summariser, Summary
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError, DocumentError, ServiceError, escape_surrogates
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, fetch_file

_BATCH_TEXTS = 512  # texts that are embedded together, across documents
_LANGUAGE_CHARS = 20_000  # characters at a document's start from which its language is detected
_PICTURE_DPI = 200.0  # resolution of a PDF page that is made from a picture without a stated resolution


@dataclass(frozen=True)
class Prepared:
    entry: Entry  # the document's entry, without its number and its summary
    text: str
    notes: tuple[str, ...]
    chunks: Keys  # one row for each chunk: start, end, page, section
    texts: tuple[str, ...]  # each chunk's text, without headers, footers and page numbers
    words: DocumentWords | None
    summary: Summary | None
    # the document and its sections, if a language model must still summarise them
    whole: tuple[Document, Section] | None


@dataclass(frozen=True)
class Report:
    documents: int
    pages: int
    chunks: int
    seconds: float
    set_aside: tuple[str, ...] = ()  # documents that could not be indexed, with the reason
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preparation:
    config: Config
    summarise: Summariser | None = None  # the summariser, if it needs nothing but the document
    ocr: Ocr | None = None

    def __call__(self, path: Location) -> Prepared:
        with fetch_file(path):
            return self._prepare(*self._read(path))

    def _prepare(self, document: Document, sha256: str) -> Prepared:
        config, text = self.config, document.text
        root, profile = read_structure(document), read_profile(document)
        leaves = [section for section in root.walk() if not section.children]
        module, argument = load_plugin("exhibit.rag.splitters", config.splitter)
        spans: list[Span] = module.open(argument)(
            text, size=config.chunk_size, overlap=config.overlap, sections=[leaf.span for leaf in leaves]
        )
        chunks = _make_chunks(document, spans, leaves)
        texts = tuple(_read_chunk_texts(document, chunks))
        sections = tuple((format_section_path(root, leaf.span), *leaf.span) for leaf in leaves)
        entry = Entry(-1, document.filename, sha256, len(text), len(document.pages) or None, profile, "", sections)
        words = None
        if config.lexicon:
            parts = language_of(text[:_LANGUAGE_CHARS]) != "en"
            counted = (count_terms(some, parts=parts) for some in (texts, [path for path, _, _ in sections]))
            words = DocumentWords(read_names(document.filename, profile, text), *counted)
        summary = self.summarise.summarise(document, root, profile) if self.summarise else None
        whole = None if self.summarise else (document, root)
        return Prepared(entry, text, tuple(document.notes), chunks, texts, words, summary, whole)

    def _read(self, path: Location) -> tuple[Document, str]:
        """Return a document without hidden text, and its file's checksum; raise an error if no words are left."""
        if escape_surrogates(path.name) != path.name:
            raise DocumentError(f"{path}: its name is not UTF-8, so no answer can cite it; rename the file")
        sha256 = _compute_sha256(path)
        document = read_with_ocr(path, self.ocr) if self.ocr else read_document(path)
        if _compute_sha256(path) != sha256:
            raise DocumentError(f"{path}: changed while it was read; index it again when no program writes to it")
        if not document.has_text and not document.pages:
            raise DocumentError(f"{path}: no words in it; is the file empty?")
        if not document.has_text:
            hint = "OCR found no words in it either" if self.ocr else "--ocr true can read it (needs the extra 'ocr')"
            raise DocumentError(f"{path}: no text in it, only pictures; {hint}")
        if self.config.hidden_text == "skip":
            document = blank_hidden(document)
        if not document.has_text:
            raise DocumentError(f"{path}: all its words are hidden on the page; include them with --hidden-text index")
        return document, sha256


def _compute_sha256(path: Location) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror or error}; check this file") from error


def _make_chunks(document: Document, spans: Sequence[Span], leaves: Sequence[Section]) -> Keys:
    pages = [page.span.start for page in document.pages]
    starts = [leaf.span.start for leaf in leaves]
    rows = []
    for span in spans:
        words = document.text[slice(*span)].lstrip()
        if words:
            # a chunk begins with the line break before it, which still belongs to the previous section and page
            first = span.end - len(words)
            rows.append((*span, bisect_right(pages, first), bisect_right(starts, first) - 1))
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _read_chunk_texts(document: Document, chunks: Keys) -> Iterator[str]:
    furniture = document.furniture
    starts = [line.start for line in furniture]
    for start, end, _, _ in chunks.tolist():
        first, last = max(bisect_right(starts, start) - 1, 0), bisect_left(starts, end)
        parts = subtract_spans([Span(start, end)], furniture[first:last])
        words = "".join(document.text[slice(*part)] for part in parts)
        yield words if words.strip() else document.text[start:end]


def ingest(
    paths: Collection[Location],
    index: Index,
    *,
    engine: Engine,
    embedder: Embedder,
    summarise: Summariser,
    sha256: Mapping[Location, str] | None = None,
) -> Report:
    """Add documents to an index, and report those that cannot be added; raise if a file does not match its `sha256`."""
    started, config = time.monotonic(), index.config
    set_aside: list[str] = []
    notes: list[str] = []
    documents = pages = chunks = 0
    vectors = _Vectors(index, embedder)
    repeated = {name for name, number in Counter(path.name for path in paths).items() if number > 1}
    ocr = choose_ocr(config.ocr_language, config.ocr_engine) if config.ocr else None
    work = Preparation(config, summarise if summarise.alone else None, ocr)
    outcomes = track(engine.map(work, iter(paths)), total=len(paths), label="ingest")
    for path, outcome in zip(paths, outcomes, strict=True):
        if isinstance(outcome.error, ServiceError):
            raise outcome.error  # every other document would fail, too, because the store is unreachable
        if sha256 and (outcome.error is not None or outcome.unwrap().entry.sha256 != sha256[path]):
            _check_unchanged(path, sha256[path])
        if outcome.error is not None:
            set_aside.append(str(outcome.error))
            continue
        prepared = outcome.unwrap()
        filename = prepared.entry.filename
        if filename in repeated:
            filename = _name_by_path(path, index)
        summary = prepared.summary
        if prepared.whole is not None:
            summary = summarise.summarise(*prepared.whole, prepared.entry.profile)
        line = summary.document if summary else ""
        entry = replace(prepared.entry, number=index.find_next_number(), filename=filename, summary=line)
        keys = index.add(entry, prepared.text, prepared.chunks, prepared.words)
        vectors.add_document(entry, prepared, keys, summary)
        notes += [f"{filename}: {note}" for note in prepared.notes]
        documents, pages, chunks = documents + 1, pages + (entry.pages or 0), chunks + len(keys)
    vectors.store(least=1)
    return Report(documents, pages, chunks, time.monotonic() - started, tuple(set_aside), tuple(notes))


def _name_by_path(path: Location, index: Index) -> str:
    """Return a unique name, such as `2019/lease.pdf`, for a file that shares its file name with another file."""
    parts = str(path).replace("\\", "/").split("/")
    names = ("/".join(parts[-length:]) for length in range(2, len(parts) + 1))
    return next((name for name in names if name not in index), parts[-1])


def _check_unchanged(path: Location, sha256: str) -> None:
    with suppress(DocumentError):
        if _compute_sha256(path) == sha256:
            return
    raise BundleError(
        f"{path}: changed or deleted while documents were indexed; run again when no program writes to it"
    )


class _Vectors:
    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._waiting: dict[Layer, list[tuple[int, str]]] = {layer: [] for layer in index.layers}

    def add_document(self, entry: Entry, prepared: Prepared, keys: Keys, summary: Summary | None) -> None:
        """Add a document's texts.

        Without a lexicon, texts are embedded even in a language that the embedder does not support.
        """
        config = self._index.config
        languages: Collection[str] | None = getattr(self._embedder, "languages", None)
        known = not languages or not prepared.words or language_of(prepared.text[:_LANGUAGE_CHARS]) in languages
        front = f"{entry.summary}\n" if config.augment == "summary" and entry.summary else ""
        texts = (front + words if known else "" for words in prepared.texts)
        self._waiting["chunk"] += zip(keys.tolist(), texts, strict=True)
        if config.layers == "all":
            self._waiting["document"].append((entry.number, entry.summary or entry.filename))
            lines = zip(summary.sections if summary else (), entry.sections, strict=True)
            numbers = make_section_keys(entry.number, len(entry.sections)).tolist()
            self._waiting["section"] += [
                (number, words or path or " ") for number, (words, (path, _, _)) in zip(numbers, lines, strict=True)
            ]
        self.store(least=_BATCH_TEXTS)

    def store(self, *, least: int) -> None:
        for layer, waiting in self._waiting.items():
            if len(waiting) >= least:
                texts = [text for _, text in waiting if text]
                vectors = np.zeros((len(waiting), self._embedder.dimensions), np.float32)
                if texts:
                    vectors[[bool(text) for _, text in waiting]] = self._embedder.embed(texts, role="passage")
                self._index.store(layer).add(np.array([key for key, _ in waiting], np.int64), vectors)
                waiting.clear()


def read_with_ocr(path: Location | str, how: Ocr) -> Document:
    """Read a file, with OCR for its pages without text; the PDF with the text that OCR has read is cached."""
    document = read_document(path)
    texts = (document.text[page.span.start : page.span.end] for page in document.pages)
    if document.path is None or all(text.strip() for text in texts):
        return document
    target = find_cache_folder() / "ocr" / f"{sha256_of(document.path)[:32]}-{how.engine}-{how.language}.pdf"
    notes = target.with_suffix(".json")
    if notes.is_file():  # written last: without this file the copy may be incomplete
        stored = tuple(json.loads(notes.read_text(encoding="utf-8")))
        return replace(read_document(target), filename=document.filename, notes=stored)
    target.parent.mkdir(parents=True, exist_ok=True)
    with fetch_file(document.path) as local_path:
        source = _as_pdf(local_path, target) if local_path.suffix.lower() in picture.SUFFIXES else local_path
        scanned = read_scan(replace(read_document(source), filename=document.filename), target, how)
    if scanned is None:
        return document
    write_whole(notes, json.dumps(scanned.document.notes))
    return scanned.document


def _as_pdf(path: Path, target: Path) -> Path:
    pages = target.with_suffix(".pages.pdf")
    with Image.open(path) as image:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        resolution = float(image.info.get("dpi", (_PICTURE_DPI, _PICTURE_DPI))[0]) or _PICTURE_DPI
    frames[0].save(pages, save_all=True, append_images=frames[1:], resolution=resolution)
    return pages
