"""The font configuration of an unusual machine, which replaces every font by a wrong one."""

from __future__ import annotations

from pathlib import Path

from exhibit.converters.pages.text_pdf import find_font

_HEAD = "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
_WRONG = "<match target='pattern'><edit name='family' mode='assign' binding='strong'><string>{}</string></edit></match>"
_HINTS = "<match target='font'><edit name='hintstyle' mode='assign'><const>hintfull</const></edit></match>"


def misleading_fonts(folder: Path) -> Path:
    """Write a fontconfig file that resolves every font family to a bold monospace font; return its path."""
    fonts = folder / "typewriter"
    fonts.mkdir(exist_ok=True)
    (fonts / "bold.ttf").write_bytes(find_font("ExhibitMono-Bold.ttf").read_bytes())
    path, rules = folder / "misleading.conf", f"<dir>{fonts}</dir>{_WRONG.format('Exhibit Mono')}{_HINTS}"
    path.write_text(f"{_HEAD}{rules}<cachedir>{folder / 'cache'}</cachedir></fontconfig>", encoding="utf-8")
    return path
