"""Adds one document to the corpus: copies or prints it, reads it as a RAG system will, and locates its gold."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters.benchmark import Benchmark, Quote, RawDocument, RawRow, read_source_text
from exhibit.converters.printing.press import PdfPrinter, Printed
from exhibit.converters.steps.contract_facts import ContractFacts, find_contract_facts
from exhibit.evidence import Document, Match, Span, fold, locate, read_document
from exhibit.evidence.fold import Fold
from exhibit.evidence.hidden import HiddenSpan, describe_hidden, find_hidden_spans
from exhibit.evidence.matches import prefer_whole_words
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, Scanned, read_scan
from exhibit.law.provision_places import ProvisionIndex
from exhibit.law.provisions import read_provisions
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import DocumentEntry, How
from exhibit.storage.atomic import write_whole


@dataclass(frozen=True)
class Task:
    """A work item of the conversion: a document's file, and the quotes to locate in this document."""

    document: RawDocument
    quotes: tuple[Quote, ...]
    path: Path
    """The file to read: the official one, or the printed one that is already in the corpus."""
    target: Path
    fault: DocumentError | None = None
    """The error if it could not be printed."""
    printed: Printed | None = None
    """Its printer and the printer's notes; None if nothing was printed."""
    ocr: Ocr | None = None
    """The OCR engine for pages without text; None to leave them without text."""
    text: Path | None = None
    """The file for its extracted text, so that the tables need not read the document again."""

    def __str__(self) -> str:
        """Return the document's name in error messages."""
        return str(self.path)


@dataclass(frozen=True)
class QuotePlace:
    """The location of a quote as pages and offsets; it is small, because a worker may return thousands of them."""

    pages: list[int]
    spans: list[tuple[int, int]]
    alternatives: list[list[tuple[int, int]]]
    how: How
    score: float | None
    text: str | None = None
    """The text of a provision that the source only names."""
    remark: str = ""
    """A remark on a provision: it is absent, ambiguous, or a part of it was not found."""
    not_accepted: tuple[str, ...] = ()
    """Accepted provisions that are not alternatives, because the document has none or several of them."""
    hidden: str = ""
    """The reason why words of it are invisible on the page; empty if all are visible."""


@dataclass(frozen=True)
class Done:
    """A document that was added to the corpus, with the locations of its quotes."""

    entry: DocumentEntry
    places: dict[Quote, QuotePlace]
    notes: tuple[str, ...]
    page_starts: tuple[int, ...] = ()
    """The offsets of its pages, for a source that states pages."""
    contract: ContractFacts | None = None
    """The names of a contract, or the facts of an amendment; None for other documents."""
    printer: str = ""
    """The printer; empty for a file that was not printed."""


Spans = Sequence[tuple[int, int]]
_TELLING = 5
"""Fewest letters and digits of an answer that stands for a passage: a `yes` or a `2` occurs anywhere."""
NOWHERE = QuotePlace([], [], [], "absent", None)


def make_tasks(
    documents: Iterable[RawDocument],
    quotes: dict[str, list[Quote]],
    corpus: Path,
    *,
    press: PdfPrinter,
    ocr: Ocr | None = None,
    texts: Path | None = None,
) -> Iterator[Task]:
    """Yield a task for each document; if the document has no file yet, first print or write the file.

    While a file is printed, workers already locate the gold of earlier documents.
    """
    for raw in documents:
        target = corpus / raw.filename
        fault: DocumentError | None = None
        printed: Printed | None = None
        if raw.path is None and target.suffix.lower() == ".pdf":
            try:
                printed = press.print(raw, corpus)
            except DocumentError as error:
                fault = error
        elif raw.path is None:
            target.write_text(read_source_text(raw) or raw.html or "", encoding="utf-8", newline="")
        wanted = tuple(quotes.get(raw.filename, ()))
        path = raw.path or target
        # a file with another suffix would be read differently
        text = texts / raw.filename if texts and path.suffix == target.suffix else None
        without_page = replace(raw, html=None, blocks=())  # the HTML is not needed any more
        yield Task(without_page, wanted, path, target, fault, printed, ocr, text)


