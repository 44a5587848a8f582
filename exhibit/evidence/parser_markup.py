"""Recognises the markup that document parsers leave in a text: Markdown, HTML, LaTeX and marks of PDF parsers.

A comparison of letters skips the ranges of markup. The markup is not deleted from the text, so that every
letter keeps its offset.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from exhibit.evidence.fold import Fold
from exhibit.schemas.layout import quote_parts

_COMMON_MARKUP = (
    r"<!--[^<>]{0,400}-->"  # <!-- image -->, <!-- PageBreak -->: Docling and others
    r"|</?[a-zA-Z][^<>]{0,400}>"
    r"|!\[[^\[\]]{0,200}\]\([^()\s]{0,400}\)"  # an image: Marker, MinerU, LlamaParse
    r"|\]\([^()\s]{0,400}\)"  # the target of a link; the link's words are kept
    r"|\[\^[^\[\]\s]{1,20}\]"  # a footnote mark
    r"|\\(?:begin|end)\{[a-z*]{1,16}\}(?:\{[lcrpmX|@.\d ]{0,40}\})?"
    r"|\\multi(?:column|row)\{\d{1,2}\}\{[lcr|*]{1,8}\}"
    r"|\\[nrt](?=[A-Z0-9\\(\"'\s])"  # an escaped line end of Python or JSON; no LaTeX command starts like this
    r"|\\[a-zA-Z]{1,24}\*?"  # any LaTeX command; its argument is kept
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
    r"|~~|\^\{?\d{1,3}\}?(?=\s|$)"  # a superscript number at the end of a word belongs to a footnote
)
_MARKUP = re.compile(_COMMON_MARKUP)
"""Markup, which is not part of the words."""
_FRAMED = re.compile(r"\"\s{0,3}:\s{0,3}[\"\[{\d]|\\u00[0-9a-f]{2}|\\\"")
"""The signs that a text is inside JSON."""
_MARKUP_IN_JSON = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf\"/])|" + _COMMON_MARKUP)
"""Markup inside JSON, where an escaped line end may precede any letter."""
_CUT = re.compile(
    r"\\\\|(?<!\\)&(?!#|[a-zA-Z]{2,8};)|(?<!\\)\||\n|\t|</?(?:td|th|tr|br|li|p|table)\b[^<>]{0,400}>", re.I
)
"""The end of a table cell."""
_TABLE = re.compile(r"(?<!\\)[&|]|\\\\|</t[dhr]>", re.I)
"""The signs that a text contains a table."""
_LINE = 60
"""Most characters of a line of an address or a form, which a page may set beside another line, like table cells."""


class TextCell(NamedTuple):
    """The range of a table cell, or of a line, in a text."""

    start: int
    end: int


def letters_of(text: str) -> Fold:
    """Return the letters and digits of a text without its markup, in lower case, with their offsets."""
    return Fold.of(
        text, loose=True, without=[match.span() for match in _make_markup_pattern(text).finditer(text)]
    ).letters


def without_markup(text: str) -> str:
    """Return a text without the markup that document parsers leave in it, such as Markdown, HTML and LaTeX."""
    return _make_markup_pattern(text).sub("", text)


def _make_markup_pattern(text: str) -> re.Pattern[str]:
    return _MARKUP_IN_JSON if _FRAMED.search(text) else _MARKUP


def cells_of(text: str) -> list[TextCell]:
    """Return the ranges of a text's table cells, row by row.

    If the text is not a table but has several short lines, as a form does, return the ranges of the lines.
    Return [] for any other text.
    """
    lines = text.strip().splitlines()
    if not _TABLE.search(text) and (len(lines) < 2 or max(map(len, lines)) > _LINE):
        return []
    edges = [(0, 0), *(match.span() for match in _CUT.finditer(text)), (len(text), len(text))]
    return [TextCell(before[1], after[0]) for before, after in pairwise(edges) if before[1] < after[0]]


def has_omissions(text: str) -> bool:
    """Return whether a quote has a mark of omitted words: dots, or a word such as `omitted` in angle brackets."""
    return "..." in text or "…" in text or len(quote_parts(text)) > 1


def blank_markup(text: str) -> str:
    """Return a text with blanks in place of its markup, so that every word keeps its offset."""
    return _make_markup_pattern(text).sub(lambda match: " " * len(match[0]), text)
