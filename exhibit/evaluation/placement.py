"""Locates passages in the documents by file name and by words, and finds the rank of a gold passage in a ranking.

`rank_found` is the only rule for "found": the passages up to a rank have at least half of the gold's characters.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from exhibit.engine import Limits
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Place
from exhibit.evidence import Document, Match, Span, fold, locate, subtract_spans
from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.locate import is_ambiguous, place_text, prefer_whole_words, spans_of
from exhibit.evidence.place import PlacedPiece, Placement, letters_of
from exhibit.evidence.read import read_within
from exhibit.law.names import FileNames
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.layout import quote_parts
from exhibit.storage.locations import Location

_MAX_CACHED_TEXTS = 1 << 14  # texts whose location is cached, about 15 MB: systems retrieve a passage many times
_PROBE_LETTERS = 32  # a document is searched for a passage only if it has a piece of so many of its letters
_PROBES = 23  # such pieces per passage, minus one: they begin at every 40th letter of a passage of 1,000 letters
_ACCEPTED_SHARE = 0.5  # a reported file that has this share of a passage's letters is accepted without more search
_WHOLE_SHARE = 0.9  # a file with less has only pieces of the passage; misread letters and page headers cost less
_SECOND_FILE_LETTERS = 200  # letters that only a second file has, if a passage is from two: a summary has fewer
_UNNAMED_SHARE = 0.25  # the least share of a passage's letters in a file that nobody named; less is common phrases


class Documents:
    """The documents of a dataset; each is read once, when it is needed. Unreadable documents count as missing."""

    def __init__(self, files: Mapping[str, Location], *, limits: Limits | None = None) -> None:
        self.files = dict(files)
        self._limits = limits or Limits()
        self._read: dict[str, Document | None] = {}
        self._placement = lru_cache(_MAX_CACHED_TEXTS)(self._find_placement)
        self._holders = lru_cache(_MAX_CACHED_TEXTS)(self._find_all_holders)

    def get(self, filename: str | None) -> Document | None:
        if filename is None or filename not in self.files:
            return None
        if filename not in self._read:
            try:
                self._read[filename] = read_within(self.files[filename], self._limits)
            except DocumentError:
                self._read[filename] = None
        return self._read[filename]

    def read_text(self, filename: str) -> str | None:
        document = self.get(filename)
        return None if document is None else document.text

    def with_texts(self, texts: Mapping[str, Document]) -> "Documents":
        """Return a copy of this collection in which `texts` replace the documents with the same file names."""
        other = Documents(self.files, limits=self._limits)
        other._read = {**self._read, **texts}
        return other

    def all(self) -> Iterator[Document]:
        return filter(None, map(self.get, sorted(self.files)))

    @cached_property
    def named(self) -> Callable[[str], str | None]:
        """A function that maps a system's spelling of a file name to a corpus file (see `law.names.FileNames`)."""
        return FileNames(sorted(self.files)).find

    def find_matches(self, words: str, filename: str | None = None) -> list[tuple[str, Match]]:
        """Return a quote's best matches with their files: in the named file or, without a name, in all likely files."""
        if filename is not None:
            return _find_best(words, filter(None, [self.get(filename)]))
        whole, part = self._find_likely(words)
        return _find_best(words, whole) or _find_best(words, part)

    def place(self, passage: Passage, golds: Sequence[GoldPassage] = ()) -> Passage:
        """Return a passage with its file, spans and page, if its file name or its text determines them."""
        name = passage.told_filename or passage.filename or ""
        passage = replace(passage, told_filename=name)
        filename = self.named(name) if name else None
        named = self.get(filename)
        if named and passage.span and _is_text_at(passage.span, passage.text, named):
            return _set_spans(passage, named, (passage.span,))
        if not passage.text.strip():
            return replace(passage, filename=filename, span=None)
        files = self._choose_files(passage.text, filename)
        if not files:
            return replace(passage, filename=None, span=None, unplaced=bool(self.files))
        file, spans = self._choose_spans(passage, files, golds)
        document = self.get(file)
        if document is None or not spans:
            return replace(passage, filename=filename, span=None, unplaced=document is not None)
        misnamed = filename is not None and files != [filename]
        passage = replace(passage, added=self._placement(passage.text, file).added, misnamed=misnamed)
        if len(files) == 1:
            return _set_spans(passage, document, spans)
        others = sorted({*files} - {file})
        return replace(passage, filename=None, span=spans[0], more=spans[1:], also_in=(file, *others))

    def find_all_spans(self, words: str, filename: str) -> tuple[Span, ...]:
        """Return the spans of a file that contain parts of a text, such as a chunk."""
        pieces = self._placement(words, filename).pieces
        return tuple(dict.fromkeys(span for piece in pieces for place in piece.places for span in place))

    def _choose_files(self, words: str, named: str | None) -> list[str]:
        """Return the files that a text may come from: the named file, unless others contain far more of the text."""
        if named is None:
            return self._find_holders(words, _UNNAMED_SHARE)
        placement, document = self._placement(words, named), self.get(named)
        whole = document is not None and letters_of(words).text in document.letters.text
        if placement.share < _ACCEPTED_SHARE and not whole:
            return self._find_holders(words, max(_ACCEPTED_SHARE, 2 * placement.share)) or [named]
        if placement.share < _WHOLE_SHARE and _has_gaps(placement):
            return [file.filename for file in self._find_likely(words)[0] if file.filename != named] or [named]
        return [named]

    def _choose_spans(self, passage: Passage, files: Sequence[str], golds: Sequence[GoldPassage]) -> tuple[str, Place]:
        """Return the most likely file of a passage, and the passage's spans in it; a file with gold is preferred."""
        with_gold = [(file, gold) for gold in golds if (file := gold.filename) is not None and file in files]
        for file, gold in with_gold:
            spans = self._find_spans(passage, file, gold)
            if any(touches(span, gold) for span in spans):
                return file, spans
        first = with_gold[0][0] if with_gold else files[0]
        return first, self._find_spans(passage, first, None)

    def _find_spans(self, passage: Passage, filename: str, gold: GoldPassage | None) -> Place:
        document, page = self.get(filename), passage.told_page
        if document is None:
            return ()
        placement = self._placement(passage.text, filename)
        if page is not None:
            on_page = [_keep_on_page(piece, page, document) for piece in placement.pieces]
            placement = replace(placement, pieces=tuple(on_page))
        return spans_of(placement, document, wanted=lambda place: any(touches(span, gold) for span in place))

    def _find_placement(self, words: str, filename: str) -> Placement:
        document = self.get(filename)
        if document is None:
            return Placement((), (), 0)
        placement, latin = place_text(words, document), with_latin_letters(words)
        if latin == words or placement.share >= _ACCEPTED_SHARE:
            return placement
        return max(placement, place_text(latin, document), key=lambda candidate: candidate.share)

    def _find_all_holders(self, words: str) -> list[str]:
        """Return the files that have most of a text, and further files that have much of what the first file lacks."""
        whole, part = self._find_likely(words)
        if not whole:
            whole, others = self._find_likely(with_latin_letters(words))
            part = part or others
        shares = {document.filename: self._placement(words, document.filename).share for document in whole or part}
        best = max(shares.values(), default=0.0)
        files = [name for name, share in shares.items() if share and share >= best]
        for name in sorted(shares, key=lambda name: -shares[name]) if files else ():
            lacking, pieces = self._placement(words, files[0]).added, self._placement(words, name).pieces
            shared = sum(max(0, min(a.end, b.end) - max(a.start, b.start)) for a in lacking for b in pieces)
            if name not in files and shared >= _SECOND_FILE_LETTERS:
                files.append(name)
        return files

    def _find_holders(self, words: str, least: float) -> list[str]:
        return [file for file in self._holders(words) if self._placement(words, file).share >= least]

    def _find_likely(self, words: str) -> tuple[list[Document], list[Document]]:
        """Return the documents that contain all of a passage's words, and those that contain only a part of them."""
        needle = letters_of(words).text
        last = max(0, len(needle) - _PROBE_LETTERS)
        probes = [needle[start : start + _PROBE_LETTERS] for start in range(0, last + 1, max(1, last // _PROBES))]
        documents = list(self.all()) if needle else []
        whole = [document for document in documents if needle in document.letters.text]
        part = [doc for doc in documents if doc not in whole and any(probe in doc.letters.text for probe in probes)]
        return whole, part


def _set_spans(passage: Passage, document: Document, spans: tuple[Span, ...]) -> Passage:
    pages = tuple(dict.fromkeys(page for span in spans for page in document.pages_of(span)))
    first, page = spans[0], next(iter(pages), passage.page)
    text, name = passage.text or document.text[first.start : first.end], document.filename
    return replace(passage, text=text, filename=name, span=first, more=spans[1:], page=page, pages=pages)


def _is_text_at(span: Span, text: str, document: Document) -> bool:
    """Return whether a document has a text at a span; true for an empty text if the span is inside the document."""
    words = document.text[span.start : span.end]
    return span.end <= len(document.text) and (not text.strip() or fold(words) == fold(text))


def _has_gaps(placement: Placement) -> bool:
    """Return whether the file lacks some words of the passage but has the text before and after them."""
    if not placement.pieces:
        return False
    first, last = placement.pieces[0].end, placement.pieces[-1].start
    return any(first <= span.start and span.end <= last for span in placement.added)


def _keep_on_page(piece: PlacedPiece, page: int, document: Document) -> PlacedPiece:
    """Return a fragment with only its occurrences on a page; if none is on that page, with all occurrences."""
    places = [place for place in piece.places if any(page in document.pages_of(span) for span in place)]
    return piece._replace(places=tuple(places)) if places else piece


def _find_best(words: str, documents: Iterable[Document]) -> list[tuple[str, Match]]:
    by_name = {document.filename: prefer_whole_words(locate(words, document)) for document in documents}
    best = max((match.score for matches in by_name.values() for match in matches), default=0.0)
    files = [name for name, matches in by_name.items() if any(match.score == best for match in matches)]
    return [(name, match) for name in files for match in by_name[name]]


def touches(span: Span, gold: GoldPassage | None) -> bool:
    places = gold.places if gold else ()
    return any(max(span.start, part.start) < min(span.end, part.end) for place in places for part in place)


_NEAR_CHARS = 600  # most characters between two gold passages of a question that are in one paragraph
_SENTENCE_CHARS = 1000  # the ends of a sentence are sought within this many characters
_SENTENCE_END = re.compile(r"[.;!?][\"'”’)]?\s|\n\s{0,20}\n")


def settle_ambiguous(golds: Sequence[GoldPassage], documents: Documents) -> list[GoldPassage]:
    """Return a question's gold passages; of several possible positions, choose one or mark the passage as ambiguous."""
    sure = [gold for gold in golds if not is_ambiguous(gold.text or "", len(gold.places))]
    return [gold if gold in sure else _settle(gold, sure, documents) for gold in golds]


def _settle(gold: GoldPassage, sure: Sequence[GoldPassage], documents: Documents) -> GoldPassage:
    """Return a gold passage at the sentence of its only occurrence that is nearest to the row's other gold, if any."""
    beside = [other.places[0] for other in sure if other.filename == gold.filename and len(other.places) == 1]
    gaps = sorted((_measure_gap(place, other), place) for place in gold.places for other in beside)
    nearest = [place for gap, place in gaps if gap == gaps[0][0]]
    document = documents.get(gold.filename)
    if document is None or not gaps or gaps[0][0] > _NEAR_CHARS or len(set(nearest)) > 1:
        return replace(gold, ambiguous=True)
    span = _find_sentence(nearest[0], document.text)
    return replace(gold, places=((span,),), pages=tuple(document.pages_of(span)))


def _measure_gap(place: Place, other: Place) -> int:
    return max(place[0].start, other[0].start) - min(place[-1].end, other[-1].end)


def _find_sentence(place: Place, text: str) -> Span:
    start, end = place[0].start, place[-1].end
    low = max(0, start - _SENTENCE_CHARS)
    low = max([low, *(match.end() for match in _SENTENCE_END.finditer(text, low, start))])
    after = _SENTENCE_END.search(text, max(end - 1, 0), end + _SENTENCE_CHARS)
    words = text[low : after.end() if after else end]
    first = low + len(words) - len(words.lstrip())
    return Span(min(first, start), max(first + len(words.strip()), end))


Held = tuple[int, Span]  # a rank, and the characters of the passage at this rank


def golds_of(case: Case) -> list[GoldPassage]:
    """Return the gold passages with a position or a text to compare, without repetitions of a text in one file."""
    distinct: dict[tuple[object, ...], GoldPassage] = {}
    for gold in case.gold:
        text = _fold_cached(gold.text or "")
        if text or gold.located:  # otherwise the gold is only an omission mark or punctuation
            distinct.setdefault((gold.filename, text or gold.places), gold)
    return list(distinct.values())


def find_gold_ranks(case: Case) -> list[int | None]:
    return [rank_found(gold, case.reply.passages) for gold in golds_of(case)]


def find_first_gold(case: Case, numbers: Sequence[int]) -> int | None:
    """Return the lowest passage number at which a gold passage is found; None if no gold passage is found."""
    passages = [case.reply.passages[number - 1] for number in numbers]
    ranks = (rank_found(gold, passages) for gold in golds_of(case) if gold.worded)
    return min((numbers[rank - 1] for rank in ranks if rank is not None), default=None)


def rank_found(gold: GoldPassage, passages: Sequence[Passage]) -> int | None:
    """Return the lowest k for which the first k passages contain at least half of a gold passage's characters."""
    placed: list[Held] = []
    worded: list[tuple[int, str]] = []
    for rank, passage in enumerate(passages, 1):
        if gold.filename is not None and not _may_be_from(passage, gold.filename):
            continue
        if gold.places and passage.span is not None and passage.source is not None:
            placed += [(rank, span) for span in passage.spans]
        else:
            worded.append((rank, passage.text))
    ranks = [_find_half(place, placed) for place in gold.places] if placed else []
    if worded and gold.text:
        line, held = _match_words(gold.text, worded)
        ranks.append(_find_half(line, held))
    return min((rank for rank in ranks if rank is not None), default=None)


def _may_be_from(passage: Passage, filename: str) -> bool:
    if passage.span is not None and passage.source is not None:
        return passage.source == filename
    return filename in passage.also_in if passage.also_in else passage.filename in (None, filename)


def _find_half(place: Sequence[Span], held: Iterable[Held]) -> int | None:
    """Return the first rank up to which the passages together cover half of a gold passage."""
    left = [span for span in place if span.start < span.end]
    whole = sum(span.end - span.start for span in left)
    for rank, span in held if whole else ():
        left = subtract_spans(left, [span])
        if 2 * sum(gap.end - gap.start for gap in left) <= whole:
            return rank
    return None


def _match_words(gold: str, passages: Sequence[tuple[int, str]]) -> tuple[list[Span], list[Held]]:
    """Return the spans of a gold quote's parts, joined into one text, and the spans that passages contain, by rank."""
    line: list[Span] = []
    held: list[Held] = []
    start = 0
    texts = [(rank, folded) for rank, text in passages if (folded := _fold_cached(text))]
    for part in filter(None, map(_fold_cached, quote_parts(gold))):
        line.append(Span(start, start + len(part)))
        held += [(rank, Span(start + s, start + e)) for rank, text in texts for s, e in _find_shared(part, text)]
        start += len(part)
    return line, sorted(held, key=lambda pair: pair[0])


def _find_shared(part: str, text: str) -> Iterator[Span]:
    """Yield the spans of a gold part that a text contains: the whole part, the whole text, or the part's two ends."""
    at = part.find(text)
    if part in text:
        yield Span(0, len(part))
    elif at >= 0:
        yield Span(at, at + len(text))
    else:
        least = min(16, (len(part) + 1) // 2)  # fewer characters would match by accident
        yield Span(0, _measure_overlap(text, part, least))
        yield Span(len(part) - _measure_overlap(part, text, least), len(part))


def _measure_overlap(before: str, after: str, least: int) -> int:
    """Return the length of the longest suffix of `before` that is a prefix of `after`; 0 if it is below `least`."""
    at = before.find(after[:least])
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(after[:least], at + 1)
    return len(before) - at if at >= 0 else 0


@lru_cache(maxsize=16384)
def _fold_cached(text: str) -> str:
    return fold(text, loose=True)
