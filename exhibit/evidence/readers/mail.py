"""Mails as files (.eml, .msg): headers, body, and attachments as documents of their own."""

import email
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from exhibit.evidence.files import convert_parser_errors, decode_bytes, head_of
from exhibit.evidence.markup import Attachment, Printable, cut_fragment, format_grid, format_paragraph, format_section
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".eml", ".msg")
KIND = "mail"
TYPES = {"message/rfc822": ".eml", "application/vnd.ms-outlook": ".msg"}

_HEADS = ("From", "To", "Cc", "Date", "Subject")


def page(path: Path) -> Printable:
    """Return the mail as a mail program shows it: the HTML body if there is one, else the plain text."""
    with convert_parser_errors(path, KIND):
        if path.suffix.lower() == ".msg":
            with _open_outlook(path) as mail:
                top = _Storage(mail, ())
                _check_sizes(_list_outlook_attachments(top), path)
                return Printable(_format_outlook(top))
        message = _read_message(path)
        heads = [(name, str(message.get(name, ""))) for name in _HEADS]
        plain, html = (_read_body(message.get_body((kind,))) for kind in ("plain", "html"))
        return Printable(_format_mail(heads, plain=plain, html=html, attached=_list_attachments(message)))


def attachments(path: Path) -> list[Attachment]:
    """Return the mail's attachments; a mail inside an Outlook mail becomes an HTML page."""
    with convert_parser_errors(path, KIND):
        if path.suffix.lower() != ".msg":
            return _list_attachments(_read_message(path))
        with _open_outlook(path) as mail:
            return _check_sizes(_list_outlook_attachments(_Storage(mail, ())), path)


def _format_mail(heads: Sequence[tuple[str, str]], *, plain: str, html: str, attached: Iterable[Attachment]) -> str:
    head = format_grid([[name, value] for name, value in heads if value.strip()])
    body = cut_fragment(html) if html.strip() else f'<div class="plain">{format_paragraph(plain, "div")}</div>'
    return f"{head}<hr>{body}{format_section('Attachments', [file.name for file in attached])}"


# ---------------------------------------------------------------- .eml


def _read_message(path: Path) -> EmailMessage:
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    if not any(message.get(name) for name in _HEADS):
        raise DocumentError(
            f"{path}: not a mail, it has neither a sender nor a subject; is the file name's extension right?"
        )
    return message


def _read_body(part: object) -> str:
    if not isinstance(part, EmailMessage):
        return ""
    try:
        return str(part.get_content())
    except (LookupError, UnicodeDecodeError):  # an unknown charset
        data = part.get_payload(decode=True)
        return data.decode("cp1252", "replace") if isinstance(data, bytes) else ""


def _list_attachments(message: EmailMessage) -> list[Attachment]:
    listed = []
    for number, part in enumerate(message.iter_attachments(), 1):
        name = part.get_filename()
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0)
            data = inner.as_bytes() if isinstance(inner, EmailMessage) else b""
            listed.append(Attachment(name or f"mail {number}.eml", data))
        elif name or part.get_content_disposition() == "attachment":
            payload = part.get_payload(decode=True)
            listed.append(Attachment(name or f"attachment {number}", payload if isinstance(payload, bytes) else b""))
    return listed


# ---------------------------------------------------------------- .msg: an OLE file with properties

_FIXED = "__properties_version1.0"
_SENT, _DELIVERED = b"\x40\0\x39\0", b"\x40\0\x06\x0e"  # tags of its entries
MAX_ATTACHED_BYTES, MAX_ATTACHED_RATIO = 1 << 20, 4
"""Limits on the bytes of all attachments: a megabyte, or a multiple of the mail's size, because parts may be shared."""


def _check_sizes(listed: list[Attachment], path: Path) -> list[Attachment]:
    total, size = sum(len(file.data) for file in listed), path.stat().st_size
    if total > MAX_ATTACHED_BYTES + MAX_ATTACHED_RATIO * size:
        raise DocumentError(
            f"{path}: its attachments have {total} bytes, but the mail only {size} bytes; do not trust this file"
        )
    return listed


