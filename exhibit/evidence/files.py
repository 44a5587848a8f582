"""Functions that the document readers share.

They decode bytes, open zip archives within size limits, and parse XML without entities.
"""

import codecs
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.schemas.errors import DocumentError, ToolkitError

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SIGNS = frozenset("‘’“”„‚–—…•§©®°·€£«»†‡™½¼¾\u00a0")
_LETTERS = (
    ("cp1252", "àâæçèéêëîïôùûüÿœ"),  # French
    ("cp1252", "äöüß"),  # German
    ("cp1252", "áéíóúüñçãõâêôàªº¿¡"),  # Spanish, Portuguese
    ("cp1252", "àèéìíîòóùú"),  # Italian
    ("cp1252", "åäöæøéðþáíóúý"),  # the Nordic languages
    ("cp1250", "áčďéěíňóřšťúůýžäľĺŕô"),  # Czech, Slovak
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "čćđšž"),  # Croatian, Slovene
    ("cp1251", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў№"),  # Cyrillic
    ("iso8859_2", "áčďéěíňóřšťúůýžäľĺŕôąćęłńśźż"),
)
"""The letters beyond ASCII of languages, by code page: charset-normalizer reads French Windows-1252 as Windows-1250."""
_MOST_CONTROLS = 0.01  # the share of control characters above which bytes are not text: a text has at most a few


class Decoded(NamedTuple):
    """A text and its encoding; a BOM is the text's first character."""

    text: str
    encoding: str

    @property
    def notes(self) -> tuple[str, ...]:
        """The note on a document in another encoding than UTF-8."""
        return () if self.encoding == "utf-8" else (f"read as {self.encoding}, for it is not UTF-8",)


