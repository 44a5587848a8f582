"""Prints plain text to PDF in this process, with ReportLab: no browser, and the same bytes on every machine."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from exhibit.converters import Block, Style
from exhibit.schemas.errors import ServiceError

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.pdfgen.textobject import PDFTextObject

_FOLDER = Path(__file__).parents[1] / "_typefaces"
_CJK_PACKAGE, _CJK_FILE = "noto_cjk_sans_jp_regular", "NotoSansCJKjp-Regular.otf"
SERIF, BOLD = "ExhibitSerif-Regular.ttf", "ExhibitSerif-Bold.ttf"
MONO, SIGNS = "ExhibitMono-Regular.ttf", "ExhibitSigns-Regular.ttf"
_DESKTOP = re.compile(r"FONTCONFIG_|FREETYPE_|LC_|LANG|GTK_|QT_|GDK_")  # variables that configure a browser's fonts


class _Type(NamedTuple):
    font: str
    size: float
    leading: float
    before: float
    after: float


PAGE_BREAK = "\f"  # a new page begins after this character
_A4 = (595.2756, 841.8898)  # points
_MARGIN = 62.36  # points: 22 mm
_WIDTH = _A4[0] - 2 * _MARGIN
_TYPES: dict[Style, _Type] = {
    "h1": _Type(BOLD, 14, 18, 0, 20),
    "h2": _Type(BOLD, 11.5, 16, 14, 5),
    "p": _Type(SERIF, 10.5, 15.2, 0, 7),
    "pre": _Type(MONO, 8.5, 10.6, 0, 0),
}
# these characters draw nothing; private-use characters (the bullets of a missing symbol font) would be boxes
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ue000-\uf8ff\ufeff\ufffe\uffff]"
)
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff01-\uffee\U0001b000-\U0003ffff]"
)
_WORDS = re.compile(r"( *)([^ ]+)")


def make_printable(text: str) -> str:
    """Return a text with plain line feeds, and with a space in place of each control or private-use character."""
    return _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def needs_browser(text: str) -> bool:
    return not text.isascii() and _CJK.search(text) is not None


def name_printer() -> str:
    import reportlab

    return f"ReportLab {reportlab.__version__}"


def pdf_of(blocks: Iterable[Block], *, title: str, subject: str = "") -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    # without compression: the output of a compressor depends on its version
    canvas = Canvas(file, pagesize=_A4, pageCompression=0, invariant=1)
    canvas.setTitle(make_printable(title))
    canvas.setAuthor("")
    canvas.setCreator("exhibit-rag")
    if subject:
        canvas.setSubject(make_printable(subject))
    sheet = _Sheet(canvas)
    for block in blocks:
        sheet.add(block)
    sheet.close()
    canvas.save()
    return file.getvalue()


class _Sheet:
    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._text: PDFTextObject | None = None
        self._left = 0.0  # points left on the page
        self._gap = 0.0  # points of space before the next line
        self._font: tuple[str, float] | None = None

    def add(self, block: Block) -> None:
        kind = _TYPES[block.style]
        self._gap += kind.before
        lines_needed = 3 if block.style in ("h1", "h2") else 1  # a page does not end with a heading
        if self._text is not None and self._left < self._gap + kind.leading * lines_needed:
            self.close()
        for part, text in enumerate(block.text.split(PAGE_BREAK)):
            if part:
                self.close()
            for line in _break_lines(_make_drawable(text, kind.font), kind):
                if self._text is not None and self._left < self._gap + kind.leading:
                    self.close()
                if self._text is None:
                    self._left = _A4[1] - 2 * _MARGIN
                    self._text = self._canvas.beginText(_MARGIN, _A4[1] - _MARGIN)
                    self._font = None
                self._text.moveCursor(0.0, self._gap + kind.leading)
                self._left -= self._gap + kind.leading
                self._gap = 0.0
                for font, run in _split_runs(line, kind.font):
                    if self._font != (font, kind.size):
                        self._font = (font, kind.size)
                        self._text.setFont(font, kind.size)
                    self._text.textOut(run)
        self._gap = kind.after

    def close(self) -> None:
        if self._text is not None:
            self._canvas.drawText(self._text)
            self._canvas.showPage()
        self._text = None
        self._gap = 0.0


def _make_drawable(text: str, font: str) -> str:
    text = make_printable(text)
    known = _register_face(font).charWidths.keys() | _register_face(SIGNS).charWidths.keys() | {ord("\n"), ord("\t")}
    missing = {ord(character) for character in set(text) if ord(character) not in known or ord(character) > 0xFFFF}
    return text.translate(dict.fromkeys(missing, "\u25a1")) if missing else text


def _break_lines(text: str, kind: _Type) -> Iterator[str]:
    space = _advance(" ", kind.font) * (kind.size / 1000)
    measured: dict[str, list[tuple[str, float]]] = {}
    for paragraph in text.replace("\t", " " * 4).split("\n"):
        line: list[str] = []
        used = 0.0
        for spaces, word in _WORDS.findall(paragraph.rstrip()):
            if word not in measured:
                measured[word] = [(piece, _measure_width(piece, kind)) for piece in _break_word(word, kind)]
            for piece, wide in measured[word]:
                if line and (len(measured[word]) > 1 or used + len(spaces) * space + wide > _WIDTH):
                    yield "".join(line)
                    line, used, spaces = [], 0.0, ""
                line += [spaces, piece]
                used += len(spaces) * space + wide
        yield "".join(line)


def _break_word(word: str, kind: _Type) -> Iterator[str]:
    start, used = 0, 0.0
    for at, character in enumerate(word if _measure_width(word, kind) > _WIDTH else ""):
        wide = _measure_width(character, kind)
        if used + wide > _WIDTH and at > start:
            yield word[start:at]
            start, used = at, 0.0
        used += wide
    yield word[start:]


def _measure_width(text: str, kind: _Type) -> float:
    return sum(_advance(character, kind.font) for character in text) * kind.size / 1000


@cache
def _advance(character: str, font: str) -> float:
    """Return the width of a character in a font, or in the fallback font if the font lacks it."""
    faces = (_register_face(name).charWidths for name in (font, SIGNS))
    return float(next(widths[ord(character)] for widths in faces if ord(character) in widths))


@cache
def _register_face(name: str) -> Any:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    pdfmetrics.registerFont(TTFont(name, str(find_font(name))))
    return pdfmetrics.getFont(name).face  # pyright: ignore[reportAttributeAccessIssue]


def _split_runs(line: str, font: str) -> Iterator[tuple[str, str]]:
    if line.isascii():
        yield font, line
        return
    first, second = _register_face(font).charWidths, _register_face(SIGNS).charWidths
    for signs, run in groupby(line, key=lambda character: ord(character) not in first and ord(character) in second):
        yield SIGNS if signs else font, "".join(run)


@cache
def read_style(name: str) -> str:
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")


@cache
def read_font_hashes() -> dict[str, str]:
    lines = (_FOLDER / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


@cache
def find_font(file: str) -> Path:
    """Return the path of a font by its file's name; raise if it is missing or has another sha256."""
    folder = _FOLDER
    if file == _CJK_FILE:
        spec = importlib.util.find_spec(_CJK_PACKAGE)
        folder = Path(spec.origin).parent if spec and spec.origin else Path(_CJK_PACKAGE)
    path = folder / file
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != read_font_hashes()[file]:
        again = "install the project again (make, or pip install --force-reinstall 'exhibit-rag[print]')"
        raise ServiceError(f"{path}: the font that documents are printed with is missing or changed; {again}")
    return path


def make_sealed_environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a browser that uses only our fonts; write its font settings to `folder`."""
    configuration = folder / "fonts.conf"
    folders = dict.fromkeys(find_font(file).parent for file in read_font_hashes())  # our fonts first, wherever they are
    listed = "\n".join(f"<dir>{escape(str(path))}</dir>" for path in folders)
    template = (_FOLDER / "fonts.conf").read_text(encoding="utf-8")
    configuration.write_text(template.format(folders=listed, cache=escape(str(folder / "cache"))), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not _DESKTOP.match(name)}
    return kept | {"FONTCONFIG_FILE": str(configuration), "LANG": "C.UTF-8"}
