"""PowerPoint: each slide on a page of its own, with its tables, groups and speaker's notes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import open_archive, refuse_entities
from exhibit.evidence.markup import Printable, format_grid, format_paragraph, format_section

SUFFIXES = (".pptx", ".pptm", ".ppsx")
KIND = "PowerPoint presentation"
MEMORY = PACKED
TYPES = {"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx"}

_DEEPEST = 20
"""Levels of nested groups that are read; real slides have two or three."""


def page(path: Path) -> Printable:
    """Return the slides of a PowerPoint file as HTML to print, in their order, each with its notes."""
    with open_archive(path, KIND) as archive:
        from pptx import Presentation

        refuse_entities(archive)
        slides = [slide_page(slide) for slide in Presentation(archive.fp).slides]
    return Printable("".join(f'<article class="sheet">{slide}</article>' for slide in slides))


def slide_page(slide: Any) -> str:
    """Return a slide as HTML, its notes last."""
    pieces = [piece for shape in slide.shapes for piece in _read_pieces(shape, 0)]
    said = slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else ""
    return "".join(pieces) + format_section("Notes", said.splitlines())


def _read_pieces(shape: Any, depth: int) -> Iterator[str]:
    if hasattr(shape, "shapes") and depth < _DEEPEST:
        for inner in shape.shapes:
            yield from _read_pieces(inner, depth + 1)
    elif getattr(shape, "has_table", False):
        yield format_grid([[cell.text for cell in row.cells] for row in shape.table.rows])
    elif shape.has_text_frame:
        tag = "h2" if shape.is_placeholder and "TITLE" in str(shape.placeholder_format.type) else "p"
        yield from (
            format_paragraph(line.text.replace("\v", "\n"), tag) for line in shape.text_frame.paragraphs if line.text
        )