def decode_bytes(data: bytes) -> Decoded | None:
    """Return the decoded text of some bytes; None if they are not text."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None) or _detect_utf16(data)
    try:
        return Decoded(data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError:
        pass
    if encoding is not None or len(_CONTROLS.findall(data)) > _MOST_CONTROLS * len(data):
        return None
    return _detect_code_page(data)


def _detect_utf16(data: bytes) -> str | None:
    """Return `utf-16-le` or `utf-16-be` if bytes without a BOM look like Latin text in UTF-16; else None."""
    if b"\0" not in data:
        return None
    zeros = [data[start::2].count(0) for start in (0, 1)]
    half = len(data) // 2
    if len(data) % 2 or half < 2 or max(zeros) < 0.4 * half or min(zeros) > 0.05 * half:
        return None
    encoding = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    # the other bytes must be letters and punctuation, or any binary data with zeros would be text
    other = data[0::2] if zeros[1] > zeros[0] else data[1::2]
    return encoding if sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in other) > 0.8 * half else None


def _detect_code_page(data: bytes) -> Decoded | None:
    """Decode bytes with the code page that gives the most usual letters; None if no code page can decode them."""
    best: tuple[int, Decoded] | None = None
    for encoding, letters in _LETTERS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        usual = sum(count for letter, count in Counter(text).items() if letter.lower() in letters or letter in _SIGNS)
        if best is None or usual > best[0]:
            best = usual, Decoded(text, encoding)
    return best[1] if best else None


def decode_page(data: bytes, charset: str = "") -> str:
    """Return a web page's text: in the declared charset, else UTF-8, else Windows-1252, as browsers do."""
    for encoding in (charset, "utf-8-sig"):
        with suppress(LookupError, UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("cp1252", "replace")


# ---------------------------------------------------------------- zip archives

MAX_BYTES = 512 << 20
"""Size limit in bytes of all parts together after decompression: the largest common office files have a tenth of it."""
MAX_PARTS = 20_000  # parts of one file: an office file has some hundred
MAX_RATIO = 200  # the text of a contract compresses 10 to 30 times; a part that compresses 200 times is a zip bomb
_RATIO_FROM = 4 << 20
"""Smallest size in bytes for the ratio check: a sheet of equal cells may compress better, and is harmless if small."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@contextmanager
def convert_parser_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn any error that a parser raises on a broken file into a DocumentError."""
    try:
        yield
    except (ToolkitError, MemoryError):  # a LimitError already has its message
        raise
    except OSError as error:
        # Pillow raises OSError without an errno for an unknown image format
        reason = error.strerror or f"damaged, or not a valid {kind}"
        raise DocumentError(f"{path}: cannot be read: {reason}") from error
    except Exception as error:  # parsers raise anything from KeyError to RecursionError on a broken file
        words = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DocumentError(
            f"{path}: damaged, or not a valid {kind} ({words}); open it in the program that made it and save it again"
        ) from error


@contextmanager
def open_archive(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a document that is a zip archive."""
    with convert_parser_errors(path, kind):
        _refuse_what_is_no_archive(path, kind)
        try:
            with zipfile.ZipFile(path) as archive:
                check_parts(path, archive.infolist())
                yield archive
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DocumentError(f"{path}: damaged or incomplete ({error}); download or copy it again") from error


def read_part(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Return the bytes of one file in a ZIP archive; None if the archive has no file of that name."""
    try:
        return archive.read(name)
    except KeyError:
        return None


def parse_part(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the root of an XML part of an archive; None if there is no part of that name."""
    data = read_part(archive, name)
    return None if data is None else parse(data)


def head_of(path: Path, size: int = 8, *, kind: str = "", starts: tuple[bytes, ...] = ()) -> bytes:
    """Return a file's first `size` bytes; raise DocumentError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(size)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error
    if kind and not head:
        raise DocumentError(f"{path}: empty file; download or copy it again")
    if starts and not head.startswith(starts):
        raise DocumentError(
            f"{path}: not a valid {kind}: it starts with {head[:12]!r}; is the file name's extension right?"
        )
    return head


def _refuse_what_is_no_archive(path: Path, kind: str) -> None:
    if head_of(path, kind=kind) == _OLE:
        raise DocumentError(
            f"{path}: encrypted, or an old format with a new extension; open it, remove the password, and save it "
            f"as {kind}"
        )
    head_of(path, kind=kind, starts=(b"PK",))


def check_parts(path: Path, parts: list[zipfile.ZipInfo]) -> None:
    """Raise DocumentError if an archive is encrypted or exceeds the default limits (see `check_sizes`)."""
    check_sizes(path, parts, most_bytes=MAX_BYTES, most_parts=MAX_PARTS)
    if any(part.flag_bits & 1 for part in parts):
        raise DocumentError(f"{path}: encrypted; open it, remove the password and save it again")


def check_sizes(path: Path, parts: list[zipfile.ZipInfo], *, most_bytes: int, most_parts: int) -> None:
    """Raise DocumentError if an archive is too large after decompression or has too many parts."""
    total = sum(part.file_size for part in parts)
    if len(parts) > most_parts or total > most_bytes:
        limits = f"the limits are {most_bytes >> 20} MiB and {most_parts} parts"
        raise DocumentError(f"{path}: too large: it unpacks to {total >> 20} MiB in {len(parts)} parts; {limits}")
    for part in parts:
        if part.file_size > _RATIO_FROM and part.file_size > MAX_RATIO * max(part.compress_size, 1):
            times = part.file_size // max(part.compress_size, 1)
            raise DocumentError(f"{path}: {part.filename!r} unpacks to {times} times its size; do not trust this file")


# ---------------------------------------------------------------- XML

_ENTITIES = "it declares entities, which documents of this kind never do"
_DECLARATIONS = tuple("<!ENTITY".encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))
_OTHER = re.compile(
    rb"\s*<\?xml[^>]*encoding\s*=\s*[\"'](?!utf-?8|utf-?16|us-ascii|iso-8859-1|windows-125)", re.IGNORECASE
)
_XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<")
_BLOCK = 1 << 20  # bytes read at a time


def refuse_entities(archive: zipfile.ZipFile) -> None:
    """Raise ValueError if an XML part of an archive declares entities or has an unusual encoding."""
    for name in archive.namelist():
        with archive.open(name) as file:
            block = file.read(_BLOCK)
            # a part may have any name: it is XML if it begins like XML
            if not _XML.match(block):
                continue
            before = b""
            while block:
                if any(mark in before + block for mark in _DECLARATIONS):
                    raise ValueError(_ENTITIES)
                if not before and (_OTHER.match(block) or b"\0\0\0" in block[:8]):
                    raise ValueError("its XML is in an encoding that is not supported")
                before, block = block[-40:], file.read(_BLOCK)


def parse(data: bytes) -> Any:
    """Parse XML, and return its root; raise lxml's own error if it is invalid, ValueError if it declares entities."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(data, parser)
    # office formats forbid entities; here they would only serve to make a small file large
    if root.getroottree().docinfo.internalDTD is not None and root.getroottree().docinfo.internalDTD.entities():
        raise ValueError(_ENTITIES)
    return root
