"""Plain text as a page that prints well: every character kept, lines as the source broke them."""

from __future__ import annotations

import html
import re

from exhibit.converters._fonts import MONO, SERIF, embedded, stack

# without ligatures every character has a box of its own, and is read back as it was written
BODY = f"""
@page {{ size: A4; margin: 22mm }}
body {{ font: 10.5pt/1.45 {stack(SERIF)}; font-variant-ligatures: none; color: #111 }}
"""
_CSS = """
h1 { font-size: 14pt; margin: 0 0 8mm; overflow-wrap: anywhere }
pre { font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; orphans: 2; widows: 2 }
"""
# A browser draws nothing for these, and some (form feeds) would be an error in HTML; for private use (the bullets of
# a symbol font, which is not here) it draws a box.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ue000-\uf8ff\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    """Return a text with plain line ends, and spaces for what a browser would draw as nothing or as a box."""
    return _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def html_from_text(text: str, *, title: str = "") -> str:
    """Return a page with the text as it stands; a title is set above it when there is one."""
    heading = f"<h1>{html.escape(title)}</h1>" if title else ""
    fonts = embedded(title + text, SERIF, bold=bool(title))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{fonts}{BODY}{_CSS}</style>"
        f"<body>{heading}<pre>{html.escape(printable(text), quote=False)}</pre></body></html>"
    )


# EDGAR puts each document of a filing into an envelope of tags, which is no part of it.
_ENVELOPE = re.compile(r"\A\s*<DOCUMENT>.*?<TEXT>[ \r]*\n?|</TEXT>\s*</DOCUMENT>\s*\Z", re.IGNORECASE | re.DOTALL)
# Its plain text is set for a typewriter, 80 columns by 66 lines, and its page ends are tags.
_TYPEWRITER = f"pre {{ font: 8.5pt/1.25 {stack(MONO)} }}"
_NEW_PAGE = '</pre><pre style="break-before: page">'
# The printer runs no script and is off line; a refresh would still lead it away from the page.
_META = re.compile(r"<meta\b[^<>]*>", re.IGNORECASE)


def filing_page(data: bytes, *, html: bool) -> str:
    """Return a document filed with the SEC as a page to print, without its envelope."""
    try:
        page = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        page = data.decode("cp1252", errors="replace")  # what filers wrote with
    page = _ENVELOPE.sub("", page)
    if html:
        return _META.sub("", page)
    typewriter = f"<style>{embedded(page, MONO)}{_TYPEWRITER}</style>"
    return html_from_text(page).replace("&lt;PAGE&gt;", _NEW_PAGE) + typewriter
