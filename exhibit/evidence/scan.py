"""Scans: OCR reads pages without text, and the words become an invisible text layer of the PDF.

The pages are straightened first. The layer's font is embedded, so that the boxes of words are equal on every machine.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from exhibit.evidence import ocr
from exhibit.evidence.document import Document, Page
from exhibit.evidence.files import convert_parser_errors
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.read import ending_of, read_document
from exhibit.evidence.readers.pdf import render
from exhibit.runtime.plugins import import_plugins, list_plugins, load_plugin
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.storage.atomic import replace_file
from exhibit.storage.locations import fetch_file

_DPI = 200  # dots per inch: small print is readable, and OCR of a page takes one or two seconds
_LONGEST_SIDE = 4000  # longest side in pixels: a poster is drawn at a lower resolution to fit into memory
_STEEPEST = 5.0  # most degrees by which a page is straightened: scanners skew pages by less
FONT = "ExhibitUnseen"
FONT_FILE = Path(__file__).with_name("unseen.pdf")  # A PDF page that contains the font; `bench.unseen_font` makes it
ADVANCE = 500  # The width of every character, in thousandths of the font size, before it is stretched on the page
ASCENT, DESCENT = 750, -250  # thousandths of the font size above and below the baseline, as in most fonts
_NARROW, _WIDE = frozenset(" iljtfrI1.,;:'’‘|!()[]{}-"), frozenset("mwMW@%—ŒœÆæ")


class Ocr(NamedTuple):
    engine: str  # the name of a plug-in of `evidence.ocr`
    language: str


class Scanned(NamedTuple):
    document: Document
    confidence: dict[str, float]  # by page number


def choose_ocr(language: str = "en", engine: str = "auto") -> Ocr:
    """Return the OCR engine of that name; `auto` means the first installed engine that reads the language."""
    engines = import_plugins(ocr.__name__)
    longer = {three: two for module in engines.values() for two, three in getattr(module, "CODES", {}).items()}
    tags = [tag.replace("_", "-").partition("-")[0].lower() for tag in language.split("+")]
    codes = [longer.get(tag, tag) for tag in tags]
    absent = []
    for name, module in engines.items():
        if engine in ("auto", name) and module.LANGUAGES.issuperset(codes):
            absent.append(module.missing("+".join(codes)))
            if not absent[-1]:
                return Ocr(name, "+".join(codes))
    if not absent:
        known = "; ".join(f"{name}: {' '.join(sorted(module.LANGUAGES))}" for name, module in engines.items())
        flags = f"--ocr-engine {engine} --ocr-language {language}"
        raise ToolkitError(f"{flags}: no OCR engine reads it; choose from {known}")
    raise ToolkitError("; or ".join(absent))


def list_ocr_engines() -> list[str]:
    return list_plugins(ocr.__name__)


def add_ocr_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("scans").add_argument
    add("--ocr", action="store_true", help="read pages without text by OCR, and add the words as an invisible layer")
    add("--ocr-language", default="en", metavar="TAG", help="the language of the OCR, such as en, cs-CZ or ces+eng")
    add("--ocr-engine", choices=["auto", *list_ocr_engines()], default="auto", help="the OCR engine; auto: by language")


def read_ocr_flags(options: Namespace) -> Ocr | None:
    return choose_ocr(options.ocr_language, options.ocr_engine) if options.ocr else None


def read_scan(document: Document, target: Path, how: Ocr) -> Scanned | None:
    """Write a copy of a PDF with a text layer from OCR on its pages without text; return the new document."""
    if document.path is None or ending_of(document.path) != ".pdf":
        return None
    empty = [page for page in document.pages if not document.text[page.span.start : page.span.end].strip()]
    layers: dict[int, Layer] = {}
    confidence: dict[str, float] = {}
    faults: list[str] = []
    with fetch_file(document.path) as path:
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
    notes = tuple(f"page {number} read by OCR with confidence {share:.0%}" for number, share in confidence.items())
    layered = read_document(target)
    return Scanned(replace(layered, filename=document.filename, notes=(*document.notes, *notes, *faults)), confidence)


def _read_page(path: Path, page: Page, how: Ocr) -> tuple[Layer, float]:
    scale = min(_DPI / 72, _LONGEST_SIDE / max(page.width, page.height, 1.0))
    picture = render(path, page.number, scale=scale).convert("L")
    angle = measure_skew(picture)
    straight = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor="white") if angle else picture
    read: Callable[[Image.Image], list[TextLine]] = load_plugin(ocr.__name__, how.engine)[0].open(how.language)
    lines = [line for line in read(straight) if line.text.strip()]
    weight = sum(len(line.text) for line in lines) or 1
    sure = sum(line.confidence * len(line.text) for line in lines) / weight
    placed = [
        TextLine(left / scale, top / scale, right / scale, bottom / scale, text, confidence)
        for left, top, right, bottom, text, confidence in sort_lines(lines)
    ]
    return Layer(angle, placed), sure


def measure_skew(picture: Image.Image) -> float:
    """Return the degrees by which a page must be turned counter-clockwise to straighten its lines."""
    small = picture.copy()
    small.thumbnail((1000, 1000))  # lines of text are still four or five pixels high
    ink = Image.fromarray((255 - np.asarray(small)).astype("uint8"))

    def measure_sharpness(angle: float) -> float:
        rows = np.asarray(ink.rotate(angle, Image.Resampling.BILINEAR), dtype=float).sum(axis=1)
        return float(np.square(np.diff(rows)).sum())

    best = 0.0
    # each round searches more finely around the best angle of the previous round
    for reach, step in ((_STEEPEST, 1.0), (1.0, 0.2), (0.2, 0.1)):
        count = round(reach / step)
        angles = [best + step * number for number in range(-count, count + 1)]
        # if several angles are equally good, take the smallest
        best = max(angles, key=lambda angle: (measure_sharpness(angle), -abs(angle)))
    return round(max(-_STEEPEST, min(best, _STEEPEST)), 2)


def sort_lines(lines: Sequence[TextLine]) -> list[TextLine]:
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom) / 2):
        middle = (line.top + line.bottom) / 2
        if rows and middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row)]


class Layer(NamedTuple):
    turn: float  # Degrees, counter-clockwise, by which the page's own drawing is turned to straighten its lines
    lines: Sequence[TextLine]  # The lines, with boxes in points from the top left of the straightened page


def write_layer(path: Path, target: Path, pages: Mapping[int, Layer]) -> None:
    """Write a copy of a PDF with a text layer on the given pages, numbered from 1, and straighten these pages."""
    # imported here: few documents are scans, and the import takes 0.1 s in each process
    from pypdf import PdfReader, PdfWriter, Transformation
    from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject

    with convert_parser_errors(path, "PDF"):
        writer = PdfWriter(clone_from=PdfReader(path))
        ours: Any = PdfReader(FONT_FILE).pages[0]["/Resources"]
        font = ours["/Font"].raw_get(f"/{FONT}").clone(writer)
        for number, layer in sorted(pages.items()):
            page = writer.pages[number - 1]
            resources = page.setdefault(NameObject("/Resources"), DictionaryObject()).get_object()
            fonts = resources.setdefault(NameObject("/Font"), DictionaryObject()).get_object()
            fonts[NameObject(f"/{FONT}")] = font
            box = page.cropbox
            frames = (
                (1, 0, 0, -1, box.left, box.top), (0, 1, 1, 0, box.left, box.bottom),
                (-1, 0, 0, 1, box.right, box.bottom), (0, -1, -1, 0, box.right, box.top),
            )  # fmt: skip
            frame = frames[page.rotation // 90 % 4]  # from points of the displayed page to coordinates of the PDF file
            # rotate everything that the page draws around its centre
            x, y = float(box.left + box.right) / 2, float(box.bottom + box.top) / 2
            turn = Transformation().translate(-x, -y).rotate(layer.turn).translate(x, y)
            begin = f"q {' '.join(map(_format_number, turn.ctm))} cm\n" if layer.turn else "q\n"
            streams = DecodedStreamObject(), DecodedStreamObject()
            for stream, content in zip(streams, (begin, _make_content(frame, layer.lines)), strict=True):
                stream.set_data(content.encode("ascii"))
            before, after = (writer._add_object(stream.flate_encode(9)) for stream in streams)
            contents = page.get("/Contents")
            inner = contents.get_object() if contents is not None else ArrayObject()
            old = list(inner) if isinstance(inner, ArrayObject) else [page.raw_get("/Contents")]
            page[NameObject("/Contents")] = ArrayObject([before, *old, after])
        with replace_file(target) as partial:
            writer.write(partial)


def _make_content(frame: tuple[float, ...], lines: Sequence[TextLine]) -> str:
    matrix = " ".join(_format_number(value) for value in frame)
    # put a space between texts side by side, because not every reader would insert one
    beside = [line.top <= (other.top + other.bottom) / 2 <= line.bottom for line, other in pairwise(lines)] + [False]
    drawn = "\n".join(word for line, near in zip(lines, beside, strict=True) for word in _draw_words(line, spaced=near))
    return f"\nQ q {matrix} cm BT 3 Tr\n{drawn}\nET Q\n"  # the rendering mode 3 draws nothing


def _draw_words(line: TextLine, *, spaced: bool) -> Iterator[str]:
    """Yield the PDF operators of each word of a line; each word's share of the line's width is estimated."""
    size = max((line.bottom - line.top) * 1000 / (ASCENT - DESCENT), 0.5)
    base = line.bottom + size * DESCENT / 1000
    stretch = (line.right - line.left) / (sum(map(_estimate_width, line.text)) or 1.0)
    at = 0.0
    words = line.text.split()
    for number, word in enumerate(words):
        # include the space after a word, so that PDF readers need not guess it
        text = f"{word} " if spaced or number < len(words) - 1 else word
        width = sum(map(_estimate_width, text))
        codes = text.encode("utf-16-be", "replace")
        scaling = 100 * max(width * stretch, 0.1) / (len(codes) / 2 * size * ADVANCE / 1000)
        place = f"1 0 0 -1 {_format_number(line.left + at * stretch)} {_format_number(base)}"
        yield f"/{FONT} {_format_number(size)} Tf {_format_number(scaling)} Tz {place} Tm <{codes.hex()}> Tj"
        at += width


def _estimate_width(character: str) -> float:
    if character in _NARROW:
        return 0.55
    if character in _WIDE:
        return 1.5
    return 1.2 if character.isupper() or ord(character) > 0x2E80 else 1.0


def _format_number(value: float) -> str:
    return f"{value:.5f}".rstrip("0").rstrip(".") or "0"
