"""Small images of pages, and the position of every word on a page."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from exhibit.evidence import Span, read_document
from exhibit.evidence.document import Page
from exhibit.evidence.read import read_boxes, read_words
from exhibit.evidence.show import draw_page_uri


@pytest.fixture(scope="module")
def contract(samples):
    return read_document(next((samples / "cuad").rglob("*.[pP][dD][fF]")))


def test_read_words_returns_the_words_of_the_page_text_with_their_boxes(contract):
    words = read_words(contract, 2)
    page = contract.pages[1]
    assert [contract.text[span.start : span.end] for span, _ in words] == contract.text[
        page.span.start : page.span.end
    ].split()
    few = words[:3]
    assert [boxes for _, boxes in few] == read_boxes(contract, [span for span, _ in few])
    for _, boxes in words:
        assert boxes and all(0 <= box.left < box.right <= page.width and box.page == 2 for box in boxes)


def test_draw_page_uri_uses_png_for_grey_pages_and_webp_for_colour(contract, tmp_path):
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
