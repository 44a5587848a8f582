"""Draws the gold of a question on images of its pages.

    exhibit show datasets_out/cuad 358 --out page.png

`358` is the id of a question in train.json.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from exhibit.engine import add_limit_arguments, apply_limits, read_limits
from exhibit.evidence.document import Document, Page, Span
from exhibit.evidence.read import read_boxes, read_within, render_within
from exhibit.runtime.command import Parser, add_json, guarded, print_results
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.storage.bundle import mirror_bundle, open_bundle
from exhibit.storage.locations import Location, fetch_file, parse_location

_GOLD = (255, 196, 0)  # amber: black words stay readable on it
_SCALE = 1.5  # pixels per point: a page fills a screen and its words are readable


def draw_page_uri(path: Location, page: Page, *, width: int) -> str:
    data, kind = compress_image(render_within(path, page.number, scale=width / page.width))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def compress_image(image: Image.Image) -> tuple[bytes, str]:
    """Return an image's bytes and format: `png` with eight greys, or `webp` for an image with colours."""
    image = image.convert("RGB")
    out = io.BytesIO()
    copy = np.asarray(image.resize((96, 128), Image.Resampling.BOX))
    # one pixel in five hundred has a colour; a scanner's grey differs less between the channels
    if np.mean(np.ptp(copy, axis=2) > 40) > 1 / 500:
        image.save(out, "WEBP", quality=55)
        return out.getvalue(), "webp"
    # eight evenly spaced greys are enough for print: a page of a contract takes a third of the bytes of WebP or JPEG
    small = image.convert("L").point([round(value * 7 / 255) for value in range(256)])
    small.putpalette([round(grey * 255 / 7) for grey in range(8) for _ in range(3)])
    small.save(out, "PNG", bits=4)
    return out.getvalue(), "png"


def draw_spans(document: Document, spans: Sequence[Span], *, scale: float = _SCALE) -> dict[int, Image.Image]:
    """Return an image of each page that the spans touch, by page number, with amber rectangles over the spans."""
    if document.path is None or not document.pages:
        raise ToolkitError(f"{document.filename}: has no pages to draw on; only a PDF has pages")
    boxes = [box for lines in read_boxes(document, list(spans)) for box in lines]
    pictures = {}
    for page, marked in groupby(sorted(boxes, key=attrgetter("page")), key=attrgetter("page")):
        picture = render_within(document.path, page, scale=scale).convert("RGBA")
        layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
        pen = ImageDraw.Draw(layer)
        for box in marked:
            corners = [value * scale for value in (box.left - 1, box.top - 1, box.right + 1, box.bottom + 1)]
            pen.rectangle(corners, fill=(*_GOLD, 90), outline=(*_GOLD, 230), width=1)
        pictures[page] = Image.alpha_composite(picture, layer).convert("RGB")
    return pictures


def draw_row(root: Location, row: int, *, scale: float = _SCALE) -> Iterator[tuple[str, int, Image.Image]]:
    """Yield the file, the number and an image of each page that has gold of a question, with the gold drawn on it."""
    bundle = open_bundle(mirror_bundle(root))
    lines = [line for line in bundle.gold if line.id == row]
    spans: dict[str, list[Span]] = {}
    for line in lines:
        if line.spans:
            spans.setdefault(str(line.filename), []).extend(Span(*span) for span in line.spans)
    if not spans:
        why = "the question is impossible, or its quote was not found" if lines else "gold.jsonl does not have this id"
        raise BundleError(f"{root}: row {row} has no located gold: {why}")
    for name, marked in spans.items():
        with fetch_file(bundle.files[name]):  # download it once for all steps
            pages = draw_spans(read_within(bundle.files[name]), marked, scale=scale)
        yield from ((name, page, picture) for page, picture in pages.items())


@guarded()
def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="exhibit show", description=__doc__)
    parser.add_argument("bundle", type=parse_location, help="a bundle's folder or URL")
    parser.add_argument("row", type=int, help="the id of a question in train.json")
    parser.add_argument("--out", type=Path, default=Path("gold.png"), help="the image file; further pages get a number")
    parser.add_argument("--scale", type=float, default=_SCALE, help="pixels per point (default: 1.5, or 108 dpi)")
    add_limit_arguments(parser)
    add_json(parser)
    options = parser.parse_args(argv)
    pictures: list[dict[str, str | int]] = []
    with apply_limits(read_limits(options)):
        for filename, page, picture in draw_row(options.bundle, options.row, scale=options.scale):
            number = f"-{len(pictures) + 1}" if pictures else ""
            out = options.out.with_stem(f"{options.out.stem}{number}")
            picture.save(out)
            pictures.append({"picture": str(out), "filename": filename, "page": page})
    lines = [f"{drawn['picture']}: {drawn['filename']}, page {drawn['page']}" for drawn in pictures]
    print_results(pictures, "\n".join(lines), as_json=options.json)
    return 0
