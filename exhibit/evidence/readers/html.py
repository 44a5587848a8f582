"""HTML: the visible text, with a line break after each block, as in a browser."""

import re
from pathlib import Path

from exhibit.evidence.document import Document
from exhibit.evidence.files import convert_parser_errors
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
    with convert_parser_errors(path, KIND):
        return Document(path.name, extract_text(decode(path)), (), path)


def extract_text(html: str) -> str:
    """Return the visible text: blocks on their own lines, table cells separated by tabs, `pre` unchanged."""
    pieces: list[str] = []
    hidden = preformatted = 0

    def separate(sign: str, *others: str) -> None:
        if pieces and not pieces[-1].endswith((sign, *others)):
            pieces.append(sign)

    for kind, value in split_markup(html):
        opened = {"start": 1, "end": -1}.get(kind, 0)
        if kind == "text":
            text = value if preformatted else _SPACES.sub(" ", value)
            if not preformatted and (not pieces or pieces[-1].endswith(("\n", " ", "\t"))):
                text = text.lstrip(" ")
            if text and not hidden:
                pieces.append(text)
        elif value in _HIDDEN:
            hidden += opened
        elif value == "br" and opened > 0:
            pieces.append("\n")
        elif value in {"td", "th"} and opened > 0:
            separate("\t", "\n")
        elif value in _BLOCKS:
            separate("\n")
            preformatted += opened * (value == "pre")
    lines = (line.strip(" ") for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
