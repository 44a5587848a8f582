"""HTML, and text that is printed as HTML: Markdown without its markup, CSV and TSV as a table."""

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from lxml import html as lxml_html

from exhibit.evidence.readers.text import decode_file

HTML_SUFFIXES = (".html", ".htm", ".xhtml")
SUFFIXES = (*HTML_SUFFIXES, ".csv", ".tsv", ".md", ".markdown")

_UNSEEN = ("script", "style", "meta", "link", "base", "iframe", "frame", "object", "embed", "template", "noscript")
"""Elements without words, and elements that would load other content."""
_HIDDEN = {"script", "style", "head", "template", "noscript", "svg"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li",
    "main", "nav", "ol", "p", "pre", "section", "table", "tbody", "tfoot", "thead", "title", "tr", "ul",
}  # fmt: skip
_SPACES = re.compile(r"[ \t\n\r\f]+")


def extract_text(page: str) -> str:
    """Return the visible text: blocks on their own lines, table cells separated by tabs, `pre` unchanged."""
    root = _parse_html(page)
    pieces: list[str] = []
    hidden = preformatted = 0

    def separate(sign: str, *others: str) -> None:
        if pieces and not pieces[-1].endswith((sign, *others)):
            pieces.append(sign)

    etree.strip_tags(root, etree.Comment, etree.ProcessingInstruction)
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag, step = element.tag, 1 if event == "start" else -1
        if tag in _HIDDEN:
            hidden += step
        elif tag == "br" and event == "start":
            pieces.append("\n")
        elif tag in {"td", "th"} and event == "start":
            separate("\t", "\n")
        elif tag in _BLOCKS:
            separate("\n")
            preformatted += step * (tag == "pre")
        text = (element.text if event == "start" else element.tail) or ""
        if not preformatted:
            text = _SPACES.sub(" ", text)
            if not pieces or pieces[-1].endswith(("\n", " ", "\t")):
                text = text.lstrip(" ")
        if text and not hidden:
            pieces.append(text)
    lines = (line.strip(" ") for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def page(path: Path) -> "Printable":
    decoded = decode_file(path)
    text, ending = decoded.text.removeprefix("\ufeff"), path.suffix.lower()
    if ending in (".csv", ".tsv"):
        first = text.partition("\n")[0]
        delimiter = "\t" if ending == ".tsv" else max(",;\t|", key=first.count)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return Printable(format_grid(rows), decoded.notes)
    if ending in (".md", ".markdown"):
        from markdown_it import MarkdownIt

        markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        return Printable(cut_fragment(markdown.render(text)), decoded.notes)
    return Printable(text, decoded.notes)


def _parse_html(page: str) -> Any:
    """Return the root element of an HTML page; raise ValueError if it is nested too deeply."""
    # remove the declaration of an encoding: lxml refuses it in a decoded text
    page = page.replace("\0", "").lstrip("\ufeff \t\r\n")
    if page.startswith("<?xml"):
        page = page.partition("?>")[2]
    # huge_tree raises lxml's limit of nesting from 256 to 2048; lxml silently drops deeper content
    parser = lxml_html.HTMLParser(huge_tree=True)
    root = lxml_html.document_fromstring(page if page.strip() else "<html></html>", parser=parser)
    if any("depth" in entry.message for entry in parser.error_log):
        raise ValueError("its HTML is nested too deeply")
    return root


class Printable(NamedTuple):
    html: str
    notes: tuple[str, ...] = ()


class Attachment(NamedTuple):
    name: str
    data: bytes


def format_paragraph(text: str, tag: str = "p") -> str:
    return f"<{tag}>{'<br>'.join(html.escape(line, quote=False) for line in text.splitlines())}</{tag}>"


def format_grid(rows: Iterable[Sequence[str]]) -> str:
    lines = ["".join(format_paragraph(cell, "td") for cell in row) for row in rows if any(cell.strip() for cell in row)]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if lines else ""


def format_section(title: str, paragraphs: Iterable[str]) -> str:
    lines = [format_paragraph(text) for text in paragraphs if text.strip()]
    return f"<section>{format_paragraph(title, 'h2')}{''.join(lines)}</section>" if lines else ""


def cut_fragment(page: str) -> str:
    """Return the visible part of an HTML page for embedding in another page, without scripts, styles and frames."""
    root = _parse_html(page)
    etree.strip_elements(root, *_UNSEEN, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    body = root.find("body")
    if body is None:
        return ""
    inner = "".join(etree.tostring(child, encoding="unicode", method="html") for child in body)
    return html.escape(body.text or "", quote=False) + inner
