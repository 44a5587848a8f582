"""HTML: the words a reader sees, one line per block, as a browser would break them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from evidence.document import Document
from evidence.readers.text import decode

SUFFIXES = (".html", ".htm", ".xhtml")
KIND = "HTML page"

_HIDDEN = {"script", "style", "head", "template", "noscript", "svg"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li",
    "main", "nav", "ol", "p", "pre", "section", "table", "tbody", "tfoot", "thead", "title", "tr", "ul",
}  # fmt: skip
_SPACES = re.compile(r"[ \t\n\r\f]+")


def read(path: Path) -> Document:
    """Read an HTML file's visible text."""
    return Document(path.name, html_text(decode(path)), (), path)


def html_text(html: str) -> str:
    """Return the visible text: blocks on their own lines, table cells parted by tabs, `pre` kept."""
    parser = _Visible()
    parser.feed(html)
    parser.close()
    lines = (line.strip(" ") for line in "".join(parser.pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


class _Visible(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden: list[str] = []
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in {"td", "th"}:
            self._cell()
        elif tag in _BLOCKS:
            self._line()
            self._pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            # what an unclosed tag inside hid ends here as well
            del self._hidden[self._hidden.index(tag) :]
        elif tag in _BLOCKS:
            self._line()
            self._pre -= tag == "pre" and self._pre > 0

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._pre:
            self.pieces.append(data)
            return
        text = _SPACES.sub(" ", data)
        if self._fresh():
            text = text.lstrip(" ")
        if text:
            self.pieces.append(text)

    def _fresh(self) -> bool:
        return not self.pieces or self.pieces[-1].endswith(("\n", " ", "\t"))

    def _line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")

    def _cell(self) -> None:
        if self.pieces and not self.pieces[-1].endswith(("\n", "\t")):
            self.pieces.append("\t")
