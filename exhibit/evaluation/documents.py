"""The documents of a dataset, read when they are needed, and passages found in them by name and by words."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

from exhibit.engine import Limits
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evidence import Document, Match, Span, fold, locate
from exhibit.evidence.locate import worthy
from exhibit.evidence.read import boxes_within, read_within
from exhibit.law.names import FileNames
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import BundleError, DocumentError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder, sha256_of
from exhibit.storage.locations import Location

_REMEMBERED = 1 << 14
"""Texts whose place is remembered, some 15 MB: systems retrieve the same passages for many questions."""
_PLACES = 64
"""Places of a passage in one file that are compared with gold."""
_PROBE = 32
"""Folded characters of a passage that a document must have somewhere before the passage is looked for in it."""


class Documents:
    """Files by name; each is read once, and one that cannot be read is as good as not there."""

    def __init__(self, files: Mapping[str, Location], *, limits: Limits | None = None) -> None:
        self.files = dict(files)
        self.faults: dict[str, str] = {}
        """Why a document could not be read, by its name."""
        self._limits = limits or Limits()
        self._read: dict[str, Document | None] = {}
        self._spans = lru_cache(_REMEMBERED)(self._find_spans)
        self._holders = lru_cache(_REMEMBERED)(self._find_holders)

    def get(self, filename: str | None) -> Document | None:
        """Return a document, None when there is none of that name or it cannot be read."""
        if filename is None or filename not in self.files:
            return None
        if filename not in self._read:
            try:
                self._read[filename] = read_within(self.files[filename], self._limits)
            except DocumentError as error:
                self._read[filename] = None
                self.faults[filename] = str(error)
        return self._read[filename]

    def all(self) -> Iterator[Document]:
        """Yield every document that can be read, in the order of the names."""
        for name in sorted(self.files):
            document = self.get(name)
            if document is not None:
                yield document

    # ---------------------------------------------------------------- names

    def named(self, name: str) -> str | None:
        """Return the file that a system means, however it spells its name (`law.names.FileNames`)."""
        return self._names.find(name)

    @cached_property
    def _names(self) -> FileNames:
        return FileNames(sorted(self.files))

    # ---------------------------------------------------------------- words

    def place(self, passage: Passage, golds: Sequence[GoldPassage] = ()) -> Passage:
        """Return a passage with its file, span and page as far as its name and its words tell them.

        A span is believed when the words stand there: another system may count in a text of its own. A name that no
        file has is no name: the words are looked for in all documents. Words that one file has are from it; words that
        several have are ambiguous, and count where a gold has them. Of several places in a file the one with gold
        counts, else the first.
        """
        name = passage.told_filename or passage.filename or ""
        passage = replace(passage, told_filename=name)
        filename = self.named(name) if name else None
        if filename and self._stands(passage, self.get(filename)):
            return self._placed(passage, filename, passage.span)
        if not passage.text.strip():
            return replace(passage, filename=filename, span=None)
        files = [filename] if filename else self._holders(passage.text)
        if not files:
            return replace(passage, filename=None, span=None)
        file, span = self._likeliest(passage.text, files, golds)
        if len(files) == 1:
            return self._placed(passage, file, span)
        return replace(passage, filename=None, span=span, also_in=(file, *sorted({*files} - {file})))

    def _likeliest(self, words: str, files: Sequence[str], golds: Sequence[GoldPassage]) -> tuple[str, Span | None]:
        """Return the place of words that gold has, too; else one in a file with gold, else one in the first file."""
        with_gold = [(gold.filename, gold) for gold in golds if gold.filename in files]
        for file, gold in with_gold:
            for span in self._spans(words, file):
                if file and touches(span, gold):
                    return file, span
        first = next((file for file, _ in with_gold if file), files[0])
        return first, next(iter(self._spans(words, first)), None)

    def _placed(self, passage: Passage, filename: str | None, span: Span | None) -> Passage:
        document = self.get(filename)
        if document is None or span is None:
            return replace(passage, filename=filename, span=None)
        pages = tuple(document.pages_of(span))
        page = next(iter(pages), passage.page)
        text = passage.text or document.text[span.start : span.end]
        overlap = box_overlap(document, span, passage) if passage.told_box else None
        return replace(passage, text=text, filename=filename, span=span, page=page, pages=pages, box_overlap=overlap)

    def _stands(self, passage: Passage, document: Document | None) -> bool:
        span = passage.span
        if document is None or span is None or span.end > len(document.text):
            return False
        there = document.text[span.start : span.end]
        return not passage.text.strip() or there == passage.text or fold(there) == fold(passage.text)

    def _find_spans(self, words: str, filename: str | None) -> list[Span]:
        """Return where words stand in a file, best first."""
        document = self.get(filename)
        return [match.span for match in worthy(locate(words, document))[:_PLACES]] if document else []

    def _find_holders(self, words: str) -> list[str]:
        """Return the files that have the words as well as any file has them."""
        whole, part = self._likely(words)
        names = [document.filename for document in whole] or [name for name, _ in _best(words, part)]
        return list(dict.fromkeys(names))

    def matches(self, words: str, filename: str | None = None) -> list[tuple[str, Match]]:
        """Return where words stand: in one file, or in every file that has them as well as any."""
        if filename is not None:
            document = self.get(filename)
            return _best(words, [document] if document else [])
        whole, part = self._likely(words)
        return _best(words, whole) or _best(words, part)

    def _likely(self, words: str) -> tuple[list[Document], list[Document]]:
        """Return the documents that have all of the words, and those that have a piece of them."""
        needle = fold(words, loose=True)
        whole: list[Document] = []
        part: list[Document] = []
        if not needle:
            return whole, part
        starts = range(0, max(1, len(needle) - _PROBE + 1), max(1, (len(needle) - _PROBE) // 7 or 1))
        probes = [needle[start : start + _PROBE] for start in starts]
        for document in self.all():
            text = document.loose.text
            if needle in text:
                whole.append(document)
            elif any(probe in text for probe in probes):
                part.append(document)
        return whole, part


def _best(words: str, documents: Sequence[Document]) -> list[tuple[str, Match]]:
    """Return the places of words in the documents that have the best one."""
    places = [(document.filename, match) for document in documents for match in worthy(locate(words, document))]
    best = max((match.score for _, match in places), default=0.0)
    files = {name for name, match in places if match.score == best}
    return [(name, match) for name, match in places if name in files]


def touches(span: Span, gold: GoldPassage) -> bool:
    """Return whether a span shares a character with a place of a gold passage."""
    return any(max(span.start, one.start) < min(span.end, one.end) for place in gold.places for one in place)


def box_overlap(document: Document, span: Span, passage: Passage) -> float | None:
    """Return what the box that a system gives shares with that of the words, over what both cover together.

    0 where the words are not on that page; None where the document has no pages, or no page was given.
    """
    number = passage.told_page
    if number is None or passage.told_box is None or not 1 <= number <= len(document.pages):
        return None
    page = document.pages[number - 1]
    if not page.width or document.path is None or document.path.suffix.lower() != ".pdf":
        return None
    try:
        lines = [box for box in boxes_within(document, [span])[0] if box.page == number]
    except DocumentError:
        return None  # a page that takes too long, or is damaged: where its words stand is not known
    if not lines:
        return 0.0
    wide, high = passage.told_size or (page.width, page.height)
    left, top, right, bottom = passage.told_box
    given = (left * page.width / wide, top * page.height / high, right * page.width / wide, bottom * page.height / high)
    true = (
        min(box.left for box in lines), min(box.top for box in lines),
        max(box.right for box in lines), max(box.bottom for box in lines),
    )  # fmt: skip
    shared = _area((max(given[0], true[0]), max(given[1], true[1]), min(given[2], true[2]), min(given[3], true[3])))
    together = _area(given) + _area(true) - shared
    return shared / together if together else 0.0


def _area(box: tuple[float, float, float, float]) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


_LISTED = 3  # file names in one message
_ALLOW = "--allow-changed-corpus"
_CHANGED = f"not the file that {INFO} records (sha256 differs), so its gold may be anywhere"


@dataclass(frozen=True)
class CorpusFiles:
    """The documents that are used, and how they differ from what is recorded."""

    used: Mapping[str, Location]
    digests: Mapping[str, str]
    """The sha256 of each of them, and of the bundle's own files."""
    changed: tuple[str, ...] = ()
    """Files that are not those of bundle.json."""
    stray: tuple[str, ...] = ()
    """Files that bundle.json does not have."""
    closed: tuple[str, ...] = ()
    """Files that this user may not open."""


