"""The documents of a dataset, read on demand, and the search for passages in them by file name and by words."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from exhibit.engine import Limits
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evidence import Document, Match, Span, fold, locate
from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.matches import prefer_whole_words
from exhibit.evidence.parser_markup import letters_of
from exhibit.evidence.pieces import PlacedPiece, Placement
from exhibit.evidence.place import place_text, spans_of
from exhibit.evidence.read import ending_of, read_boxes, read_within
from exhibit.law.names import FileNames
from exhibit.schemas.errors import BundleError, DocumentError
from exhibit.schemas.models import Gold
from exhibit.storage.locations import Location

_REMEMBERED = 1 << 14
"""The number of texts whose place is cached, about 15 MB: systems retrieve the same passages for many questions."""
_PROBE = 32
"""A document is searched for a passage only if it contains some piece of this many letters of it."""
_PROBES = 23
"""The number of such pieces per passage, minus one: they begin at every 40th letter of a passage of 1,000 letters."""
_MOST = 0.5
"""A reported file name is accepted without further search if the file has this share of the passage's letters."""
_NEARLY = 0.9
"""The share below which a file has a passage in pieces only: a misread letter or a page header takes less away."""
_ANOTHER = 200
"""Letters that a second file must have, and the first lack, for a passage to be from both: more than a summary has."""
_SOME = 0.25
"""A passage without a file name must have this share of its letters in a file; fewer are phrases of any contract."""


