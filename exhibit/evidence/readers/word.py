"""Word documents (.docx): mammoth converts the text; this module adds numbers, headers, footers and comments."""

import io
import posixpath
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import open_archive
from exhibit.evidence.readers.html import Printable, format_paragraph, format_section
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".docx", ".docm", ".dotx")
KIND = "Word document"
MEMORY = PACKED

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NO_LISTS = b'<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"/>'
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_GONE = (f"{W}del", f"{W}moveFrom")
_KEPT = (f"{W}ins", f"{W}moveTo")
_MARKS = [f"{W}{of}Change" for of in ("rPr", "pPr", "sectPr", "tblPr", "trPr", "tcPr", "numbering")]
MAX_LEVELS = 9
MAX_NUMBER = 9999  # highest number of a clause: with a larger limit, a file of a few bytes could print without end
_ROMAN = {
    "m": 1000, "cm": 900, "d": 500, "cd": 400, "c": 100, "xc": 90, "l": 50, "xl": 40, "x": 10, "ix": 9, "v": 5, "iv": 4,
    "i": 1,
}  # fmt: skip


def page(path: Path) -> Printable:
    """Return a Word file as HTML to print, with every tracked change accepted, and notes about it."""
    with open_archive(path, KIND) as archive:
        named = [*_read_targets(archive, "")["officeDocument"], "word/document.xml"]
        main = next((name for name in named if name in archive.NameToInfo), None)
        if main is None:
            raise DocumentError(f"{path}: no text in it (word/document.xml); is the Word document complete?")
        targets = _read_targets(archive, main)
        body, changes = _read_body(archive, main, targets)
        header, footer = (_read_edge(archive, targets[kind], kind) for kind in ("header", "footer"))
        comments = _read_comments(archive, targets["comments"][0])
    notes = [f"tracked changes accepted: {changes}"] if changes else []
    notes += [f"comments printed at the end of the document: {len(comments)}"] if comments else []
    return Printable(f"{header}{body}{format_section('Comments', comments)}{footer}", tuple(notes))


def _parse_part(archive: zipfile.ZipFile, name: str) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(archive.read(name), parser) if name in archive.NameToInfo else None


def _read_targets(archive: zipfile.ZipFile, source: str) -> dict[str, list[str]]:
    """Return the paths of the XML files to which the XML file `source` refers, by kind, such as `header`."""
    folder, name = posixpath.split(source)
    relations = _parse_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    targets = defaultdict[str, list[str]](list)
    for item in () if relations is None else relations:
        path = posixpath.normpath(posixpath.join("/", folder, item.get("Target", ""))).lstrip("/")
        targets[str(item.get("Type", "")).rpartition("/")[2]].append(path)
    for kind in ("numbering", "styles", "footnotes", "endnotes", "comments"):
        targets[kind].append(f"word/{kind}.xml")
    return targets


def _read_body(archive: zipfile.ZipFile, main: str, targets: dict[str, list[str]]) -> tuple[str, int]:
    """Return the text with its notes as HTML, and the number of accepted tracked changes."""
    import mammoth

    lists = Numbering(*(_parse_part(archive, targets[kind][0]) for kind in ("numbering", "styles")))
    # remove the lists: otherwise mammoth would number the paragraphs a second time, in its own way
    parts = {targets["numbering"][0]: _NO_LISTS}
    changes = 0
    for name in (main, targets["footnotes"][0], targets["endnotes"][0]):
        root = _parse_part(archive, name)
        if root is not None:
            changes += accept_changes(root)
            _write_numbers(root, lists)
            parts[name] = etree.tostring(root)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.namelist()):
            copy.writestr(name, parts.get(name) or archive.read(name))
    packed.seek(0)
    html: str = mammoth.convert_to_html(packed, include_embedded_style_map=False, id_prefix="word-").value
    return html, changes


def _write_numbers(root: Any, lists: "Numbering") -> None:
    for element in root.iter(f"{W}p") if lists.lists else ():
        label = lists.label(element)
        properties = element.find(f"{W}pPr")
        listed = properties.find(f"{W}numPr") if properties is not None else None
        if listed is not None:
            properties.remove(listed)
        if label:
            run = etree.Element(f"{W}r")
            text = etree.SubElement(run, f"{W}t", {_SPACE: "preserve"})
            text.text = f"{label} "
            element.insert(0 if properties is None else 1, run)


def _read_edge(archive: zipfile.ZipFile, names: list[str], kind: str) -> str:
    lines: dict[str, None] = {}
    for root in (_parse_part(archive, name) for name in names):
        if root is not None:
            accept_changes(root)
            lines |= dict.fromkeys(filter(str.strip, map(_read_words, root.iter(f"{W}p"))))
    return f"<{kind}>{''.join(map(format_paragraph, lines))}</{kind}>" if lines else ""


def _read_comments(archive: zipfile.ZipFile, name: str) -> list[str]:
    root = _parse_part(archive, name)
    if root is None:
        return []
    accept_changes(root)
    comments = ((item.get(f"{W}author", ""), " ".join(map(_read_words, item.iter(f"{W}p"))).strip()) for item in root)
    return [f"{author}: {words}" if author else words for author, words in comments if words]


def _read_words(element: Any) -> str:
    pieces = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}noBreakHyphen": "\u2011"}
    return "".join((node.text or "") if node.tag == f"{W}t" else pieces.get(node.tag, "") for node in element.iter())


