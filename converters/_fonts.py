"""The fonts that everything is printed with: known by content, embedded in our pages, the only ones a browser sees.

`Exhibit Serif`, `Sans` and `Mono` are Liberation, which has the widths of Times New Roman, Arial and Courier New, the
fonts that filings and web pages name. What it lacks (Arabic, check boxes, box drawing, more of mathematics) is in
`Exhibit Signs`, cut from DejaVu Sans; Chinese, Japanese and Korean are in Noto Sans CJK, a package of its own.
`docs/typefaces.py` makes the files of `_typefaces`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
import struct
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from exhibit.schemas.errors import ServiceError

_FOLDER = Path(__file__).with_name("_typefaces")
_CJK_PACKAGE = "noto_cjk_sans_jp_regular"


class Face(NamedTuple):
    """One font file: what CSS calls it, and the bytes it must have."""

    file: str
    family: str
    sha256: str
    bold: bool = False
    italic: bool = False


SERIF, SANS, MONO = "Exhibit Serif", "Exhibit Sans", "Exhibit Mono"
SIGNS, CJK = "Exhibit Signs", "Noto Sans CJK JP"
FACES = (
    Face("ExhibitSerif-Regular.ttf", SERIF, "02687f43019598732b5b3197dcc30ba934652a7a9bd019f883f1039f36dd5ccb"),
    Face("ExhibitSerif-Bold.ttf", SERIF, "d64d01c6b925654a605c6f6ac902c58c2868213e743a64d3abfe6ae4e25103a9", bold=True),
    Face(
        "ExhibitSerif-Italic.ttf",
        SERIF,
        "067ab7ab2ce050afd494ae5aadce2d5b3df53f503ba19f6f0d94a49f21671d00",
        italic=True,
    ),
    Face(
        "ExhibitSerif-BoldItalic.ttf",
        SERIF,
        "4c712346a75dc699c17b9fa2e5423cb46edf7bc03d65b27984432ee47db9176e",
        bold=True,
        italic=True,
    ),
    Face("ExhibitSans-Regular.ttf", SANS, "bb0112e83874902c6662e1ee927d8a5d3e45770cc15fc302846f5b7f2a17fb7b"),
    Face("ExhibitSans-Bold.ttf", SANS, "0c03ff5c7a0296eda339f0ba2faa2f0a435972f0192e76fbb3c0044ff402013f", bold=True),
    Face(
        "ExhibitSans-Italic.ttf", SANS, "95de34d296feb28efa4e04918c644e948dfd661943aaa28ec55a91a6464ebc6c", italic=True
    ),
    Face(
        "ExhibitSans-BoldItalic.ttf",
        SANS,
        "2db10189ae2fb1713cee7b0221b0d8dcb5509d1f7a75bd0099207fc20d9e5d5a",
        bold=True,
        italic=True,
    ),
    Face("ExhibitMono-Regular.ttf", MONO, "8e3396e5eee4a481600e64dac4905402e1e11fc57dc0db544f0593eadc42ca1b"),
    Face("ExhibitMono-Bold.ttf", MONO, "e56b541507c2f987d39f659ebc56197a6849ee3e46bc178256a4e69ad04ca297", bold=True),
    Face(
        "ExhibitMono-Italic.ttf", MONO, "89234b838c920b7e74a180280916b177e4bc331e20508c4f45daa83896ea4bef", italic=True
    ),
    Face(
        "ExhibitMono-BoldItalic.ttf",
        MONO,
        "905d20166fb6dd11568e227101dd930e98a2ec3acfcc762480a0ae4eab4839eb",
        bold=True,
        italic=True,
    ),
    Face("ExhibitSigns-Regular.ttf", SIGNS, "8e4096c417c0109d71aa196a5a2538d8b860da4231119f717b2cf082c2dfd95f"),
    Face("NotoSansCJKjp-Regular.otf", CJK, "68a3fc98800b2a27b371f2fb79991daf3633bd89309d4ffaa6946fd587f375b5"),
)
CORE = (
    Face("ExhibitSerifCore-Regular.ttf", SERIF, "49a34d15c2263ff182ba77443a43ad862152a55cda3f1c4cb057cbf38a9a2fb5"),
    Face(
        "ExhibitSerifCore-Bold.ttf",
        SERIF,
        "3d7ef94ffe82424ae4d35fe8f4eb34b58181bb86b122a78508403fbd442abb09",
        bold=True,
    ),
    Face("ExhibitMonoCore-Regular.ttf", MONO, "fbf57fc24ca3971e4bf866eaf4563fc573d9af60f3e61c0c69f5bdeb62604e6e"),
)
"""Small cuts for the usual characters: 34 kB travel with every page, where the whole face of 200 kB made short
documents print in 90 ms instead of 50."""
# What a page may call them; Chromium's own defaults are Times New Roman, Arial and Monospace.
_NAMES = {
    SERIF: "serif|Times New Roman|Times|Georgia|Cambria|Garamond|Palatino|Book Antiqua|Liberation Serif",
    SANS: "sans-serif|sans|system-ui|ui-sans-serif|Arial|Helvetica|Helvetica Neue|Verdana|Tahoma|Calibri|Segoe UI|"
    "Trebuchet MS|Liberation Sans",
    MONO: "monospace|mono|ui-monospace|Courier New|Courier|Consolas|Menlo|Monaco|Lucida Console|Liberation Mono",
}
_SETTINGS = {  # of drawing, which the desktop would otherwise give
    "antialias": "<bool>true</bool>",
    "hinting": "<bool>false</bool>",
    "autohint": "<bool>false</bool>",
    "embeddedbitmap": "<bool>false</bool>",
    "hintstyle": "<const>hintnone</const>",
    "rgba": "<const>none</const>",
    "lcdfilter": "<const>lcdnone</const>",
}
_DESKTOP = re.compile(r"FONTCONFIG_|FREETYPE_|LC_|LANG|GTK_|QT_|GDK_")
"""Variables by which a machine tells a browser about fonts and languages."""
_SEALED = sys.platform not in {"win32", "darwin"}
"""Whether the browser looks for fonts through fontconfig, so that it can be shown ours alone."""


def stack(family: str) -> str:
    """Return a CSS list of families: the named one, then those that have what it lacks."""
    return ", ".join(f'"{name}"' for name in (family, SIGNS, CJK))


def embedded(text: str, family: str, *, bold: bool = False) -> str:
    """Return the CSS that brings a family to a page with this text: no more of it than the text needs."""
    drawn = {ord(character) for character in set(text) if unicodedata.category(character)[0] != "C"}
    core = [face for face in CORE if face.family == family]
    whole = [face for face in FACES if face.family == family and not face.italic]
    faces = [face for face in (core if drawn <= _characters(core[0]) else whole) if bold or not face.bold]
    missing = drawn - _characters(faces[0])
    for face in (face for face in FACES if missing and face.family in (SIGNS, CJK)):
        # 16 MB of CJK are in the page only where the browser cannot be told where they are
        if missing & _characters(face) and not (face.family == CJK and _SEALED):
            faces.append(face)
        missing -= _characters(face)
    return "".join(map(_rule, faces))


@cache
def _rule(face: Face) -> str:
    data = base64.b64encode(font_path(face).read_bytes()).decode("ascii")
    weight = "bold" if face.bold else "normal"
    return f'@font-face{{font-family:"{face.family}";font-weight:{weight};src:url(data:font/ttf;base64,{data})}}\n'


@cache
def font_path(face: Face) -> Path:
    """Return where a font is; say so when it is not there or is another one."""
    folder = _cjk_folder() if face.family == CJK else _FOLDER
    path = folder / face.file
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    if digest != face.sha256:
        problem = "is not the font that documents are printed with" if digest else "is missing"
        again = "install the project again (make, or pip install --force-reinstall 'exhibit-rag[print]')"
        raise ServiceError(f"{path}: {problem}; {again}")
    return path


def _cjk_folder() -> Path:
    spec = importlib.util.find_spec(_CJK_PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else Path(_CJK_PACKAGE)


def font_hashes() -> dict[str, str]:
    """Return the sha256 of every font by its file's name."""
    return {font_path(face).name: face.sha256 for face in sorted(FACES + CORE)}


