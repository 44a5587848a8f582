"""Rules as a page that prints well: the document's name on top, its headings set off, every word kept."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

from exhibit.converters._fonts import SERIF, embedded
from exhibit.converters._typeset import BODY, printable
from exhibit.law.names import file_key

_CSS = """
h1 { font-size: 15pt; line-height: 1.25; margin: 0 0 7mm }
h2 { font-size: 11.5pt; margin: 6mm 0 2mm; break-after: avoid }
p { margin: 0 0 2.4mm; white-space: pre-wrap; overflow-wrap: anywhere; orphans: 2; widows: 2 }
"""
_SEPARATOR = "---"
"""The export's own mark before each heading."""
_LONGEST_HEADING = 150  # characters: what is longer is a sentence
_OPEN_END = re.compile(r"[.;:,–-]$|\b(and|or)$")


class Block(NamedTuple):
    """A paragraph of a printed document."""

    tag: str
    """h1 the document's name, h2 a heading, p any other."""
    text: str


def blocks_of(title: str, text: str) -> list[Block]:
    """Return a document's name and its text, paragraph by paragraph, as they are printed."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", printable(text)) if part.strip()]
    blocks = [Block("h1", title)]
    if paragraphs and file_key(heading_of(text)).startswith(file_key(title)):
        # the text brings its own title; printing both would repeat it
        blocks = [Block("h1", paragraphs.pop(0))]
    after_separator = False
    for paragraph in paragraphs:
        if paragraph == _SEPARATOR:
            after_separator = True
            continue
        blocks.append(Block("h2" if _is_heading(paragraph, after_separator) else "p", paragraph))
        after_separator = False
    return blocks


def page_of(title: str, blocks: Sequence[Block]) -> str:
    """Return a page with a document's name and its paragraphs."""
    used = title + "".join(text for _, text in blocks)
    body = [f"<{tag}>{html.escape(text, quote=tag == 'h1')}</{tag}>" for tag, text in blocks]
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<style>{embedded(used, SERIF, bold=True)}{BODY}{_CSS}</style><body>{''.join(body)}</body></html>"
    )


def heading_of(text: str) -> str:
    """Return a text's first line when it is short enough to be its title, else nothing."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].strip()
    return first if len(first) <= 2 * _LONGEST_HEADING and "\n" not in first else ""


def _is_heading(paragraph: str, after_separator: bool) -> bool:
    if len(paragraph) > _LONGEST_HEADING or "\n" in paragraph or _OPEN_END.search(paragraph):
        return False
    # chunked exports have lost the separators; a line in capitals is still a heading there
    shouted = paragraph.isupper() and len(paragraph) > 8
    return shouted or (after_separator and not re.match(r"[\d(•£]", paragraph))
