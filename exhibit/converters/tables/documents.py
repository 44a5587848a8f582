"""The documents that a table names: files in a folder, paths beside the table, or URLs."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters import Item, RawDocument, Tally
from exhibit.converters.core.titles import pair_files
from exhibit.converters.pages.fetch import Policy, fetch_all, report
from exhibit.engine import track
from exhibit.evidence import Document
from exhibit.evidence.fold import fold
from exhibit.evidence.read import NamedFile, is_readable, list_folder, read_within
from exhibit.law.names import FileNames, make_file_key, split_page, without_ending
from exhibit.law.provisions import NamedProvision
from exhibit.schemas.errors import DocumentError, SourceError
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import list_left_out
from exhibit.storage.locations import read_start

NO_READER = "no reader for files of this kind"
QUESTIONS = "table of the questions, which is not used as a document"
NAMESAKE = "document with the same name as another; rename one"
# characters at a law's start in which its name is searched: in its title, or in all text above its first paragraph
OPENING_CHARS = (200, 1000)

_CODE = re.compile(r"[^\W\d_][\w-]{0,10}[A-ZÄÖÜ]|SR \d{3}[\d.]*")  # the abbreviation of a law: StGB, GDPR, OR


def is_url(name: str) -> bool:
    return name[:8].lower().startswith(("http://", "https://"))


@dataclass
class Shelf:
    """Finds and reads the documents to which a table of questions refers."""

    table: Path
    folder: Path | None
    as_pdf: bool
    policy: Policy
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)  # why a document is missing, and its name
    _read: dict[str, Document | None] = field(default_factory=dict)

    @cached_property
    def _listed(self) -> list[NamedFile]:
        """All files of the folder, and all attachments of its mails; empty if no folder is given."""
        if self.folder is None:
            return []
        if not self.folder.is_dir():
            raise SourceError(f"{self.folder}: no such folder; give --documents the folder with the documents")
        files = list_folder(self.folder)
        if not any(is_readable(file.path) for file in files):
            raise SourceError(
                f"{self.folder}: none of its {len(files)} files can be read as a document; name a folder with documents"
            )
        return files

    @cached_property
    def files(self) -> list[NamedFile]:
        """The files of the folder without the table itself, which would answer every question."""
        table = self.table.resolve()
        return [file for file in self._listed if file.path.resolve() != table]

    @cached_property
    def names(self) -> FileNames:
        return FileNames(self._by_name, {name: file.aliases for name, file in self._by_name.items()})

    @cached_property
    def _by_name(self) -> dict[str, NamedFile]:
        return {file.name: file for file in self.files}

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The files by their normalised names, without names that several files share."""
        keys = Counter(make_file_key(file.path.name) for file in self.files)
        return {key: file.name for file in self.files if keys[key := make_file_key(file.path.name)] == 1}

    def find_named(self, cell: str) -> tuple[str, int | None] | None:
        """Return the file that a cell names, and its page if the cell has one: `nda.pdf, p. 3`, `nda.pdf#page=3`."""
        for name, page in (split_page(cell), (cell, None)):
            if name and (file := self.names.find(name.strip(" []")) or self._find_spelling(name)):
                return file, page
        return None

    def _find_spelling(self, name: str) -> str | None:
        """Return the only file whose normalised name equals that of `name`; `__` may replace up to four letters."""
        base = name.replace("\\", "/").rpartition("/")[2]
        if file := self._keys.get(make_file_key(base)):
            return file
        # `__` replaces a character of two bytes, such as `é`, or several characters that a file system rejects
        parts = [make_file_key(f"{part}.pdf") for part in re.split(r"_{2,}", without_ending(base))]
        pattern = re.compile(".{0,4}".join(map(re.escape, parts)))
        matches = [file for key, file in self._keys.items() if len(parts) > 1 and any(parts) and pattern.fullmatch(key)]
        return matches[0] if len(matches) == 1 else None

    def find(self, names: Sequence[str], tally: Tally) -> dict[str, RawDocument]:
        """Return the document for each name, then the folder's other documents by their file names.

        The reason for a missing document is stored in `self.lost`.
        """
        for listed in self._listed:
            if listed not in self.files:
                tally.leave_out(QUESTIONS, listed.name, item=Item("files", listed.name))
        for path, why in list_left_out(self.folder) if self.folder else ():
            name = path.relative_to(self.folder or path).as_posix()
            tally.leave_out(why, name, item=Item("files", name))
        urls = [name for name in names if is_url(name)]
        paths = [name for name in names if not is_url(name)]
        files = self._find_in_folder(paths, tally) if self.folder else self._find_beside(paths)
        named = set(files.values())
        others = {file.name: file for file in self.files if file not in named}
        documents = self._fetch(urls, tally) if urls else {}
        taken = {document.filename: document for document in documents.values()}
        for name, file in (files | others).items():
            document, item = self._make_document(file.path), Item("files", file.name)
            if document is None:
                tally.leave_out(NO_READER, f"{file.name}: {file.path.suffix or 'a file without ending'}", item=item)
                self.lost[name] = NO_READER, name
            elif taken.setdefault(document.filename, document) != document:
                tally.leave_out(NAMESAKE, file.name, item=item)
                self.lost[name] = NAMESAKE, name
            else:
                tally.take([item])
                documents[name] = replace(document, items=(item,))
        return {name: documents[name] for name in dict.fromkeys((*names, *others)) if name in documents}

    def _make_document(self, path: Path) -> RawDocument | None:
        """Return the document to copy or to print; None if no reader can read the file."""
        named_pdf = pdf = path.suffix.lower() == ".pdf"
        with suppress(OSError):  # the code that reads the file reports the error
            pdf = pdf or read_start(path, 5) == b"%PDF-"
        if not pdf and not is_readable(path):
            return None
        filename = path.name if named_pdf or not (self.as_pdf or pdf) else fit_name(path.name, ".pdf")
        document = RawDocument(filename, path.stem, path)
        return document if pdf or not self.as_pdf else replace(document, path=None, original=path)

    def _fetch(self, urls: Sequence[str], tally: Tally) -> dict[str, RawDocument]:
        fetched, documents = fetch_all(urls, policy=self.policy), dict[str, RawDocument]()
        report(fetched, tally)
        for url, page in fetched.items():
            if page.path is None:
                self.lost[url] = "document could not be fetched", f"{url} ({page.reason})"
            else:
                name = page.filename
                documents[url] = RawDocument(name, name, page.path, source=url, printer=page.printer)
        return documents

    def _find_in_folder(self, names: Sequence[str], tally: Tally) -> dict[str, NamedFile]:
        """Return for each name the file with this name in any spelling, else the file with the most similar name."""
        files: dict[str, NamedFile] = {}
        others = []
        for name in names:
            same = self.names.find_all(name)
            if len(same) > 1:
                self.lost[name] = "several files have the document's name", f"{name} ({', '.join(same)})"
            elif file := next(iter(same), None) or self._find_spelling(name):
                files[name] = self._by_name[file]
            else:
                self.lost[name] = "document is not in the folder", name
                others.append(name)
        free = {file.path: file for file in self.files if file not in files.values()}
        # all names together, so that a file that is similar to two names is assigned to one at most
        bases = [name.replace("\\", "/").rpartition("/")[2] for name in others]
        paired, similar = pair_files(bases, free)
        for row in similar:
            tally.note("document paired with a file of a similar name", f"{bases[row]} -> {paired[row].name}")
        return files | {others[row]: free[path] for row, path in paired.items()}

    def _find_beside(self, names: Sequence[str]) -> dict[str, NamedFile]:
        """Return the file at each path relative to the table's folder; a path that leads out of it is refused."""
        root = self.table.parent.resolve()
        files: dict[str, NamedFile] = {}
        for name in names:
            self.lost[name] = "no such file; paths count from the table's folder, or pass --documents DIR", name
            with suppress(OSError, ValueError):  # a cell may have a text that no file system accepts as a name
                path = (root / name).resolve()
                if not path.is_relative_to(root):
                    reason = "path leads out of the table's folder; pass the file's folder with --documents"
                    self.lost[name] = reason, name
                elif path.is_file():
                    files[name] = NamedFile(path, path.relative_to(root).as_posix())
        return files

    def read(self, name: str) -> Document | None:
        """Return a file of the folder as a document; None if it cannot be read."""
        if name not in self._read:
            path = self._by_name[name].path
            self._read[name] = None
            with suppress(DocumentError):  # the conversion reports the error
                self._read[name] = read_within(path) if is_readable(path) else None
        return self._read[name]

    def read_folded(self, name: str) -> str:
        """Return a file's text folded for comparison; empty if the file cannot be read."""
        document = self.read(name)
        return document.loose.text if document else ""

    def find_holders(self, passage: str) -> list[str]:
        needle = fold(passage, loose=True)
        files = track(self._by_name, total=len(self.files), label="documents searched for passages")
        return [name for name in files if needle and needle in self.read_folded(name)]

    def find_law_file(self, source: str) -> str | None:
        """Return the only file of a law or contract whose name, or the beginning of whose text, contains its name."""
        if named := self.find_named(source):
            return named[0]
        opening = re.compile(rf"(?<!\w){re.escape(source)}(?!\w)", 0 if source.isupper() else re.IGNORECASE)
        for characters in OPENING_CHARS:
            texts = {name: document.text[:characters] for name in self._by_name if (document := self.read(name))}
            by_opening = [name for name, text in texts.items() if opening.search(text)]
            if by_opening:
                return by_opening[0] if len(by_opening) == 1 else None
        return None

    def may_be(self, name: str, provision: NamedProvision) -> bool:
        """Return whether a document may contain a provision: for `§ 3 StGB`, its start must contain `StGB`."""
        if not _CODE.fullmatch(provision.source) or "." in provision.path[0].number:
            return True  # `the Agreement` and `CPR 36.14` fit any document: the number decides
        document = self.read(name) if name in self._by_name else None
        return document is None or provision.source in document.text[: OPENING_CHARS[-1]]
