"""Functions that the document readers share: they decode bytes and open zip archives within size limits."""

import codecs
import errno
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.parsing import explain_read_errors

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
)  # Each code page with the letters beyond ASCII of a language; charset-normalizer confuses Windows-1252 and 1250
_MAX_CONTROLS = 0.01  # the share of control characters above which bytes are not text


class Decoded(NamedTuple):
    text: str
    encoding: str

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.encoding == "utf-8" else (f"read as {self.encoding}, because it is not UTF-8",)


def decode_bytes(data: bytes) -> Decoded | None:
    """Return the decoded text of some bytes, with its BOM; None if they are not text."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not is_wide and len(_CONTROLS.findall(data)) > _MAX_CONTROLS * len(data):
        return None
    encoding = "utf-16" if is_wide else "utf-8"
    with suppress(UnicodeDecodeError):
        return Decoded(data.decode(encoding), encoding)
    # otherwise choose the code page that yields the most common letters
    decoded: list[tuple[int, Decoded]] = []
    for encoding, letters in () if is_wide else _LETTERS:
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            counts = Counter(text).items()
            usual = sum(count for letter, count in counts if letter.lower() in letters or letter in _SIGNS)
            decoded.append((usual, Decoded(text, encoding)))
    return max(decoded, key=lambda pair: pair[0])[1] if decoded else None


def decode_page(data: bytes, charset: str = "") -> str:
    """Return a web page's text: in the declared charset, else UTF-8, else Windows-1252, as browsers do."""
    for encoding in (charset, "utf-8-sig"):
        with suppress(LookupError, UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("cp1252", "replace")


MAX_RATIO = 200  # a contract's text compresses 10 to 30 times; a part that compresses 200 times is a zip bomb
_RATIO_FROM = 4 << 20  # smallest size in bytes for the ratio check: a small sheet of equal cells may compress better
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# office formats forbid entities, which the parsers of mammoth and openpyxl would expand
_DECLARATIONS = tuple("<!ENTITY".encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))


@contextmanager
def convert_parser_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn any error that a parser raises on a broken file into a DocumentError."""
    try:
        yield
    except (ToolkitError, MemoryError):  # a LimitError already has its message
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:  # the disk is full: the file is not damaged
            raise
        # Pillow raises OSError without an errno for an unknown image format
        reason = error.strerror or f"damaged, or not a valid {kind}"
        raise DocumentError(f"{path}: cannot be read: {reason}") from error
    except Exception as error:  # parsers raise anything from KeyError to RecursionError on a broken file
        words = (str(error) or type(error).__name__).splitlines()[0][:120]
        advice = "open it in the program that made it and save it again"
        raise DocumentError(f"{path}: damaged, or not a valid {kind} ({words}); {advice}") from error


@contextmanager
def open_archive(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open an office file; raise DocumentError if it is damaged, too large or encrypted, or declares XML entities."""
    with convert_parser_errors(path, kind):
        if head_of(path, kind=kind, starts=(b"PK", _OLE)) == _OLE:
            advice = f"open it, remove the password, and save it as {kind}"
            raise DocumentError(f"{path}: encrypted, or an old format with a new extension; {advice}")
        with zipfile.ZipFile(path) as archive:
            # large office files have a tenth of these bytes, and some hundred parts
            check_sizes(path, archive.infolist(), most_bytes=512 << 20, most_parts=20_000)
            for name in archive.namelist():
                data = archive.read(name)
                is_xml = data[:4].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \r\n").startswith(b"<")
                if is_xml and any(declaration in data for declaration in _DECLARATIONS):
                    raise ValueError("it declares entities, which documents of this kind never do")
            yield archive


def head_of(path: Path, size: int = 8, *, kind: str = "", starts: tuple[bytes, ...] = ()) -> bytes:
    """Return a file's first `size` bytes; raise DocumentError if it cannot be read or has another start."""
    with explain_read_errors(path, DocumentError), path.open("rb") as file:
        head = file.read(size)
    if starts and not head.startswith(starts):
        found = f"it starts with {head[:12]!r}" if head else "it is empty"
        raise DocumentError(f"{path}: not a valid {kind}: {found}; is the file name's extension right?")
    return head


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
