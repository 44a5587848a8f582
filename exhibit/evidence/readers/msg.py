"""Outlook mails (.msg), which are OLE files with properties; only the properties that a mail shows are read."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from exhibit.evidence.files import convert_parser_errors, decode_bytes, head_of
from exhibit.evidence.markup import Attachment, Printable
from exhibit.evidence.readers.eml import format_mail
from exhibit.evidence.readers.rtf import extract_rtf_text
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".msg",)
KIND = "Outlook mail"
TYPES = {"application/vnd.ms-outlook": ".msg"}

_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO, _CC = "0037", "0C1A", "0C1F", "0E04", "0E03"
_BODY, _HTML, _RTF = "1000", "1013", "1009"
_FILE, _LONG_NAME, _SHORT_NAME, _SHOWN_NAME = "3701", "3707", "3704", "3001"
_SENT, _DELIVERED = 0x0039, 0x0E06  # property tags of the format
_FIXED = "__properties_version1.0"
_WIDE, _NARROW, _BINARY, _STORAGE = "001F", "001E", "0102", "000D"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MOST, _MOST_TIMES = 1 << 20, 4
"""Limits on the bytes of all attachments: a megabyte, or a multiple of the mail's size, because parts may be shared."""


def page(path: Path) -> Printable:
    """Return the mail as a mail program shows it."""
    with convert_parser_errors(path, KIND), _open_mail(path) as mail:
        top = _Storage(mail, ())
        check_attachment_sizes(_list_attached(top), path)
        return _make_page(top)


def attachments(path: Path) -> list[Attachment]:
    """Return the mail's attachments; a mail inside the mail becomes an HTML page."""
    with convert_parser_errors(path, KIND), _open_mail(path) as mail:
        return check_attachment_sizes(_list_attached(_Storage(mail, ())), path)


def check_attachment_sizes(attachments: list[Attachment], path: Path) -> list[Attachment]:
    """Return the attachments; raise if they are too large for a mail of this size."""
    total, size = sum(len(one.data) for one in attachments), path.stat().st_size
    if total > _MOST + _MOST_TIMES * size:
        raise DocumentError(
            f"{path}: its attachments have {total} bytes, but the mail only {size} bytes; do not trust this file"
        )
    return attachments


def _open_mail(path: Path) -> Any:
    import olefile

    if not olefile.isOleFile(str(path)):
        raise DocumentError(
            f"{path}: not a valid {KIND}, it starts with {head_of(path)!r}; is the file name's extension right?"
        )
    mail = olefile.OleFileIO(str(path), raise_defects=olefile.DEFECT_FATAL)
    if not mail.exists(_FIXED):
        mail.close()
        raise DocumentError(f"{path}: an OLE file, but not a valid {KIND}; is the file name's extension right?")
    return mail


class _Storage:
    """A mail or an attachment inside an OLE file: a folder of properties."""

    def __init__(self, mail: Any, folder: tuple[str, ...], streams: list[list[str]] | None = None) -> None:
        self.mail = mail
        self.folder = folder
        self.streams: list[list[str]] = streams if streams is not None else mail.listdir()

    def data(self, tag: str, kind: str) -> bytes | None:
        """Return the bytes of the property with this tag and type (`kind`); None if there is no such property."""
        name = [*self.folder, f"__substg1.0_{tag}{kind}"]
        if not self.mail.exists(name) or self.mail.get_type(name) != 2:  # 2: the type of a stream
            return None
        data: bytes = self.mail.openstream(name).read()
        return data

    def text(self, *tags: str) -> str:
        """Return the text of the first of these properties that has text."""
        for tag in tags:
            wide = self.data(tag, _WIDE)
            narrow = self.data(tag, _NARROW) if wide is None else None
            words = wide.decode("utf-16-le", "replace") if wide is not None else _decode_text(narrow or b"")
            words = words.rstrip("\0")
            if words.strip():
                return words
        return ""

    def read_time(self, *tags: int) -> str:
        """Return the first time that is set among these properties, as `2024-03-01 09:30 UTC`; empty if none is set."""
        name = [*self.folder, _FIXED]
        data = self.mail.openstream(name).read() if self.mail.exists(name) else b""
        # the header is 32 bytes at the top, 24 in a mail inside a mail, 8 elsewhere; an entry is 16 bytes
        start = 32 if not self.folder else 24
        entries = {data[at : at + 4]: data[at + 8 : at + 16] for at in range(start, len(data) - 15, 16)}
        for tag in tags:
            value = entries.get((tag << 16 | 0x0040).to_bytes(4, "little"))
            if value:
                moment = _EPOCH + timedelta(microseconds=int.from_bytes(value, "little") // 10)
                return moment.strftime("%Y-%m-%d %H:%M UTC")
        return ""

    def list_children(self, prefix: str) -> "list[_Storage]":
        """Return the storages inside this one whose names start with the prefix, sorted."""
        depth = len(self.folder)
        names = {
            tuple(entry[: depth + 1])
            for entry in self.streams
            if len(entry) > depth + 1 and tuple(entry[:depth]) == self.folder and entry[depth].startswith(prefix)
        }
        return [_Storage(self.mail, name, self.streams) for name in sorted(names)]


def _make_page(mail: _Storage) -> Printable:
    sender, address = mail.text(_SENDER), mail.text(_SENDER_ADDRESS)
    heads = [
        ("From", f"{sender} <{address}>" if sender and "@" in address else sender or address),
        ("To", mail.text(_TO)),
        ("Cc", mail.text(_CC)),
        ("Date", mail.read_time(_SENT, _DELIVERED)),
        ("Subject", mail.text(_SUBJECT)),
    ]
    html = mail.data(_HTML, _BINARY)
    page = _decode_text(html) if html else mail.text(_HTML)
    plain = mail.text(_BODY)
    if not page.strip() and not plain.strip():
        plain = _read_rich(mail.data(_RTF, _BINARY) or b"")
    return Printable(format_mail(heads, plain=plain, html=page, attached=_list_attached(mail)))


def _read_rich(data: bytes) -> str:
    """Return the text of a mail's body that exists only as compressed RTF ([MS-OXRTFCP]).

    Tables and fonts are lost.
    """
    from compressed_rtf import decompress

    return extract_rtf_text(decompress(data)) if data else ""


def _list_attached(mail: _Storage) -> list[Attachment]:
    attachments = []
    for number, inner in enumerate(mail.list_children("__attach_version1.0_#"), 1):
        name = inner.text(_LONG_NAME, _SHORT_NAME, _SHOWN_NAME)
        data = inner.data(_FILE, _BINARY)
        if data is not None:
            attachments.append(Attachment(name or f"attachment {number}", data))
            continue
        for mail_inside in inner.list_children(f"__substg1.0_{_FILE}{_STORAGE}"):
            html = _make_page(mail_inside).html
            page = f"<!doctype html><meta charset='utf-8'><body>{html}</body>"
            attachments.append(Attachment(f"{name or f'mail {number}'}.html", page.encode()))
    return attachments


def _decode_text(data: bytes) -> str:
    decoded = decode_bytes(data)
    return decoded.text if decoded else data.decode("cp1252", "replace")
