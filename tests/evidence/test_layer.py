"""The exact numbers in a scan's invisible text layer: each word's position, its rotation and its font."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject, StreamObject

from exhibit.evidence.ocr import TextLine
from exhibit.evidence.readers.pdf import read
from exhibit.evidence.scan import Layer, write_layer

LINES = (
    TextLine(10, 20, 110, 40, "Rent is Due", 1.0),  # beside the next one, so a space follows
    TextLine(150, 22, 190, 38, "MW @", 1.0),
    TextLine(10, 60, 60, 70, "end.", 1.0),
)


def written(tmp_path: Path, layer: Layer, *, drawings: list[bytes] | None = None) -> Any:
    """Write a layer onto a PDF page of 200 by 100 points; return the page."""
    writer = PdfWriter()
    page = writer.add_blank_page(200, 100)
    if drawings is not None:
        streams = []
        for data in drawings:
            stream = StreamObject()
            stream.set_data(data)
            streams.append(writer._add_object(stream))
        page[NameObject("/Contents")] = ArrayObject(streams) if len(streams) != 1 else streams[0]
    writer.write(tmp_path / "blank.pdf")
    write_layer(tmp_path / "blank.pdf", tmp_path / "read.pdf", {1: layer})
    return PdfReader(tmp_path / "read.pdf").pages[0]


def streams(page: Any) -> list[str]:
    return [item.get_object().get_data().decode("ascii") for item in page["/Contents"].get_object()]


def test_text_layer_positions_words_by_letter_widths(tmp_path):
    # R 1.2, e n 1, t 0.55, a space 0.55: 4.3 of 9.6 for the first word, and so on; a size of 20 stands 5 above the foot
    before, after = streams(written(tmp_path, Layer(0.0, LINES)))
    assert before == "q\n"
    assert after.split("\n")[1:-1] == [
        "Q q 1 0 0 -1 0 100 cm BT 3 Tr",
        "/ExhibitUnseen 20 Tf 89.58333 Tz 1 0 0 -1 10 35 Tm <00520065006e00740020> Tj",
        "/ExhibitUnseen 20 Tf 72.91667 Tz 1 0 0 -1 54.79167 35 Tm <006900730020> Tj",
        "/ExhibitUnseen 20 Tf 97.65625 Tz 1 0 0 -1 76.66667 35 Tm <0044007500650020> Tj",
        "/ExhibitUnseen 16 Tf 117.16172 Tz 1 0 0 -1 150 34 Tm <004d00570020> Tj",
        "/ExhibitUnseen 16 Tf 148.51485 Tz 1 0 0 -1 178.11881 34 Tm <0040> Tj",
        "/ExhibitUnseen 10 Tf 250 Tz 1 0 0 -1 10 67.5 Tm <0065006e0064002e> Tj",
        "ET Q",
    ]


@pytest.mark.parametrize(
    ("turn", "begin"),
    [(0.0, "q\n"), (90.0, "q 0 1 -1 0 150 -50 cm\n"), (2.0, "q 0.99939 0.0349 -0.0349 0.99939 1.80589 -3.45949 cm\n")],
)
def test_text_layer_rotates_the_page_and_keeps_its_content_streams(tmp_path, turn, begin):
    own = [b"0 0 m", b"9 9 l S"]
    first, *drawn, _ = streams(written(tmp_path, Layer(turn, LINES), drawings=own))
    assert first == begin and drawn == [data.decode() for data in own]
    assert read(tmp_path / "read.pdf").text.split() == ["Rent", "is", "Due", "MW", "@", "end."]
