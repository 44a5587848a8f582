"""The documents that a table names: files in a folder, paths beside the table, or URLs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from exhibit.converters.core.benchmark import BEYOND, Item, RawDocument, Tally
from exhibit.converters.core.titles import pair_files
from exhibit.converters.pages.fetch import Policy, fetch_all, fetch_folder, report
from exhibit.engine import track
from exhibit.evidence import Document
from exhibit.evidence.fold import fold
from exhibit.evidence.read import NamedFile, is_readable, list_folder, read_within
from exhibit.law.names import FileNames, make_file_key, split_page, without_ending
from exhibit.law.provisions import NamedProvision, ProvisionIndex
from exhibit.schemas.errors import DocumentError, SourceError, escape_surrogates
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import list_left_out

NO_READER = "no reader for files of this kind"
QUESTIONS = "table of the questions, which holds their answers: no document"
NAMESAKE = "document that no question is about has the name of another; rename one"
MAX_SHOWN_CHARS = 80
OPENING_CHARS = (200, 1000)  # of a law that contain its name: its title, or all text above its first paragraph

_URL = re.compile(r"https?://", re.IGNORECASE)
_CODE = re.compile(r"[^\W\d_][\w-]{0,10}[A-ZÄÖÜ]|SR \d{3}[\d.]*")  # the abbreviation of a law: StGB, GDPR, OR


def is_url(name: str) -> bool:
    """Return whether the name of a document is a URL."""
    return _URL.match(name) is not None


@dataclass
class Shelf:
    """The documents to which a table of questions refers: where they are searched, and how they are read."""

    table: Path
    folder: Path | None
    as_pdf: bool
    policy: Policy
    others: tuple[Path, ...] = ()  # further files of the source that are no documents, such as relevance judgments
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)  # reason and details, by name

    @cached_property
    def files(self) -> list[NamedFile]:
        """All documents in the folder, and all attachments of the mails in the folder; empty if no folder is given."""
        return [file for file in self._listed if file not in self._own]

    @cached_property
    def _listed(self) -> list[NamedFile]:
        return files_of(self.folder) if self.folder else []

    @cached_property
    def _own(self) -> list[NamedFile]:
        """The files of the folder that are the source itself: as documents they would give every answer."""
        source = {path.resolve() for path in (self.table, *self.others)}
        return [file for file in self._listed if file.path.resolve() in source]

    @cached_property
    def names(self) -> FileNames:
        """An index of the documents by their file names and aliases."""
        return FileNames((file.name for file in self.files), {file.name: file.aliases for file in self.files})

    def find_named(self, cell: str) -> tuple[str, int | None] | None:
        """Return the file that a cell names, and the page if it states one: `nda.pdf, p. 3`, `nda.pdf#page=3`."""
        for name, page in (split_page(cell), (cell, None)):
            if name and (file := self.names.find(name.strip(" []")) or self._find_spelling(name)):
                return file, page
        return None

    def _find_spelling(self, name: str) -> str | None:
        """Return the only file of the same key, or of the same letters around each `__` of the name."""
        base = _cut_folder(name)
        if file := self._keys.get(make_file_key(base)):
            return file
        parts = [make_file_key(f"{part}.pdf") for part in re.split(r"_{2,}", without_ending(base))]
        if len(parts) < 2 or not any(parts):
            return None
        # `__` stands for a character of two bytes, such as `é`, or for several that a file system refuses
        pattern = re.compile(".{0,4}".join(map(re.escape, parts)))
        matches = [file for key, file in self._keys.items() if pattern.fullmatch(key)]
        return matches[0] if len(matches) == 1 else None

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The files by the normalised form of their names; a form that several files share is left out."""
        keys: dict[str, list[str]] = {}
        for file in self.files:
            keys.setdefault(make_file_key(file.path.name), []).append(file.name)
        return {key: names[0] for key, names in keys.items() if key and len(names) == 1}

    def find(self, names: Sequence[str], tally: Tally) -> dict[str, RawDocument]:
        """Return the document for each name; for a name without a document, store the reason in `self.lost`."""
        tally.take(_make_item(file) for file in self._listed)
        for file in self._own:
            tally.leave_out(QUESTIONS, file.name, item=_make_item(file))
        for path, why in list_left_out(self.folder) if self.folder else ():
            name = path.relative_to(self.folder or path).as_posix()
            tally.leave_out(why, name, item=Item("files", name))
        urls = [name for name in names if is_url(name)]
        wanted = [name for name in names if not is_url(name)]
        paired = self._find_in_folder(wanted, tally) if self.folder else self._find_beside(wanted, tally)
        documents = {}
        for name, file in paired.items():
            if _can_be_read(file.path):
                documents[name] = self._make_document(file)
            else:
                self._refuse(file, tally)
                self.lost[name] = NO_READER, ""
        if urls:
            fetched = fetch_all(urls, folder=fetch_folder(), policy=self.policy)
            report(fetched, tally)
            for url, page in fetched.items():
                if page.path is None:
                    self.lost[url] = "document could not be fetched", page.reason
                    continue
                name = page.filename
                documents[url] = RawDocument(name, name, page.path, source=url, printer=page.printer)
        _check_distinct(documents)
        return {name: documents[name] for name in names if name in documents}

    def find_others(self, documents: dict[str, RawDocument], *, limited: bool, tally: Tally) -> dict[str, RawDocument]:
        """Return the documents that no question is about; none if the number of documents is limited."""
        asked = {item for document in documents.values() for item in document.items}
        taken = {document.filename for document in documents.values()}
        others = {}
        for file in self.files:
            if _make_item(file) in asked:
                continue
            if not _can_be_read(file.path):
                self._refuse(file, tally)
            elif limited:
                tally.leave_out(BEYOND, file.name, item=_make_item(file))
            elif (document := self._make_document(file)).filename in taken:
                tally.leave_out(NAMESAKE, file.name, item=_make_item(file))
            else:
                taken.add(document.filename)
                others[file.name] = document
        return others

    def _refuse(self, file: NamedFile, tally: Tally) -> None:
        line = f"{file.name}: {file.path.suffix or 'a file without ending'}"
        tally.leave_out(NO_READER, line, item=_make_item(file))

    def _make_document(self, file: NamedFile) -> RawDocument:
        path, named_pdf = file.path, file.path.suffix.lower() == ".pdf"
        pdf = named_pdf or _looks_like_pdf(path)
        filename = path.name if named_pdf or not (self.as_pdf or pdf) else fit_name(path.name, ".pdf")
        document = RawDocument(filename, path.stem, path, items=(_make_item(file),))
        return document if pdf or not self.as_pdf else replace(document, path=None, original=path)

    def _find_in_folder(self, names: Sequence[str], tally: Tally) -> dict[str, NamedFile]:
        """Assign each name to the file of the folder with that path or name, else to a file with a similar name."""
        by_name, by_path = {file.name: file for file in self.files}, {file.path: file for file in self.files}
        files: dict[str, NamedFile] = {}
        for name in names:
            same = self.names.find_all(name)
            if len(same) > 1:
                self.lost[name] = "several files have the document's name", ", ".join(same)
            elif file := next(iter(same), None) or self._find_spelling(name):
                files[name] = by_name[file]
        free = by_path.keys() - {file.path for file in files.values()}
        for name in names:
            if name in files or name in self.lost:
                continue
            pairs = pair_files([_cut_folder(name)], free)
            if pairs.files:
                files[name] = by_path[pairs.files[0]]
            else:
                self.lost[name] = "document is not in the folder", ""
            for _, similar in pairs.similar:
                tally.note("document paired with a file of a similar name", f"{name} -> {similar}")
        return files

    def _find_beside(self, names: Sequence[str], tally: Tally) -> dict[str, NamedFile]:
        """Return the file at each path relative to the table's folder; a path that leads out of it is refused."""
        root = self.table.parent.resolve()
        files: dict[str, NamedFile] = {}
        for name in names:
            try:
                path = (root / name).resolve()
                there = path.is_file()
            except (OSError, ValueError):
                self.lost[name] = "no name that a file can have", shorten_name(name)
                continue
            if not path.is_relative_to(root):
                self.lost[name] = "path leads out of the table's folder; pass its folder with --documents", ""
            elif there:
                files[name] = NamedFile(path, path.relative_to(root).as_posix())
            else:
                self.lost[name] = "no such file; paths count from the table's folder, or pass --documents DIR", ""
        tally.take(_make_item(file) for file in files.values())
        return files


