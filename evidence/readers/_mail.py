"""What mails of every format have in common: a head of four or five lines, a body, attachments by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exhibit.evidence.printable import Attachment, fragment, grid, paragraph, section


def mail_page(heads: Sequence[tuple[str, str]], *, plain: str, html: str, attached: Iterable[Attachment]) -> str:
    """Return a mail as a page: who wrote to whom, what, and what came with it."""
    head = grid([[name, value] for name, value in heads if value.strip()])
    body = fragment(html) if html.strip() else f'<div class="plain">{paragraph(plain, "div")}</div>'
    return f"{head}<hr>{body}{section('Attachments', [one.name for one in attached])}"