def accept_changes(root: Any) -> int:
    """Accept every tracked change in a part of a Word file; return how many there were."""
    for struck in list(root.iter(f"{W}p")):
        following = struck.getnext()
        deleted = struck.find(f"{W}pPr/{W}rPr/{W}del") is not None
        if deleted and following is not None and following.tag == f"{W}p":  # join the two paragraphs
            start = 1 if following.find(f"{W}pPr") is not None else 0
            following[start:start] = [child for child in struck if child.tag != f"{W}pPr"]
            struck.getparent().remove(struck)
    rows = [row for row in root.iter(f"{W}tr") if row.find(f"{W}trPr/{W}del") is not None]
    for row in rows:
        row.getparent().remove(row)
    count = len(rows) + len(list(root.iter(*_GONE)))
    etree.strip_elements(root, *_GONE, *_MARKS, with_tail=False)
    count += len(list(root.iter(*_KEPT)))
    etree.strip_tags(root, *_KEPT)
    return count


class Numbering:
    """The lists that word/numbering.xml and word/styles.xml define, and their counters."""

    def __init__(self, numbering: Any | None, styles: Any | None) -> None:
        self.lists: dict[str, tuple[str, dict[int, Any]]] = {}
        """By numId, the id of the list whose counter is used, and the `lvl` element of each level."""
        self._starts: dict[str, dict[int, int]] = {}  # For each numId, the levels that restart at its first use
        self._styles = _read_styles(styles)
        self._counts: dict[str, list[int | None]] = {}
        if numbering is None:
            return
        abstract = {
            item.get(f"{W}abstractNumId", ""): {_read_depth(level): level for level in item.iterfind(f"{W}lvl")}
            for item in numbering.iterfind(f"{W}abstractNum")
        }
        for item in numbering.iterfind(f"{W}num"):
            name, counter = item.get(f"{W}numId", ""), _read_child(item, "abstractNumId")
            levels = dict(abstract.get(counter, {}))
            for change in item.iterfind(f"{W}lvlOverride"):
                if change.find(f"{W}startOverride") is not None:
                    self._starts.setdefault(name, {})[_read_depth(change)] = _read_number(change, "startOverride", 1)
                levels |= {_read_depth(change): level for level in change.iterfind(f"{W}lvl")}
            self.lists[name] = counter, levels

    def label(self, paragraph: Any) -> str:
        """Advance the counter of a paragraph's list level; return its number as Word shows it, empty if it has none."""
        properties = paragraph.find(f"{W}pPr")
        number, depth = self._styles.get(_read_child(properties, "pStyle"), ("", 0))
        numbering = None if properties is None else properties.find(f"{W}numPr")
        if numbering is not None:
            usual = depth if numbering.find(f"{W}numId") is None else 0
            number, depth = _read_child(numbering, "numId") or number, _read_number(numbering, "ilvl", usual)
        counter, levels = self.lists.get(number, ("", {}))
        level = levels.get(depth) if depth < MAX_LEVELS else None
        if level is None:
            return ""
        counts = self._counts.setdefault(counter, [None] * MAX_LEVELS)
        for index, start in self._starts.pop(number, {}).items():
            counts[index] = start - 1
        for index, count in enumerate(counts[: depth + 1]):
            if index == depth and count is not None:
                counts[index] = count + 1
            elif count is None:
                counts[index] = _read_number(levels.get(index), "start", 1)
        for below in range(depth + 1, MAX_LEVELS):
            # the level that restarts this level; 0 for none
            if (restart := _read_number(levels.get(below), "lvlRestart", MAX_LEVELS)) and depth < restart:
                counts[below] = None
        if _read_child(level, "numFmt") == "bullet":
            return "•"
        # a legal number has digits for all levels, even for levels with another format
        is_legal = level.find(f"{W}isLgl") is not None
        text = _read_child(level, "lvlText")
        for index, count in enumerate(counts):
            form = "decimal" if is_legal else _read_child(levels.get(index), "numFmt")
            text = text.replace(f"%{index + 1}", format_numeral(count or 0, form))
        return text


def _read_styles(styles: Any | None) -> dict[str, tuple[str, int]]:
    """Return the numId and level of each paragraph style; a style that states no numId has that of its base style."""
    items = {} if styles is None else {style.get(f"{W}styleId", ""): style for style in styles.iterfind(f"{W}style")}
    placed: dict[str, tuple[str, int]] = {}
    for name in items:
        at, number, depth = name, "", ""
        seen: set[str] = set()
        while at in items and at not in seen and not number:
            seen.add(at)
            numbering = items[at].find(f"{W}pPr/{W}numPr")
            number, depth = _read_child(numbering, "numId"), depth or _read_child(numbering, "ilvl")
            at = _read_child(items[at], "basedOn")
        if number:
            placed[name] = number, _to_whole(depth, 0)
    return placed


def format_numeral(number: int, form: str) -> str:
    """Return a number in Word's format `form`: 4 is `iv` in `lowerRoman` and `D` in `upperLetter`."""
    number = max(0, min(number, MAX_NUMBER))
    if form in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1) if number else ""
    elif form in ("lowerRoman", "upperRoman"):
        letters = ""
        for mark, value in _ROMAN.items():
            letters += mark * (number // value)
            number %= value
    else:
        return "" if form == "none" else str(number)
    return letters.upper() if form.startswith("upper") else letters


def _read_child(element: Any | None, name: str) -> str:
    child = None if element is None else element.find(f"{W}{name}")
    return "" if child is None else str(child.get(f"{W}val", ""))


def _read_number(element: Any | None, name: str, usual: int) -> int:
    return _to_whole(_read_child(element, name), usual)


def _to_whole(value: str, usual: int) -> int:
    return min(int(value), MAX_NUMBER) if value.isdecimal() else usual


def _read_depth(element: Any) -> int:
    return min(_to_whole(element.get(f"{W}ilvl", ""), 0), MAX_LEVELS - 1)
