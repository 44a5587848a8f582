"""Measure how much gold parsers and chunkers preserve: later stages cannot recover gold that they lose.

A reading is the text of each document from one parser: a PDF library, or files that another parser wrote. A
splitter cuts a reading into chunks. The chunks of another system are located in the documents as Exhibit
reads them. Gold that is not located is not counted.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import run_in_worker, track
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.documents import Documents
from exhibit.evaluation.parsed_files import join_pages, read_parsed_folder
from exhibit.evaluation.parsers import TimedReader
from exhibit.evaluation.ranking import golds_of
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stages import (
    GoldStages,
    InText,
    find_in_chunks,
    find_in_text,
    follow_gold,
    kind_of_gold,
)
from exhibit.evaluation.statistics import Estimate, summarise
from exhibit.evaluation.system_documents import place_chunks
from exhibit.evidence import Document, Span
from exhibit.law.structure import read_structure
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.storage.locations import fetch_file

SIZE = 500
"""The size of a chunk in characters unless the splitter names one; the default of `exhibit index`."""
OUTCOMES = ("whole", "part", "lost")
"""The outcomes of a gold passage; for chunks, `part` means that a chunk boundary cuts it."""
ALL_KINDS = "all"
_SHOWN = 60
"""Characters of a passage that are shown on each side of a cut."""


class GoldItem(NamedTuple):
    """A gold passage of a question, with its document."""

    question: int | str
    gold: GoldPassage
    document: Document
    kind: str


@dataclass(frozen=True)
class ParserReading:
    """The texts that one parser extracted from the documents."""

    name: str
    texts: Mapping[str, Document]
    seconds: float | None = None
    """None for texts that were given as files."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """The reason why a document or file was not read, by its name."""


@dataclass(frozen=True)
class Lost:
    """A gold passage that a parser or chunker did not keep whole, with what is missing."""

    question: int | str
    filename: str
    pages: tuple[int, ...]
    kind: str
    outcome: str
    missing: tuple[str, ...] = ()
    """The words that the parser dropped."""
    cut: tuple[str, str] | None = None
    """The words on both sides of the cut."""
    before_proviso: bool = False


@dataclass(frozen=True)
class CeilingRow:
    """The shares of gold passages that a parser, or a parser with a splitter, keeps whole, in part, or not at all."""

    name: str
    kind: str
    shares: Mapping[str, Estimate]
    """The shares by outcome."""
    unknown: int
    """The number of gold passages without a result: document not read, or few words that also occur elsewhere."""
    before_proviso: int = 0


@dataclass(frozen=True)
class Ceiling:
    """The results of one parser or one chunker.

    `rows` has the shares of gold that it keeps, `seconds` its time, `lost` the gold passages that it does not
    keep whole, and `faults` its errors, such as unreadable files.
    """

    name: str
    is_chunker: bool
    rows: tuple[CeilingRow, ...]
    seconds: float | None
    lost: tuple[Lost, ...]
    faults: Mapping[str, str] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return the results as plain values for JSON."""
        rows = [
            {
                "kind": row.kind,
                **{name: {"mean": one.mean, "n": one.n, "ci95": one.ci95} for name, one in row.shares.items()},
                "unknown": row.unknown,
                "cut before its proviso": row.before_proviso,
            }
            for row in self.rows
        ]
        lost = [vars(one) for one in self.lost]
        record = {"name": self.name, "stage": "chunks" if self.is_chunker else "text", "seconds": self.seconds}
        return {**record, "rows": rows, "lost": lost, "faults": dict(self.faults)}


# ---------------------------------------------------------------- gold


def list_gold_items(dataset: Dataset) -> tuple[list[GoldItem], int]:
    """Return the located gold of a dataset, each passage once, and the number of passages that are not located."""
    items: list[GoldItem] = []
    seen: set[object] = set()
    unlocated = 0
    for case in dataset.cases:
        for gold in golds_of(case):
            document = dataset.documents.get(gold.filename)
            if not gold.located or document is None:
                unlocated += 1
            elif (key := (gold.filename, gold.places[0])) not in seen:
                seen.add(key)
                items.append(GoldItem(case.id, gold, document, kind_of_gold(gold, document)))
    return items, unlocated


