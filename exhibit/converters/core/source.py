"""Opens raw benchmark files: a folder, an archive that is unpacked safely, or a pinned download."""

import csv
import io
import json
import stat
import sys
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from exhibit.converters.core.benchmark import DatasetInfo, Download
from exhibit.evidence.files import check_sizes
from exhibit.schemas.errors import DocumentError, ServiceError, SourceError
from exhibit.schemas.validate import sha256_of
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import HttpClient, HttpError, download_deadline

MAX_FILES = 100_000  # files: the largest benchmark has some thousand
MAX_BYTES = 8 << 30  # bytes after unpacking: a benchmark of PDFs takes some hundred megabytes
MAX_CELL_CHARS = 1 << 24  # a covenant quoted in full is longer than the csv module's default limit
MAX_NAME_BYTES = 255  # that every file system accepts


@contextmanager
def open_source(info: DatasetInfo, source: Path | None) -> Iterator[Path]:
    """Yield the folder or file with the raw data; files unpacked from an archive are removed afterwards."""
    if source is None:
        source = fetch(info)
    if source.is_dir() or (source.is_file() and source.suffix.lower() in info.accepts):
        yield source
    elif not source.exists():
        raise SourceError(f"{source}: no such file or folder; expected {info.expects}{_from(info)}")
    elif not zipfile.is_zipfile(source):
        raise SourceError(f"{source}: neither a folder nor a zip archive; expected {info.expects}")
    else:
        with make_scratch_folder() as folder:
            unpack(source, folder)
            yield folder


def _from(info: DatasetInfo) -> str:
    return f", from {info.url}" if info.url else ""


def find_one(source: Path, info: DatasetInfo, *patterns: str) -> Path:
    """Return the only file that matches the first matching pattern, at the top of the source or below it."""
    if source.is_file():
        return source
    for search in (source.glob, source.rglob):
        for pattern in patterns:
            paths = sorted(path for path in search(pattern) if "__MACOSX" not in path.parts)
            if len(paths) > 1:
                raise SourceError(f"{source}: several {pattern}: {paths[0]} and {paths[1]}; pass the one that is meant")
            if paths:
                return paths[0]
    raise SourceError(f"{source}: no {patterns[0]} in it; expected {info.expects}{_from(info)}")


def refuse_pointer(path: Path, data: bytes, info: DatasetInfo) -> None:
    """Raise if a file is only a Git LFS pointer."""
    if data.startswith(b"version https://git-lfs"):
        raise SourceError(f"{path}: a Git LFS pointer, not the file; run `git lfs pull`, or download it: {info.url}")


def read_csv(
    path: Path, data: bytes, wanted: Collection[str], info: DatasetInfo, *, header: Callable[[str], str] = str.strip
) -> list[dict[str, str]]:
    """Return the rows of a release's CSV table; raise if a column of `wanted` is missing or a row is short."""
    usual = csv.field_size_limit(MAX_CELL_CHARS)
    try:
        records = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path}: not a CSV file in UTF-8: {error}; get it again from {info.url}") from error
    finally:
        csv.field_size_limit(usual)
    if len(records) < 2:
        raise SourceError(f"{path}: the table has no rows; get it again from {info.url}")
    names = [header(name) for name in records[0]]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise SourceError(f"{path}: no column {missing[0]!r} ({len(missing)} missing); is this {info.benchmark}?")
    short = next((n for n, record in enumerate(records, 1) if record and len(record) != len(names)), None)
    if short is not None:
        raise SourceError(
            f"{path}: record {short} has {len(records[short - 1])} fields, but the header has {len(names)}; "
            f"get the file again from {info.url}"
        )
    return [dict(zip(names, record, strict=True)) for record in records[1:] if record]


def read_json(path: Path, data: bytes, info: DatasetInfo, *, lists: str) -> dict[str, Any]:
    """Return the object in a release's JSON file; raise unless the field named by `lists` is a list."""
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: not JSON in UTF-8 ({error}); get it again from {info.url}") from error
    if not isinstance(content, dict) or not isinstance(content.get(lists), list):
        raise SourceError(f"{path}: no list under the key {lists!r}; is this file from {info.benchmark}?")
    return content


def key_by_name(paths: Iterable[Path]) -> dict[str, Path]:
    """Return files by their names; raise if two have the same name."""
    files: dict[str, Path] = {}
    for path in paths:
        if files.setdefault(path.name, path) != path:
            raise SourceError(f"two files named {path.name!r}: {files[path.name]} and {path}; remove one")
    return files


