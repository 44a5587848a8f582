"""Words that were read from pictures of pages, written into the PDF as text that is there and not seen.

Text rendering mode 3 draws nothing, and every PDF reader finds the words: the system under test reads what gold was
located in. The font has one glyph, a box of half an em; it is embedded, so that boxes are the same on every machine.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from exhibit.schemas.errors import DocumentError
from exhibit.storage.place import whole

if TYPE_CHECKING:  # elsewhere by the functions that use it: few documents are scans, and it takes 0.1 s in each process
    from pypdf.generic import RectangleObject, StreamObject

FONT = "ExhibitUnseen"
FONT_FILE = Path(__file__).with_name("unseen.pdf")
"""A page that has the font; `bench.unseen_font` makes it."""
ADVANCE = 500
"""Thousandths of the font size that every character takes before it is stretched to its width on the page."""
ASCENT, DESCENT = 750, -250  # thousandths of the font size above and below the line, as in most fonts
_NARROW, _WIDE = frozenset("iljtfrI1.,;:'’‘|!()[]{}-"), frozenset("mwMW@%—ŒœÆæ")


class Text(NamedTuple):
    """A line of words on a page: its box in points from the top left of the page, once that lies straight."""

    left: float
    top: float
    right: float
    bottom: float
    words: str


class Frame(NamedTuple):
    """A matrix as PDF writes it: here from points of a page, from its top left, to the PDF's own coordinates."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float


class Layer(NamedTuple):
    """What is written onto one page."""

    frame: Frame
    turn: float
    """Degrees, counter-clockwise, by which the page's own drawing is turned, so that its lines lie straight."""
    lines: Sequence[Text]


def write_layer(path: Path, target: Path, pages: Mapping[int, Layer]) -> None:
    """Write a copy of a PDF with words on some of its pages, by number from 1; those are straightened.

    Words that run askew are read in a jumble by tools that sort them by height, so the picture is turned instead.
    """
    from pypdf import PdfReader, PdfWriter
    from pypdf.errors import PyPdfError
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject

    try:
        writer = PdfWriter(clone_from=PdfReader(path))
        ours: Any = PdfReader(FONT_FILE).pages[0]["/Resources"]
        font = ours["/Font"].raw_get(f"/{FONT}").clone(writer)
        for number, layer in sorted(pages.items()):
            page = writer.pages[number - 1]
            resources = page.setdefault(NameObject("/Resources"), DictionaryObject()).get_object()
            fonts = resources.setdefault(NameObject("/Font"), DictionaryObject()).get_object()
            fonts[NameObject(f"/{FONT}")] = font
            around = (_turned(layer.turn, page.cropbox), _content(layer.frame, layer.lines))
            before, after = (writer._add_object(_stream(data)) for data in around)
            contents = page.get("/Contents")
            inner = contents.get_object() if contents is not None else ArrayObject()
            old = list(inner) if isinstance(inner, ArrayObject) else [page.raw_get("/Contents")]
            page[NameObject("/Contents")] = ArrayObject([before, *old, after])
        with whole(target) as partial:
            writer.write(partial)
    except (PyPdfError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{path}: its pages cannot be written to ({error}); print it to a new PDF first") from error


def _turned(angle: float, box: RectangleObject) -> bytes:
    """Return the beginning of a drawing that is turned around the middle of the page."""
    if not angle:
        return b"q\n"
    sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    x, y = float(box.left + box.right) / 2, float(box.bottom + box.top) / 2
    matrix = (cosine, sine, -sine, cosine, x - x * cosine + y * sine, y - x * sine - y * cosine)
    return f"q {' '.join(map(_number, matrix))} cm\n".encode("ascii")


def _content(frame: Frame, lines: Sequence[Text]) -> bytes:
    """Return the drawing of lines of words; the Q ends what the page itself drew."""
    matrix = " ".join(_number(value) for value in frame)
    # what stands side by side is parted by a space, which not every reader would put there by itself
    beside = [line.top <= (other.top + other.bottom) / 2 <= line.bottom for line, other in pairwise(lines)] + [False]
    drawn = "\n".join(
        _word(*word) for line, more in zip(lines, beside, strict=True) for word in _placed(line, spaced=more)
    )
    return f"\nQ q {matrix} cm BT 3 Tr\n{drawn}\nET Q\n".encode("ascii")


class _Placed(NamedTuple):
    left: float
    base: float
    width: float
    size: float
    text: str


def _placed(line: Text, *, spaced: bool) -> list[_Placed]:
    """Part a line into words, each where it should begin by the widths of the letters before it."""
    size = max((line.bottom - line.top) * 1000 / (ASCENT - DESCENT), 0.5)
    base = line.bottom + size * DESCENT / 1000
    whole = sum(map(_width, line.words)) or 1.0
    stretch = (line.right - line.left) / whole
    placed, at = [], 0.0
    words = line.words.split()
    for number, word in enumerate(words):
        # the space after a word belongs to it, so that no reader has to guess whether there is one
        text = f"{word} " if spaced or number < len(words) - 1 else word
        width = sum(map(_width, text))
        placed.append(_Placed(line.left + at * stretch, base, max(width * stretch, 0.1), size, text))
        at += width
    return placed


def _width(character: str) -> float:
    """Return about how wide a letter is set, an `n` being 1."""
    if character in _NARROW or character == " ":
        return 0.55
    if character in _WIDE:
        return 1.5
    return 1.2 if character.isupper() or ord(character) > 0x2E80 else 1.0


def _word(left: float, base: float, width: float, size: float, text: str) -> str:
    codes = text.encode("utf-16-be", "replace")
    stretch = 100 * width / (len(codes) / 2 * size * ADVANCE / 1000)
    place = f"1 0 0 -1 {_number(left)} {_number(base)}"
    return f"/{FONT} {_number(size)} Tf {_number(stretch)} Tz {place} Tm <{codes.hex()}> Tj"


def _number(value: float) -> str:
    return f"{value:.5f}".rstrip("0").rstrip(".") or "0"


def _stream(data: bytes) -> StreamObject:
    from pypdf.generic import NameObject, StreamObject

    stream = StreamObject()
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    stream._data = zlib.compress(data, 9)
    return stream
