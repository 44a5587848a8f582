"""Adds documents to the corpus: copies or prints each, reads it as a RAG system will, and locates its gold."""

import shutil
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters.core.benchmark import Benchmark, Quote, RawDocument, RawRow, Tally
from exhibit.converters.pages.print import PdfPrinter, Printed
from exhibit.evidence import Document, Match, Span, fold, locate, read_document
from exhibit.evidence.fold import Fold
from exhibit.evidence.hidden import HiddenSpan, describe_hidden, find_hidden_spans
from exhibit.evidence.locate import prefer_whole_words
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, Scanned, read_scan
from exhibit.law.amendments import Agreement, link_families, read_amendment
from exhibit.law.profile import AGREED, read_profile
from exhibit.law.provisions import ProvisionIndex, read_provisions
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import DocumentEntry, How
from exhibit.storage.atomic import write_whole

MIN_ANSWER_LETTERS = 5  # a `yes` or a `2` as the answer occurs anywhere
MIN_CLAUSE_LETTERS = 60  # an answer of this length is a clause, which is gold as any quote is
MIN_HIDDEN_LETTERS = 3  # a white comma does not matter
FAMILY = "family"
NOT_ON_PAGE = "quote that is not on the page that the source states (its words decide)"

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Task:
    """A document's file, and the quotes to locate in it; sent to a worker."""

    document: RawDocument
    quotes: tuple[Quote, ...]
    path: Path  # the file to read: the official one, or the printed one in the corpus
    target: Path
    fault: DocumentError | None = None  # why it could not be printed
    printed: Printed | None = None
    ocr: Ocr | None = None
    text: Path | None = None  # where to store the extracted text, so that the tables need not read the file again

    def __str__(self) -> str:
        """Return the document's name in error messages."""
        return str(self.path)


@dataclass(frozen=True)
class QuotePlace:
    """The location of a quote as pages and offsets; it is small, because a worker may return thousands."""

    pages: list[int]
    spans: list[tuple[int, int]]
    alternatives: list[list[tuple[int, int]]]
    how: How
    score: float | None
    text: str | None = None  # of a provision that the source only names
    remark: str = ""  # on a provision: absent, ambiguous, or a part of it not found
    not_accepted: tuple[str, ...] = ()  # accepted provisions that the document has not, or has several times
    hidden: str = ""  # why words of it are invisible on the page


NOWHERE = QuotePlace([], [], [], "absent", None)


@dataclass(frozen=True)
class Done:
    """A document that was added to the corpus, with the locations of its quotes."""

    entry: DocumentEntry
    places: dict[Quote, QuotePlace]
    notes: tuple[str, ...]
    page_starts: tuple[int, ...] = ()  # only where a quote states a page
    agreement: Agreement | None = None
    printer: str = ""


def make_tasks(
    documents: Iterable[RawDocument],
    quotes: Mapping[str, Sequence[Quote]],
    corpus: Path,
    *,
    press: PdfPrinter,
    ocr: Ocr | None = None,
    texts: Path | None = None,
) -> Iterator[Task]:
    """Yield a task for each document, after its file was printed; workers locate earlier gold meanwhile."""
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
            target.write_text(raw.text or raw.html or "", encoding="utf-8", newline="")
        path = raw.path or target
        # a file with another suffix would be read differently
        text = texts / raw.filename if texts and path.suffix == target.suffix else None
        without_page = replace(raw, html=None, blocks=())
        yield Task(without_page, tuple(quotes.get(raw.filename, ())), path, target, fault, printed, ocr, text)


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
    finder = _Finder(document.text if raw.own_text else raw.text or "", document)
    places = {quote: finder.place(quote) for quote in dict.fromkeys(task.quotes)}
    # only on pages with gold: on all pages of a filing it takes twice as long as everything else together
    numbers = {number for where in places.values() if where.spans for number in where.pages}
    hidden = find_hidden_spans(document, [page.span for page in document.pages if page.number in numbers])
    if hidden:
        places = {
            quote: replace(where, hidden=_explain_hidden(where, document, hidden)) for quote, where in places.items()
        }
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
    stated = any(quote.stated is not None for quote in task.quotes)
    starts = tuple(page.span.start for page in document.pages) if stated else ()
    printed = task.printed or Printed(raw.printer)
    notes = (*printed.notes, *document.notes, *describe_hidden(hidden, document))
    return Done(entry, places, notes, starts, read_agreement(raw.filename, document), printed.printer)


