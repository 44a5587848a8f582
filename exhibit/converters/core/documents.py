"""Adds documents to the corpus: copies or prints each document, reads it as a RAG system will, and locates its gold."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.pages.chromium import Press, Printed
from exhibit.evidence import Document, Span, fold, locate, read_document
from exhibit.evidence.fold import Fold
from exhibit.evidence.hidden import HiddenSpan, describe_hidden, find_hidden_spans
from exhibit.evidence.locate import prefer_whole_words
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, read_scan
from exhibit.law.provisions import ProvisionIndex, read_provisions
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import DocumentEntry, Gold, How
from exhibit.storage.atomic import write_whole

MIN_CLAUSE_LETTERS = 60  # an answer of this length is a clause, and gold like any quote
NOT_ON_PAGE = "quote that is not on the page that the source states; located by its words"

Spans = Sequence[tuple[int, int]]


class Task(NamedTuple):
    """A document, and the quotes to locate in it; sent to a worker."""

    document: RawDocument
    quotes: tuple[Quote, ...]
    printed: Printed | DocumentError

    def __str__(self) -> str:
        return str(self.document)


@dataclass(frozen=True)
class QuotePlace:
    """The location of a quote as pages and offsets; it is small, because a worker may return thousands."""

    pages: list[int]
    spans: list[tuple[int, int]]
    alternatives: list[list[tuple[int, int]]]
    how: How
    score: float | None
    text: str | None = None  # the text of a provision that the source only names
    remark: str = ""  # such as that a provision is ambiguous, or that the stated page lacks the quote
    not_accepted: tuple[str, ...] = ()  # accepted provisions that the document lacks, or has several times
    hidden: str = ""  # the reason why some of its words are invisible on the page
    on_page: "tuple[QuotePlace | None, ...]" = ()  # locations on the stated page, counted from 0 and from 1

    def get_text(self, quote: Quote) -> str | None:
        """Return the passage's words; None if the source has an answer but no quote, and the answer is not located."""
        return None if quote.answer and self.how == "absent" else quote.text or self.text

    def make_gold(self, id: int, context: int | None, filename: str | None, labels: dict[str, Label]) -> Gold:
        """Return a line of gold.jsonl; the label `hidden` states why words of the gold are invisible on the page."""
        labels = {**labels, "hidden": self.hidden} if self.hidden else labels
        where = {name: getattr(self, name) for name in ("pages", "spans", "alternatives", "how", "score")}
        return Gold(id=id, context=context, filename=filename, labels=labels, **where)


NOWHERE = QuotePlace([], [], [], "absent", None)


class Done(NamedTuple):
    entry: DocumentEntry
    places: dict[Quote, QuotePlace]
    notes: tuple[str, ...]
    printer: str


def make_tasks(documents: Iterable[RawDocument], rows: Iterable[RawRow], press: Press) -> Iterator[Task]:
    """Yield a task for each document once its file is printed; meanwhile workers locate earlier documents' gold."""
    quotes: dict[str, list[Quote]] = defaultdict(list)
    for row in rows:
        for quote in (*row.quotes, *row.near_misses):
            quotes[quote.filename].append(quote)
    for raw in documents:
        printed: Printed | DocumentError = Printed(raw.printer)
        if raw.path is None and raw.filename.lower().endswith(".pdf"):
            try:
                printed = press(raw)
            except DocumentError as error:
                printed = error
        yield Task(replace(raw, html=None, blocks=()), tuple(quotes[raw.filename]), printed)


