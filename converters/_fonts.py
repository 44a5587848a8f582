"""The fonts that everything is printed with: known by content, embedded in our pages, the only ones a browser sees.

`Exhibit Serif`, `Sans` and `Mono` are Liberation, which has the widths of Times New Roman, Arial and Courier New, the
fonts that filings and web pages name. What it lacks (Arabic, check boxes, box drawing, more of mathematics) is in
`Exhibit Signs`, cut from DejaVu Sans; Chinese, Japanese and Korean are in Noto Sans CJK, a package of its own.
`docs/typefaces.py` makes the files of `_typefaces`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from functools import cache
from html import escape
from pathlib import Path

from exhibit.schemas.errors import ServiceError

_FOLDER = Path(__file__).with_name("_typefaces")
_CJK_PACKAGE = "noto_cjk_sans_jp_regular"


SERIF, BOLD, MONO, SIGNS = "Exhibit Serif", "Exhibit Serif Bold", "Exhibit Mono", "Exhibit Signs"
_FILES = {SERIF: "ExhibitSerif-Regular.ttf", BOLD: "ExhibitSerif-Bold.ttf", MONO: "ExhibitMono-Regular.ttf"} | {
    SIGNS: "ExhibitSigns-Regular.ttf"
}
"""The faces that plain text is printed with, by name."""
_CJK_FILE = "NotoSansCJKjp-Regular.otf"
_DESKTOP = re.compile(r"FONTCONFIG_|FREETYPE_|LC_|LANG|GTK_|QT_|GDK_")
"""Variables by which a machine tells a browser about fonts and languages."""


@cache
def style(name: str) -> str:
    """Return the style sheet of our own pages: `text`, or `office` for what is read from Word and the like."""
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")


@cache
def font_hashes() -> dict[str, str]:
    """Return the sha256 of every font by its file's name, as `sha256sum` writes it."""
    lines = (_FOLDER / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


@cache
def font_path(name: str) -> Path:
    """Return where a font is, by its own name or its file's; say so when it is not there or is another one."""
    file = _FILES.get(name, name)
    path = (_cjk_folder() if file == _CJK_FILE else _FOLDER) / file
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    if digest != font_hashes()[file]:
        problem = "is not the font that documents are printed with" if digest else "is missing"
        again = "install the project again (make, or pip install --force-reinstall 'exhibit-rag[print]')"
        raise ServiceError(f"{path}: {problem}; {again}")
    return path


def _cjk_folder() -> Path:
    spec = importlib.util.find_spec(_CJK_PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else Path(_CJK_PACKAGE)


def sealed_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a browser that sees our fonts and no others; the folder is for its configuration."""
    configuration = folder / "fonts.conf"
    folders = dict.fromkeys(font_path(file).parent for file in font_hashes())  # ours first, wherever the two are
    places = "\n".join(f"<dir>{escape(str(path))}</dir>" for path in folders)
    template = (_FOLDER / "fonts.conf").read_text(encoding="utf-8")
    text = template.format(folders=places, cache=escape(str(folder / "cache")))
    configuration.write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not _DESKTOP.match(name)}
    return kept | {"FONTCONFIG_FILE": str(configuration), "LANG": "C.UTF-8"}