def files_of(folder: Path) -> list[NamedFile]:
    """Return every file of a folder, at any depth; raise if the folder has no readable document."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder; --documents takes the folder that holds the documents")
    files = list_folder(folder)
    if not any(is_readable(file.path) for file in files):
        raise SourceError(
            f"{folder}: none of its {len(files)} files can be read as a document; name a folder with documents"
        )
    return files


def _make_item(file: NamedFile) -> Item:
    return Item("files", file.name)


def _cut_folder(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name


def shorten_name(name: str) -> str:
    """Return a name shortened for a message."""
    return escape_surrogates(name if len(name) <= MAX_SHOWN_CHARS else f"{name[:MAX_SHOWN_CHARS]}…")


def _can_be_read(path: Path) -> bool:
    return is_readable(path) or _looks_like_pdf(path)


def _looks_like_pdf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(5) == b"%PDF-"
    except OSError:
        return False  # the code that reads the file reports the error


def _check_distinct(documents: dict[str, RawDocument]) -> None:
    """Raise if two documents have the same name: a bundle's corpus is one folder."""
    first: dict[str, tuple[str, RawDocument]] = {}
    for name, document in documents.items():
        other, same = first.setdefault(document.filename, (name, document))
        if same != document:
            raise SourceError(f"{other} and {name}: both would be {document.filename!r} in the corpus; rename one")


