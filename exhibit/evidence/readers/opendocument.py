"""OpenDocument text (.odt): headings, numbered lists, tables, footnotes, headers and comments; changes are accepted."""

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import open_archive, parse_part
from exhibit.evidence.markup import Printable, format_office_page
from exhibit.evidence.numbering import ListLevel, Numbering
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".odt", ".ott")
KIND = "OpenDocument text"
MEMORY = PACKED
TYPES = {"application/vnd.oasis.opendocument.text": ".odt"}

_NS = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _OFFICE, _STYLE, _DRAW = (_NS % name for name in ("text", "table", "office", "style", "drawing"))
_ROW_GROUPS = tuple(f"{_TABLE}table-{kind}" for kind in ("header-rows", "rows", "row-group"))
_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}
_STYLES = (f"{_TEXT}list-style", f"{_TEXT}outline-style")
_MOST_REPEATED = 1000
"""Most spaces or cells that one tag may repeat."""


@dataclass
class _Writer:
    """Turns the elements of a text into HTML, and collects its footnotes and comments."""

    lists: Numbering
    footnotes: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def blocks(self, parent: Any, style: str = "", depth: int = 0) -> Iterator[str]:
        """Yield the HTML of an element's children, block by block."""
        for element in parent:
            if element.tag == f"{_TEXT}p":
                yield f"<p>{self.write_inline(element)}</p>"
            elif element.tag == f"{_TEXT}h":
                level = min(parse_whole_number(element.get(f"{_TEXT}outline-level"), 1), 10)
                number = self._write_number("", level)
                yield f"<h{min(level, 6)}>{html.escape(number)}{self.write_inline(element)}</h{min(level, 6)}>"
            elif element.tag == f"{_TEXT}list":
                yield from self._write_items(element, element.get(f"{_TEXT}style-name") or style, depth + 1)
            elif element.tag == f"{_TABLE}table":
                rows = "".join(f"<tr>{''.join(self._write_cells(row))}</tr>" for row in _find_rows(element))
                yield f"<table>{rows}</table>"
            elif element.tag not in (f"{_TEXT}tracked-changes", f"{_OFFICE}forms", f"{_TEXT}sequence-decls"):
                yield from self.blocks(element, style, depth)

    def write_inline(self, element: Any) -> str:
        """Return a paragraph's content as HTML; its footnotes and comments are added to `footnotes` and `comments`."""
        pieces = [html.escape(element.text or "", quote=False)]
        for child in element:
            pieces += [self._write_piece(child), html.escape(child.tail or "", quote=False)]
        return "".join(pieces)

    def _write_piece(self, child: Any) -> str:
        if not isinstance(child.tag, str):
            return ""
        name = child.tag.removeprefix(_TEXT)
        if name == "s":
            return " " * min(parse_whole_number(child.get(f"{_TEXT}c"), 1), _MOST_REPEATED)
        if name in ("tab", "line-break"):
            return " " if name == "tab" else "<br>"
        if name == "note":
            mark = "".join(child.find(f"{_TEXT}note-citation").itertext())
            words = " ".join(self._write_paragraphs(child.find(f"{_TEXT}note-body")))
            self.footnotes.append(f"{mark} {words}")
            return f"<sup>{html.escape(mark)}</sup>"
        if child.tag == f"{_OFFICE}annotation":
            author = "".join(child.itertext("{http://purl.org/dc/elements/1.1/}creator"))
            words = " ".join(self._write_paragraphs(child))
            self.comments.append(f"{author}: {words}" if author else words)
            return ""
        return self.write_inline(child)

    def _write_paragraphs(self, parent: Any) -> list[str]:
        return ["".join(item.itertext()) for item in _find_outermost(parent)]

    def _write_items(self, element: Any, style: str, depth: int) -> Iterator[str]:
        if element.get(f"{_TEXT}continue-numbering") != "true" and depth == 1:
            self.lists.restart(style)
        for item in element:
            number = "" if item.tag != f"{_TEXT}list-item" else None
            for child in item:
                for block in self.blocks([child], style, depth):
                    # the number belongs to the item's own first paragraph, not to a list inside the item
                    if number is None and child.tag in (f"{_TEXT}p", f"{_TEXT}h"):
                        number = html.escape(self._write_number(style, depth))
                        end = block.index(">") + 1
                        block = block[:end] + number + block[end:]
                    yield block

    def _write_number(self, style: str, depth: int) -> str:
        words = self.lists.count(style, depth - 1)
        return f"{words} " if words.strip() else ""

    def _write_cells(self, row: Any) -> Iterator[str]:
        for cell in row.iterfind(f"{_TABLE}table-cell"):
            yield f"<td>{''.join(self.blocks(cell))}</td>"