def _open_outlook(path: Path) -> Any:
    import olefile

    if not olefile.isOleFile(str(path)):
        raise DocumentError(
            f"{path}: not a valid Outlook mail, it starts with {head_of(path)!r}; is the file name's extension right?"
        )
    mail = olefile.OleFileIO(str(path), raise_defects=olefile.DEFECT_FATAL)
    if not mail.exists(_FIXED):
        mail.close()
        raise DocumentError(f"{path}: an OLE file, but not a valid Outlook mail; is the file name's extension right?")
    return mail


class _Storage:
    """A mail or an attachment inside an OLE file: a folder of properties."""

    def __init__(self, mail: Any, folder: tuple[str, ...]) -> None:
        self.mail, self.folder = mail, folder

    def data(self, name: str) -> bytes | None:
        path = [*self.folder, name]
        # 2: the type of a stream
        is_stream = self.mail.exists(path) and self.mail.get_type(path) == 2
        return self.mail.openstream(path).read() if is_stream else None

    def text(self, *tags: str) -> str:
        """Return the text of the first of these properties that has text."""
        for tag in tags:
            wide = self.data(f"__substg1.0_{tag}001F")
            narrow = self.data(f"__substg1.0_{tag}001E") or b""
            text = (_decode(narrow) if wide is None else wide.decode("utf-16-le", "replace")).rstrip("\0")
            if text.strip():
                return text
        return ""

    def time(self) -> str:
        """Return when the mail was sent or delivered, as `2024-03-01 09:30 UTC`; empty if neither is known."""
        data = self.data(_FIXED) or b""
        start = 24 if self.folder else 32  # bytes of the header; an entry is 16 bytes
        entries = {data[at : at + 4]: data[at + 8 : at + 16] for at in range(start, len(data) - 15, 16)}
        value = entries.get(_SENT) or entries.get(_DELIVERED)
        if not value:
            return ""
        moment = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=int.from_bytes(value, "little") // 10)
        return moment.strftime("%Y-%m-%d %H:%M UTC")

    def list_children(self, prefix: str) -> "list[_Storage]":
        depth = len(self.folder)
        names = {
            tuple(entry[: depth + 1])
            for entry in self.mail.listdir()
            if len(entry) > depth + 1 and tuple(entry[:depth]) == self.folder and entry[depth].startswith(prefix)
        }
        return [_Storage(self.mail, name) for name in sorted(names)]


def _format_outlook(mail: _Storage) -> str:
    sender, address = mail.text("0C1A"), mail.text("0C1F")
    heads = [
        ("From", f"{sender} <{address}>" if sender and "@" in address else sender or address),
        ("To", mail.text("0E04")),
        ("Cc", mail.text("0E03")),
        ("Date", mail.time()),
        ("Subject", mail.text("0037")),
    ]
    html = _decode(mail.data("__substg1.0_10130102") or b"") or mail.text("1013")
    return _format_mail(heads, plain=mail.text("1000"), html=html, attached=_list_outlook_attachments(mail))


def _list_outlook_attachments(mail: _Storage) -> list[Attachment]:
    listed = []
    for number, inner in enumerate(mail.list_children("__attach_version1.0_#"), 1):
        name = inner.text("3707", "3704", "3001")
        data = inner.data("__substg1.0_37010102")
        if data is not None:
            listed.append(Attachment(name or f"attachment {number}", data))
            continue
        for message in inner.list_children("__substg1.0_3701000D"):
            page = f"<!doctype html><meta charset='utf-8'><body>{_format_outlook(message)}</body>"
            listed.append(Attachment(f"{name or f'mail {number}'}.html", page.encode()))
    return listed


def _decode(data: bytes) -> str:
    decoded = decode_bytes(data)
    return decoded.text if decoded else data.decode("cp1252", "replace")
