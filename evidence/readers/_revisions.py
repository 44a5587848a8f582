"""Word's tracked changes taken as accepted: what was put in stays, what was struck out goes."""

from __future__ import annotations

from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_GONE = ("del", "moveFrom")
_KEPT = ("ins", "moveTo")
_MARKS = ("rPrChange", "pPrChange", "sectPrChange", "tblPrChange", "trPrChange", "tcPrChange", "numberingChange")


def accept_changes(root: Any) -> int:
    """Change a part of a Word file into what it is once every change is accepted; return how many there were."""
    count = 0
    _join_paragraphs(root)
    for row in list(root.iter(f"{W}tr")):
        if row.find(f"{W}trPr/{W}del") is not None:
            row.getparent().remove(row)
            count += 1
    for name in (*_GONE, *_MARKS):
        for element in list(root.iter(f"{W}{name}")):
            parent = element.getparent()
            if parent is not None:
                count += name in _GONE
                parent.remove(element)
    for name in _KEPT:
        for element in list(root.iter(f"{W}{name}")):
            for child in list(element):
                element.addprevious(child)  # one by one: to ask for its place would take as long as the paragraph is
            element.getparent().remove(element)
            count += 1
    return count


def _join_paragraphs(root: Any) -> None:
    """Join a paragraph whose end was struck out to the next one."""
    for paragraph in list(root.iter(f"{W}p")):
        if paragraph.find(f"{W}pPr/{W}rPr/{W}del") is None:
            continue
        following = paragraph.getnext()
        if following is None or following.tag != f"{W}p":
            continue
        start = 1 if following.find(f"{W}pPr") is not None else 0
        following[start:start] = [child for child in paragraph if child.tag != f"{W}pPr"]
        paragraph.getparent().remove(paragraph)
