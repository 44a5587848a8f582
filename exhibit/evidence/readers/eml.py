"""Mails as files (.eml): headers, body, and attachments as documents of their own."""

import email
from collections.abc import Iterable, Sequence
from email import policy
from email.message import EmailMessage
from pathlib import Path

from exhibit.evidence.files import convert_parser_errors
from exhibit.evidence.markup import Attachment, Printable, cut_fragment, format_grid, format_paragraph, format_section
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".eml",)
KIND = "mail"
TYPES = {"message/rfc822": ".eml"}

_HEADS = ("From", "To", "Cc", "Date", "Subject")


def page(path: Path) -> Printable:
    """Return the mail as a mail program shows it: the HTML body if there is one, else the plain text."""
    with convert_parser_errors(path, KIND):
        message = _read_message(path)
        heads = [(name, str(message.get(name, ""))) for name in _HEADS]
        bodies = {kind: _read_words(message.get_body((kind,))) for kind in ("plain", "html")}
        return Printable(format_mail(heads, **bodies, attached=_list_attached(message)))


def attachments(path: Path) -> list[Attachment]:
    """Return the mail's attachments."""
    with convert_parser_errors(path, KIND):
        return _list_attached(_read_message(path))


def _read_message(path: Path) -> EmailMessage:
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    if not any(message.get(name) for name in _HEADS):
        raise DocumentError(
            f"{path}: not a mail, it has neither a sender nor a subject; is the file name's extension right?"
        )
    return message


def _read_words(part: object) -> str:
    if not isinstance(part, EmailMessage):
        return ""
    try:
        return str(part.get_content())
    except (LookupError, UnicodeDecodeError):  # an unknown charset
        data = part.get_payload(decode=True)
        return data.decode("cp1252", "replace") if isinstance(data, bytes) else ""


def _list_attached(message: EmailMessage) -> list[Attachment]:
    attachments = []
    for number, part in enumerate(message.iter_attachments(), 1):
        name = part.get_filename()
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0)
            data = inner.as_bytes() if isinstance(inner, EmailMessage) else b""
            attachments.append(Attachment(name or f"mail {number}.eml", data))
        elif name or part.get_content_disposition() == "attachment":
            payload = part.get_payload(decode=True)
            attachments.append(
                Attachment(name or f"attachment {number}", payload if isinstance(payload, bytes) else b"")
            )
    return attachments


# ---------------------------------------------------------------- mails of every format


def format_mail(heads: Sequence[tuple[str, str]], *, plain: str, html: str, attached: Iterable[Attachment]) -> str:
    """Return a mail as a page: sender, recipients, body, and the names of its attachments."""
    head = format_grid([[name, value] for name, value in heads if value.strip()])
    body = cut_fragment(html) if html.strip() else f'<div class="plain">{format_paragraph(plain, "div")}</div>'
    return f"{head}<hr>{body}{format_section('Attachments', [one.name for one in attached])}"
