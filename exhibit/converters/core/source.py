"""Opens raw benchmark files: a folder, an archive that is unpacked safely, or a pinned download."""

import csv
import hashlib
import io
import stat
import sys
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from tqdm import tqdm

from exhibit.converters import DatasetInfo, Download, Item, Tally
from exhibit.evidence.files import check_sizes
from exhibit.schemas.errors import DocumentError, ServiceError, SourceError
from exhibit.schemas.parsing import explain_read_errors, parse_json
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import download_file

MAX_FILES = 100_000  # most files: the largest benchmark has a few thousand
MAX_BYTES = 8 << 30  # most bytes after unpacking: a benchmark of PDFs takes a few hundred megabytes

Record = TypeVar("Record", bound=BaseModel)
Source = TypeVar("Source")  # a file, an address or a document of the source


@contextmanager
def open_source(info: DatasetInfo, source: Path | None) -> Iterator[Path]:
    """Yield the folder or file with the raw data; files unpacked from an archive are removed afterwards."""
    if source is None:
        source = fetch(info)
    if source.is_dir() or (source.is_file() and source.suffix.lower() in info.accepts):
        yield source
    elif not source.exists():
        raise SourceError(f"{source}: no such file or folder; expected {info.expects}")
    elif not zipfile.is_zipfile(source):
        raise SourceError(f"{source}: neither a folder nor a zip archive; expected {info.expects}")
    else:
        with make_scratch_folder() as folder:
            unpack(source, folder)
            yield folder


def parse_csv(text: str, **dialect: Any) -> list[list[str]]:
    usual = csv.field_size_limit(1 << 30)  # enough for a whole contract; the csv module's own limit is 128 kB
    try:
        return list(csv.reader(io.StringIO(text, newline=""), **dialect))
    finally:
        csv.field_size_limit(usual)


class Release:
    """The raw files of a benchmark; `sha256` has the checksum of every file that was read."""

    def __init__(self, source: Path, info: DatasetInfo) -> None:
        self.source, self.info = source, info
        self.sha256: dict[str, str] = {}

    def find(self, *patterns: str) -> Path:
        """Return the only file that matches a pattern; try all patterns at the top first, then in subfolders."""
        source = self.source
        if source.is_file():
            return source
        for search in (source.glob, source.rglob):
            for pattern in patterns:
                paths = sorted(path for path in search(pattern) if "__MACOSX" not in path.parts)
                if len(paths) > 1:
                    raise SourceError(f"{source}: {paths[0]} and {paths[1]} both match {pattern}; remove one")
                if paths:
                    return paths[0]
        raise SourceError(f"{source}: no {patterns[0]} in it; expected {self.info.expects}")

    def read(self, path: Path, *, name: str = "") -> bytes:
        """Return the bytes of a file; raise if it is only a Git LFS pointer."""
        with explain_read_errors(path, SourceError):
            data = path.read_bytes()
        if data.startswith(b"version https://git-lfs"):
            raise SourceError(
                f"{path}: a Git LFS pointer, not the file; run `git lfs pull`, or download it: {self.info.url}"
            )
        self.sha256[name or path.name] = hashlib.sha256(data).hexdigest()
        return data

    def read_text(self, path: Path, *, encoding: Literal["utf-8", "utf-8-sig"] = "utf-8-sig") -> str:
        with explain_read_errors(path, SourceError):
            return self.read(path).decode(encoding)

    def read_csv(
        self, path: Path, columns: Collection[str], *, header: Callable[[str], str] = str.strip, **dialect: Any
    ) -> list[dict[str, str]]:
        """Return the rows of a table; raise if one of `columns` is missing, or if a row has another number of cells."""
        again = f"download it again from {self.info.url}"
        try:
            records = [record for record in parse_csv(self.read_text(path), strict=True, **dialect) if record]
        except csv.Error as error:
            raise SourceError(f"{path}: not a CSV file: {error}; {again}") from error
        if len(records) < 2:
            raise SourceError(f"{path}: the table has no rows; {again}")
        wide = len(records[0])
        if odd := next((number for number, cells in enumerate(records) if len(cells) != wide), None):
            sizes = f"has {len(records[odd])} fields, but the header has {wide}"
            raise SourceError(f"{path}: record {odd + 1} {sizes}; {again}")
        names = [header(name) for name in records[0]]
        if missing := [name for name in columns if name not in names]:
            which = f"no column {missing[0]!r} ({len(missing)} missing)"
            raise SourceError(f"{path}: {which}; is this {self.info.benchmark}?")
        return [dict(zip(names, record, strict=True)) for record in records[1:]]

    def read_json(self, path: Path, *, lists: str) -> dict[str, Any]:
        """Return the object in a JSON file; raise unless the field that `lists` names is a list."""
        content = parse_json(self.read_text(path), where=path, error=SourceError)
        if not isinstance(content, dict) or not isinstance(content.get(lists), list):
            raise SourceError(f"{path}: no list under the key {lists!r}; is this file from {self.info.benchmark}?")
        return content


