"""A system's own texts and chunks of a dataset's documents, and how much of each gold passage they contain.

A target provides them, or they are read from files: parsed texts (`--parsed`), one file per document, in plain text,
Markdown or HTML; and chunks (`--chunks`), one per row.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from exhibit.converters import Tally
from exhibit.converters.tables.records import read_records
from exhibit.engine import track
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.datasets import Dataset, list_names
from exhibit.evaluation.placement import Documents, golds_of
from exhibit.evaluation.replies import FileNamer, ReplyError, read_passages
from exhibit.evaluation.stages import InText, find_in_chunks, find_in_text
from exhibit.evidence import Document, Span
from exhibit.evidence.place import Place, blank_markup
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import LARGEST_FILE, read_regular, read_text
from exhibit.storage.atomic import list_files

Found = tuple[float | None, float | None]
_CACHED = 1024  # the number of cached results: questions that are repeated or share a passage are close together


class TargetDocuments:
    """The texts and chunks that a target itself provides."""

    def __init__(self, text: Callable[[str], str | None], chunks: Callable[[str], Sequence[Span]]) -> None:
        self._text = text
        self._chunks = lru_cache(_CACHED)(lambda name: [(span,) for span in chunks(name)])
        self.find = lru_cache(_CACHED)(self._find)  # the results for a gold passage in the text and in the chunks

    def _find(self, gold: GoldPassage) -> Found:
        if not gold.located or gold.filename is None:
            return None, None
        text = self._text(gold.filename)
        if text is None:  # the system skipped the document
            return 0.0, None
        return 1.0, find_in_chunks(gold.places, self._chunks(gold.filename), text)


class FileDocuments:
    """The texts and chunks that a system wrote to a folder of parsed texts, a file of chunks, or both."""

    def __init__(self, dataset: Dataset, folder: Path | None, file: Path | None, say: Callable[[str], None]) -> None:
        cases = [case for case in dataset.cases if not case.is_impossible]
        golds = list(dict.fromkeys(gold for case in cases for gold in golds_of(case) if gold.located))
        texts: dict[str, Document] = {}
        in_text: dict[GoldPassage, InText | None] = {}
        if folder:
            texts, left_out = read_parsed_folder(folder, dataset.documents.named)
            if missing := sorted({gold.filename for gold in golds if gold.filename} - set(texts)):
                named = list_names(missing)
                say(f"{dataset.name}: {folder} has no text of {named}: the loss of their gold is unknown")
            if left_out:
                say(f"{dataset.name}: not read in {folder}: {list_names(left_out)}")
            for gold in track(golds, total=len(golds), label="gold in the text", unit="gold"):
                document, parsed = dataset.documents.get(gold.filename), texts.get(gold.filename or "")
                if document is not None and parsed is not None:
                    in_text[gold] = find_in_text(gold, document, parsed)
        documents = dataset.documents.with_texts(texts)
        chunks = _place_chunks(file, dataset, documents, say) if file else None
        self._found: dict[GoldPassage, Found] = {}
        for gold in golds:
            text, cut, document = in_text.get(gold), None, documents.get(gold.filename)
            if chunks is not None and document is not None:
                places = gold.places if gold.filename not in texts else text.places if text else ()
                cut = find_in_chunks(places, chunks.get(gold.filename or "", []), document.text)
            self._found[gold] = text.share if text else None, cut

    def find(self, gold: GoldPassage) -> Found:
        return self._found.get(gold, (None, None))


def _place_chunks(
    file: Path, dataset: Dataset, documents: Documents, say: Callable[[str], None]
) -> dict[str, list[Place]]:
    """Return the locations of a file's chunks by document; a note counts the chunks that were not located."""
    chunks = read_chunks(file, dataset.documents.named)
    by_file: dict[str, list[Place]] = {}
    unplaced = 0
    for chunk in track(chunks, total=len(chunks), label="chunks", unit="chunk"):
        placed = documents.place(replace(chunk, told_page=None))
        if placed.source is None or not placed.spans:
            unplaced += 1
            continue
        stated = placed.spans == (chunk.span,)
        for filename in (placed.filename,) if placed.filename else placed.also_in:
            spans = placed.spans if stated else documents.find_all_spans(chunk.text, filename)
            by_file.setdefault(filename, []).append(spans)
    if not by_file:
        raise SourceError(
            f"{file}: no chunk was found in the documents of {dataset.name}; is the file from another bundle?"
        )
    if unplaced:
        say(f"{dataset.name}: {unplaced} of {len(chunks)} chunks of {file} were not located in its documents")
    return by_file


# ---------------------------------------------------------------- parsed texts

_ENDINGS = (".txt", ".text", ".md", ".markdown", ".mmd", ".html", ".htm")


def read_parsed_folder(folder: Path, names: FileNamer) -> tuple[dict[str, Document], list[str]]:
    """Return the parsed texts of a folder by corpus file, and the files that were not read."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder; --parsed takes a folder with one file per document")
    paths: dict[str, Path] = {}
    left_out: list[str] = []
    for path in list_files(folder):
        filename = names(path.name)
        if path.suffix.lower() not in _ENDINGS or filename is None:
            left_out.append(path.relative_to(folder).as_posix())
        elif filename in paths:
            both = f"{paths[filename].name} and {path.name}"
            raise SourceError(f"{folder}: {both} both match {filename}; remove one of them")
        else:
            paths[filename] = path
    if not paths:
        raise SourceError(
            f"{folder}: none of its {len(left_out)} files has the name of a document of the bundle and one of the "
            f"endings {', '.join(_ENDINGS)}; name each file after its document"
        )
    texts = {name: read_text(path, error=SourceError, most=LARGEST_FILE) for name, path in paths.items()}
    # with blanks in place of markup
    return {name: Document(name, blank_markup(text)) for name, text in texts.items()}, sorted(left_out)


# ---------------------------------------------------------------- chunks


def read_chunks(path: Path, names: FileNamer) -> tuple[Passage, ...]:
    """Return the chunks of a JSONL, JSON, CSV or Parquet file; `names` maps a chunk's file name to a corpus file."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file; --chunks takes a file with one chunk per row (JSONL, CSV, Parquet)")
    records = read_records(path, read_regular(path, most=None), Tally(strict=True), accounted=False)
    try:
        chunks = read_passages([record.cells for record in records], names=names)
    except ReplyError as error:
        raise SourceError(f"{path}: {error}; a chunk must be an object with its text in `text`") from error
    if not any(chunk.text.strip() or chunk.span for chunk in chunks):
        raise SourceError(
            f"{path}: no chunk has text or offsets; the fields `text`, `content`, `page_content` … were searched"
        )
    return chunks
