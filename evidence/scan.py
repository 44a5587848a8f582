"""Scans: pages without text are straightened, read by OCR, and their words written into the PDF, unseen."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from PIL import Image

from exhibit.evidence import ocr
from exhibit.evidence.document import Document, Page
from exhibit.evidence.layer import Frame, Layer, Text, write_layer
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.read import read_document
from exhibit.evidence.readers.pdf import render, to_user_space
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.plugins import load_plugin, plugin_names
from exhibit.storage.locations import fetched

_DPI = 200  # small print is read, and a page takes a second or two
_LONGEST_SIDE = 4000
"""Pixels: a poster is drawn smaller than a letter, or it would not fit into memory."""
_STEEPEST = 5.0
"""Degrees to either side that a page is straightened: a feeder draws it in by less, and a photograph needs more."""
_LOOK_SIDE = 1000
"""Pixels of the longer side, for finding the angle: lines of text are still four or five of them high."""


@dataclass(frozen=True)
class Ocr:
    """What reads the pages: a plug-in of `evidence.ocr` and a language."""

    engine: str
    language: str

    def read(self, picture: Image.Image) -> list[TextLine]:
        """Return the lines of a straight page."""
        lines: list[TextLine] = _engine(self.engine).open(self.language)(picture)
        return lines


class Scanned(NamedTuple):
    """A document with the words that were read, and how sure the program was of each page, by number."""

    document: Document
    confidence: dict[str, float]


# ---------------------------------------------------------------- the choice


def choose_ocr(language: str = "en", engine: str = "auto") -> Ocr:
    """Return the engine that is named, or the first that is installed and reads the language."""
    engines = {name: _engine(name) for name in engine_names()}
    if engine != "auto" and engine not in engines:
        raise ToolkitError(f"--ocr-engine {engine}: there is none of that name; there are {', '.join(engines)}")
    longer = {three: two for module in engines.values() for two, three in getattr(module, "CODES", {}).items()}
    tags = [tag.replace("_", "-").partition("-")[0].lower() for tag in language.split("+")]
    codes = [longer.get(tag, tag) for tag in tags]
    code = "+".join(codes)
    chosen = {name: module for name, module in engines.items() if engine in ("auto", name)}
    able = {name: module for name, module in chosen.items() if module.LANGUAGES.issuperset(codes)}
    if not able:
        known = "; ".join(f"{name}: {' '.join(sorted(module.LANGUAGES))}" for name, module in engines.items())
        raise ToolkitError(f"--ocr-language {language}: no engine reads it; {known}")
    for name, module in able.items():
        if not module.missing(code):
            return Ocr(name, code)
    raise ToolkitError("; or ".join(module.missing(code) for module in able.values()))


def engine_names() -> list[str]:
    """Return the names of the plug-ins, in the order in which `auto` tries them."""
    return plugin_names(ocr.__name__)


def _engine(name: str) -> ModuleType:
    return load_plugin(ocr.__name__, name)[0]


def add_ocr_arguments(parser: ArgumentParser) -> None:
    """Add the flags that say whether and how scans are read; `ocr_from` reads them."""
    group = parser.add_argument_group("scans")
    group.add_argument(
        "--ocr", action="store_true", help="read pages without text, and write the words into the PDF, unseen"
    )
    group.add_argument(
        "--ocr-language", type=_language, default="en", metavar="TAG", help="such as en, cs-CZ or ces+eng (default: en)"
    )
    group.add_argument(
        "--ocr-engine",
        choices=["auto", *engine_names()],
        default="auto",
        help="default: auto, the first that is installed and reads the language",
    )


def ocr_from(options: Namespace) -> Ocr | None:
    """Return what the flags of `add_ocr_arguments` ask for, None where scans are not to be read."""
    return choose_ocr(options.ocr_language, options.ocr_engine) if options.ocr else None


def _language(text: str) -> str:
    if not all(re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w+)*", tag) for tag in text.split("+")):
        raise ArgumentTypeError("must be a language tag such as en or cs-CZ, or several, cs+en")
    return text


# ---------------------------------------------------------------- reading


def read_scan(document: Document, target: Path, how: Ocr) -> Scanned | None:
    """Write a PDF with the words of its pages without text to `target`; None where every page has text.

    The document that comes back is the new PDF, read as everybody will read it.
    """
    if document.path is None or document.path.suffix.lower() != ".pdf":
        return None
    empty = [page for page in document.pages if not document.text[page.span.start : page.span.end].strip()]
    layers: dict[int, Layer] = {}
    confidence: dict[str, float] = {}
    faults: list[str] = []
    with fetched(document.path) as path:
        for page in empty:
            try:
                layer, sure = _read_page(path, page, how)
            except DocumentError as error:
                faults.append(f"not read by OCR: {str(error).removeprefix(f'{path}: ')}")
                continue
            if layer.lines:
                layers[page.number] = layer
                confidence[str(page.number)] = round(sure, 4)
        if not layers:
            return None
        write_layer(path, target, layers)
    notes = tuple(f"page {number} read by OCR, sure to {share:.0%}" for number, share in confidence.items())
    layered = read_document(target)
    return Scanned(replace(layered, filename=document.filename, notes=(*document.notes, *notes, *faults)), confidence)


def _read_page(path: Path, page: Page, how: Ocr) -> tuple[Layer, float]:
    longest = max(page.width, page.height, 1.0)
    scale = min(_DPI / 72, _LONGEST_SIDE / longest)
    picture = render(path, page.number, scale=scale).convert("L")
    angle = skew(picture)
    straight = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor="white") if angle else picture
    lines = [line for line in how.read(straight) if line.text.strip()]
    weight = sum(len(line.text) for line in lines) or 1
    sure = sum(line.confidence * len(line.text) for line in lines) / weight
    texts = [
        Text(line.left / scale, line.top / scale, line.right / scale, line.bottom / scale, line.text)
        for line in in_order(lines)
    ]
    return Layer(_frame(path, page), angle, texts), sure


def skew(picture: Image.Image) -> float:
    """Return the degrees by which a page must be turned, counter-clockwise, for its lines to lie straight.

    Straight lines of text make rows of pixels that are dark and rows that are light: the angle with the sharpest
    change from row to row is taken, to a tenth of a degree.
    """
    small = picture.copy()
    small.thumbnail((_LOOK_SIDE, _LOOK_SIDE))
    ink = Image.fromarray((255 - np.asarray(small)).astype("uint8"))
    best = 0.0
    for reach, step in ((_STEEPEST, 1.0), (1.0, 0.2), (0.2, 0.1)):  # each look is nearer to the best of the last
        count = round(reach / step)
        angles = [best + step * number for number in range(-count, count + 1)]
        # the smallest turn of those that are equally good
        best = max(angles, key=lambda angle: (_sharpness(ink, angle), -abs(angle)))
    return round(max(-_STEEPEST, min(best, _STEEPEST)), 2)


def _sharpness(ink: Image.Image, angle: float) -> float:
    rows = np.asarray(ink.rotate(angle, Image.Resampling.BILINEAR), dtype=float).sum(axis=1)
    return float(np.square(np.diff(rows)).sum())


def _frame(path: Path, page: Page) -> Frame:
    """Return the matrix from points of a page, from its top left as it is seen, to the coordinates of the PDF."""
    origin, right, down = to_user_space(path, page.number, [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
    return Frame(right[0] - origin[0], right[1] - origin[1], down[0] - origin[0], down[1] - origin[1], *origin)


def in_order(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return lines from top to bottom, and what stands side by side from left to right."""
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom) / 2):
        middle = (line.top + line.bottom) / 2
        if rows and middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row)]
