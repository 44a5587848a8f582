"""A bundle as text: the input and the output of each kind of variation.

A corpus is like the output of a converter's reader: documents with their text, and rows whose quotes have spans in
that text. A kind of variation edits the texts. `apply_edits` applies the edits and moves every gold span accordingly,
so that gold stays correct.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import Label, Quote, RawDocument, RawRow, Spans, Tally
from exhibit.converters.pages.text_pdf import PAGE_BREAK
from exhibit.engine import Engine, open_engine, track
from exhibit.evidence import Document, Span, fold
from exhibit.evidence.read import read_within
from exhibit.law.structure import read_structure
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder

NOT_LOCATED = "its gold is not located in the parent bundle"
IMPOSSIBLE = "the question has no answer in the parent bundle"
SEVERAL = "its gold is in several documents"
WITHOUT_GOLD = "the parent bundle quotes no passage for it"
CONTROL_ROW = "control"  # the label with the id of the row in the parent bundle from which a row was made


@dataclass(frozen=True)
class VaryRequest:
    seed: int = 0
    argument: str | None = None  # The argument after the kind's name: `4` in `--kind growth:4`
    others: Path | None = None  # A folder or a bundle with further documents


class Edit(NamedTuple):
    """A replacement of a span of a text; an empty span is an insertion."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class TextCorpus:
    """The questions and the extracted texts of a bundle's documents, for editing."""

    documents: Mapping[str, RawDocument]
    rows: tuple[RawRow, ...]
    scan_seed: int | None = None  # The seed of the simulated scans; None if the documents are printed with their text

    def words(self, quote: Quote) -> str:
        """Return the text at a quote's spans, with single spaces."""
        text = self.documents[quote.filename].text or ""
        return " ".join(" ".join(text[start:end] for start, end in quote.spans).split())

    def rows_of(self, filename: str) -> list[RawRow]:
        """Return the answerable questions whose gold passages are all in this document."""
        return self._rows_by_file.get(filename, [])

    @cached_property
    def _rows_by_file(self) -> dict[str, list[RawRow]]:
        rows: dict[str, list[RawRow]] = {}
        for row in self.rows:
            if len(row.files) == 1 and not row.is_impossible:
                rows.setdefault(row.files[0], []).append(row)
        return rows


def list_gold(rows: Iterable[RawRow], filename: str | None = None) -> list[Span]:
    """Return the spans of the rows' gold and of its alternative locations, in one document or in all."""
    quotes = [quote for row in rows for quote in row.quotes if filename in (None, quote.filename)]
    return [Span(*span) for quote in quotes for place in (quote.spans, *quote.alternatives) for span in place]


def with_labels(row: RawRow, **labels: Label) -> RawRow:
    return replace(row, labels={**row.labels, **labels})


def replace_answer(row: RawRow, answer: str, **labels: Label) -> RawRow:
    """Return a row with a new answer and further labels; each label that equals the old answer gets the new answer."""
    repeated = {name: answer for name, value in row.labels.items() if value == row.answer}
    return with_labels(replace(row, answer=answer), **repeated, **labels)


def leave_out_others(corpus: TextCorpus, tally: Tally) -> None:
    """Record in `tally` that impossible questions, and questions with gold in several documents, are left out."""
    for row in corpus.rows:
        if row.is_impossible:
            tally.leave_out(IMPOSSIBLE, row.name)
        elif len(row.files) > 1:
            tally.leave_out(SEVERAL, row.name)


