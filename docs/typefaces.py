"""Makes the fonts in `exhibit/converters/_typefaces`: Liberation and DejaVu Sans without hinting, under new names.

    pip install fonttools && python docs/typefaces.py FOLDER

FOLDER holds Liberation 2.1.5 (twelve files) and DejaVu Sans 2.37, as Debian's fonts-liberation2 and
fonts-dejavu-core have them. The Open Font License reserves the name Liberation for the unchanged files, so
the changed files are renamed. The same input and fontTools 4.68 give the same bytes; their SHA-256 hashes
are in `_typefaces/SHA256SUMS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

OUT = Path(__file__).parents[1] / "exhibit" / "converters" / "_typefaces"
STYLES = ("Regular", "Bold", "Italic", "BoldItalic")
_PRIVATE = range(0xE000, 0xF900)


def main() -> None:
    """Write a reduced and renamed copy of every font."""
    source = Path(sys.argv[1])
    OUT.mkdir(exist_ok=True)
    for family in ("Serif", "Sans", "Mono"):
        for style in STYLES:
            path = source / f"Liberation{family}-{style}.ttf"
            cut(path, f"Exhibit {family}", style, list_characters(path))
    signs, serif = source / "DejaVuSans.ttf", source / "LiberationSerif-Regular.ttf"
    more = [*(set(list_characters(signs)) - set(list_characters(serif))), 0x20, 0xA0, 0x25CC]
    cut(signs, "Exhibit Signs", "Regular", [code for code in more if code not in _PRIVATE])


def list_characters(path: Path) -> list[int]:
    """Return the Unicode code points of the characters that a font has, in order."""
    return sorted(TTFont(path).getBestCmap())


def cut(path: Path, family: str, style: str, codes: Iterable[int]) -> None:
    """Write a copy of a font with only these characters, without hinting, under a new name and the same licence."""
    font = TTFont(path, recalcTimestamp=False)
    options = subset.Options()
    options.hinting = False  # hinting is for screens of low resolution, and takes half of the file
    options.layout_features = ["*"]
    options.name_IDs = ["*"]
    options.notdef_outline = True
    options.recalc_timestamp = False
    options.drop_tables += ["FFTM"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(codes))
    subsetter.subset(font)
    postscript = f"{family}-{style}".replace(" ", "")
    words = "Bold Italic" if style == "BoldItalic" else style
    names = {1: family, 3: f"{family} {words}", 4: f"{family} {words}", 6: postscript, 16: family}
    for record in font["name"].names:
        if record.nameID in names:
            record.string = names[record.nameID]
    font.save(OUT / f"{postscript}.ttf")


if __name__ == "__main__":
    main()
