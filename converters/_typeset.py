"""Text as a page for the browser: where it stands among HTML, or has Chinese, Japanese or Korean in it."""

from __future__ import annotations

import html
import re

from exhibit.converters._fonts import SERIF, stack
from exhibit.converters._text_pdf import PAGE_BREAK, Block, printable

# without ligatures every character has a box of its own, and is read back as it was written
_CSS = f"""
@page {{ size: A4; margin: 22mm }}
body {{ font: 10.5pt/1.45 {stack(SERIF)}; font-variant-ligatures: none; color: #111 }}
h1 {{ font-size: 14pt; margin: 0 0 8mm; overflow-wrap: anywhere }}
pre {{ font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; orphans: 2; widows: 2 }}
"""


def html_from_text(text: str, *, title: str = "") -> str:
    """Return a page with the text as it stands; a title is set above it when there is one."""
    heading = f"<h1>{html.escape(title)}</h1>" if title else ""
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{_CSS}</style>"
        f"<body>{heading}<pre>{html.escape(printable(text), quote=False)}</pre></body></html>"
    )


# EDGAR puts each document of a filing into an envelope of tags, which is no part of it; its page ends are tags, too.
_ENVELOPE = re.compile(r"\A\s*<DOCUMENT>.*?<TEXT>[ \r]*\n?|</TEXT>\s*</DOCUMENT>\s*\Z", re.IGNORECASE | re.DOTALL)


def filing(data: bytes) -> str:
    """Return a document filed with the SEC without its envelope."""
    try:
        page = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        page = data.decode("cp1252", errors="replace")  # what filers wrote with
    return _ENVELOPE.sub("", page)


def filed_text(page: str) -> tuple[Block, ...]:
    """Return a filing in plain text as it is printed: for a typewriter, 80 columns by 66 lines."""
    return (Block("pre", page.replace("<PAGE>", PAGE_BREAK)),)