def _find_rows(table: Any) -> Iterator[Any]:
    """Yield a table's own rows, without the rows of nested tables."""
    for child in table:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif child.tag in _ROW_GROUPS:
            yield from _find_rows(child)


def _find_outermost(parent: Any) -> Iterator[Any]:
    """Yield the paragraphs below an element, without paragraphs that are nested in other paragraphs."""
    for child in parent:
        if child.tag == f"{_TEXT}p":
            yield child
        else:
            yield from _find_outermost(child)


def page(path: Path) -> Printable:
    """Return an OpenDocument text as HTML to print, with every tracked change accepted."""
    with open_archive(path, KIND) as archive:
        content, styles = parse_part(archive, "content.xml"), parse_part(archive, "styles.xml")
        body = content.find(f"{_OFFICE}body/{_OFFICE}text") if content is not None else None
        if body is None:
            raise DocumentError(f"{path}: no text in it (content.xml); is the OpenDocument text complete?")
        writer = _Writer(_read_lists(content, styles))
        text = "".join(writer.blocks(body))
        edges = {name: list(_read_edge(styles, name)) for name in ("header", "footer")}
        changes = sum(1 for _ in body.iter(f"{_TEXT}changed-region"))
    return format_office_page(text, **edges, changes=changes, comments=writer.comments, footnotes=writer.footnotes)


def _read_lists(*roots: Any) -> Numbering:
    """Return the numbering of each list style by the style's name; the numbering of headings has the name ""."""
    lists: dict[str, tuple[str, dict[int, ListLevel]]] = {}
    for style in (s for root in roots if root is not None for s in root.iter(*_STYLES)):
        name = style.get(f"{_STYLE}name", "") if style.tag == _STYLES[0] else ""
        numbered = {parse_whole_number(level.get(f"{_TEXT}level"), 1) - 1: level for level in style}
        forms = {depth: _read_form(level) for depth, level in numbered.items()}
        if name or set(forms.values()) - {"none"}:
            lists[name] = name, {depth: _read_level(level, depth, forms) for depth, level in numbered.items()}
    return Numbering(lists)


def _read_form(level: Any) -> str:
    bullet = level.tag == f"{_TEXT}list-level-style-bullet"
    return "bullet" if bullet else _FORMS.get(level.get(f"{_STYLE}num-format", ""), "decimal")


def _read_level(level: Any, depth: int, forms: dict[int, str]) -> ListLevel:
    """Return the numbering of one list level, including the upper levels that it shows, as in "4.2"."""
    shown = range(max(depth + 1 - parse_whole_number(level.get(f"{_TEXT}display-levels"), 1), 0), depth + 1)
    numbers = ".".join(f"%{chr(ord('1') + at)}" for at in shown if forms.get(at, "none") != "none")
    text = level.get(f"{_STYLE}num-prefix", "") + numbers + level.get(f"{_STYLE}num-suffix", "")
    return ListLevel(parse_whole_number(level.get(f"{_TEXT}start-value"), 1), forms[depth], text)


def _read_edge(styles: Any, name: str) -> Iterator[str]:
    """Yield the lines of all headers or of all footers, as `name` says."""
    for edge in () if styles is None else styles.iter(f"{_STYLE}{name}"):
        yield from ("".join(p.itertext()) for p in _find_outermost(edge))


def parse_whole_number(value: str | None, usual: int) -> int:
    """Return a value as a whole number, a million at most; `usual` if the value is missing or not a whole number."""
    return min(int(value), 10**6) if value and value.isdecimal() else usual
