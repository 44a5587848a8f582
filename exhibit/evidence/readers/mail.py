"""Mails as files (.eml, .msg): headers, body, and attachments as separate documents."""

import email
from collections.abc import Sequence
from email import policy
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import olefile
from olefile.olefile import filetime2datetime

from exhibit.evidence.files import decode_bytes, decode_page, head_of
from exhibit.evidence.readers import html
from exhibit.evidence.readers.html import Attachment, Printable
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".eml", ".msg")
KIND = "mail"

_HEADS = ("From", "To", "Cc", "Date", "Subject")
_FIXED = "__properties_version1.0"
_SENT, _DELIVERED = b"\x40\0\x39\0", b"\x40\0\x06\x0e"  # tags of the entries with the two times
MAX_ATTACHED_BYTES, MAX_ATTACHED_RATIO = 1 << 20, 4  # 1 MB, or 4 times the mail's size if larger


def page(path: Path) -> Printable:
    """Return the mail as a mail program shows it: the HTML body if there is one, else the plain text."""
    return Printable(_read_mail(path)[0])


def attachments(path: Path) -> list[Attachment]:
    """Return the mail's attachments; a mail inside an Outlook mail becomes an HTML page."""
    return _read_mail(path)[1]


def _read_mail(path: Path) -> tuple[str, list[Attachment]]:
    if path.suffix.lower() == ".msg":
        head_of(path, kind="Outlook mail", starts=(olefile.MAGIC,))
        with olefile.OleFileIO(str(path), raise_defects=olefile.DEFECT_FATAL) as mail:
            if not mail.exists(_FIXED):
                raise DocumentError(f"{path}: an OLE file, but not a mail; is the file name's extension right?")
            body, attached = _read_outlook(mail, ())
        total, size = sum(len(file.data) for file in attached), path.stat().st_size
        if total > MAX_ATTACHED_BYTES + MAX_ATTACHED_RATIO * size:
            raise DocumentError(
                f"{path}: its attachments have {total} bytes, but the mail only {size} bytes; do not trust this file"
            )
        return body, attached
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    if not any(message.get(name) for name in _HEADS):
        raise DocumentError(
            f"{path}: not a mail: it has neither a sender nor a subject; check the extension of its name"
        )
    heads = [str(message.get(name, "")) for name in _HEADS]
    plain, rich = (_read_body(message.get_body((kind,))) for kind in ("plain", "html"))
    attached = _list_attachments(message)
    return _format_mail(heads, plain, rich, attached), attached


def _format_mail(heads: Sequence[str], plain: str, rich: str, attached: Sequence[Attachment]) -> str:
    head = html.format_grid([(name, value) for name, value in zip(_HEADS, heads, strict=True) if value.strip()])
    text = f'<div class="plain">{html.format_paragraph(plain, "div")}</div>'
    body = html.cut_fragment(rich) if rich.strip() else text
    return f"{head}<hr>{body}{html.format_section('Attachments', [file.name for file in attached])}"


def _read_body(part: Any) -> str:
    return decode_page(part.get_payload(decode=True) or b"", part.get_content_charset("")) if part else ""


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


def _read_outlook(mail: Any, folder: tuple[str, ...]) -> tuple[str, list[Attachment]]:
    read = partial(_read_text, mail, folder)
    attached = []
    for number, inner in enumerate(_list_folders(mail, folder, "__attach_version1.0_#"), 1):
        name = _read_text(mail, inner, "3707", "3704", "3001")
        data = _read_data(mail, inner, "__substg1.0_37010102")
        if data is not None:
            attached.append(Attachment(name or f"attachment {number}", data))
            continue
        for message in _list_folders(mail, inner, "__substg1.0_3701000D"):
            page = f"<!doctype html><meta charset='utf-8'><body>{_read_outlook(mail, message)[0]}</body>"
            attached.append(Attachment(f"{name or f'mail {number}'}.html", page.encode()))
    sender, address = read("0C1A"), read("0C1F")
    sender = f"{sender} <{address}>" if sender and "@" in address else sender or address
    heads = sender, read("0E04"), read("0E03"), _read_time(mail, folder), read("0037")
    rich = _decode(_read_data(mail, folder, "__substg1.0_10130102") or b"") or read("1013")
    return _format_mail(heads, read("1000"), rich, attached), attached


def _list_folders(mail: Any, folder: tuple[str, ...], prefix: str) -> list[tuple[str, ...]]:
    folders = (tuple(entry) for entry in mail.listdir(streams=False, storages=True))
    return sorted(entry for entry in folders if entry[:-1] == folder and entry[-1].startswith(prefix))


def _read_data(mail: Any, folder: tuple[str, ...], name: str) -> bytes | None:
    path = [*folder, name]
    return mail.openstream(path).read() if mail.get_type(path) == olefile.STGTY_STREAM else None


def _read_text(mail: Any, folder: tuple[str, ...], *tags: str) -> str:
    for tag in tags:
        wide = _read_data(mail, folder, f"__substg1.0_{tag}001F")
        narrow = _read_data(mail, folder, f"__substg1.0_{tag}001E") or b""
        text = (_decode(narrow) if wide is None else wide.decode("utf-16-le", "replace")).rstrip("\0")
        if text.strip():
            return text
    return ""


def _read_time(mail: Any, folder: tuple[str, ...]) -> str:
    """Return the time at which the mail was sent or delivered, as `2024-03-01 09:30 UTC`; empty if it is unknown."""
    data = _read_data(mail, folder, _FIXED) or b""
    start = 24 if folder else 32  # bytes of the header; an entry is 16 bytes
    entries = {data[at : at + 4]: data[at + 8 : at + 16] for at in range(start, len(data) - 15, 16)}
    value = entries.get(_SENT) or entries.get(_DELIVERED)
    return f"{filetime2datetime(int.from_bytes(value, 'little')):%Y-%m-%d %H:%M UTC}" if value else ""


def _decode(data: bytes) -> str:
    decoded = decode_bytes(data)
    return decoded.text if decoded else data.decode("cp1252", "replace")