def materialise(corpus: Path, texts: Path, ocr: Ocr | None, task: Task) -> Done:
    """Add a document to the corpus, store its text in the folder `texts`, and locate its quotes."""
    raw, target = task.document, corpus / task.document.filename
    path = raw.path or target
    if isinstance(task.printed, DocumentError):
        raise task.printed
    if raw.path is None and not task.printed.printer:
        target.write_text(raw.text or "", encoding="utf-8", newline="")
    document = read_document(path)
    scanned = read_scan(document, target, ocr) if ocr is not None else None
    document = scanned.document if scanned else document
    if not document.has_text:
        if (raw.original or path).suffix.lower() not in {".pdf", *picture.SUFFIXES}:
            raise DocumentError(f"{raw}: no words in it; is the file empty?")
        hint = "OCR found no words in it either" if ocr else "add --ocr to read it"
        raise DocumentError(f"{raw}: no text in it, only pictures; {hint}")
    if not scanned and raw.path:
        shutil.copyfile(path, target)
    finder = Finder(document.text if raw.own_text else raw.text or "", document)
    places = {quote: finder.place(quote) for quote in dict.fromkeys(task.quotes)}
    # check only pages with gold: for all pages of a filing, this takes twice as long as everything else
    numbers = {number for where in places.values() if where.spans for number in where.pages}
    hidden = find_hidden_spans(document, numbers)
    for quote, place in places.items():
        where = replace(place, hidden=_explain_hidden(place, document, hidden)) if hidden else place
        if quote.page is not None:
            choices = (_choose_page(quote, where, document, page) for page in (quote.page + 1, quote.page))
            where = replace(where, on_page=tuple(choices))
        places[quote] = where
    entry = DocumentEntry(
        filename=raw.filename,
        title=raw.title,
        pages=len(document.pages) or None,
        characters=len(document.text),
        source=raw.source,
        ocr=scanned.confidence if scanned else {},
        labels=dict(raw.labels),
    )
    if path.suffix == target.suffix:  # the suffix selects the reader of the stored text
        with suppress(OSError):  # if it cannot be stored, it is read again later
            write_whole(texts / raw.filename, document.text)
    notes = (*task.printed.notes, *document.notes, *describe_hidden(hidden, document))
    return Done(entry, places, notes, task.printed.printer)


def _explain_hidden(where: QuotePlace, document: Document, hidden: Sequence[HiddenSpan]) -> str:
    letters: Counter[str] = Counter()
    for start, end in where.spans:
        for span, why in hidden:
            words = document.text[max(start, span.start) : min(end, span.end)]
            letters[why] += sum(character.isalnum() for character in words)
    return "; ".join(sorted(why for why, count in letters.items() if count > 2))  # a white comma does not matter


def _choose_page(quote: Quote, where: QuotePlace, document: Document, page: int) -> QuotePlace | None:
    """Return the gold's first location on a page, with further ones there as alternatives; None if there is none."""
    if where.how == "absent" and not quote.provision and (quote.answer or not quote.text):
        return replace(where, pages=[page]) if 0 < page <= len(document.pages) else None  # the page itself is gold
    places = [spans for spans in (where.spans, *where.alternatives) if page in document.pages_of(*spans)]
    if not places:
        return None
    return replace(where, spans=places[0], alternatives=places[1:], pages=document.pages_of(*places[0]))