# ---------------------------------------------------------------- readings


def read_with_parser(name: str, dataset: Dataset, filenames: Iterable[str]) -> ParserReading:
    """Return the texts that a PDF library extracts from the files.

    Files that it cannot read are listed with the reason.
    """
    module, argument = load_plugin("exhibit.evaluation.parsers", name)
    if argument is not None:
        raise ToolkitError(f"the parser {name.partition(':')[0]} takes no argument, but was given {argument!r}")
    texts: dict[str, Document] = {}
    faults: dict[str, str] = {}
    taken, names = 0.0, sorted(filenames)
    for filename in track(names, total=len(names), label=name):
        if not filename.lower().endswith(".pdf"):
            faults[filename] = "not a PDF"
            continue
        with fetch_file(dataset.files[filename]) as path:
            try:
                pages, seconds = run_in_worker(TimedReader(module.read), path)
            except DocumentError as error:
                faults[filename] = str(error)
                continue
        texts[filename] = join_pages(filename, pages)
        taken += seconds
    return ParserReading(name, texts, taken, faults)


def read_with_files(name: str, folder: Path, documents: Documents) -> ParserReading:
    """Read the texts that an external parser wrote to a folder.

    The result has the text of each document, and the reason for each file that could not be used.
    """
    parsed = read_parsed_folder(folder, documents.named)
    return ParserReading(name, parsed.texts, None, parsed.left_out)


# ---------------------------------------------------------------- parsers


def measure_reading(reading: ParserReading, items: Sequence[GoldItem]) -> tuple[Ceiling, list[InText | None]]:
    """Return how much gold a parser keeps: the summary, and a list with the result of each gold passage.

    A result is None if the parser has no text of the document, or if the result is unknown.
    """
    results: list[InText | None] = []
    for item in items:
        text = reading.texts.get(item.document.filename)
        results.append(None if text is None else find_in_text(item.gold, item.document, text))
    stages = [follow_gold(item.gold, text=result) for item, result in zip(items, results, strict=True)]
    return _make_ceiling(reading.name, items, stages, reading.seconds, is_chunker=False, faults=reading.faults), results


# ---------------------------------------------------------------- chunkers


class NamedSplitter(NamedTuple):
    """A splitter with its chunk size: `rcts:500`, `sections:sentences:800`."""

    name: str
    split: Callable[..., list[Span]]
    size: int

    @classmethod
    def of(cls, wanted: str) -> "NamedSplitter":
        """Parse a splitter from the command line: `rcts:500` is the splitter `rcts` with chunks of 500 characters."""
        name, sign, last = wanted.rpartition(":")
        plugin, size = (name, int(last)) if sign and last.isdecimal() else (wanted, SIZE)
        module, argument = load_plugin("exhibit.rag.splitters", plugin)
        return cls(f"{plugin}:{size}", module.open(argument), size)

    def chunks_of(self, document: Document) -> list[tuple[Span, ...]]:
        """Return the chunks of a document, each as a tuple of spans."""
        leaves = [section.span for section in read_structure(document).walk() if not section.children]
        return [(span,) for span in self.split(document.text, size=self.size, overlap=0, sections=leaves)]


def measure_splitter(
    splitter: NamedSplitter, reading: ParserReading, items: Sequence[GoldItem], texts: Sequence[InText | None]
) -> Ceiling:
    """Return how much gold is whole, cut or lost after a splitter has cut a parser's texts into chunks."""
    started = time.perf_counter()
    needed = sorted({item.document.filename for item in items} & set(reading.texts))
    chunks = {name: splitter.chunks_of(reading.texts[name]) for name in needed}
    seconds = time.perf_counter() - started
    stages = []
    for item, text in zip(items, texts, strict=True):
        parsed = reading.texts.get(item.document.filename)
        places = text.places if text else ()
        held = find_in_chunks(places, chunks[parsed.filename], parsed.text) if parsed and places else None
        stages.append(follow_gold(item.gold, text=text, chunks=held))
    return _make_ceiling(f"{reading.name} + {splitter.name}", items, stages, seconds, is_chunker=True)


