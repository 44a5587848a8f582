"""Files of every kind as pages to print: what its reader makes of one, set in the project's own type."""

from __future__ import annotations

from pathlib import Path

from exhibit.converters._text_pdf import printable
from exhibit.converters._typeset import html_from_text
from exhibit.evidence.markup import Printable
from exhibit.evidence.read import printable as page_of
from exhibit.evidence.read import read_document
from exhibit.evidence.readers import html
from exhibit.evidence.readers.text import decode

_CSS = """
table { border-collapse: collapse; width: 100%; margin: 2mm 0 }
td, th { border: 0.3pt solid #999; padding: 1mm 1.5mm; vertical-align: top; text-align: left; overflow-wrap: anywhere }
td p, th p { margin: 0 }
p { margin: 0 0 2.2mm; overflow-wrap: anywhere }
h1, h2, h3, h4, h5, h6 { font-size: 11.5pt; margin: 4mm 0 2mm; break-after: avoid }
h1 { font-size: 14pt }
header, footer { font-size: 9pt; color: #333; margin: 0 0 5mm }
sup { font-size: 7pt; line-height: 0 }
img { max-width: 100%; max-height: 240mm }
img.scan { width: 100%; max-height: none; break-after: page; display: block }
.plain { white-space: pre-wrap; overflow-wrap: anywhere }
article.sheet { break-after: page }
article.sheet:last-child, img.scan:last-child { break-after: auto }
"""
_WHOLE_PAGE = "@page { margin: 0 } body { margin: 0 } img.scan { width: 210mm; height: 297mm; object-fit: contain }"
"""A scan has its margins in the picture."""


def office_page(path: Path) -> Printable:
    """Return the page that a file is printed from, and the remarks of its reader."""
    if path.suffix.lower() in html.SUFFIXES:
        return Printable(decode(path))  # it has a style of its own
    page = page_of(path)
    if page is None:
        document = read_document(path)
        return Printable(html_from_text(document.text), document.notes)
    css = _CSS + (_WHOLE_PAGE if 'class="scan"' in page.html[:200] else "")
    head = html_from_text("").partition("<body>")[0]  # the same type as every other print has
    return Printable(f"{head}<style>{css}</style><body>{printable(page.html)}</body></html>", page.notes)