def read_corpus(bundle: BundleFolder, tally: Tally, engine: Engine | None = None) -> TextCorpus:
    """Read a bundle's documents; questions without located gold are left out and counted."""
    files = dict(sorted(bundle.files.items()))
    read = (engine or open_engine(items=len(files))).map(read_within, files.values())
    entries = {entry.filename: entry for entry in bundle.info.documents} if bundle.info else {}
    documents: dict[str, RawDocument] = {}
    layouts: dict[str, Document] = {}
    renamed: dict[str, str] = {}
    for name, parent in zip(files, track(read, total=len(files), label="parent's documents"), strict=True):
        printed = name if name.lower().endswith(".pdf") else f"{name.rpartition('.')[0] or name}.pdf"
        if printed in documents:
            first = next(other for other, known in renamed.items() if known == printed)
            raise BundleError(f"{bundle.root}: {first} and {name} would both be printed as {printed}; rename one")
        entry = entries.get(name)
        title, source, labels = (entry.title, entry.source, entry.labels) if entry else (name, "", {})
        layouts[printed], renamed[name] = parent.unwrap(), printed
        pages = (layouts[printed].text[slice(*page.span)] for page in layouts[printed].pages)
        text = PAGE_BREAK.join(pages) or layouts[printed].text  # a page break in place of the line feed between pages
        documents[printed] = RawDocument(printed, title, text=text, source=source, labels=tuple(labels.items()))
    rows = tuple(_read_rows(bundle, renamed, tally))
    corpus = TextCorpus(documents, rows)
    return apply_edits(corpus, {name: _remove_layout(layouts[name], rows) for name in documents})


def _read_rows(bundle: BundleFolder, renamed: Mapping[str, str], tally: Tally) -> Iterable[RawRow]:
    lines: dict[int, list[Gold]] = {}
    for line in bundle.gold:
        lines.setdefault(line.id, []).append(line)
    for question in bundle.questions:
        if not isinstance(question.id, int):
            raise BundleError(f"{bundle.root}: row {question.id!r}: its id must be a whole number; change the id")
        gold = lines.get(question.id, [])
        located = [line for line in gold if line.context is not None and line.spans]
        if not question.is_impossible and (not located or len(located) < len(question.contexts)):
            tally.leave_out(NOT_LOCATED if question.contexts else WITHOUT_GOLD, f"row {question.id}")
            continue
        quotes = tuple(
            Quote(renamed[str(line.filename)], None, tuple(line.spans), (), tuple(map(tuple, line.alternatives)))
            for line in located
        )
        filename = next((renamed.get(line.filename) for line in gold if line.filename), None)
        labels = {**(gold[0].labels if gold else {}), CONTROL_ROW: question.id}
        words = question.question, question.answer
        yield RawRow(question.id, *words, quotes, filename, question.is_impossible, labels)


def _remove_layout(document: Document, rows: Sequence[RawRow]) -> list[Edit]:
    """Return the edits that remove running heads, feet and page numbers, which would be misplaced in the new PDF."""
    gold = list_gold(rows, document.filename)
    return [Edit(*line, "") for line in document.furniture if not any(line.overlaps(span) for span in gold)]


class EditedText:
    """A text after edits that do not overlap; it converts spans of the old text to spans of the new text."""

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self.edits = sorted(set(edits))
        self._starts, self._ends = [edit.start for edit in self.edits], [edit.end for edit in self.edits]
        kept = zip([0, *self._ends], [*self._starts, len(text)], [*(edit.new for edit in self.edits), ""], strict=True)
        self.text = "".join(text[start:end] + new for start, end, new in kept)
        self._shifts = [0, *accumulate(len(new) - (end - start) for start, end, new in self.edits)]

    def span(self, span: Span) -> Span | None:
        """Return the span in the new text for a span of the old text; None if the whole span was deleted."""
        first = bisect_right(self._ends, span.start)  # the first edit that ends after the start
        start = span.start + self._shifts[first]
        if first < len(self.edits) and self.edits[first].start < span.start:
            start = self.edits[first].start + self._shifts[first]
        last = bisect_left(self._starts, span.end)  # the first edit that begins at the end or after it
        end = span.end + self._shifts[last]
        if last and self._ends[last - 1] > span.end:
            end = self._ends[last - 1] + self._shifts[last]
        return Span(start, end) if start < end else None

    def move(self, place: Spans) -> Spans:
        """Return the spans in the new text for spans of the old text, without deleted spans."""
        return tuple(moved for span in place if (moved := self.span(Span(*span))))