def _explain_hidden(where: QuotePlace, document: Document, hidden: Sequence[HiddenSpan]) -> str:
    letters: Counter[str] = Counter()
    for start, end in where.spans:
        for span, why in hidden:
            words = document.text[max(start, span.start) : min(end, span.end)]
            letters[why] += sum(character.isalnum() for character in words)
    return "; ".join(sorted(why for why, count in letters.items() if count >= MIN_HIDDEN_LETTERS))


def _explain_wordless(task: Task) -> str:
    file = task.document.original or task.path
    if file.suffix.lower() not in {".pdf", *picture.SUFFIXES}:
        return f"{file}: no words in it"
    hint = "OCR found no words in it either" if task.ocr else "add --ocr to have it read"
    return f"{file}: no text in it, only pictures; {hint}"


# ---------------------------------------------------------------- locating quotes


@dataclass(frozen=True)
class _Finder:
    """Locates quotes in a document; offsets in the source's text are converted to offsets in the document."""

    source: str
    document: Document

    def place(self, quote: Quote) -> QuotePlace:
        where = self._find_provision(quote) if quote.provision and not quote.text else self._place_words(quote)
        return self._accept_provisions(where, quote) if quote.acceptable else where

    def _place_words(self, quote: Quote) -> QuotePlace:
        where = self._place(quote)
        if quote.answer:
            letters = len(fold(quote.text or "", loose=True))
            once = where.score == 1.0 and not where.alternatives and letters >= MIN_ANSWER_LETTERS
            clause = letters >= MIN_CLAUSE_LETTERS and where.spans
            return replace(where, how="answer") if once or clause else NOWHERE
        return replace(where, how="section", score=quote.score) if quote.section and where.spans else where

    def _place(self, quote: Quote) -> QuotePlace:
        marked = find_marked_place(quote.text or "", quote.marked, self.document)
        if marked:
            return marked
        if quote.spans and (known := self._carry_spans(quote.spans)):
            others = filter(None, (self._carry_spans(spans) for spans in quote.alternatives))
            how: How = "parts" if len(known) > 1 else "exact" if self.source == self.document.text else "folded"
            return _place(known, self.document, how if quote.score == 1.0 else "fuzzy", quote.score, others)
        if not quote.text:
            page = quote.page or 0
            return replace(NOWHERE, pages=[page]) if 0 < page <= len(self.document.pages) else NOWHERE
        matches = prefer_whole_words(locate(quote.text, self.document))
        if quote.spans and self.source:
            # of the same words at several locations, choose the one at the same relative position as in the source
            share = quote.spans[0][0] / len(self.source)
            matches.sort(key=lambda match: abs(match.span.start / len(self.document.text) - share))
        return place_of(matches, self.document)

    @cached_property
    def _paired(self) -> tuple[Fold, Fold] | None:
        """The folded texts of source and document, if they are equal: then an offset means the same character."""
        source, document = Fold.of(self.source, loose=True), self.document.loose
        if source.text == document.text:
            return source, document
        # a character that no font has is printed as a box and read as nothing: leave it out of both texts
        given, read = Counter(source.text), Counter(document.text)
        lost = {character for character in given | read if given[character] != read[character]}
        if any(character.isascii() for character in lost):
            return None
        source, document = source.without(lost), document.without(lost)
        return (source, document) if source.text == document.text else None

    def _carry_spans(self, spans: Spans) -> list[Span]:
        """Return the spans of the document for spans of the source's text; empty if the texts differ."""
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
        found = self._provisions.find(named[0]) if named else []
        if len(found) != 1:
            several = f"is in {len(found)} places of the document: it is ambiguous"
            return replace(NOWHERE, remark=several if found else "is not in the document")
        spans = found[0].spans
        text = "\n".join(self.document.text[start:end] for start, end in spans)
        remark = "is there, but the part below it was not recognised: the whole is gold" if found[0].whole else ""
        return replace(_place(spans, self.document, "section", 1.0), text=text, remark=remark)

    def _accept_provisions(self, where: QuotePlace, quote: Quote) -> QuotePlace:
        """Add the equally right provisions as alternatives, and list those that are absent or ambiguous."""
        named = {text: [self._provisions.find(one) for one in read_provisions(text)] for text in quote.acceptable}
        found = [place[0].spans for places in named.values() for place in places if len(place) == 1]
        lost = [text for text, places in named.items() if not any(len(place) == 1 for place in places)]
        alternatives = [[(start, end) for start, end in spans] for spans in found] if where.spans else []
        return replace(where, alternatives=[*where.alternatives, *alternatives], not_accepted=tuple(lost))


def find_marked_place(quote: str, spans: Spans, document: Document) -> QuotePlace | None:
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
    pages = document.pages_of(*spans)
    others = [[(start, end) for start, end in other] for other in alternatives]
    return QuotePlace(pages, [(start, end) for start, end in spans], others, how, score)


