"""Zip archives that are documents (.docx, .odt, .epub …): opened with limits, so that none fills the memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exhibit.schemas.errors import DocumentError, ToolkitError

MAX_BYTES = 512 << 20
"""Unpacked, all parts together: the largest office files that people send are a tenth of it."""
MAX_PARTS = 20_000  # of one file: an office file has some hundred
MAX_RATIO = 200
"""The text of a contract packs 10 to 30 times; what packs 200 times is made to fill a memory."""
_RATIO_FROM = 4 << 20
"""Bytes: a sheet of equal cells may pack better than that, and while it is small it does no harm."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises over a broken file into a DocumentError."""
    try:
        yield
    except (ToolkitError, MemoryError):  # what it may take is said by whoever set the limit
        raise
    except OSError as error:
        # Pillow says so of a picture it does not know, without a number of the system
        reason = error.strerror or f"damaged, or no {kind}"
        raise DocumentError(f"{path}: cannot be read: {reason}") from error
    except Exception as error:  # parsers raise anything from KeyError to RecursionError over a broken file
        words = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DocumentError(
            f"{path}: damaged, or no {kind} ({words}); open it in the program that made it and save it again"
        ) from error


@contextmanager
def opened(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a document that is a zip archive, once its sizes are known to be harmless."""
    with reading(path, kind):
        _refuse_what_is_no_archive(path, kind)
        try:
            with zipfile.ZipFile(path) as archive:
                _check(path, archive.infolist())
                yield archive
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DocumentError(f"{path}: damaged or cut short ({error}); get it again") from error


def part(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Return one part of an archive, or None where it has none of that name."""
    try:
        return archive.read(name)
    except KeyError:
        return None


def _refuse_what_is_no_archive(path: Path, kind: str) -> None:
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise DocumentError(f"{path}: empty file; get it again")
    if head == _OLE:
        raise DocumentError(
            f"{path}: encrypted, or an old file under a new ending; open it, remove the password, and save it as {kind}"
        )
    if not head.startswith(b"PK"):
        raise DocumentError(f"{path}: no {kind}, it starts with {head!r}; is the ending right?")


def _check(path: Path, parts: list[zipfile.ZipInfo]) -> None:
    total = sum(part.file_size for part in parts)
    if len(parts) > MAX_PARTS or total > MAX_BYTES:
        limits = f"the limits are {MAX_BYTES >> 20} MiB and {MAX_PARTS} parts"
        raise DocumentError(f"{path}: unpacks to {total >> 20} MiB in {len(parts)} parts; {limits}")
    for part in parts:
        if part.file_size > _RATIO_FROM and part.file_size > MAX_RATIO * max(part.compress_size, 1):
            times = part.file_size // max(part.compress_size, 1)
            raise DocumentError(f"{path}: {part.filename!r} unpacks to {times} times its size; do not trust this file")
        if part.flag_bits & 1:
            raise DocumentError(f"{path}: encrypted; open it, remove the password and save it again")