def sealed_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a browser that sees our fonts and no others; the folder is for its configuration."""
    configuration = folder / "fonts.conf"
    folders = dict.fromkeys(font_path(face).parent for face in FACES)  # ours first, wherever the two are
    configuration.write_text(_configuration(folders, folder / "cache"), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not _DESKTOP.match(name)}
    return kept | {"FONTCONFIG_FILE": str(configuration), "LANG": "C.UTF-8"}


def _configuration(folders: Iterable[Path], cache_folder: Path) -> str:
    lines = ["<?xml version='1.0'?>", "<!DOCTYPE fontconfig SYSTEM 'fonts.dtd'>", "<fontconfig>"]
    lines += [f"<dir>{escape(str(path))}</dir>" for path in folders]
    lines += [f"<cachedir>{escape(str(cache_folder))}</cachedir>"]
    lines += ["<selectfont><rejectfont><glob>*Core-*</glob></rejectfont></selectfont>"]
    for ours, names in _NAMES.items():
        for name in names.split("|"):
            test = f"<test name='family' qual='any'><string>{name}</string></test>"
            edit = f"<edit name='family' mode='assign' binding='strong'><string>{ours}</string></edit>"
            lines.append(f"<match target='pattern'>{test}{edit}</match>")
    settings = "".join(f"<edit name='{name}' mode='assign'>{value}</edit>" for name, value in _SETTINGS.items())
    lines += [f"<match target='{target}'>{settings}</match>" for target in ("pattern", "font")]
    return "\n".join([*lines, "</fontconfig>\n"])


# ---------------------------------------------------------------- which characters a font has


@cache
def _characters(face: Face) -> frozenset[int]:
    """Return the characters that a font draws, from its `cmap` table."""
    data = font_path(face).read_bytes()
    tables = struct.unpack_from(">H", data, 4)[0]
    records = (struct.unpack_from(">4s3L", data, 12 + 16 * index) for index in range(tables))
    start = next(offset for tag, _, offset, _ in records if tag == b"cmap")
    count = struct.unpack_from(">H", data, start + 2)[0]
    parts = {start + struct.unpack_from(">2HL", data, start + 4 + 8 * index)[2] for index in range(count)}
    characters: set[int] = set()
    for part in sorted(parts):
        form = struct.unpack_from(">H", data, part)[0]
        if form == 4:
            characters.update(_segments(data, part))
        elif form == 12:
            groups = struct.unpack_from(">L", data, part + 12)[0]
            for index in range(groups):
                first, last, _ = struct.unpack_from(">3L", data, part + 16 + 12 * index)
                characters.update(range(first, last + 1))
    return frozenset(characters)


def _segments(data: bytes, part: int) -> Iterable[int]:
    """Yield the characters of a table of format 4 that lead to a glyph."""
    count = struct.unpack_from(">H", data, part + 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", data, part + 14)
    starts = struct.unpack_from(f">{count}H", data, part + 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}H", data, part + 16 + 4 * count)
    offsets_at = part + 16 + 6 * count
    for index, (first, last) in enumerate(zip(starts, ends, strict=True)):
        offset = struct.unpack_from(">H", data, offsets_at + 2 * index)[0]
        for character in range(first, last + 1):
            glyph = character
            if offset:
                glyph = struct.unpack_from(">H", data, offsets_at + 2 * index + offset + 2 * (character - first))[0]
            if glyph and (glyph + deltas[index]) & 0xFFFF and character != 0xFFFF:
                yield character
