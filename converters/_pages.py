"""Pages for the browser: a text as it stands, and a file of any kind as its reader makes one of it."""

from __future__ import annotations

import html
import re
from pathlib import Path

from exhibit.converters._fonts import style
from exhibit.converters._text_pdf import PAGE_BREAK, Block, printable
from exhibit.evidence.markup import Printable
from exhibit.evidence.read import printable as page_of
from exhibit.evidence.read import read_document
from exhibit.evidence.readers.html import SUFFIXES as HTML
from exhibit.evidence.readers.text import decode


def html_from_text(text: str, *, title: str = "") -> str:
    """Return a page with the text as it stands; a title is set above it when there is one."""
    heading = f"<h1>{html.escape(title)}</h1>" if title else ""
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{style('text')}</style>"
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


_WHOLE_PAGE = "@page { margin: 0 } body { margin: 0 } img.scan { width: 210mm; height: 297mm; object-fit: contain }"
"""A scan has its margins in the picture."""


def office_page(path: Path) -> Printable:
    """Return the page that a file is printed from, and the remarks of its reader."""
    if path.suffix.lower() in HTML:
        return Printable(decode(path))  # it has a style of its own
    page = page_of(path)
    if page is None:
        document = read_document(path)
        return Printable(html_from_text(document.text), document.notes)
    css = style("office") + (_WHOLE_PAGE if 'class="scan"' in page.html[:200] else "")
    head = html_from_text("").partition("<body>")[0]  # the same type as every other print has
    return Printable(f"{head}<style>{css}</style><body>{printable(page.html)}</body></html>", page.notes)