# ---------------------------------------------------------------- over all documents


def settle_pages(done: Mapping[str, Done], quotes: Iterable[Quote], tally: Tally) -> None:
    """Choose, among the locations of each quote, those on the page that the source states.

    Whether the source counts pages from 0 or from 1 is decided by the quotes that fit only one way.
    """
    stated = [quote for quote in dict.fromkeys(quotes) if quote.stated is not None and quote.filename in done]
    votes: Counter[int] = Counter()
    for quote in stated:
        fitting = {base for base in (0, 1) if _list_on_page(quote, done[quote.filename], base)}
        votes.update(fitting if len(fitting) == 1 else ())
    base = 0 if votes[0] > votes[1] else 1
    if stated and votes:
        others = f", {votes[1 - base]} as if from {1 - base}" if votes[1 - base] else ""
        tally.note("pages that the source states", f"counted from {base}: {votes[base]} quotes fit{others}")
    for quote in stated:
        document = done[quote.filename]
        where = document.places[quote]
        here = _list_on_page(quote, document, base)
        if here:
            pages = sorted({number for span in here[0] for number in _find_pages(span, document.page_starts)})
            document.places[quote] = replace(where, spans=here[0], alternatives=here[1:], pages=pages)
        elif where.spans and document.page_starts:
            on = f"{quote.filename}: page {where.pages[0]}, stated {quote.stated}"
            tally.note(NOT_ON_PAGE, f"{on}: {(quote.text or quote.provision)[:60]!r}")


def _list_on_page(quote: Quote, done: Done, base: int) -> list[list[tuple[int, int]]]:
    wanted = (quote.stated or 0) + 1 - base
    places = (done.places[quote].spans, *done.places[quote].alternatives)
    return [spans for spans in places if any(wanted in _find_pages(span, done.page_starts) for span in spans)]


def _find_pages(span: tuple[int, int], starts: tuple[int, ...]) -> range:
    """Return the numbers of the pages that a span touches, from 1."""
    first, last = bisect_right(starts, span[0]), bisect_right(starts, max(span[1] - 1, span[0]))
    return range(max(first, 1), last + 1) if starts else range(0)


def read_agreement(name: str, document: Document) -> Agreement | None:
    """Return the facts by which a contract and its amendments are linked; None for other documents."""
    profile = read_profile(document)
    if profile.kind not in AGREED:
        return None
    amendment = read_amendment(document.text, profile.title)
    return Agreement(name, profile.title, profile.parties, profile.date, amendment)


def mark_families(done: dict[str, Done], tally: Tally) -> dict[str, Done]:
    """Return the documents; those of a contract with amendments get the labels family, amends, effective_from."""
    agreements = {name: document.agreement for name, document in done.items() if document.agreement is not None}
    links = link_families(list(agreements.values()))
    marked = dict(done)
    for name in dict.fromkeys([*links, *links.values()]):
        labels = {FAMILY: links.get(name, name)}
        amendment = agreements[name].amendment
        if amendment is not None and name in links:
            if agreements[links[name]].amendment is None:
                labels["amends"] = links[name]
                tally.note("amendments of another document of the corpus", f"{name}: amends {links[name]}")
            if amendment.day is not None:
                labels["effective_from"] = amendment.day.isoformat()
        entry = done[name].entry
        marked[name] = replace(done[name], entry=entry.model_copy(update={"labels": {**entry.labels, **labels}}))
    return marked


class SharedDocuments:
    """The documents of one bundle, stored so that a second one, such as a control, can copy those that are equal."""

    def __init__(self, texts: Path, corpus: Path, later: Sequence[RawRow]) -> None:
        """Take the folder for texts, the folder of the first bundle's corpus, and the rows of the second bundle."""
        self.texts = texts
        self._corpus, self._later = corpus, _quotes_of(later)
        self._done: dict[str, tuple[RawDocument, Done]] = {}

    def quotes_of(self, benchmark: Benchmark) -> dict[str, list[Quote]]:
        """Return the quotes to locate in each document: those of the benchmark, and those of the second bundle."""
        quotes = _quotes_of(benchmark.rows)
        for name, more in self._later.items():
            quotes[name] += more
        return quotes

    def keep(self, raw: RawDocument, done: Done) -> None:
        """Store a document of the first bundle."""
        self._done.setdefault(raw.filename, (raw, done))

    def place(self, raw: RawDocument, quotes: Sequence[Quote], corpus: Path) -> Done | None:
        """Copy an identical document of the first bundle; None if there is none, or a quote was not looked for."""
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