def read_records(
    model: type[Record], records: Iterable[object], name: str, tally: Tally
) -> Iterator[tuple[int, Record]]:
    """Yield the records that fit a model, each with its number; count every other record as a fault."""
    for number, value in enumerate(records):
        if record := check_record(model, value, f"{name} {number}", tally):
            yield number, record


def check_record(
    model: type[Record], value: object, name: str, tally: Tally, *, item: Item | None = None
) -> Record | None:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        tally.fault("record that is not in the release's format", f"{name}: {where}: {fault['msg']}", item=item)
        return None


def key_by_name(named: Iterable[tuple[str, Source]]) -> dict[str, Source]:
    """Return each source by the name of its document; raise if two documents would have the same name."""
    sources: dict[str, Source] = {}
    for name, source in named:
        if (other := sources.setdefault(name, source)) != source:
            raise SourceError(f"{other} and {source}: both would be named {name!r} in the corpus; remove one of them")
    return sources


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive; raise if an entry is a link, would leave the folder, or exceeds a size limit."""
    try:
        with zipfile.ZipFile(archive) as file:
            check_sizes(archive, file.infolist(), most_bytes=MAX_BYTES, most_parts=MAX_FILES)
            _check_names(archive, file.infolist())
            file.extractall(folder)
    except DocumentError as error:
        raise SourceError(str(error)) from None
    except OSError as error:
        raise SourceError(f"{archive}: cannot be unpacked: {error.strerror}; does TMPDIR have enough space?") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, LookupError, RuntimeError) as error:
        # zipfile raises a RuntimeError if a password is needed
        raise SourceError(f"{archive}: damaged or encrypted archive ({error}); download it again") from error


def _check_names(archive: Path, entries: list[zipfile.ZipInfo]) -> None:
    files: dict[str, str] = {}
    for entry in entries:
        name, path = entry.filename, PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
            raise SourceError(f"{archive}: {name!r} would be written outside the folder; do not trust this file")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise SourceError(f"{archive}: {name!r} is a symbolic link; do not trust this file")
        key = unicodedata.normalize("NFC", name).casefold()
        if key in files and not entry.is_dir():
            same = "are the same file name on many systems, such as macOS; rename one, and pack the archive again"
            raise SourceError(f"{archive}: {files[key]!r} and {name!r} {same}")
        files[key] = name


def fetch(info: DatasetInfo) -> Path:
    """Return the pinned archive, or the folder of pinned files, from the cache; download missing files."""
    if not info.downloads:
        raise SourceError(f"{info.name} has no download: pass --source with {info.expects}. {info.url} {info.by_hand}")
    folder = find_cache_folder() / info.name
    paths = {folder / Path(urlsplit(file.url).path).name: file for file in info.downloads}
    missing = {path: file for path, file in paths.items() if not path.is_file()}
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        licence = f"{info.licence.name} {info.licence.url}".rstrip()
        notice = f"Downloading {info.benchmark} from {info.url}\nlicence: {licence}\n{info.citation.strip()}"
        tqdm.write(notice, file=sys.stderr)
    for path, file in missing.items():
        _download(file, path)
    return next(iter(paths)) if len(paths) == 1 else folder


def _download(download: Download, path: Path) -> None:
    """Download a file, or the rest of an interrupted download; `path` is created only if the checksum is right."""
    partial = path.with_name(f"{path.name}.partial")
    if not partial.exists() or partial.stat().st_size < download.bytes:
        try:
            download_file(download.url, partial, size=download.bytes)
        except ServiceError as error:
            advice = "run the command again to resume it, or download the archive yourself and pass it with --source"
            raise ServiceError(f"{error}; {advice}") from error
    if (digest := sha256_of(partial)) != download.sha256:
        partial.unlink()
        wrong = f"sha256 is {digest}, expected {download.sha256}; nothing was stored"
        raise SourceError(f"{download.url}: {wrong}. Run the command again, or check the publisher's page")
    partial.replace(path)
