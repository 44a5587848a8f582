"""A system's own texts and chunks of a dataset's documents, and how much of each gold passage they contain."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from exhibit.engine import track
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.documents import Documents
from exhibit.evaluation.parsed_files import ParsedFolder, read_chunks, read_parsed_folder
from exhibit.evaluation.ranking import golds_of
from exhibit.evaluation.stages import InChunks, InText, find_in_chunks, find_in_text
from exhibit.evidence import Span
from exhibit.evidence.pieces import Place
from exhibit.schemas.errors import SourceError

Found = tuple[InText | None, InChunks | None]
_REMEMBERED = 1024
"""The number of cached results: questions that are repeated, or share a passage, follow each other closely."""
_NAMED = 3
"""The number of files that a note names; the others are counted."""


class TargetDocuments:
    """The texts and chunks that a target itself provides.

    The chunks are spans in the target's text of a document. This text must be the one in which the gold of the
    dataset was located, so that the offsets of chunks and gold can be compared.
    """

    def __init__(self, text: Callable[[str], str | None], chunks: Callable[[str], Sequence[Span]]) -> None:
        self._text = text
        self._chunks = lru_cache(_REMEMBERED)(lambda name: [(span,) for span in chunks(name)])
        self.find = lru_cache(_REMEMBERED)(self._find)
        """The results for a gold passage in the text and in the chunks."""

    def _find(self, gold: GoldPassage) -> Found:
        if not gold.located or gold.filename is None:
            return None, None
        text = self._text(gold.filename)
        if text is None:  # the system skipped the document
            return InText("absent", 0.0, (" ".join((gold.text or "").split()),)), None
        whole = InText("whole", 1.0, (), gold.places)
        return whole, find_in_chunks(gold.places, self._chunks(gold.filename), text)


class FileDocuments:
    """The texts and chunks that a system wrote to files.

    All located gold of the dataset is searched in them when the object is created.
    """

    def __init__(self, dataset: Dataset, parsed: ParsedFolder | None, chunks: Sequence[Passage] | None) -> None:
        golds = dict.fromkeys(
            gold for case in dataset.cases if not case.is_impossible for gold in golds_of(case) if gold.located
        )
        texts = parsed.texts if parsed else {}
        found: dict[GoldPassage, InText | None] = dict.fromkeys(golds)
        for gold in track(list(golds), total=len(golds), label="gold in the text", unit="gold") if texts else ():
            document, own = dataset.documents.get(gold.filename), texts.get(gold.filename or "")
            if document is not None and own is not None:
                found[gold] = find_in_text(gold, document, own)
        self._found: dict[GoldPassage, Found] = {gold: (text, None) for gold, text in found.items()}
        self.unplaced = 0
        """The number of chunks that were not located in the documents."""
        if chunks is not None:
            documents = dataset.documents.with_texts(texts)
            placed = place_chunks(chunks, documents)
            self.unplaced = placed.unplaced
            for gold, text in found.items():
                filename = gold.filename or ""
                own = documents.get(filename)
                if own is not None:
                    places = gold.places if filename not in texts else text.places if text else ()
                    self._found[gold] = text, find_in_chunks(places, placed.by_file.get(filename, []), own.text)

    def find(self, gold: GoldPassage) -> Found:
        """Return how much of a gold passage the system's texts contain, and how much the system's chunks contain.

        Each of the two results is None if it is unknown.
        """
        return self._found.get(gold, (None, None))

    @classmethod
    def read(
        cls, dataset: Dataset, folder: Path | None, file: Path | None, say: Callable[[str], None]
    ) -> "FileDocuments":
        """Read a folder of parsed texts, a file of chunks, or both.

        `say` reports documents without a text, files that cannot be read, and chunks that are not located. Raise an
        error if no chunk is located.
        """
        parsed = read_parsed_folder(folder, dataset.documents.named) if folder else None
        chunks = read_chunks(file, dataset.documents.named) if file else None
        own = cls(dataset, parsed, chunks)
        wanted = {gold.filename for gold in own._found if gold.filename}
        if parsed:
            missing = sorted(wanted - set(parsed.texts))
            if missing:
                say(
                    f"{dataset.name}: {folder} has no text of {_list_names(missing)}: the parser's result for their "
                    "gold is unknown"
                )
            if parsed.left_out:
                say(f"{dataset.name}: not read in {folder}: {_list_names(sorted(parsed.left_out))}")
        if own.unplaced:
            say(
                f"{dataset.name}: {own.unplaced} of {len(chunks or ())} chunks of {file} were not located in its "
                "documents"
            )
        if chunks is not None and own.unplaced == len(chunks):
            raise SourceError(
                f"{file}: no chunk was found in the documents of {dataset.name}; is the file from another bundle?"
            )
        return own


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


class PlacedChunks(NamedTuple):
    """The spans of chunks by file, and the number of chunks that were not located."""

    by_file: Mapping[str, list[Place]]
    unplaced: int


def place_chunks(chunks: Sequence[Passage], documents: Documents, *, label: str = "chunks") -> PlacedChunks:
    """Locate chunks in the documents.

    If a document has a chunk's text at the chunk's stated offsets, these offsets are used. Otherwise the text
    is searched, and every occurrence counts.
    """
    by_file: dict[str, list[Place]] = {}
    unplaced = 0
    for chunk in track(chunks, total=len(chunks), label=label, unit="chunk"):
        placed = documents.place(replace(chunk, told_page=None))
        if placed.source is None or not placed.spans:
            unplaced += 1
            continue
        believed = placed.spans == (chunk.span,)
        for filename in (placed.filename,) if placed.filename else placed.also_in:
            spans = placed.spans if believed else documents.find_all_spans(chunk.text, filename)
            by_file.setdefault(filename, []).append(spans)
    return PlacedChunks(by_file, unplaced)