# ---------------------------------------------------------------- archives


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive; raise if an entry is a link, would leave the folder, or exceeds a size limit."""
    try:
        with zipfile.ZipFile(archive) as file:
            entries = file.infolist()
            _check(archive, entries)
            for entry in entries:
                file.extract(entry, folder)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, LookupError) as error:
        raise SourceError(f"{archive}: damaged archive ({error}); get it again") from error
    except OSError as error:
        raise SourceError(f"{archive}: cannot be unpacked: {error.strerror}; is there room in TMPDIR?") from error
    except RuntimeError as error:  # zipfile raises this if a password is needed
        raise SourceError(f"{archive}: {error}") from error


def _check(archive: Path, entries: list[zipfile.ZipInfo]) -> None:
    try:
        check_sizes(archive, entries, most_bytes=MAX_BYTES, most_parts=MAX_FILES)
    except DocumentError as error:
        raise SourceError(str(error)) from None
    first: dict[str, str] = {}
    for entry in entries:
        name = entry.filename
        path = PurePosixPath(name)
        key = unicodedata.normalize("NFC", name).casefold()
        if not entry.is_dir() and key in first:
            raise SourceError(
                f"{archive}: {first[key]!r} and {name!r} are the same file name on many systems, such as macOS; "
                "rename one of the files, and pack the archive again"
            )
        if not entry.is_dir():
            first[key] = name
        if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
            raise SourceError(f"{archive}: {name!r} would be written outside the folder; do not trust this file")
        if (
            not name
            or "\0" in name
            or any(len(part.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES for part in path.parts)
        ):
            raise SourceError(f"{archive}: {name[:80]!r}… is not a valid file name; do not trust this file")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise SourceError(f"{archive}: {name!r} is a symbolic link; do not trust this file")


# ---------------------------------------------------------------- downloads


def fetch(info: DatasetInfo) -> Path:
    """Return the pinned archive, or the folder of pinned files, from the cache; download missing files."""
    if not info.downloads:
        hand = f" {info.by_hand}" if info.by_hand else ""
        raise SourceError(f"{info.name} has no download: pass --source with {info.expects}{_from(info)}.{hand}")
    folder = find_cache_folder() / info.name
    paths = {folder / Path(urlsplit(one.url).path).name: one for one in info.downloads}
    missing = {path: one for path, one in paths.items() if not path.is_file()}
    if missing:
        cite = info.citation.strip().replace("\n", "\n           ")
        licence = f"{info.licence.name} {info.licence.url}".rstrip()
        notice = f"Downloading {info.benchmark}\n  from     {info.url}\n  licence  {licence}\n  cite     {cite}"
        tqdm.write(notice, file=sys.stderr)
    for path, one in missing.items():
        _fetch_one(one, path)
    return next(iter(paths)) if len(paths) == 1 else folder


def _fetch_one(download: Download, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # a fixed name, so that a later run can continue an interrupted download
        partial = path.with_name(path.name + ".partial")
        _download(download, partial)
        _verify(download, partial)
        partial.replace(path)
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        ) from error


def _download(download: Download, partial: Path) -> None:
    """Download a file, continuing a partial one; if the server cannot resume, start from the beginning."""
    have = partial.stat().st_size if partial.exists() else 0
    if have >= download.bytes:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    client = HttpClient()
    deadline = download_deadline(download.bytes)
    try:
        # read one byte more than expected, so that the check notices another file
        most = download.bytes + (1 << 20)
        with client.send("GET", download.url, headers=headers, deadline=deadline, most=most, follow=5) as response:
            response.check()
            have = have if response.status == HTTPStatus.PARTIAL_CONTENT else 0
            with (
                partial.open("ab" if have else "wb") as file,
                tqdm(total=download.bytes, initial=have, unit="B", unit_scale=True, disable=None) as bar,
            ):
                for block in response.read_parts():  # write each block as it arrives: bytes before a break are kept
                    file.write(block[: download.bytes + 1 - have])
                    have += len(block)
                    bar.update(len(block))
                    if have > download.bytes:
                        break
    except HttpError as error:
        raise ServiceError(
            f"{download.url}: download failed ({error}); run the command again to go on where it stopped, "
            "or download the archive yourself and pass it with --source"
        ) from error
    finally:
        client.close()


def _verify(download: Download, partial: Path) -> None:
    digest = sha256_of(partial)
    if digest == download.sha256:
        return
    size = partial.stat().st_size
    if size < download.bytes:
        raise ServiceError(f"{download.url}: ended after {size} of {download.bytes} bytes; run the command again")
    partial.unlink()
    raise SourceError(
        f"{download.url}: sha256 is {digest}, expected {download.sha256}; the file was removed. "
        "Run the command again, or check the publisher's page"
    )
