"""Draws the pictures of the README from the samples: `python -m docs.pictures` after `make demo`."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

from evidence import Span, read_document
from evidence.show import draw_spans
from schemas.bundle import open_bundle
from schemas.errors import ToolkitError

IMAGES = Path(__file__).parent / "images"
BUNDLE = Path("datasets_out/cuad")
CLAUSE = "Audit Rights"
"""In the first sample this clause runs over a page's end, foot and head: what text search never finds."""


def gold_on_the_page() -> Image.Image:
    """Return the two pages that a clause runs over, side by side, with its gold drawn on them."""
    bundle = open_bundle(BUNDLE)
    line = next(g for g in bundle.gold if g.labels["clause"] == CLAUSE and len(g.pages) == 2)
    document = read_document(bundle.files[str(line.filename)])
    pages = list(draw_spans(document, [Span(*span) for span in line.spans], scale=1.25).values())
    gap = 12
    sheet = Image.new("RGB", (sum(p.width for p in pages) + gap * 3, pages[0].height + gap * 2), (225, 228, 232))
    left = gap
    for page in pages:
        sheet.paste(page, (left, gap))
        left += page.width + gap
    return sheet.quantize(64)


def main() -> int:
    """Write every picture."""
    IMAGES.mkdir(exist_ok=True)
    try:
        gold_on_the_page().save(IMAGES / "gold-on-the-page.png", optimize=True)
    except ToolkitError as error:
        print(f"error: {error} (run make demo first)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