class Documents:
    """The documents of a dataset by file name; each is read once, on demand. An unreadable one counts as missing."""

    def __init__(self, files: Mapping[str, Location], *, limits: Limits | None = None) -> None:
        self.files = dict(files)
        self.faults: dict[str, str] = {}
        """The reasons why documents could not be read, by file name."""
        self._limits = limits or Limits()
        self._read: dict[str, Document | None] = {}
        self._placement = lru_cache(_REMEMBERED)(self._find_placement)
        self._holders = lru_cache(_REMEMBERED)(self._find_holders)

    def get(self, filename: str | None) -> Document | None:
        """Return a document; None when the name is unknown or the file cannot be read."""
        if filename is None or filename not in self.files:
            return None
        if filename not in self._read:
            try:
                self._read[filename] = read_within(self.files[filename], self._limits)
            except DocumentError as error:
                self._read[filename] = None
                self.faults[filename] = str(error)
        return self._read[filename]

    def with_texts(self, texts: Mapping[str, Document]) -> "Documents":
        """Return a copy of this collection in which `texts` replace the documents with the same file names."""
        other = Documents(self.files, limits=self._limits)
        other._read = {**self._read, **texts}
        return other

    def all(self) -> Iterator[Document]:
        """Yield every readable document, in the order of the names."""
        for name in sorted(self.files):
            document = self.get(name)
            if document is not None:
                yield document

    # ---------------------------------------------------------------- names

    def named(self, name: str) -> str | None:
        """Return the corpus file that a system's spelling of a file name refers to (see `law.names.FileNames`)."""
        return self._names.find(name)

    @cached_property
    def _names(self) -> FileNames:
        return FileNames(sorted(self.files))

    # ---------------------------------------------------------------- words

    def place(self, passage: Passage, golds: Sequence[GoldPassage] = ()) -> Passage:
        """Return a passage with its file, spans and page, as far as its file name and its text determine them.

        A reported span is accepted if the file has the passage's text there. Otherwise the text is searched, whole
        or in fragments, in the file that the passage names.

        The named file is rejected in two cases. First, it has less than half of the passage's text, and another
        file has at least half of the text and at least twice as much as the named file. Second, it has only
        fragments of the text, with other words between them, and another file has the whole text. If no file has
        the name, the text is searched in all documents.

        A text that several files have is ambiguous. The passage then has no `filename`; its spans are those that
        match gold, if there are any. If a file has the text several times, the occurrence on the reported page is
        used, else one with gold, else the first.
        """
        name = passage.told_filename or passage.filename or ""
        passage = replace(passage, told_filename=name)
        filename = self.named(name) if name else None
        if filename and passage.span and self._stands_at_span(passage, self.get(filename)):
            return self._set_place(passage, filename, (passage.span,))
        if not passage.text.strip():
            return replace(passage, filename=filename, span=None)
        own = self._placement(passage.text, filename) if filename else None
        others: list[str] = []
        if own is None or (own.share < _MOST and not self._has(passage.text, filename)):
            least = _SOME if own is None else max(_MOST, 2 * own.share)
            others = [
                file for file in self._holders(passage.text) if self._placement(passage.text, file).share >= least
            ]
        elif own.share < _NEARLY and _has_gaps(own):
            others = [one.filename for one in self._find_likely(passage.text)[0] if one.filename != filename]
        files = others or ([filename] if filename else [])
        if not files:
            return replace(passage, filename=None, span=None, unplaced=bool(self.files))
        file, spans = self._find_likeliest(passage, files, golds)
        if not spans:
            return replace(passage, filename=filename, span=None, unplaced=self.get(file) is not None)
        passage = replace(passage, added=self._placement(passage.text, file).added, misnamed=bool(filename and others))
        if len(files) == 1:
            return self._set_place(passage, file, spans)
        others = sorted({*files} - {file})
        return replace(passage, filename=None, span=spans[0], more=spans[1:], also_in=(file, *others))

    def find_all_spans(self, words: str, filename: str) -> tuple[Span, ...]:
        """Return the spans in a file at which parts of a text occur, such as parts of a chunk.

        The text is divided into the parts that the file contains; all occurrences of each part are returned.
        """
        pieces = self._placement(words, filename).pieces
        return tuple(dict.fromkeys(span for piece in pieces for place in piece.places for span in place))

    def _find_likeliest(
        self, passage: Passage, files: Sequence[str], golds: Sequence[GoldPassage]
    ) -> tuple[str, tuple[Span, ...]]:
        """Return the most likely file of a passage, and the spans of the passage in it.

        The first choice is a file in which the passage overlaps gold, the second a file with gold, and the third
        the first of `files`.
        """
        with_gold = [(gold.filename, gold) for gold in golds if gold.filename in files]
        for file, gold in with_gold:
            spans = self._find_spans(passage, file, gold) if file else ()
            if file and any(touches(span, gold) for span in spans):
                return file, spans
        first = next((file for file, _ in with_gold if file), files[0])
        return first, self._find_spans(passage, first, None)

    def _find_spans(self, passage: Passage, filename: str, gold: GoldPassage | None) -> tuple[Span, ...]:
        """Return the spans of a passage in a file.

        If a fragment occurs several times, an occurrence on the reported page is preferred, then one that overlaps
        `gold`.
        """
        document, page = self.get(filename), passage.told_page
        if document is None:
            return ()
        placement = self._placement(passage.text, filename)
        if page is not None:
            there = [_keep_on_page(piece, page, document) for piece in placement.pieces]
            placement = replace(placement, pieces=tuple(there))
        return spans_of(
            placement, document, wanted=lambda place: gold is not None and any(touches(span, gold) for span in place)
        )

    def _set_place(self, passage: Passage, filename: str, spans: tuple[Span, ...]) -> Passage:
        document = self.get(filename)
        if document is None or not spans:
            return replace(passage, filename=filename, span=None)
        pages = tuple(dict.fromkeys(page for span in spans for page in document.pages_of(span)))
        page = next(iter(pages), passage.page)
        text = passage.text or document.text[spans[0].start : spans[0].end]
        placed = replace(passage, text=text, filename=filename, span=spans[0], more=spans[1:], page=page, pages=pages)
        return replace(placed, box_overlap=compute_box_overlap(document, spans, passage) if passage.told_box else None)

    def _stands_at_span(self, passage: Passage, document: Document | None) -> bool:
        span = passage.span
        if document is None or span is None or span.end > len(document.text):
            return False
        there = document.text[span.start : span.end]
        return not passage.text.strip() or there == passage.text or fold(there) == fold(passage.text)

    def _has(self, words: str, filename: str | None) -> bool:
        """Return whether a file contains the whole text, comparing letters and digits only."""
        document = self.get(filename)
        return document is not None and letters_of(words).text in document.letters.text

    def _find_placement(self, words: str, filename: str) -> Placement:
        """Return the fragments of a text that a file contains, with their positions in the file.

        The result has no fragments if the file cannot be read.
        """
        document = self.get(filename)
        if document is None:
            return Placement((), (), 0)
        placement, latin = place_text(words, document), with_latin_letters(words)
        if latin == words or placement.share >= _MOST:
            return placement
        return max(placement, place_text(latin, document), key=lambda one: one.share)

    def _find_holders(self, words: str) -> list[str]:
        """Return the files that contain the largest share of a text.

        A further file is added if it contains a long part of the text that is missing from the first file of the
        result.
        """
        whole, part = self._find_likely(words)
        if not whole:
            more, others = self._find_likely(with_latin_letters(words))
            whole, part = more, part or others
        shares = {one.filename: self._placement(words, one.filename).share for one in whole or part}
        best = max(shares.values(), default=0.0)
        files = [name for name, share in shares.items() if share and share >= best]
        for name in sorted(shares, key=lambda name: -shares[name]) if files else ():
            lacking = self._placement(words, files[0]).added
            pieces = self._placement(words, name).pieces
            shared = sum(max(0, min(a.end, b.end) - max(a.start, b.start)) for a in lacking for b in pieces)
            files += [name] if name not in files and shared >= _ANOTHER else []  # a passage of several documents
        return files

    def find_matches(self, words: str, filename: str | None = None) -> list[tuple[str, Match]]:
        """Return the matches of a text, each with its file name.

        With `filename`, only that file is searched. Otherwise all files are searched, and only the files that reach
        the highest match score are returned.
        """
        if filename is not None:
            document = self.get(filename)
            return _find_best(words, [document] if document else [])
        whole, part = self._find_likely(words)
        return _find_best(words, whole) or _find_best(words, part)

    def _find_likely(self, words: str) -> tuple[list[Document], list[Document]]:
        """Return the documents that contain the whole text, and those that contain only a part of it."""
        needle = letters_of(words).text
        whole: list[Document] = []
        part: list[Document] = []
        if not needle:
            return whole, part
        starts = range(0, max(1, len(needle) - _PROBE + 1), max(1, (len(needle) - _PROBE) // _PROBES or 1))
        probes = [needle[start : start + _PROBE] for start in starts]
        for document in self.all():
            text = document.letters.text
            if needle in text:
                whole.append(document)
            elif any(probe in text for probe in probes):
                part.append(document)
        return whole, part


def _has_gaps(placement: Placement) -> bool:
    """Return whether some words of the passage are not in the file, although the text before and after them is."""
    if not placement.pieces:
        return False
    first, last = placement.pieces[0].end, placement.pieces[-1].start
    return any(first <= span.start and span.end <= last for span in placement.added)


def _keep_on_page(piece: PlacedPiece, page: int, document: Document) -> PlacedPiece:
    """Return a fragment with only its occurrences on a page; with all of them if none is on that page."""
    there = [place for place in piece.places if any(page in document.pages_of(span) for span in place)]
    return piece._replace(places=tuple(there)) if there else piece


def _find_best(words: str, documents: Sequence[Document]) -> list[tuple[str, Match]]:
    """Return the matches of a text in the documents with the best match score; other documents are left out."""
    places = [
        (document.filename, match) for document in documents for match in prefer_whole_words(locate(words, document))
    ]
    best = max((match.score for _, match in places), default=0.0)
    files = {name for name, match in places if match.score == best}
    return [(name, match) for name, match in places if name in files]


def touches(span: Span, gold: GoldPassage) -> bool:
    """Return whether a span overlaps a gold passage at any location of the gold passage."""
    return any(max(span.start, one.start) < min(span.end, one.end) for place in gold.places for one in place)


def compute_box_overlap(document: Document, spans: Sequence[Span], passage: Passage) -> float | None:
    """Return the intersection over union of the reported box and the box around the passage's words.

    The result is 0 if the words are not on the reported page. It is None if no page or box was reported, or if
    the boxes of the words are unknown.
    """
    number = passage.told_page
    if number is None or passage.told_box is None or not 1 <= number <= len(document.pages):
        return None
    page = document.pages[number - 1]
    if not page.width or document.path is None or ending_of(document.path) != ".pdf":
        return None
    try:
        lines = [box for boxes in read_boxes(document, list(spans)) for box in boxes if box.page == number]
    except DocumentError:
        return None  # the page is damaged or takes too long, so the boxes of its words are unknown
    if not lines:
        return 0.0
    wide, high = passage.told_size or (page.width, page.height)
    left, top, right, bottom = passage.told_box
    given = (left * page.width / wide, top * page.height / high, right * page.width / wide, bottom * page.height / high)
    true = (
        min(box.left for box in lines), min(box.top for box in lines),
        max(box.right for box in lines), max(box.bottom for box in lines),
    )  # fmt: skip
    shared = _compute_area(
        (max(given[0], true[0]), max(given[1], true[1]), min(given[2], true[2]), min(given[3], true[3]))
    )
    together = _compute_area(given) + _compute_area(true) - shared
    return shared / together if together else 0.0


def _compute_area(box: tuple[float, float, float, float]) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


GRADE = "grade"
"""The label with the grade of a gold passage's file."""
GRADES = "grades"
"""The label, on one line of a row, with all grades of the row: a JSON object from file name to grade."""


GRADE_RANGE = range(5)
"""Other numbers belong to another grading scale, which the metrics do not know."""


def read_grades(lines: Iterable[Gold], *, where: str) -> dict[int | str, dict[str, int]]:
    """Return the relevance grades: a mapping from question id to a mapping from file to grade.

    Questions without grades are left out. If a file has several grades for a question, the highest one counts.
    """
    by_question: dict[int | str, dict[str, int]] = {}
    for line in lines:
        grades = _read_all_grades(line, where)
        own = line.labels.get(GRADE)
        if type(own) is int and own in GRADE_RANGE and line.filename:
            grades[line.filename] = max(own, grades.get(line.filename, own))
        for file, grade in grades.items():
            row = by_question.setdefault(line.id, {})
            row[file] = max(grade, row.get(file, grade))
    return by_question


def _read_all_grades(line: Gold, where: str) -> dict[str, int]:
    label = line.labels.get(GRADES)
    if not isinstance(label, str):
        return {}
    try:
        grades = json.loads(label)
    except ValueError:
        grades = None
    if not isinstance(grades, dict) or not all(
        type(grade) is int and grade in GRADE_RANGE for grade in grades.values()
    ):
        raise BundleError(
            f"{where}: row {line.id}: labels.{GRADES} must be a JSON object from file name to a grade of 0 to 4"
        )
    return grades