def measure_chunks(name: str, chunks: Sequence[Passage], items: Sequence[GoldItem], documents: Documents) -> Ceiling:
    """Return how much gold is whole, cut or lost in the chunks of another system.

    The chunks are located in the documents by their text.
    """
    placed = place_chunks(chunks, documents, label=name)
    faults = {"chunks that were not located in the documents": str(placed.unplaced)} if placed.unplaced else {}
    stages = [
        follow_gold(
            item.gold,
            chunks=find_in_chunks(item.gold.places, placed.by_file.get(item.document.filename, []), item.document.text),
        )
        for item in items
    ]
    return _make_ceiling(name, items, stages, None, is_chunker=True, faults=faults)


# ---------------------------------------------------------------- rows


def _make_ceiling(
    name: str,
    items: Sequence[GoldItem],
    stages: Sequence[GoldStages],
    seconds: float | None,
    *,
    is_chunker: bool,
    faults: Mapping[str, str] | None = None,
) -> Ceiling:
    pairs = list(zip(items, stages, strict=True))
    kinds = [ALL_KINDS, *sorted({item.kind for item in items})]
    rows = [
        _make_row(name, kind, [pair for pair in pairs if kind in (ALL_KINDS, pair[0].kind)], is_chunker=is_chunker)
        for kind in kinds
    ]
    return Ceiling(name, is_chunker, tuple(rows), seconds, tuple(_find_lost(pairs, is_chunker)), faults or {})


def outcome_of(stages: GoldStages, *, is_chunker: bool) -> str | None:
    """Return `whole`, `part` or `lost`: how much of a gold passage the parser, or the chunker, keeps.

    Gold that the parser lost counts as lost for the chunker too. None if the result is unknown.
    """
    if stages.is_kept("text") is False:
        return "lost"
    if not is_chunker:
        return None if stages.text is None else "whole" if stages.text.how == "whole" else "part"
    if stages.chunks is None:
        return None
    return {"whole": "whole", "cut": "part", "none": "lost"}[stages.chunks.how]


def _make_row(name: str, kind: str, pairs: Sequence[tuple[GoldItem, GoldStages]], *, is_chunker: bool) -> CeilingRow:
    outcomes = [outcome_of(stages, is_chunker=is_chunker) for _, stages in pairs]
    values = {one: [None if got is None else float(got == one) for got in outcomes] for one in OUTCOMES}
    files = [item.document.filename for item, _ in pairs]
    shares = summarise(Table(name, list(range(len(pairs))), files, values))
    cut = sum(bool(stages.chunks and stages.chunks.before_proviso) for _, stages in pairs)
    return CeilingRow(name, kind, shares, outcomes.count(None), cut)


def _find_lost(pairs: Iterable[tuple[GoldItem, GoldStages]], is_chunker: bool) -> Iterator[Lost]:
    for item, stages in pairs:
        outcome = outcome_of(stages, is_chunker=is_chunker)
        if outcome in (None, "whole"):
            continue
        chunks = stages.chunks if is_chunker else None
        spans = item.gold.places[0]
        pages = tuple(dict.fromkeys(page for span in spans for page in item.document.pages_of(span)))
        yield Lost(
            item.question,
            item.document.filename,
            pages,
            item.kind,
            str(outcome),
            stages.text.missing if stages.text else (),
            (chunks.cut.before[-_SHOWN:], chunks.cut.after[:_SHOWN]) if chunks and chunks.cut else None,
            bool(chunks and chunks.before_proviso),
        )