def changed_tables(bundle: BundleFolder) -> list[str]:
    """Return a problem for `train.json` and `gold.jsonl` where they are not those that bundle.json records."""
    recorded = bundle.info.files if bundle.info else {}
    return [
        f"{bundle.address}/{name}: not the file that {INFO} records (sha256 differs): "
        f"convert it again, or score it all the same with {_ALLOW}"
        for name in (TRAIN, GOLD)
        if name in recorded and _digest(bundle.root / name) != recorded[name].sha256
    ]


def check_files(bundle: BundleFolder, files: Mapping[str, Location], *, allow_changed: bool) -> CorpusFiles:
    """Compare the files with their checksums; those that bundle.json does not have are left out, unless allowed."""
    recorded = _recorded(bundle)
    digests = {name: _digest(path) for name, path in sorted(files.items())}
    stray = tuple(name for name in digests if recorded and name not in recorded)
    closed = tuple(name for name in digests if not digests[name])
    changed = tuple(name for name in digests if digests[name] not in ("", recorded.get(name, digests[name])))
    taken = {name: path for name, path in files.items() if name not in closed}
    used = {name: path for name, path in taken.items() if allow_changed or name not in stray}
    own = {name: sha256_of(bundle.root / name) for name in (INFO, TRAIN, GOLD) if (bundle.root / name).is_file()}
    return CorpusFiles(used, own | {f"{CORPUS}/{name}": digests[name] for name in sorted(used)}, changed, stray, closed)


def _digest(path: Location) -> str:
    """Return a file's sha256; of one that cannot be opened nothing, which no bundle.json records."""
    try:
        return sha256_of(path)
    except OSError:
        return ""


