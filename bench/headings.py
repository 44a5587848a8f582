"""Compares detected headings with the bookmarks of PDFs, for detection by words alone and by font size as well.

python -m bench.headings FOLDER [FOLDER ...]      PDFs with bookmarks below these folders

A bookmark is found if a heading has the same letters; a heading is right if a bookmark has the same letters. Guides do
not bookmark every heading, so that precision is a lower bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from exhibit.evidence.read import read_document
from exhibit.evidence.readers.pdf import outline
from exhibit.law.names import letters
from exhibit.law.structure.headings import FOOTNOTE, find_headings
from exhibit.law.structure.lines import NO_OUTLINE, Outline, typed_outline
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import DocumentError

_FEWEST = 5  # bookmarks that make an outline, at least
_SHORTEST = 3  # letters of a bookmark, at least


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each PDF, and one for all."""
    parser = argparse.ArgumentParser(prog="python -m bench.headings", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args(argv)
    print("| document | bookmarks | words: precision | recall | with type: precision | recall |")
    print(f"|{'---|' * 6}")
    totals = [[0, 0, 0], [0, 0, 0]]
    for path in sorted(path for folder in options.folders for path in folder.rglob("*.[pP][dD][fF]")):
        rows = _measure(path)
        if not rows:
            continue
        for total, row in zip(totals, rows, strict=True):
            total[:] = [a + b for a, b in zip(total, row, strict=True)]
        print(_row(path.stem[:40], rows))
    print(_row("all", totals))
    return 0


def _measure(path: Path) -> list[list[int]]:
    """Return the numbers of bookmarks, headings and matches, by words and with font size; empty without bookmarks."""
    try:
        titles = {key for title, _ in outline(path) if len(key := letters(title)) >= _SHORTEST}
        document = read_document(path)
    except DocumentError:
        return []
    if len(titles) < _FEWEST or not document.has_text:
        return []
    counts = []
    for known in (NO_OUTLINE, typed_outline(document)):
        headings = _find_titles(document.text, known, path)
        counts.append([len(titles), len(headings), len(titles & headings)])
    return counts


def _find_titles(text: str, known: Outline, path: Path) -> set[str]:
    document = read_document(path)
    words = (text[one.start : one.end] for one in find_headings(document, known) if one.title and one.kind != "clause")
    return {letters(FOOTNOTE.sub("", " ".join(one.split()))) for one in words}


def _row(name: str, rows: Sequence[Sequence[int]]) -> str:
    figures = [f"{both / max(found, 1):.1%} | {both / max(known, 1):.1%}" for known, found, both in rows]
    return f"| {name} | {rows[0][0]} | {' | '.join(figures)} |"


if __name__ == "__main__":
    sys.exit(main())
