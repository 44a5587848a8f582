"""HTML: the visible text, with a line break after each block, as in a browser."""

import re
from collections import Counter
from pathlib import Path

from exhibit.evidence.document import Document
from exhibit.evidence.markup import split_markup
from exhibit.evidence.readers.text import decode

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
    return Document(path.name, extract_text(decode(path)), (), path)


def extract_text(html: str) -> str:
    """Return the visible text: blocks on their own lines, table cells separated by tabs, `pre` unchanged."""
    visible = _Visible()
    for kind, value in split_markup(html):
        if kind == "start":
            visible.start(value)
        elif kind == "end":
            visible.end(value)
        else:
            visible.text(value)
    lines = (line.strip(" ") for line in "".join(visible.pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


class _Visible:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._hidden: list[str] = []
        self._hides: Counter[str] = Counter()
        self._pre = 0

    def start(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
            self._hides[tag] += 1
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in {"td", "th"}:
            self._end_cell()
        elif tag in _BLOCKS:
            self._end_line()
            self._pre += tag == "pre"

    def end(self, tag: str) -> None:
        if self._hides[tag]:
            # this also ends an unclosed hidden element inside
            while self._hides[tag]:
                self._hides[self._hidden.pop()] -= 1
        elif tag in _BLOCKS:
            self._end_line()
            self._pre -= tag == "pre" and self._pre > 0

    def text(self, data: str) -> None:
        if self._hidden:
            return
        if self._pre:
            self.pieces.append(data)
            return
        text = _SPACES.sub(" ", data)
        if not self.pieces or self.pieces[-1].endswith(("\n", " ", "\t")):
            text = text.lstrip(" ")
        if text:
            self.pieces.append(text)

    def _end_line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")

    def _end_cell(self) -> None:
        if self.pieces and not self.pieces[-1].endswith(("\n", "\t")):
            self.pieces.append("\t")