def _recorded(bundle: BundleFolder) -> dict[str, str]:
    """Return the sha256 of each document that bundle.json lists; nothing where there is no bundle.json."""
    entries = bundle.info.files.items() if bundle.info else ()
    return {PurePosixPath(name).name: entry.sha256 for name, entry in entries if name.startswith(f"{CORPUS}/")}


# ---------------------------------------------------------------- questions that cannot be scored


def check_questions(
    bundle: BundleFolder,
    files: CorpusFiles,
    ends: Mapping[int | str, Mapping[str, int]],
    documents: Documents,
    *,
    allow_changed: bool,
    needs_documents: bool,
) -> tuple[dict[int | str, str], tuple[str, ...]]:
    """Return why questions are failed, by id (a changed or missing document, gold beyond its end), and what to say.

    `ends` has, by question, the documents that it is about, and where the last gold in each ends.
    """
    entries = bundle.info.documents if bundle.info else []
    lengths = {entry.filename: entry.characters for entry in entries if entry.filename not in files.changed}
    here = files.used if needs_documents else bundle.files
    refused: dict[int | str, str] = {}
    lost: dict[str, dict[str, set[int | str]]] = {}

    def length(name: str) -> int | None:
        if name not in lengths and (document := documents.get(name)):
            lengths[name] = len(document.text)
        return lengths.get(name)

    for id, last in ends.items():
        for name in sorted(last):
            if reason := _unusable(name, bundle, files, here, allow_changed):
                why = reason if reason == _CHANGED else f"{reason}, so no system can find it there"
                refused.setdefault(id, f"{name}: {why}")
                lost.setdefault(reason, {}).setdefault(name, set()).add(id)
        for name, end in last.items():
            if id not in refused and end and (long := length(name)) is not None and end > long:
                refused[id] = f"{name}: gold up to character {end} of a document of {long}; convert it again"
    return refused, tuple(_warnings(bundle, files, len(ends), refused, lost, allow_changed))


def _unusable(name: str, bundle: BundleFolder, files: CorpusFiles, here: Collection[str], allow_changed: bool) -> str:
    """Return why no question can be scored on a document; empty where one can."""
    if name in files.changed and not allow_changed:
        return _CHANGED
    if name in here or not bundle.files:
        return ""
    if name in files.closed:
        return "not to be opened by this user"
    by_type = name in bundle.files and name not in files.stray
    return "left out by their type (--file-type)" if by_type else "not in corpus/"


def _warnings(
    bundle: BundleFolder,
    files: CorpusFiles,
    cases: int,
    refused: Mapping[int | str, str],
    lost: Mapping[str, Mapping[str, set[int | str]]],
    allow_changed: bool,
) -> Iterator[str]:
    if files.changed:
        what = "scored all the same" if allow_changed else "failed"
        yield (
            f"{bundle.address}: {len(files.changed)} files are not those of {INFO} ({_listed(files.changed)}); "
            f"their questions are {what} ({_ALLOW})"
        )
    if files.stray:
        what = "taken in all the same" if allow_changed else "left out"
        listed = f"{len(files.stray)} files that {INFO} lacks ({_listed(files.stray)})"
        yield f"{bundle.address}: {listed} are {what} ({_ALLOW})"
    for why, names in sorted(lost.items()):
        if why != _CHANGED:
            count = len(set().union(*names.values()))
            yield (
                f"{bundle.address}: the gold of {count} of {cases} questions is in {len(names)} files that are "
                f"{why}: {_listed(sorted(names))}; they are failed"
            )
    beyond = sum("gold up to character" in reason for reason in refused.values())
    if beyond:
        yield f"{bundle.address}: {beyond} questions have gold beyond the end of its document; they are failed"
    known = {question.id for question in bundle.questions}
    stray = sum(line.id not in known for line in bundle.gold)
    if stray:
        yield f"{bundle.address}: {stray} lines of {GOLD} have an id that {TRAIN} does not have; left out"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (" …" if len(names) > _LISTED else "")


GRADE = "grade"
"""The label with the grade of a gold passage's file."""
GRADES = "grades"
"""The label, on one line of a row, with all its grades: a JSON object, file name to grade."""


GRADE_RANGE = range(5)
"""A number beyond it is some other grade, of which metrics know nothing."""


def read_grades(lines: Iterable[Gold], *, where: str) -> dict[int | str, dict[str, int]]:
    """Return the grades of files by row, as far as lines have any; of several grades of a file the best counts."""
    by_question: dict[int | str, dict[str, int]] = {}
    for line in lines:
        grades = _all_grades(line, where)
        own = line.labels.get(GRADE)
        if type(own) is int and own in GRADE_RANGE and line.filename:
            grades[line.filename] = max(own, grades.get(line.filename, own))
        for file, grade in grades.items():
            row = by_question.setdefault(line.id, {})
            row[file] = max(grade, row.get(file, grade))
    return by_question


def _all_grades(line: Gold, where: str) -> dict[str, int]:
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
            f"{where}: row {line.id}: labels.{GRADES} must be a JSON object, file name to grade from 0 to 4"
        )
    return grades