@dataclass(frozen=True)
class Finder:
    """Locates quotes in a document; offsets in the source's text are converted to offsets in the document."""

    source: str
    document: Document

    def place(self, quote: Quote) -> QuotePlace:
        if quote.provision and not quote.text:
            where = self._find_provision(quote)
        else:
            where = self._find_words(quote)
            if quote.answer:
                # an answer is gold if it is a clause, or occurs exactly once; answers such as `yes` occur anywhere
                letters = len(fold(quote.text or "", loose=True))
                once = where.score == 1.0 and not where.alternatives and letters >= 5
                is_gold = once or (letters >= MIN_CLAUSE_LETTERS and where.spans)
                where = replace(where, how="answer") if is_gold else NOWHERE
            elif quote.section and where.spans:
                where = replace(where, how="section", score=quote.score)
        return self._accept_provisions(where, quote.acceptable) if quote.acceptable else where

    def _find_words(self, quote: Quote) -> QuotePlace:
        text = self.document.text
        marked = " ".join(text[start:end] for start, end in quote.marked if end <= len(text))
        if quote.marked and fold(marked, loose=True) == fold(quote.text or "", loose=True):
            exact: How = "exact" if marked == quote.text else "folded"
            return _place(quote.marked, self.document, "parts" if len(quote.marked) > 1 else exact, 1.0)
        if quote.spans and (known := self._carry_spans(quote.spans)):
            carried = filter(None, (self._carry_spans(spans) for spans in quote.alternatives))
            how: How = "parts" if len(known) > 1 else "exact" if self.source == self.document.text else "folded"
            return _place(known, self.document, how if quote.score == 1.0 else "fuzzy", quote.score, carried)
        if not quote.text:
            return NOWHERE
        matches = prefer_whole_words(locate(quote.text, self.document))
        if quote.spans and self.source:
            # if the words have several locations, choose the one at the same relative position as in the source
            share = quote.spans[0][0] / len(self.source)
            matches.sort(key=lambda match: abs(match.span.start / len(self.document.text) - share))
        if not matches:
            return NOWHERE
        best, others = matches[0], [match.spans for match in matches[1:]]
        return _place(best.spans, self.document, best.how, best.score, others)

    @cached_property
    def _paired(self) -> tuple[Fold, Fold] | None:
        """The folded texts of source and document if they are equal, so that offsets mean the same characters."""
        source, document = Fold.of(self.source, loose=True), self.document.loose
        if source.text == document.text:
            return source, document
        # leave out characters that no font has: they are printed as boxes and cannot be read back
        given, read = Counter(source.text), Counter(document.text)
        lost = {character for character in given | read if given[character] != read[character]}
        if any(character.isascii() for character in lost):
            return None
        source, document = (side.select(lambda character: character not in lost) for side in (source, document))
        return (source, document) if source.text == document.text else None

    def _carry_spans(self, spans: Spans) -> list[Span]:
        """Convert spans of the source's text to spans of the document; return an empty list if the texts differ."""
        if self.source == self.document.text:
            return [Span(*span) for span in spans]
        if self._paired is None:
            return []
        source, document = self._paired
        ranges = (source.find_folded_range(start, end) for start, end in spans)
        return [Span(*document.span(first, last)) for first, last in ranges if first < last]

    @cached_property
    def _provisions(self) -> ProvisionIndex:
        return ProvisionIndex(self.document)

    def _find_provision(self, quote: Quote) -> QuotePlace:
        named = read_provisions(quote.provision)[:1]
        places = self._provisions.find(named[0]) if named else []
        if len(places) != 1:
            several = f"provision has {len(places)} locations in the document: it is ambiguous"
            return replace(NOWHERE, remark=several if places else "provision is not in the document")
        spans = places[0].spans
        text = "\n".join(self.document.text[start:end] for start, end in spans)
        part = "provision found, but its cited part was not recognised: the whole provision is gold"
        remark = part if places[0].whole else ""
        return replace(_place(spans, self.document, "section", 1.0), text=text, remark=remark)

    def _accept_provisions(self, where: QuotePlace, acceptable: Iterable[str]) -> QuotePlace:
        """Add the acceptable provisions as alternative locations; record those that are absent or ambiguous."""
        places = {text: [self._provisions.find(named) for named in read_provisions(text)] for text in acceptable}
        once = {text: [found[0].spans for found in several if len(found) == 1] for text, several in places.items()}
        accepted: list[Spans] = [spans for found in once.values() for spans in found if where.spans]
        lost = tuple(text for text, found in once.items() if not found)
        return replace(where, alternatives=[*where.alternatives, *map(list, accepted)], not_accepted=lost)


def settle_pages(done: Mapping[str, Done], quotes: Iterable[Quote], tally: Tally) -> None:
    """Keep only the locations of each quote that are on the page that the source states."""
    # quotes that are on only one of the two possible pages show whether the source counts pages from 0 or from 1
    stated = [quote for quote in dict.fromkeys(quotes) if quote.page is not None]
    fits = [[place is not None for place in done[quote.filename].places[quote].on_page] for quote in stated]
    votes = Counter(fit.index(True) for fit in fits if sum(fit) == 1)
    first = 0 if votes[0] > votes[1] else 1
    if votes:
        others = f"; {votes[1 - first]} passages contradict this" if votes[1 - first] else ""
        tally.note("page numbers of the source", f"counted from {first}, as {votes[first]} passages show{others}")
    for quote in stated:
        places = done[quote.filename].places
        where = places[quote]
        unfit = replace(where, remark=where.remark or NOT_ON_PAGE) if where.spans and where.pages else where
        places[quote] = where.on_page[first] or unfit


def _place(spans: Spans, document: Document, how: How, score: float, alternatives: Iterable[Spans] = ()) -> QuotePlace:
    return QuotePlace(document.pages_of(*spans), list(spans), list(map(list, alternatives)), how, score)