def materialise(task: Task) -> Done:
    """Add a document to the corpus, read it, and locate its quotes."""
    raw = task.document
    if task.fault:
        raise task.fault
    document = read_document(task.path)
    scanned: Scanned | None = None
    if task.ocr is not None:
        scanned = read_scan(document, task.target, task.ocr)
        document = scanned.document if scanned else document
    if not document.has_text:
        raise DocumentError(_explain_wordless(task))
    path = task.target if scanned else task.path
    if path != task.target:
        shutil.copyfile(path, task.target)
    finder = _Finder(document.text if raw.text_path == task.path else read_source_text(raw), document)
    places = {quote: finder.place(quote) for quote in dict.fromkeys(task.quotes)}
    hidden = find_hidden_spans(document)
    places = _with_hidden(places, document, hidden)
    contradicted = [
        f"page {quote.page} is stated for words that stand on page {place.pages[0]}: {(quote.text or '')[:60]!r}"
        for quote, place in places.items()
        if quote.page and place.pages and place.spans and quote.page not in place.pages
    ]
    entry = DocumentEntry(
        filename=raw.filename,
        title=raw.title,
        pages=len(document.pages) or None,
        characters=len(document.text),
        source=raw.source,
        ocr=scanned.confidence if scanned else {},
        labels=dict(raw.labels),
    )
    if task.text is not None:
        with suppress(OSError):  # if it cannot be stored, it is read again later
            write_whole(task.text, document.text)
    starts = tuple(one.span.start for one in document.pages) if any(q.stated is not None for q in task.quotes) else ()
    printed = task.printed or Printed(raw.printer)
    notes = (*printed.notes, *document.notes, *contradicted, *describe_hidden(hidden, document))
    return Done(entry, places, notes, starts, find_contract_facts(raw.filename, document), printed.printer)


_LETTERS = 3
"""Fewest hidden letters of a location that are reported: a white comma does not matter."""


def _with_hidden(
    places: dict[Quote, QuotePlace], document: Document, hidden: Sequence[HiddenSpan]
) -> dict[Quote, QuotePlace]:
    """Return the locations of the quotes; a location with text that is invisible on the page gets a reason.

    The field `hidden` of the location states why the text is invisible; it is empty for visible text.
    """

    def explain_place(place: QuotePlace) -> str:
        letters: Counter[str] = Counter()
        for start, end in place.spans:
            for span, why in hidden:
                words = document.text[max(start, span.start) : min(end, span.end)]
                letters[why] += sum(character.isalnum() for character in words)
        return "; ".join(sorted(why for why, count in letters.items() if count >= _LETTERS))

    return {quote: replace(place, hidden=explain_place(place)) for quote, place in places.items()} if hidden else places


def _explain_wordless(task: Task) -> str:
    """Return the error message for a document without text, which is either empty or a scan."""
    file = task.document.original or task.path
    if file.suffix.lower() not in {".pdf", *picture.SUFFIXES}:
        return f"{file}: no words in it"
    hint = "OCR found no words in it either" if task.ocr else "add --ocr to have it read"
    return f"{file}: no text in it, only pictures; {hint}"


