"""Word documents (.docx), with tables, numbers, footnotes, headers and comments; tracked changes are accepted.

mammoth converts the text to HTML. This module adds the parts that mammoth omits: the numbers of clauses, which
Word computes when it shows a file; headers above the text; comments and footers below it. Each header and footer
line appears once.
"""

import io
import posixpath
import zipfile
from pathlib import Path
from typing import Any

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import open_archive, parse, parse_part
from exhibit.evidence.markup import Printable, format_paragraph, format_section
from exhibit.evidence.numbering import Numbering, W, read_numbering
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".docx", ".docm", ".dotx")
KIND = "Word document"
MEMORY = PACKED

_NOTES = ("footnotes", "endnotes")  # the parts whose paragraphs are read after those of the text
_NO_LISTS = b'<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"/>'
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def page(path: Path) -> Printable:
    """Return a Word file as HTML to print, with every tracked change accepted, and notes about it."""
    with open_archive(path, KIND) as archive:
        named = [*_find_targets(archive, "", "officeDocument"), "word/document.xml"]
        main = next((name for name in named if name in archive.NameToInfo), None)
        if main is None:
            raise DocumentError(f"{path}: no text in it (word/document.xml); is the Word document complete?")
        parts, changes = _prepare_parts(archive, main)
        body = _convert_html(archive, parts)
        header, footer = (_read_edge(archive, main, kind) for kind in ("header", "footer"))
        comments = _read_comments(archive, main)
    notes = [f"tracked changes taken as accepted: {changes}"] if changes else []
    notes += [f"comments set at its end: {len(comments)}"] if comments else []
    return Printable(f"{header}{body}{format_section('Comments', comments)}{footer}", tuple(notes))


def _find_targets(archive: zipfile.ZipFile, source: str, kind: str) -> list[str]:
    """Return the paths of the XML files of a kind, such as `header`, to which the XML file `source` refers."""
    folder, name = posixpath.split(source)
    relations = parse_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    named = [] if relations is None else [
        item.get("Target", "") for item in relations if str(item.get("Type", "")).endswith(f"/{kind}")
    ]  # fmt: skip
    return [posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/") for target in named]


def _find_part(archive: zipfile.ZipFile, main: str, kind: str) -> str:
    """Return the path of an XML file inside a Word document, by its kind: `word/styles.xml` for `styles`."""
    return (_find_targets(archive, main, kind) or [f"word/{kind}.xml"])[0]


def _prepare_parts(archive: zipfile.ZipFile, main: str) -> tuple[dict[str, bytes], int]:
    """Return changed parts of a Word file, by name, and the number of tracked changes in them."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    numbering, styles = (_find_part(archive, main, kind) for kind in ("numbering", "styles"))
    lists = read_numbering(parse_part(archive, numbering), parse_part(archive, styles))
    # remove the lists: otherwise mammoth would number the paragraphs a second time, in its own way
    parts = {numbering: _NO_LISTS}
    changes = 0
    for name in (main, *(_find_part(archive, main, kind) for kind in _NOTES)):
        root = parse_part(archive, name)
        if root is not None:
            changes += accept_changes(root)
            write_numbers(root, lists)
            parts[name] = etree.tostring(root)
    return parts, changes


def write_numbers(root: Any, lists: Numbering) -> None:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    if not lists.lists:
        return
    for element in root.iter(f"{W}p"):
        label = lists.label(element)
        properties = element.find(f"{W}pPr")
        listed = properties.find(f"{W}numPr") if properties is not None else None
        if listed is not None:
            properties.remove(listed)
        if not label:
            continue
        run = etree.Element(f"{W}r")
        text = etree.SubElement(run, f"{W}t")
        text.text = f"{label} "
        text.set(_SPACE, "preserve")
        element.insert(0 if properties is None else 1, run)


def _convert_html(archive: zipfile.ZipFile, parts: dict[str, bytes]) -> str:
    import mammoth

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.namelist()):
            if name not in parts and name.endswith((".xml", ".rels")):
                parse(archive.read(name))  # reject entities, which mammoth's parser would expand
            copy.writestr(name, parts.get(name) or archive.read(name))
    packed.seek(0)
    html: str = mammoth.convert_to_html(packed, include_embedded_style_map=False, id_prefix="word-").value
    return html


def _read_edge(archive: zipfile.ZipFile, main: str, kind: str) -> str:
    """Return an HTML element with the distinct lines of all headers or of all footers, as `kind` says."""
    lines: dict[str, None] = {}
    for root in (parse_part(archive, name) for name in _find_targets(archive, main, kind)):
        if root is not None:
            accept_changes(root)
            lines |= dict.fromkeys(filter(str.strip, map(_read_words, root.iter(f"{W}p"))))
    return f"<{kind}>{''.join(map(format_paragraph, lines))}</{kind}>" if lines else ""


def _read_comments(archive: zipfile.ZipFile, main: str) -> list[str]:
    root = parse_part(archive, _find_part(archive, main, "comments"))
    if root is None:
        return []
    accept_changes(root)
    said = ((item.get(f"{W}author", ""), " ".join(map(_read_words, item.iter(f"{W}p"))).strip()) for item in root)
    return [f"{author}: {words}" if author else words for author, words in said if words]


def _read_words(element: Any) -> str:
    pieces = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}noBreakHyphen": "\u2011"}
    return "".join((node.text or "") if node.tag == f"{W}t" else pieces.get(node.tag, "") for node in element.iter())


# ---------------------------------------------------------------- tracked changes

_GONE = ("del", "moveFrom")
_KEPT = ("ins", "moveTo")
_MARKS = ("rPrChange", "pPrChange", "sectPrChange", "tblPrChange", "trPrChange", "tcPrChange", "numberingChange")


def accept_changes(root: Any) -> int:
    """Accept every tracked change in a part of a Word file; return how many there were."""
    _join_paragraphs(root)
    rows = [row for row in root.iter(f"{W}tr") if row.find(f"{W}trPr/{W}del") is not None]
    for row in rows:
        row.getparent().remove(row)
    count = len(rows)
    for element in list(root.iter(*(f"{W}{name}" for name in (*_GONE, *_MARKS)))):
        parent = element.getparent()
        if parent is not None:
            count += element.tag.removeprefix(W) in _GONE
            parent.remove(element)
    for element in list(root.iter(*(f"{W}{name}" for name in _KEPT))):
        for child in list(element):
            element.addprevious(child)  # one by one, because looking up each position would take quadratic time
        element.getparent().remove(element)
        count += 1
    return count


def _join_paragraphs(root: Any) -> None:
    """Merge each paragraph with the next paragraph if a tracked change deleted the paragraph mark between them."""
    for struck in list(root.iter(f"{W}p")):
        following = struck.getnext()
        deleted = struck.find(f"{W}pPr/{W}rPr/{W}del") is not None
        if deleted and following is not None and following.tag == f"{W}p":
            start = 1 if following.find(f"{W}pPr") is not None else 0
            following[start:start] = [child for child in struck if child.tag != f"{W}pPr"]
            struck.getparent().remove(struck)
