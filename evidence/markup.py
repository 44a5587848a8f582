"""HTML: cut into tags and texts by lxml, and made for a browser to print."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple


class Piece(NamedTuple):
    """A start tag or an end tag by its name in lower case, or a text."""

    kind: Literal["start", "end", "text"]
    value: str


class _Cutter:
    """Takes what lxml's parser tells of a document; comments, declarations and attributes are passed over."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._words: list[str] = []
        self.data = self._words.append

    def start(self, tag: str, _: object) -> None:
        self._tag(Piece("start", tag))

    def end(self, tag: str) -> None:
        self._tag(Piece("end", tag))

    def close(self) -> list[Piece]:
        return self._pieces

    def _tag(self, tag: Piece) -> None:
        text = "".join(self._words)
        self._words.clear()
        self._pieces += [Piece("text", text), tag] if text else [tag]


def pieces(markup: str) -> list[Piece]:
    """Return what a document is made of, in order, as browsers cut it; tags that it leaves out are there."""
    from lxml import etree

    if not markup.strip():
        return []
    parser = etree.HTMLParser(target=_Cutter(), encoding="utf-8", huge_tree=True)
    parser.feed(markup.encode("utf-8", "replace"))
    told: list[Piece] = parser.close()
    return told


# ---------------------------------------------------------------- pages to print

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


def office_page(
    body: str,
    *,
    header: Iterable[str],
    footer: Iterable[str],
    changes: int,
    comments: Sequence[str],
    footnotes: Iterable[str] = (),
) -> Printable:
    """Return a text between its headers and footers, each line once, with its footnotes and comments at its end."""
    edges = {kind: dict.fromkeys(filter(str.strip, lines)) for kind, lines in (("header", header), ("footer", footer))}
    top, bottom = (f"<{kind}>{''.join(map(paragraph, each))}</{kind}>" if each else "" for kind, each in edges.items())
    notes = [f"tracked changes taken as accepted: {changes}"] if changes else []
    notes += [f"comments set at its end: {len(comments)}"] if comments else []
    ends = section("Footnotes", footnotes) + section("Comments", comments)
    return Printable(top + body + ends + bottom, tuple(notes))


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
