"""The invisible text layer of a scan, number by number: each word's position, its rotation and its font."""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path
from typing import Any

import pytest
from PIL import ImageFont
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject, StreamObject

from exhibit.evidence.readers.pdf import read
from exhibit.evidence.scan import Frame, Layer, Text, write_layer

LINES = (
    Text(10, 20, 110, 40, "Rent is Due"),  # beside the next one, so a space follows
    Text(150, 22, 190, 38, "MW @"),
    Text(10, 60, 60, 70, "end."),
)
UPRIGHT = Frame(1, 0, 0, -1, 0, 100)


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


def test_each_word_stands_where_the_widths_of_the_letters_before_it_end(tmp_path):
    # R 1.2, e n 1, t 0.55, a space 0.55: 4.3 of 9.6 for the first word, and so on; a size of 20 stands 5 above the foot
    before, after = streams(written(tmp_path, Layer(UPRIGHT, 0.0, LINES)))
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
    ("top", "bottom", "spaced"),
    [
        (20, 40, True),
        (0, 40, True),
        (40, 60, False),
        (0.02, 39.98, True),
        (0, 38, False),
        (30, 50, True),
        (31, 51, False),
    ],
)
def test_a_line_is_beside_another_whose_middle_it_reaches(tmp_path, top, bottom, spaced):
    lines = (Text(0, 20, 9, 40, "one"), Text(20, top, 29, bottom, "two"))
    drawn = streams(written(tmp_path, Layer(UPRIGHT, 0.0, lines)))[1]
    assert ("0020>" in drawn) is spaced


@pytest.mark.parametrize(
    ("letters", "width"),
    [
        ("a", 1),
        ("i", 0.55),
        ("ai", 1.55),
        ("aM", 2.5),
        ("aA", 2.2),
        ("a漢", 2.2),
        ("a\u2e80", 2),
        ("a—", 2.5),
        ("a1", 1.55),
    ],
)
def test_letters_are_narrow_wide_capital_or_plain(tmp_path, letters, width):
    drawn = streams(written(tmp_path, Layer(UPRIGHT, 0.0, (Text(0, 0, 100, 10, f"{letters} xx"),))))[1]
    second = float(drawn.split("\n")[3].split(" Tm")[0].split()[-2])
    assert second == pytest.approx(100 * (width + 0.55) / (width + 0.55 + 2), abs=1e-4), "where the next word begins"


def test_a_line_without_height_or_width_is_still_written(tmp_path):
    drawn = streams(written(tmp_path, Layer(UPRIGHT, 0.0, (Text(5, 30, 5, 30, "x"),))))[1].split("\n")[2]
    assert drawn == "/ExhibitUnseen 0.5 Tf 40 Tz 1 0 0 -1 5 29.875 Tm <0078> Tj"


@pytest.mark.parametrize(
    ("turn", "begin"),
    [
        (0.0, "q\n"),
        (90.0, "q 0 1 -1 0 150 -50 cm\n"),
        (2.0, "q 0.99939 0.0349 -0.0349 0.99939 1.80589 -3.45949 cm\n"),
    ],
)
def test_the_pages_own_drawing_is_turned_around_its_middle(tmp_path, turn, begin):
    own = [b"0 0 m 9 9 l S"]
    first, middle, _ = streams(written(tmp_path, Layer(UPRIGHT, turn, LINES), drawings=own))
    assert first == begin and middle == own[0].decode()


def test_a_page_of_several_drawings_keeps_all_of_them(tmp_path):
    own = [b"0 0 m", b"9 9 l S"]
    found = streams(written(tmp_path, Layer(UPRIGHT, 0.0, LINES), drawings=own))
    assert found[1:-1] == [data.decode() for data in own]
    assert read(tmp_path / "read.pdf").text.split() == ["Rent", "is", "Due", "MW", "@", "end."]


# ---------------------------------------------------------------- the font


def font_of(page: Any) -> Any:
    return page["/Resources"]["/Font"]["/ExhibitUnseen"]


def test_the_font_says_what_every_reader_needs_to_know(tmp_path):
    font = font_of(written(tmp_path, Layer(UPRIGHT, 0.0, LINES)))
    assert (font["/Type"], font["/Subtype"], font["/Encoding"]) == ("/Font", "/Type0", "/Identity-H")
    [inner] = font["/DescendantFonts"]
    inner = inner.get_object()
    assert (inner["/Subtype"], inner["/DW"], inner["/BaseFont"]) == ("/CIDFontType2", 500, "/ExhibitUnseen")
    assert dict(inner["/CIDSystemInfo"]) == {"/Registry": "Adobe", "/Ordering": "Identity", "/Supplement": 0}
    assert inner["/CIDToGIDMap"].get_data() == bytes(131_072), "every character has the one glyph"
    about = inner["/FontDescriptor"]
    numbers = ("Flags", "ItalicAngle", "Ascent", "Descent", "CapHeight", "StemV")
    assert {name: about[f"/{name}"] for name in numbers} == {
        "Flags": 5, "ItalicAngle": 0, "Ascent": 750, "Descent": -250, "CapHeight": 750, "StemV": 80,
    }  # fmt: skip
    assert list(about["/FontBBox"]) == [0, -250, 500, 750]
    assert about["/FontFile2"]["/Length1"] == len(about["/FontFile2"].get_data())


def test_codes_are_the_characters_themselves(tmp_path):
    cmap = font_of(written(tmp_path, Layer(UPRIGHT, 0.0, LINES)))["/ToUnicode"].get_data().decode("ascii")
    ranges = [line.split() for line in cmap.split("\n") if line.startswith("<")]
    assert ranges == [[f"<{high:02x}00>", f"<{high:02x}ff>", f"<{high:02x}00>"] for high in range(256)]
    assert [line for line in cmap.split("\n") if line.endswith("beginbfrange")] == [
        "100 beginbfrange", "100 beginbfrange", "56 beginbfrange",
    ]  # fmt: skip


def test_the_glyph_is_a_box_of_half_an_em(tmp_path):
    file = font_of(written(tmp_path, Layer(UPRIGHT, 0.0, LINES)))["/DescendantFonts"][0].get_object()["/FontDescriptor"]
    data = file["/FontFile2"].get_data()
    # the bytes are the same on every machine, and so are the boxes that readers see
    assert hashlib.sha256(data).hexdigest() == "3fcffadaa97c70c7951adc58ce64e4799c2a478439f8e57cd19f17b8aec56f49"
    count = struct.unpack(">IH", data[:6])[1]
    tables = {}
    for at in range(12, 12 + 16 * count, 16):
        name, checksum, start, length = struct.unpack(">4sIII", data[at : at + 16])
        tables[name.decode()] = table = data[start : start + length]
        words = struct.unpack(f">{(length + 3) // 4}I", table + bytes(-length % 4))
        assert checksum == sum(words) % 2**32 and start % 4 == 0
    assert list(tables) == ["glyf", "head", "hhea", "hmtx", "loca", "maxp"]
    assert struct.unpack(">hhhhh", tables["glyf"][:10]) == (1, 0, -250, 500, 750)
    assert struct.unpack(">H", tables["head"][18:20]) == (1000,) and tables["head"][12:16] == b"\x5f\x0f\x3c\xf5"
    metrics = ImageFont.truetype(io.BytesIO(data), 100).getmetrics()
    assert metrics == (75, 25), "as FreeType reads it"