@dataclass
class Texts:
    """The documents of a folder as text, for a table whose rows do not name the documents of their passages."""

    shelf: Shelf
    _read: dict[str, Document | None] = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)
    _indexes: dict[str, ProvisionIndex] = field(default_factory=dict)

    def document(self, file: NamedFile) -> Document | None:
        """Return a document as read from its original file; None if it cannot be read."""
        if file.name not in self._read:
            try:
                self._read[file.name] = read_within(file.path) if is_readable(file.path) else None
            except DocumentError:
                self._read[file.name] = None  # the conversion reports the error
        return self._read[file.name]

    def of(self, file: NamedFile) -> str:
        """Return a document's text folded for comparison; empty if the document cannot be read."""
        if file.name not in self._folded:
            document = self.document(file)
            self._folded[file.name] = fold(document.text, loose=True) if document else ""
        return self._folded[file.name]

    def find_law_file(self, source: str) -> str | None:
        """Return the only file of a law or contract that is cited by name, by the file names, then by the texts."""
        if named := self.shelf.find_named(source):
            return named[0]
        wanted = f" {' '.join(source.casefold().split())} "
        stems = {file.name: " ".join(re.findall(r"[^\W_]+", file.path.stem.casefold())) for file in self.shelf.files}
        by_stem = [name for name, stem in stems.items() if wanted.strip() and wanted in f" {stem} "]
        if len(by_stem) == 1:
            return by_stem[0]
        opening = re.compile(rf"(?<!\w){re.escape(source)}(?!\w)", 0 if source.isupper() else re.IGNORECASE)
        for characters in OPENING_CHARS:
            by_opening = [
                file.name
                for file in self.shelf.files
                if (document := self.document(file)) and opening.search(document.text[:characters])
            ]
            if by_opening:
                return by_opening[0] if len(by_opening) == 1 else None
        return None

    def may_be(self, name: str, provision: NamedProvision) -> bool:
        """Return whether a document may contain a provision such as `§ 3 StGB`: its start must contain `StGB`."""
        if not _CODE.fullmatch(provision.source) or "." in provision.path[0].number:
            return True  # `the Agreement` fits any document, and so does CPR 36.14, whose number decides
        file = next((file for file in self.shelf.files if file.name == name), None)
        document = self.document(file) if file else None
        return document is None or provision.source in document.text[: OPENING_CHARS[-1]]

    def find_having(self, provision: NamedProvision) -> list[str]:
        """Return the files that have a provision with this number, such as `§ 5`; the name of the law is ignored."""
        having = []
        for file in self.shelf.files:
            document = self.document(file)
            if document is not None:
                index = self._indexes.setdefault(file.name, ProvisionIndex(document))
                having += [file.name] if index.find(provision) else []
        return having

    @cached_property
    def _all(self) -> list[tuple[str, str]]:
        files = track(self.shelf.files, total=len(self.shelf.files), label="documents searched for passages")
        return [(file.name, self.of(file)) for file in files]

    def find_holders(self, passage: str) -> list[str]:
        """Return the documents that contain a passage."""
        needle = fold(passage, loose=True)
        return [name for name, text in self._all if needle and needle in text]
