"""A bundle as text, which kinds of variation edit: like a converter's output, quotes have spans in the texts."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from exhibit.converters import Label, Quote, RawDocument, RawRow, Spans, Tally
from exhibit.converters.pages.text_pdf import PAGE_BREAK
from exhibit.engine import Engine, open_engine, track
from exhibit.evidence import Document, Span, fold
from exhibit.evidence.read import read_within
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder

NOT_LOCATED = "its gold is not located in the parent bundle"
IMPOSSIBLE = "the question has no answer in the parent bundle"
SEVERAL = "its gold is in several documents"
CONTROL_ROW = "control"  # the label with the id of the row in the parent bundle from which a row was made


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
    scanned: bool = False  # Whether the documents become simulated scans when they are written

    def words(self, quote: Quote) -> str:
        """Return the text at a quote's spans, with single spaces."""
        text = self.documents[quote.filename].text or ""
        return " ".join(" ".join(text[start:end] for start, end in quote.spans).split())

    def group_rows(self, tally: Tally) -> dict[str, list[RawRow]]:
        """Return the answerable questions with gold in one document, by document; leave out the other questions."""
        rows: dict[str, list[RawRow]] = {name: [] for name in self.documents}
        for row in self.rows:
            if row.is_impossible:
                tally.leave_out(IMPOSSIBLE, row.name)
            elif len(row.files) > 1:
                tally.leave_out(SEVERAL, row.name)
            else:
                rows[row.files[0]].append(row)
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
    return with_labels(replace(row, answer=answer), **(repeated | labels))


def read_corpus(bundle: BundleFolder, tally: Tally, engine: Engine | None = None) -> TextCorpus:
    """Read a bundle's documents; questions without located gold are left out and counted."""
    files = dict(sorted(bundle.files.items()))
    read = (engine or open_engine(items=len(files))).map(read_within, files.values())
    entries = {entry.filename: entry for entry in bundle.info.documents} if bundle.info else {}
    documents: dict[str, RawDocument] = {}
    layouts: dict[str, Document] = {}
    renamed: dict[str, str] = {}
    for name, outcome in zip(files, track(read, total=len(files), label="parent's documents"), strict=True):
        printed = name if name.lower().endswith(".pdf") else f"{name.rpartition('.')[0] or name}.pdf"
        if printed in documents:
            raise BundleError(f"{bundle.root}: {name} and another document would be printed as {printed}; rename one")
        entry, layout = entries.get(name), outcome.unwrap()
        title, source, labels = (entry.title, entry.source, entry.labels) if entry else (name, "", {})
        # a page break in place of the line feed between pages
        text = PAGE_BREAK.join(layout.text[slice(*page.span)] for page in layout.pages) or layout.text
        documents[printed] = RawDocument(printed, title, text=text, source=source, labels=tuple(labels.items()))
        layouts[printed], renamed[name] = layout, printed
    corpus = TextCorpus(documents, tuple(_read_rows(bundle, renamed, tally)))
    edits = {}
    for name, layout in layouts.items():  # running heads, feet and page numbers would be misplaced in the new PDF
        gold = list_gold(corpus.rows, name)
        lines = (line for line in layout.furniture if not any(line.overlaps(span) for span in gold))
        edits[name] = [Edit(*line, "") for line in lines]
    return apply_edits(corpus, edits)


def _read_rows(bundle: BundleFolder, renamed: Mapping[str, str], tally: Tally) -> Iterable[RawRow]:
    lines: dict[int, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    for question in bundle.questions:
        if not isinstance(question.id, int):
            raise BundleError(f"{bundle.root}: row {question.id!r}: its id must be a whole number; change the id")
        gold = lines[question.id]
        located = [line for line in gold if line.context is not None and line.spans]
        if not question.is_impossible and (not located or len(located) < len(question.contexts)):
            tally.leave_out(NOT_LOCATED, f"row {question.id}")
            continue
        quotes = tuple(
            Quote(renamed[str(line.filename)], None, tuple(line.spans), (), tuple(map(tuple, line.alternatives)))
            for line in located
        )
        filename = next((renamed.get(line.filename) for line in gold if line.filename), None)
        labels = {**(gold[0].labels if gold else {}), CONTROL_ROW: question.id}
        yield RawRow(question.id, question.question, question.answer, quotes, filename, question.is_impossible, labels)


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
        last = bisect_left(self._starts, span.end)  # the first edit that begins at the end or after it
        start = min([span.start, *self._starts[first : first + 1]]) + self._shifts[first]
        end = max([span.end, *self._ends[max(0, last - 1) : last]]) + self._shifts[last]
        return Span(start, end) if start < end else None

    def move(self, place: Spans) -> Spans:
        return tuple(moved for span in place if (moved := self.span(Span(*span))))


def apply_edits(corpus: TextCorpus, edits: Mapping[str, Sequence[Edit]]) -> TextCorpus:
    """Return the corpus with edited texts, and with all spans moved accordingly."""
    texts = {name: EditedText(raw.text or "", edits.get(name, ())) for name, raw in corpus.documents.items()}
    documents = {name: replace(raw, text=texts[name].text) for name, raw in corpus.documents.items()}
    rows = (
        replace(row, quotes=_move_quotes(row.quotes, texts), near_misses=_move_quotes(row.near_misses, texts))
        for row in corpus.rows
    )
    return replace(corpus, documents=documents, rows=tuple(rows))


def _move_quotes(quotes: Sequence[Quote], texts: Mapping[str, EditedText]) -> tuple[Quote, ...]:
    return tuple(moved for quote in quotes if (moved := _move_quote(quote, texts[quote.filename])))


def _move_quote(quote: Quote, edited: EditedText) -> Quote | None:
    """Return a quote of the edited text, without alternatives whose words now differ; None if its words are deleted."""
    if not edited.edits:
        return quote
    main, *others = map(edited.move, (quote.spans, *quote.alternatives))
    words, *other_words = (
        fold(" ".join(edited.text[start:end] for start, end in place), loose=True) for place in (main, *others)
    )
    same = tuple(place for place, folded in zip(others, other_words, strict=True) if folded == words)
    return replace(quote, spans=main, alternatives=same) if main else None
