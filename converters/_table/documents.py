"""The documents that a table names: files in a folder, paths beside the table, or URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from converters._benchmark import RawDocument, Tally
from converters._names import name_key, pair_files
from converters._web.fetch import Policy, fetch_all, fetch_folder, report
from evidence.guard import read_within
from evidence.read import readable
from evidence.readers.text import decode
from schemas.errors import DocumentError, SourceError, printable
from storage.folders import files_below

_URL = re.compile(r"https?://", re.IGNORECASE)
_SHOWN = 80
"""Characters of a bad name that are told."""
_HTML = frozenset({".html", ".htm", ".xhtml"})


def is_url(name: str) -> bool:
    """Return whether a document is named by its address."""
    return _URL.match(name) is not None


@dataclass(frozen=True)
class Shelf:
    """Where a table's documents are, and what to make of them."""

    table: Path
    folder: Path | None
    as_pdf: bool
    policy: Policy

    def find(self, names: Sequence[str], tally: Tally) -> dict[str, RawDocument]:
        """Return the document of each name that has one; what stands in its way is counted, each name once."""
        urls = [name for name in names if is_url(name)]
        files = [name for name in names if not is_url(name)]
        paths = _in_folder(files, self.folder, tally) if self.folder else _beside(files, self.table, tally)
        documents = self._read(paths, tally)
        if urls:
            fetched = fetch_all(urls, folder=fetch_folder(), policy=self.policy)
            report(fetched, tally)
            for url, page in fetched.items():
                if page.path is not None:
                    documents[url] = RawDocument(page.filename, page.filename, page.path, source=url)
        _check_distinct(documents)
        return {name: documents[name] for name in names if name in documents}

    def find_others(self, found: dict[str, RawDocument], *, take: bool, tally: Tally) -> dict[str, RawDocument]:
        """Return the documents of the folder that nobody asked about, or only note them."""
        files = files_of(self.folder) if self.folder else []
        asked = {document.filename for document in found.values()}
        others = [path for path in files if _filename(path, as_pdf=self.as_pdf) not in asked]
        if take:
            documents = self._read({str(path): path for path in others}, tally)
            _check_distinct(documents)
            return documents
        for path in others:
            tally.note("document that no question is about (--all-documents takes it in)", path.name)
        return {}

    def _read(self, paths: dict[str, Path], tally: Tally) -> dict[str, RawDocument]:
        documents = {}
        for name, path in paths.items():
            try:
                documents[name] = _document(path, as_pdf=self.as_pdf)
            except DocumentError as error:
                tally.fault("document cannot be read", str(error).removeprefix(f"{path.parent}/"))
        return documents


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that can be read as documents, at any depth."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder; --documents takes the folder that holds the documents")
    found = [path for path in files_below(folder) if readable(path)]
    if not found:
        raise SourceError(f"{folder}: no documents in it; expected .pdf, .txt, .md, .html or .json files")
    return found


# ---------------------------------------------------------------- files


def _in_folder(names: Sequence[str], folder: Path, tally: Tally) -> dict[str, Path]:
    """Tie each name to a file of a folder: by its path there, by its name, then by what is left of both."""
    if not names:
        return {}
    files = files_of(folder)
    exact = {path.relative_to(folder).as_posix(): path for path in files}
    by_name: dict[str, list[Path]] = {}
    for path in files:
        for key in (path.name, path.stem):
            by_name.setdefault(key, []).append(path)
    found: dict[str, Path] = {}
    for name in names:
        same = [exact[name]] if name in exact else by_name.get(_last(name), [])
        if len(same) == 1:
            found[name] = same[0]
        elif same:
            tally.fault("several files have the document's name", f"{name}: {', '.join(map(str, same))}")
    rest = [name for name in names if name not in found and len(by_name.get(_last(name), [])) < 2]
    return found | _alike(rest, found.values(), files, tally)


def _alike(names: Sequence[str], taken: Iterable[Path], files: Sequence[Path], tally: Tally) -> dict[str, Path]:
    """Pair the names that no file has exactly; two spellings of one name are one file."""
    used = {name_key(path.name): path for path in taken}
    found = {name: used[name_key(_last(name))] for name in names if name_key(_last(name)) in used}
    rest = [name for name in names if name not in found]
    pairs = pair_files([_last(name) for name in rest], [path for path in files if path not in set(used.values())])
    found |= {rest[row]: path for row, path in pairs.files.items()}
    paired = {name_key(path.name): path for path in pairs.files.values()}
    for name, similar in pairs.similar:
        tally.note("document paired with a file of a similar name", f"{name} -> {similar}")
    for row in pairs.doubled:
        found[rest[row]] = paired[name_key(_last(rest[row]))]
    for row in pairs.missing:
        tally.fault("document is not in the folder", rest[row])
    return found


def _last(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name


def _beside(names: Sequence[str], table: Path, tally: Tally) -> dict[str, Path]:
    """Take names as paths from the table's folder; a table may not name files outside it."""
    root = table.parent.resolve()
    found: dict[str, Path] = {}
    for name in names:
        path = _resolved(root, name)
        if path is None:
            tally.fault("no name that a file can have", shown(name))
        elif not path.is_relative_to(root):
            tally.fault("path leads out of the table's folder; pass its folder with --documents", name)
        elif not path.is_file():
            tally.fault("no such file; paths count from the table's folder, or pass --documents DIR", name)
        else:
            found[name] = path
    return found


def _resolved(root: Path, name: str) -> Path | None:
    """Return where a name leads; None where it is none: a byte 0 in it, or thousands of characters."""
    try:
        path = (root / name).resolve()
        path.is_file()
    except (OSError, ValueError):
        return None
    return path


def shown(name: str) -> str:
    """Return a name as a message tells it."""
    return printable(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")


def _filename(path: Path, *, as_pdf: bool) -> str:
    """Return a file's name in the corpus: a PDF's ends in .pdf."""
    pdf = path.suffix.lower() == ".pdf"
    return path.name if pdf or not (as_pdf or _looks_like_pdf(path)) else f"{path.name}.pdf"


def _document(path: Path, *, as_pdf: bool) -> RawDocument:
    filename = _filename(path, as_pdf=as_pdf)
    if not as_pdf or path.suffix.lower() == ".pdf" or _looks_like_pdf(path):
        return RawDocument(filename, path.stem, path)
    if path.suffix.lower() in _HTML:
        return RawDocument(filename, path.stem, html=decode(path))
    return RawDocument(filename, path.stem, text=read_within(path).text)


def _looks_like_pdf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(5) == b"%PDF-"


def _check_distinct(documents: dict[str, RawDocument]) -> None:
    """Refuse two documents of one name: a bundle's corpus has one folder."""
    first: dict[str, tuple[str, RawDocument]] = {}
    for name, document in documents.items():
        other, same = first.setdefault(document.filename, (name, document))
        if same != document:
            raise SourceError(f"{other} and {name}: both would be {document.filename!r} in the corpus; rename one")
