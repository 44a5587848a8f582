"""Rules as a page that prints well: the document's name on top, its headings set off, every word kept."""

from __future__ import annotations

import re

from exhibit.converters._text_pdf import Block, printable
from exhibit.law.names import file_key

_SEPARATOR = "---"
"""The export's own mark before each heading."""
_LONGEST_HEADING = 150  # characters: what is longer is a sentence
_OPEN_END = re.compile(r"[.;:,–-]$|\b(and|or)$")


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