def apply_edits(corpus: TextCorpus, edits: Mapping[str, Sequence[Edit]]) -> TextCorpus:
    changed = {name: EditedText(corpus.documents[name].text or "", each) for name, each in edits.items() if each}
    documents = {
        name: replace(document, text=changed[name].text) if name in changed else document
        for name, document in corpus.documents.items()
    }
    rows = (
        replace(row, quotes=_move_quotes(row.quotes, changed), near_misses=_move_quotes(row.near_misses, changed))
        for row in corpus.rows
    )
    return replace(corpus, documents=documents, rows=tuple(rows))


def _move_quotes(quotes: Sequence[Quote], changed: Mapping[str, EditedText]) -> tuple[Quote, ...]:
    return tuple(moved for quote in quotes if (moved := _move_quote(quote, changed.get(quote.filename))))


def _move_quote(quote: Quote, edited: EditedText | None) -> Quote | None:
    if edited is None:
        return quote

    def fold_words(place: Spans) -> str:
        return fold(" ".join(edited.text[start:end] for start, end in place), loose=True)

    main, *others = map(edited.move, (quote.spans, *quote.alternatives))
    alternatives = tuple(place for place in others if fold_words(place) == fold_words(main))
    return replace(quote, spans=main, alternatives=alternatives) if main else None


_NUMBER = re.compile(r"(?:(Section|Article|Clause)\s+|§\s?)?(\d{1,2}(?:\.\d{1,2}){0,3})\.?", re.IGNORECASE)
_STRAY = re.compile(
    r"\bIN WITNESS\b|\bSource: |^[ \t]*(?:Page )?-? ?\d{1,3} ?-?(?: of \d+)?[ \t]*$|_{4}|\.{6}|\[Signature",
    re.MULTILINE | re.IGNORECASE,
)  # Matches text outside clauses: signatures, a page number, a row of a table of contents
_UNFINISHED = re.compile(r"\n.*(?<!\band)(?<!\bor)(?<![^\w\s])\Z")
"""Matches a clause of several lines without final punctuation: it is cut off, or the next heading follows."""
_MAX_CLAUSE_CHARS = 4_000  # most characters: a longer text has several clauses, or the schedules after the last clause
NO_CLAUSE = "its gold is not in a numbered clause"


@dataclass(frozen=True)
class Clause:
    """A numbered clause without clauses below it."""

    number: str
    span: Span  # The span from the clause's number to its last word
    label: str  # The number as the clause states it, such as `Section 3.2`
    word: str = "Section"  # The contract's word for it: `Article` if its heading has this word

    @property
    def name(self) -> str:
        """The name by which other clauses refer to this clause, such as `Section 3.2`."""
        return f"{self.word} {self.number}"

    def holds(self, span: Span) -> bool:
        return self.span.start <= span.start and span.end <= self.span.end


@lru_cache(maxsize=8)
def find_clauses(document: RawDocument) -> tuple[Clause, ...]:
    """Return a document's numbered clauses in order, without those that look cut off or whose number occurs twice."""
    text = (document.text or "").replace(PAGE_BREAK, "\n")
    found = []
    for section in read_structure(Document(document.filename, text)).walk():
        number = _NUMBER.fullmatch(section.label.strip())
        if number is None or section.children:
            continue
        end = section.span.end - len(text[: section.span.end]) + len(text[: section.span.end].rstrip())
        span = Span(section.title.start, end)
        words = text[slice(*span)]
        whole = end - span.start <= _MAX_CLAUSE_CHARS and not _STRAY.search(words) and not _UNFINISHED.search(words)
        if section.title.end < end and whole:
            found.append(Clause(number[2], span, section.label.strip(), (number[1] or "Section").capitalize()))
    counts = Counter(clause.number for clause in found)
    return tuple(clause for clause in found if counts[clause.number] == 1)


def clauses_of(row: RawRow, clauses: Sequence[Clause]) -> list[Clause] | None:
    """Return the clauses that contain all gold of a row; None if some gold is in no clause."""
    holders = []
    for span in list_gold([row]):
        holder = next((clause for clause in clauses if clause.holds(span)), None)
        if holder is None:
            return None
        if holder not in holders:
            holders.append(holder)
    return holders