@dataclass(frozen=True)
class _Finder:
    """Locates quotes in a document; offsets in the source's text are converted to offsets in the document."""

    source: str | None
    document: Document

    @cached_property
    def _paired(self) -> tuple[Fold, Fold] | None:
        """The folded text of the source and the folded text of the document, if they are equal; else None.

        Folding removes differences such as case and hyphens. As the folded texts are equal, the same offset in both
        means the same character.
        """
        source, document = Fold.of(self.source or "", loose=True), self.document.loose
        if source.text == document.text:
            return source, document
        # a character that no font has is printed as a box and read as nothing: leave it out of both texts
        given, read = Counter(source.text), Counter(document.text)
        lost = {character for character in given | read if given[character] != read[character]}
        if any(character.isascii() for character in lost):
            return None
        source, document = source.without(lost), document.without(lost)
        return (source, document) if source.text == document.text else None

    @cached_property
    def _provisions(self) -> ProvisionIndex:
        return ProvisionIndex(self.document)

    def _find_provision(self, quote: Quote) -> QuotePlace:
        """Return the location of a provision that the source names instead of a quote.

        If the provision is absent or ambiguous in the document, there is no location, and `remark` states why.
        """
        places = [self._provisions.find(named) for named in read_provisions(quote.provision)[:1]]
        found = places[0] if places else []
        if len(found) != 1:
            remark = (
                f"stands in {len(found)} places of the document: it is ambiguous" if found else "is not in the document"
            )
            return replace(NOWHERE, remark=remark)
        spans = found[0].spans
        text = "\n".join(self.document.text[start:end] for start, end in spans)
        remark = "is there, a part below it could not be told: the whole is gold" if found[0].whole else ""
        return replace(_place(spans, self.document, "section", 1.0), text=text, remark=remark)

    def _with_acceptable(self, where: QuotePlace, quote: Quote) -> QuotePlace:
        """Return a quote's location, with the locations of equally right provisions added as alternatives.

        Provisions that are absent or ambiguous in the document are listed in the field `not_accepted`.
        """
        named = {text: [self._provisions.find(one) for one in read_provisions(text)] for text in quote.acceptable}
        found = [place[0].spans for places in named.values() for place in places if len(place) == 1]
        lost = [text for text, places in named.items() if not any(len(place) == 1 for place in places)]
        alternatives = [[(start, end) for start, end in spans] for spans in found] if where.spans else []
        return replace(where, alternatives=[*where.alternatives, *alternatives], not_accepted=tuple(lost))

    def place(self, quote: Quote) -> QuotePlace:
        """Return the location of a quote in the document.

        The locations of provisions that are acceptable instead of the quote are added as alternatives.
        """
        where = self._place_alone(quote)
        return self._with_acceptable(where, quote) if quote.acceptable else where

    def _place_alone(self, quote: Quote) -> QuotePlace:
        """Return the location of a quote, without the alternative locations that the source also accepts.

        A cited section is located with the method `section`. The expected answer, where it serves as the quote, is
        located with the method `answer`, and only if this answer is long enough and occurs exactly once.
        """
        if quote.provision and not quote.text:
            return self._find_provision(quote)
        where = self._place(quote)
        if quote.answer:
            once = where.score == 1.0 and not where.alternatives and len(fold(quote.text or "", loose=True)) >= _TELLING
            return replace(where, how="answer") if once else NOWHERE
        return replace(where, how="section", score=quote.score) if quote.section and where.spans else where

    def _place(self, quote: Quote) -> QuotePlace:
        marked = find_marked_place(quote.text or "", quote.marked, self.document)
        if marked:
            return marked
        if quote.spans and self.source is not None:
            known = self._carry_spans(quote.spans)
            if known:
                others = filter(None, (self._carry_spans(spans) for spans in quote.alternatives))
                how: How = "parts" if len(known) > 1 else "exact" if self.source == self.document.text else "folded"
                return _place(known, self.document, how if quote.score == 1.0 else "fuzzy", quote.score, others)
        if not quote.text:
            there = quote.page is not None and quote.page <= len(self.document.pages)
            return replace(NOWHERE, pages=[quote.page]) if there and quote.page else NOWHERE
        matches = prefer_whole_words(locate(quote.text, self.document, page=quote.page))
        matches = self._on_stated_page(matches, quote.page)
        if quote.spans and self.source:
            # of the same words at several locations, choose the one at the same relative position as in the source
            share = quote.spans[0][0] / len(self.source)
            matches.sort(key=lambda match: abs(match.span.start / len(self.document.text) - share))
        return place_of(matches, self.document)

    def _on_stated_page(self, matches: list[Match], page: int | None) -> list[Match]:
        """Return the matches on the page that the source states; all matches if none is on it."""
        there = [match for match in matches if page in self.document.pages_of(match.span)]
        return there or matches

    def _carry_spans(self, spans: Sequence[tuple[int, int]]) -> list[Span]:
        """Return the spans in the document that correspond to spans in the source's text; empty if the texts differ."""
        if self.source == self.document.text:
            return [Span(*span) for span in spans]
        if self._paired is None:
            return []
        fold, document = self._paired
        carried = []
        for start, end in spans:
            first, last = fold.find_folded_range(start, end)
            if first < last:
                carried.append(Span(*document.span(first, last)))
        return carried


