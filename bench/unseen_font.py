"""Writes the font of the invisible text that OCR adds to a page: `python -m bench.unseen_font`.

The font is written into evidence/unseen.pdf. It has a single glyph for all of Unicode, a box that is half
an em wide. It is embedded in PDFs, so that the invisible text has the same boxes in every viewer.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib

from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from exhibit.evidence.scan import ADVANCE, ASCENT, DESCENT, FONT, FONT_FILE
from exhibit.runtime.command import guarded


@guarded()
def main() -> int:
    """Write `evidence/unseen.pdf`, a PDF with the font of the invisible text that OCR adds to pages."""
    FONT_FILE.write_bytes(make_font_pdf())
    return 0


def make_font_pdf() -> bytes:
    """Return a PDF of one empty page that contains the font for the invisible text that OCR adds to pages."""
    writer = PdfWriter()
    page = writer.add_blank_page(1, 1)
    fonts = DictionaryObject({NameObject(f"/{FONT}"): writer._add_object(_make_font(writer))})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    writer.metadata = None
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _make_font(writer: PdfWriter) -> DictionaryObject:
    """Return a PDF font for all of Unicode; each code is a UTF-16 unit, and maps to the same character."""
    file = _stream(_make_truetype())
    file[NameObject("/Length1")] = NumberObject(len(_make_truetype()))
    box = ArrayObject(NumberObject(value) for value in (0, DESCENT, ADVANCE, ASCENT))
    descriptor = _make_dictionary(
        Type="/FontDescriptor", FontName=f"/{FONT}", Flags=5, FontBBox=box, ItalicAngle=0, Ascent=ASCENT,
        Descent=DESCENT, CapHeight=ASCENT, StemV=80, FontFile2=writer._add_object(file),
    )  # fmt: skip
    system = DictionaryObject({
        NameObject("/Registry"): TextStringObject("Adobe"),
        NameObject("/Ordering"): TextStringObject("Identity"),
        NameObject("/Supplement"): NumberObject(0),
    })  # fmt: skip
    descendant = _make_dictionary(
        Type="/Font", Subtype="/CIDFontType2", BaseFont=f"/{FONT}", CIDSystemInfo=system, DW=ADVANCE,
        FontDescriptor=writer._add_object(descriptor), CIDToGIDMap=writer._add_object(_stream(bytes(2 * 65536))),
    )  # fmt: skip
    return _make_dictionary(
        Type="/Font", Subtype="/Type0", BaseFont=f"/{FONT}", Encoding="/Identity-H",
        DescendantFonts=ArrayObject([writer._add_object(descendant)]), ToUnicode=writer._add_object(_stream(_CMAP)),
    )  # fmt: skip


_CMAP = b"""/CIDInit /ProcSet findresource begin
12 dict begin begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
%s
endcmap CMapName currentdict /CMap defineresource pop end end
""" % b"\n".join(
    # a range must not cross a change of the first byte, and a list has at most 100 ranges
    b"%d beginbfrange\n%s\nendbfrange"
    % (len(block), b"\n".join(b"<%02x00> <%02xff> <%02x00>" % (high, high, high) for high in block))
    for block in (range(100), range(100, 200), range(200, 256))
)


def _make_truetype() -> bytes:
    """Return a TrueType font with one glyph: a box from the descent to the ascent."""
    box = struct.pack(">hhhhh", 1, 0, DESCENT, ADVANCE, ASCENT) + struct.pack(">HH", 3, 0)
    box += (
        bytes([1] * 4)
        + struct.pack(">4h", 0, 0, ADVANCE, 0)
        + struct.pack(">4h", DESCENT, ASCENT - DESCENT, 0, DESCENT - ASCENT)
    )
    box += bytes(2)  # pad the 34 bytes to a multiple of four
    tables = {
        b"glyf": box,
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 0, DESCENT, ADVANCE, ASCENT,
            0, 8, 2, 1, 0,
        ),
        b"hhea": struct.pack(
            ">IhhhHhhhhhh8xhH", 0x10000, ASCENT, DESCENT, 0, ADVANCE, 0, 0, ADVANCE, 1, 0, 0, 0, 1
        ),
        b"hmtx": struct.pack(">Hh", ADVANCE, 0),
        b"loca": struct.pack(">II", 0, len(box)),
        b"maxp": struct.pack(">IHHHHHHHHHHHHHH", 0x10000, 1, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
    }  # fmt: skip
    head = struct.pack(">IHHHH", 0x10000, len(tables), 64, 2, 32)
    start = len(head) + 16 * len(tables)
    directory, body = b"", b""
    for name, data in sorted(tables.items()):
        directory += struct.pack(">4sIII", name, _compute_checksum(data), start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    return head + directory + body


def _compute_checksum(data: bytes) -> int:
    padded = data + bytes(-len(data) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF


def _stream(data: bytes) -> StreamObject:
    stream = StreamObject()
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    stream._data = zlib.compress(data, 9)
    return stream


def _make_dictionary(**entries: object) -> DictionaryObject:
    made = DictionaryObject()
    for name, value in entries.items():
        if isinstance(value, str):
            value = NameObject(value)
        elif isinstance(value, int):
            value = NumberObject(value)
        elif isinstance(value, float):
            value = FloatObject(value)
        made[NameObject(f"/{name}")] = value
    return made


if __name__ == "__main__":
    sys.exit(main())
