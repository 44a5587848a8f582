"""Mails as files (.eml): headers, body, and attachments as documents of their own."""

import email
from collections.abc import Iterable, Sequence
from email import policy
from email.message import EmailMessage
from pathlib import Path

from exhibit.evidence.files import convert_parser_errors
from exhibit.evidence.markup import Attachment, Printable, fragment, grid, paragraph, section
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".eml",)
KIND = "mail"
TYPES = {"message/rfc822": ".eml"}

_HEADS = ("From", "To", "Cc", "Date", "Subject")


def page(path: Path) -> Printable:
    """Return the mail as a mail program shows it: the HTML body if there is one, else the plain text."""
    with convert_parser_errors(path, KIND):
        message = _message(path)
        heads = [(name, str(message.get(name, ""))) for name in _HEADS]
        bodies = {kind: _words(message.get_body((kind,))) for kind in ("plain", "html")}
        return Printable(mail_page(heads, **bodies, attached=_list_attached(message)))


def attachments(path: Path) -> list[Attachment]:
    """Return the mail's attachments."""
    with convert_parser_errors(path, KIND):
        return _list_attached(_message(path))


def _message(path: Path) -> EmailMessage:
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    if not any(message.get(name) for name in _HEADS):
        raise DocumentError(
            f"{path}: not a mail, it has neither a sender nor a subject; is the file name's extension right?"
        )
    return message


def _words(part: object) -> str:
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


def mail_page(heads: Sequence[tuple[str, str]], *, plain: str, html: str, attached: Iterable[Attachment]) -> str:
    """Return a mail as a page: sender, recipients, body, and the names of its attachments."""
    head = grid([[name, value] for name, value in heads if value.strip()])
    body = fragment(html) if html.strip() else f'<div class="plain">{paragraph(plain, "div")}</div>'
    return f"{head}<hr>{body}{section('Attachments', [one.name for one in attached])}"