def find_marked_place(quote: str, spans: Sequence[tuple[int, int]], document: Document) -> QuotePlace | None:
    """Return the location that a reviewer marked, if the document still has the same words there."""
    words = " ".join(document.text[start:end] for start, end in spans if end <= len(document.text))
    if not spans or fold(words, loose=True) != fold(quote, loose=True):
        return None
    how: How = "parts" if len(spans) > 1 else "exact" if words == quote else "folded"
    return _place(spans, document, how, 1.0)


def place_of(matches: list[Match], document: Document) -> QuotePlace:
    """Return the best match as the location, and the others as alternatives."""
    kept = prefer_whole_words(matches)
    if not kept:
        return NOWHERE
    best = kept[0]
    return _place(best.spans, document, best.how, best.score, (match.spans for match in kept[1:]))


def _place(spans: Spans, document: Document, how: How, score: float, alternatives: Iterable[Spans] = ()) -> QuotePlace:
    pages = sorted({number for span in spans for number in document.pages_of(Span(*span))})
    others = [[(start, end) for start, end in other] for other in alternatives]
    return QuotePlace(pages, [(start, end) for start, end in spans], others, how, score)


class SharedDocuments:
    """The documents of one bundle, kept so that the next bundle can copy those that are identical.

    For example, a variant of a bundle and its control have documents in common.
    """

    def __init__(self, texts: Path, corpus: Path, later: Sequence[RawRow]) -> None:
        """Prepare to reuse the documents of a first bundle in a second bundle.

        `texts` is the folder for the documents' texts, `corpus` the folder in which the first bundle's
        documents will finally be, and `later` the rows of the second bundle.
        """
        self.texts = texts
        self._corpus, self._later = corpus, _quotes_of(later)
        self._done: dict[str, tuple[RawDocument, Done]] = {}

    def quotes_of(self, benchmark: Benchmark) -> dict[str, list[Quote]]:
        """Return the quotes to locate in each document, by file name.

        They are the quotes of `benchmark` and those of the next bundle, which will reuse the located quotes.
        """
        quotes = _quotes_of(benchmark.rows)
        for name, more in self._later.items():
            quotes[name] += more
        return quotes

    def keep(self, raw: RawDocument, done: Done) -> None:
        """Store a document of the first of two bundles, so that `place` can copy it into the second bundle."""
        self._done.setdefault(raw.filename, (raw, done))

    def place(self, raw: RawDocument, quotes: Sequence[Quote], corpus: Path) -> Done | None:
        """Copy a document of an earlier bundle into the next bundle's folder `corpus`; return its located quotes.

        Return None if the earlier bundle has no identical document, or has not located all of `quotes` in it.
        """
        known, done = self._done.get(raw.filename, (None, None))
        if known != raw or done is None or not done.places.keys() >= set(quotes):
            return None
        shutil.copyfile(self._corpus / raw.filename, corpus / raw.filename)
        return done


def _quotes_of(rows: Sequence[RawRow]) -> dict[str, list[Quote]]:
    quotes: dict[str, list[Quote]] = defaultdict(list)
    for row in rows:
        for quote in (*row.quotes, *row.near_misses):
            quotes[quote.filename].append(quote)
    return quotes
