"""The card's example: a row whose gold shows well, and the page it stands on with the gold drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops, ImageOps

from exhibit.evidence import Span
from exhibit.evidence.guard import read_within
from exhibit.evidence.show import draw_spans
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import Gold, Row
from exhibit.storage.locations import Location, fetched
from exhibit.storage.upload import Out

PICTURE = "page.png"
_MOST_BYTES = 200_000  # a card's picture is loaded with the page
_READABLE = 300
"""Characters of a passage that a reader takes in at a glance."""
_SCALES = (1.3, 1.0, 0.75, 0.5)  # pixels a point, tried in turn until the picture is small enough


@dataclass(frozen=True)
class Example:
    """What the card shows: a row, its line of gold, and the page drawn in `page.png` (None without one)."""

    row: Row
    line: Gold | None = None
    page: int | None = None


def choose(rows: Sequence[Row], gold: Sequence[Gold]) -> Iterator[Example]:
    """Yield rows to show, best first: one passage on one page, found in its words, and of a readable length."""
    lines: dict[int, list[Gold]] = {}
    for line in gold:
        lines.setdefault(line.id, []).append(line)

    def rank(row: Row) -> tuple[bool, bool, bool, int, int]:
        first = lines[row.id][0]
        length = sum(len(context.text or "") for context in row.contexts)
        return (not first.spans, len(row.contexts) != 1, len(first.pages) > 1, abs(length - _READABLE), row.id)

    for row in sorted(rows, key=rank):
        yield Example(row, lines[row.id][0])


def write_example(
    rows: Sequence[Row],
    gold: Sequence[Gold],
    folder: Path,
    *,
    out: Out | None = None,
    undrawn: Callable[[str], None] = lambda _: None,
) -> Example | None:
    """Return the row to show, and write its page beside it where it has one; `undrawn` is told what cannot be drawn."""
    best: Example | None = None
    for _, example in zip(range(5), choose(rows, gold), strict=False):
        best = best or example
        line = example.line
        if line is None or len(line.pages) != 1:
            continue
        file = (out or Out(folder)).file(f"{CORPUS}/{line.filename}")
        with fetched(file):  # once, for all the steps of drawing
            content = _drawn(file, line, undrawn)
        if content is not None:
            (folder / PICTURE).write_bytes(content)
            return Example(example.row, line, line.pages[0])
    return best


def _drawn(path: Location, line: Gold, undrawn: Callable[[str], None]) -> bytes | None:
    """Return the page as it is drawn; None where it cannot be: another row may show as well."""
    try:
        return _draw(path, line)
    except DocumentError as error:
        undrawn(f"{line.filename}: {str(error).removeprefix(f'{path}: ')}")
        return None


def _draw(path: Location, line: Gold) -> bytes | None:
    """Return the page as a PNG of few colours, smaller until it is small enough; None where nothing can be drawn."""
    document = read_within(path)
    for scale in _SCALES:
        pages = draw_spans(document, [Span(*span) for span in line.spans], scale=scale)
        picture = pages.get(line.pages[0])
        if picture is None:
            return None
        content = _png(picture)
        if len(content) < _MOST_BYTES:
            return content
    return None


def _png(picture: Image.Image) -> bytes:
    written = ImageChops.invert(picture.convert("L")).getbbox()
    if written:  # the last page of a document is mostly blank
        picture = picture.crop((0, 0, picture.width, min(picture.height, written[3] + picture.width // 16)))
    framed = ImageOps.expand(picture, border=1, fill=(200, 204, 210))  # white paper on a white page has no edge
    buffer = io.BytesIO()
    framed.quantize(32).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
