"""Pieces of a page that a browser loads from beside it when they are needed, without a server.

A piece is a script that hands over compressed text, for a page opened by double click may load scripts and images and
nothing else. As the text is base64, nothing that a document or a model says can be taken for code.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.viewer.page import as_json

IMAGES = "pages"
"""The folder of the pages' pictures, among the pieces."""
_KINDS = {".png": "png", ".webp": "webp"}


def pack(value: Any) -> str:
    """Return a value as compressed JSON in base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(as_json(value).encode("utf-8")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def write_piece(folder: Path, name: str, value: Any) -> None:
    """Write a piece that the page asks for by its name."""
    (folder / f"{name}.js").write_text(f'exhibitPiece("{name}","{pack(value)}")\n', encoding="ascii")


def key_bucket(key: str, buckets: int) -> int:
    """Return where a case's address is looked up: FNV-1a of its UTF-8, which a script computes alike."""
    value = 0x811C9DC5
    for byte in key.encode("utf-8", "replace"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value % buckets


class Inlined:
    """Pieces and pictures of a folder as blocks of the page itself, as many as its budget allows."""

    def __init__(self, folder: Path, *, budget: int) -> None:
        """Take the index whole, then cases, then what lies on pages with their pictures."""
        self.blocks: dict[str, str] = {}
        self.cases = 0
        """Pieces of cases that are in, from the first on."""
        self.pages_left_out = 0
        self._left = budget
        for path in _in_order(folder, "k", "i"):
            self._put(f"piece-{path.stem}", _told(path))
        for path in _in_order(folder, "c"):
            if not self._put(f"piece-{path.stem}", _told(path)):
                break
            self.cases += 1
        for path in _in_order(folder, "d"):
            self._put(f"piece-{path.stem}", _told(path))
        for path in sorted(folder.glob(f"{IMAGES}/*"), key=lambda path: [int(n) for n in path.stem.split("-")]):
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            if not self._put(f"image-{path.name}", f"data:image/{_KINDS[path.suffix]};base64,{data}"):
                self.pages_left_out += 1

    def _put(self, name: str, text: str) -> bool:
        if len(text) > self._left:
            return False
        self._left -= len(text)
        self.blocks[name] = text
        return True


def _in_order(folder: Path, *kinds: str) -> Iterator[Path]:
    for kind in kinds:
        yield from sorted(folder.glob(f"{kind}[0-9]*.js"), key=lambda path: int(path.stem[1:]))


def _told(path: Path) -> str:
    """Return what a piece hands over."""
    return path.read_text(encoding="ascii").rpartition('","')[2].removesuffix('")\n')
