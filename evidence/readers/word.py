"""Word documents (.docx): tables, numbers, footnotes, headers and footers, comments; tracked changes as accepted.

mammoth turns the text into HTML. What it leaves aside is put in before or after: the numbers of clauses, which Word
counts when it shows a file; headers above the text and footers below it, each once; comments at the end.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from pathlib import Path
from typing import Any

from exhibit.engine.limits import PACKED
from exhibit.evidence.archives import opened, part
from exhibit.evidence.printable import Printable, paragraph, section
from exhibit.evidence.readers._numbering import Numbering, W, read_numbering
from exhibit.evidence.readers._revisions import accept_changes
from exhibit.evidence.readers._xml import parse
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".docx", ".docm", ".dotx")
KIND = "Word document"
MEMORY = PACKED
TYPES = {"application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx"}

_TEXT = ("document", "footnotes", "endnotes")
"""The parts of word/ whose paragraphs are read in the order of the text."""
_NO_LISTS = b'<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"/>'
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def page(path: Path) -> Printable:
    """Return the text as it reads once every tracked change is accepted."""
    with opened(path, KIND) as archive:
        parts, changes = _prepared(archive)
        body = _html(_packed(archive, parts))
        edges = {kind: _edges(archive, kind) for kind in ("header", "footer")}
        comments = _comments(archive)
    top, bottom = (
        f"<{kind}>{''.join(map(paragraph, lines))}</{kind}>" if lines else "" for kind, lines in edges.items()
    )
    notes = []
    if changes:
        notes.append(f"tracked changes taken as accepted: {changes}")
    if comments:
        notes.append(f"comments set at its end: {len(comments)}")
    return Printable(top + body + section("Comments", comments) + bottom, tuple(notes))


def _prepared(archive: zipfile.ZipFile) -> tuple[dict[str, bytes], int]:
    """Return the parts that are changed for mammoth, and the number of tracked changes."""
    from lxml import etree

    if part(archive, "word/document.xml") is None:
        raise DocumentError(f"{archive.filename}: no text in it (word/document.xml); is it a whole Word document?")
    lists = read_numbering(_tree(archive, "word/numbering.xml"), _tree(archive, "word/styles.xml"))
    parts = {"word/numbering.xml": _NO_LISTS}  # or mammoth would count a second time, in its own way
    changes = 0
    for name in _TEXT:
        root = _tree(archive, f"word/{name}.xml")
        if root is not None:
            changes += accept_changes(root)
            _write_numbers(root, lists)
            parts[f"word/{name}.xml"] = etree.tostring(root)
    return parts, changes


def _tree(archive: zipfile.ZipFile, name: str) -> Any:
    data = part(archive, name)
    return None if data is None else parse(data)


def _write_numbers(root: Any, lists: Numbering) -> None:
    """Put each paragraph's number in front of its words."""
    from lxml import etree

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


def _packed(archive: zipfile.ZipFile, parts: dict[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.namelist()):
            if name not in parts and name.endswith((".xml", ".rels")):
                parse(archive.read(name))  # mammoth's own parser expands entities
            copy.writestr(name, parts.get(name) or archive.read(name))
    packed.seek(0)
    return packed


def _html(packed: io.BytesIO) -> str:
    import mammoth

    html: str = mammoth.convert_to_html(packed, include_embedded_style_map=False, id_prefix="word-").value
    return html


def _edges(archive: zipfile.ZipFile, kind: str) -> list[str]:
    """Return the lines of all headers, or of all footers, each once."""
    relations = _tree(archive, "word/_rels/document.xml.rels")
    targets = [] if relations is None else [
        posixpath.normpath(posixpath.join("word", item.get("Target", "")))
        for item in relations
        if item.get("Type", "").endswith(f"/{kind}")
    ]  # fmt: skip
    lines: dict[str, None] = {}
    for name in targets:
        root = _tree(archive, name)
        if root is not None:
            accept_changes(root)
            lines |= dict.fromkeys(filter(str.strip, map(_words, root.iter(f"{W}p"))))
    return list(lines)


def _comments(archive: zipfile.ZipFile) -> list[str]:
    root = _tree(archive, "word/comments.xml")
    if root is None:
        return []
    accept_changes(root)
    said = ((item.get(f"{W}author", ""), " ".join(map(_words, item.iter(f"{W}p"))).strip()) for item in root)
    return [f"{author}: {words}" if author else words for author, words in said if words]


def _words(element: Any) -> str:
    pieces = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}noBreakHyphen": "\u2011"}
    return "".join((node.text or "") if node.tag == f"{W}t" else pieces.get(node.tag, "") for node in element.iter())
