"""Plain text as a page that prints well: every character kept, lines as the source broke them."""

from __future__ import annotations

import html
import re

_CSS = """
@page { size: A4; margin: 22mm }
body { font: 10.5pt/1.45 "Liberation Serif", "Times New Roman", "DejaVu Serif", "Noto Serif", serif; color: #111 }
h1 { font-size: 14pt; margin: 0 0 8mm }
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
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{_CSS}</style>"
        f"<body>{heading}<pre>{html.escape(printable(text), quote=False)}</pre></body></html>"
    )
