"""A page's picture in few bytes."""

from __future__ import annotations

import base64
import io

from PIL import Image

from exhibit.evidence.document import Page
from exhibit.evidence.guard import render_within
from exhibit.storage.locations import Location

_GREYS = 8
"""Enough for print: a page of a contract takes a third of what WebP or JPEG need."""
_COLOURFUL = 40
"""How far a pixel's channels must be apart to be a colour rather than a grey of the scanner's."""


def page_uri(path: Location, page: Page, *, width: int) -> str:
    """Return a page as a data URI, so many pixels across."""
    data, kind = in_few_bytes(render_within(path, page.number, scale=width / page.width))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def in_few_bytes(image: Image.Image) -> tuple[bytes, str]:
    """Return a picture and what kind it is: eight greys as `png`, or `webp` where there is colour."""
    image = image.convert("RGB")
    out = io.BytesIO()
    kind = "webp" if _has_colour(image) else "png"
    if kind == "webp":
        image.save(out, "WEBP", quality=55)
    else:
        _in_greys(image).save(out, "PNG", bits=4)
    return out.getvalue(), kind


def _in_greys(image: Image.Image) -> Image.Image:
    """Return a picture in few greys, evenly spaced: quicker than asking which greys it has."""
    last = _GREYS - 1
    small = image.convert("L").point([round(value * last / 255) for value in range(256)])
    small.putpalette([round(grey * 255 / last) for grey in range(_GREYS) for _ in range(3)])
    return small


def _has_colour(image: Image.Image) -> bool:
    """Return whether more than one pixel in five hundred is coloured, seen from far enough to be quick."""
    small = image.resize((96, 128), Image.Resampling.BOX)
    _, saturation, value = small.convert("HSV").split()
    pairs = zip(saturation.tobytes(), value.tobytes(), strict=True)
    return sum(s * v // 255 > _COLOURFUL for s, v in pairs) > small.width * small.height / 500
