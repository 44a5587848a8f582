"""HTML: splitting it into tags and texts in one forward pass, and building pages for a browser to print."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

_NAME = re.compile(r"[a-zA-Z][^\t\n\r\f />\x00]*")
_MARK = re.compile(r"<(?=[a-zA-Z/!?])")
"""The start of a tag, a comment or a declaration; any other `<` is a character."""
_EDGE = re.compile(r"[>\"']")
_RAW = {
    tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE | re.ASCII) for tag in ("script", "style", "title", "textarea")
}
"""Elements whose content is not markup, each with the pattern of its end."""
_WRITTEN = frozenset({"title", "textarea"})
"""Elements of `_RAW` whose content has character references."""
_FAR = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
"""A character reference that is too large for any character: Python refuses to parse a number of 5,000 digits."""


class Piece(NamedTuple):
    """A start or end tag, with its name in lower case, or a text."""

    kind: Literal["start", "end", "text"]
    value: str


def split_markup(markup: str) -> Iterator[Piece]:
    """Yield the tags and texts of a document, in order; comments, declarations and attributes are skipped."""
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
                return  # the document ends inside it: not a tag
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
            at = _find_after(markup, ">", end_name.end())
        elif markup.startswith("<!--", start):
            at = _find_after(markup, "-->", start)  # `<!-->` and `<!--->` also end this way
        else:
            at = _find_after(markup, ">", start)


def unescape(text: str) -> str:
    """Return a text with its character references decoded."""
    return html.unescape(_FAR.sub("\ufffd", text)) if "&" in text else text


def _find_after(markup: str, mark: str, at: int) -> int:
    """Return the position after the next mark; the end of the document if there is none."""
    place = markup.find(mark, at)
    return len(markup) if place < 0 else place + len(mark)


def _tag_end(markup: str, at: int, quotes: dict[str, bool]) -> int:
    """Return the position after a start tag; a `>` in a quoted value does not end the tag.

    Args:
        quotes: whether each kind of quotation mark may still occur; set to False when a search for it fails, so
            that the search is not repeated.
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
    # a value follows its equals sign closely; a quotation mark further away begins no value
    while before > at - 16 and markup[before] in " \t\n\r\f":
        before -= 1
    return markup[before] == "="


# ---------------------------------------------------------------- pages to print

_UNSEEN = ("script", "style", "meta", "link", "base", "iframe", "frame", "object", "embed", "template", "noscript")
"""Elements without words of their own, and elements that would load other content."""


class Printable(NamedTuple):
    """The HTML body of a page to print, and notes about it, such as the number of accepted tracked changes."""

    html: str
    notes: tuple[str, ...] = ()


class Attachment(NamedTuple):
    """A file inside a mail."""

    name: str
    data: bytes


def format_paragraph(text: str, tag: str = "p") -> str:
    """Return a text as an HTML element, with `<br>` for its line breaks."""
    return f"<{tag}>{'<br>'.join(html.escape(line, quote=False) for line in text.splitlines())}</{tag}>"


def format_grid(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as an HTML table; empty rows are left out."""
    lines = ["".join(format_paragraph(cell, "td") for cell in row) for row in rows if any(cell.strip() for cell in row)]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if lines else ""


def format_section(title: str, paragraphs: Iterable[str]) -> str:
    """Return an HTML section with a heading and paragraphs; empty if all paragraphs are blank."""
    lines = [format_paragraph(text) for text in paragraphs if text.strip()]
    return f"<section>{format_paragraph(title, 'h2')}{''.join(lines)}</section>" if lines else ""


def format_office_page(
    body: str,
    *,
    header: Iterable[str],
    footer: Iterable[str],
    changes: int,
    comments: Sequence[str],
    footnotes: Iterable[str] = (),
) -> Printable:
    """Return an office document as an HTML page: headers, body, footnotes, comments and footers, in this order.

    Each header or footer line appears only once. Notes give the numbers of accepted changes and of comments.
    """
    edges = {kind: dict.fromkeys(filter(str.strip, lines)) for kind, lines in (("header", header), ("footer", footer))}
    top, bottom = (
        f"<{kind}>{''.join(map(format_paragraph, each))}</{kind}>" if each else "" for kind, each in edges.items()
    )
    notes = [f"tracked changes taken as accepted: {changes}"] if changes else []
    notes += [f"comments set at its end: {len(comments)}"] if comments else []
    ends = format_section("Footnotes", footnotes) + format_section("Comments", comments)
    return Printable(top + body + ends + bottom, tuple(notes))


def cut_fragment(page: str) -> str:
    """Return the visible part of an HTML page for embedding in another page: no scripts, styles, frames or refreshes.

    Raise ValueError if the HTML is nested too deeply to be read completely.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
    from lxml import html as lxml_html

    if not page.strip():
        return ""
    # the declared encoding was that of the bytes; lxml refuses a decoded text with a declaration
    page = page.lstrip("\ufeff \t\r\n")
    if page.startswith("<?xml"):
        page = page.partition("?>")[2]
    # huge_tree raises lxml's limit of nesting from 256 to 2048; deeper content would be lost silently
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
