"""Pages as small pictures, and every word of a page with its place."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from exhibit.evidence import Span, read_document
from exhibit.evidence.document import Page
from exhibit.evidence.read import read_boxes, read_words
from exhibit.evidence.show import compress_image, draw_page_uri


@pytest.fixture(scope="module")
def contract(samples):
    return read_document(next((samples / "cuad").rglob("*.[pP][dD][fF]")))


def test_the_words_of_a_page_are_those_of_its_text_each_in_its_boxes(contract):
    words = read_words(contract, 2)
    page = contract.pages[1]
    assert [contract.text[span.start : span.end] for span, _ in words] == contract.text[
        page.span.start : page.span.end
    ].split()
    few = words[:3]
    assert [boxes for _, boxes in few] == read_boxes(contract, [span for span, _ in few])
    for _, boxes in words:
        assert boxes and all(0 <= box.left < box.right <= page.width and box.page == 2 for box in boxes)


def test_print_is_grey_and_colour_stays_colour(contract, tmp_path):
    kind, picture = opened(draw_page_uri(contract.path, contract.pages[0], width=400))
    assert (kind, picture.width) == ("png", 400)
    path = tmp_path / "red.pdf"
    Image.new("RGB", (300, 300), (200, 20, 20)).save(path)
    kind, picture = opened(draw_page_uri(path, Page(1, Span(0, 0), 300, 300), width=300))
    red, green, _ = picture.convert("RGB").getpixel((150, 150))
    assert kind == "webp" and red > 150 > green


def opened(uri):
    head, _, data = uri.partition(";base64,")
    return head.removeprefix("data:image/"), Image.open(io.BytesIO(base64.b64decode(data)))


PINK = (255, 195, 195)


def dotted(size: tuple[int, int], places, colour: tuple[int, int, int] = PINK) -> Image.Image:
    image = Image.new("RGB", size, "white")
    for place in places:
        image.putpixel(place, colour)
    return image


def test_one_pixel_in_five_hundred_may_be_coloured():
    """Of 96 × 128 pixels, 24 coloured ones are allowed and 25 are too many."""
    row, column = [(20 + at, 64) for at in range(25)], [(48, 20 + at) for at in range(25)]
    for places in (row, column):
        assert compress_image(dotted((96, 128), places))[1] == "webp"
        assert compress_image(dotted((96, 128), places[1:]))[1] == "png"


def test_fine_lines_of_colour_are_grey_from_afar():
    for size in ((96, 256), (192, 128)):
        lines = [(x, y) for x in range(size[0]) for y in range(size[1]) if (y if size[1] == 256 else x) % 2]
        assert compress_image(dotted(size, lines))[1] == "png"


@pytest.mark.parametrize(("green", "kind"), [(214, "webp"), (215, "png")])
def test_channels_must_be_forty_apart_to_be_a_colour(green, kind):
    assert compress_image(Image.new("RGB", (96, 128), (255, green, green)))[1] == kind


def test_print_has_eight_greys_from_black_to_white():
    ramp = Image.new("L", (256, 1))
    ramp.putdata(range(256))
    data, kind = compress_image(ramp)
    assert kind == "png"
    with Image.open(io.BytesIO(data)) as picture:
        shown = list(picture.convert("L").tobytes())
    assert sorted(set(shown)) == [0, 36, 73, 109, 146, 182, 219, 255] and shown == sorted(shown)
    assert [shown.count(grey) for grey in sorted(set(shown))] == [19, 36, 37, 36, 36, 37, 36, 19]
