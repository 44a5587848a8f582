"""HTML to its tags and texts in one pass forward: no input makes it look twice at the same characters.

As a browser cuts it, and the same on every version of Python, whose own parser is quadratic on unclosed tags and
comments, and raises on some.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_NAME = re.compile(r"[a-zA-Z][^\t\n\r\f />\x00]*")
_MARK = re.compile(r"<(?=[a-zA-Z/!?])")
"""Where a tag, a comment or a declaration begins; any other `<` is a character."""
_EDGE = re.compile(r"[>\"']")
_RAW = {
    tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE | re.ASCII) for tag in ("script", "style", "title", "textarea")
}
"""Elements whose content is no markup, and what ends them."""
_WRITTEN = frozenset({"title", "textarea"})
"""Those of them whose content is written with character references."""
_FAR = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
"""A reference beyond any character: Python refuses to read a number of 5,000 digits."""


class Piece(NamedTuple):
    """A start tag or an end tag by its name in lower case, or a text."""

    kind: Literal["start", "end", "text"]
    value: str


def pieces(markup: str) -> Iterator[Piece]:
    """Yield what a document is made of, in order; comments, declarations and attributes are passed over."""
    at, quotes = 0, {"'": True, '"': True}
    while at < len(markup):
        mark = _MARK.search(markup, at)
        start = mark.start() if mark else len(markup)
        if start > at:
            yield Piece("text", unescape(markup[at:start]))
        if mark is None:
            return
        name = _NAME.match(markup, start + 1)
        if name is not None:
            at = _tag_end(markup, name.end(), quotes)
            tag = name.group().lower()
            if at == len(markup) and markup[-1] != ">":
                return  # cut short: no tag
            yield Piece("start", tag)
            if markup[at - 2] == "/":
                yield Piece("end", tag)
            elif tag in _RAW:
                end = _RAW[tag].search(markup, at)
                text = markup[at : end.start() if end else len(markup)]
                yield Piece("text", unescape(text) if tag in _WRITTEN else text)
                at = end.start() if end else len(markup)
            continue
        end_name = _NAME.match(markup, start + 2) if markup.startswith("</", start) else None
        if end_name is not None:
            yield Piece("end", end_name.group().lower())
            at = _after(markup, ">", end_name.end())
        elif markup.startswith("<!--", start):
            at = _after(markup, "-->", start)  # which `<!-->` and `<!--->` end with as well
        else:
            at = _after(markup, ">", start)


def unescape(text: str) -> str:
    """Return a text with its character references read."""
    return html.unescape(_FAR.sub("\ufffd", text)) if "&" in text else text


def _after(markup: str, mark: str, at: int) -> int:
    """Return the place behind the next mark; the end of the document where there is none."""
    place = markup.find(mark, at)
    return len(markup) if place < 0 else place + len(mark)


def _tag_end(markup: str, at: int, quotes: dict[str, bool]) -> int:
    """Return the place behind a start tag; a `>` in a quoted value does not end it.

    `quotes` remembers which kind of quotation mark does not occur any more, so that it is looked for once.
    """
    while (edge := _EDGE.search(markup, at)) is not None:
        at = edge.end()
        mark = edge.group()
        if mark == ">":
            return at
        if quotes[mark] and _opens(markup, edge.start()):
            close = markup.find(mark, at)
            quotes[mark] = close >= 0
            at = max(at, close + 1)
    return len(markup)


def _opens(markup: str, at: int) -> bool:
    """Return whether a quotation mark begins an attribute's value."""
    before = at - 1
    # values stand close to their sign; what is further away than this is no value of anybody's
    while before > at - 16 and markup[before] in " \t\n\r\f":
        before -= 1
    return markup[before] == "="
