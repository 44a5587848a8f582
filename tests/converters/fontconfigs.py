"""Font configurations of two unusual machines: one without fonts, one that replaces every font by a wrong one."""

from __future__ import annotations

from pathlib import Path

from exhibit.converters.pages.text_pdf import MONO, find_font

_HEAD = "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
_WRONG = "<match target='pattern'><edit name='family' mode='assign' binding='strong'><string>{}</string></edit></match>"
_HINTS = "<match target='font'><edit name='hintstyle' mode='assign'><const>hintfull</const></edit></match>"


def no_fonts(folder: Path) -> Path:
    """Write a fontconfig file that knows no font; return its path."""
    (folder / "empty").mkdir(exist_ok=True)
    return _written(folder / "none.conf", f"<dir>{folder / 'empty'}</dir>")


def misleading_fonts(folder: Path) -> Path:
    """Write a fontconfig file that resolves every font family to a bold monospace font; return its path."""
    fonts = folder / "typewriter"
    fonts.mkdir(exist_ok=True)
    (fonts / "bold.ttf").write_bytes(find_font("ExhibitMono-Bold.ttf").read_bytes())
    return _written(folder / "misleading.conf", f"<dir>{fonts}</dir>{_WRONG.format(MONO)}{_HINTS}")


def _written(path: Path, rules: str) -> Path:
    text = f"{_HEAD}{rules}<cachedir>{path.parent / 'cache'}</cachedir></fontconfig>"
    path.write_text(text, encoding="utf-8")
    return path
