"""HTML: the visible text, with a line break after each block, as in a browser."""

import re
from pathlib import Path

from exhibit.evidence.document import Document
from exhibit.evidence.markup import parse_html
from exhibit.evidence.readers.text import decode_file

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
    decoded = decode_file(path)
    return Document(path.name, extract_text(decoded.text), (), path, decoded.notes)


def extract_text(html: str) -> str:
    """Return the visible text: blocks on their own lines, table cells separated by tabs, `pre` unchanged."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    root = parse_html(html)
    if root is None:
        return ""
    pieces: list[str] = []
    hidden = preformatted = 0

    def separate(sign: str, *others: str) -> None:
        if pieces and not pieces[-1].endswith((sign, *others)):
            pieces.append(sign)

    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        opened = {"start": 1, "end": -1}.get(event, 0)
        tag = element.tag if opened else ""
        if tag in _HIDDEN:
            hidden += opened
        elif tag == "br" and opened > 0:
            pieces.append("\n")
        elif tag in {"td", "th"} and opened > 0:
            separate("\t", "\n")
        elif tag in _BLOCKS:
            separate("\n")
            preformatted += opened * (tag == "pre")
        text = (element.text if event == "start" else element.tail) or ""
        if not preformatted:
            text = _SPACES.sub(" ", text)
            if not pieces or pieces[-1].endswith(("\n", " ", "\t")):
                text = text.lstrip(" ")
        if text and not hidden:
            pieces.append(text)
    lines = (line.strip(" ") for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
