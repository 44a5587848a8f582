"""Any file as a page that a browser can print: the HTML that readers of office files and mails make."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_UNSEEN = ("script", "style", "meta", "link", "base", "iframe", "frame", "object", "embed", "template", "noscript")
"""What shows no words of its own, or would lead a browser away from the page."""


class Printable(NamedTuple):
    """The body of a page, and what its reader should know: changes taken as accepted, comments set at its end."""

    html: str
    notes: tuple[str, ...] = ()


class Attachment(NamedTuple):
    """A file inside a mail."""

    name: str
    data: bytes


def paragraph(text: str, tag: str = "p") -> str:
    """Return a text as an element, its line breaks kept."""
    return f"<{tag}>{'<br>'.join(html.escape(line, quote=False) for line in text.splitlines())}</{tag}>"


def grid(rows: Iterable[Sequence[str]]) -> str:
    """Return cells of text as a table; empty rows are left out."""
    lines = ["".join(paragraph(cell, "td") for cell in row) for row in rows if any(cell.strip() for cell in row)]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if lines else ""


def section(title: str, paragraphs: Iterable[str]) -> str:
    """Return paragraphs under a heading, nothing where there are none."""
    lines = [paragraph(text) for text in paragraphs if text.strip()]
    return f"<section>{paragraph(title, 'h2')}{''.join(lines)}</section>" if lines else ""


def fragment(page: str) -> str:
    """Return what a whole HTML page shows, to be set into another page: no scripts, styles, frames or refreshes.

    Raise ValueError for tags in tags without end, of which the rest could not be read.
    """
    from lxml import etree
    from lxml import html as lxml_html

    if not page.strip():
        return ""
    # the declaration of an encoding is of the bytes that were; lxml refuses a text that has one
    page = page.lstrip("\ufeff \t\r\n")
    if page.startswith("<?xml"):
        page = page.partition("?>")[2]
    # huge_tree: without it whatever is nested deeper than 256 would be lost without a word; with it, 2048
    parser = lxml_html.HTMLParser(huge_tree=True)
    root = lxml_html.document_fromstring(page, parser=parser)
    if any("depth" in entry.message for entry in parser.error_log):
        raise ValueError("its HTML is nested too deeply")
    etree.strip_elements(root, *_UNSEEN, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    body = root.find("body")
    if body is None:
        return ""
    inner = "".join(etree.tostring(child, encoding="unicode", method="html") for child in body)
    return html.escape(body.text or "", quote=False) + inner
