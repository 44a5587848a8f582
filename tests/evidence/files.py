"""Files of every kind: a valid file with a known sentence, and a broken file."""

import email.message
import io
import itertools
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_ROOT = (
    f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{R}/officeDocument" Target="word/document.xml"/></Relationships>'
)


def pack(parts: dict[str, str | bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of files with these names and contents."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return data.getvalue()


def docx(body: str, *, head: str = "", **parts: str) -> bytes:
    """Return a Word document with this body, XML head, and further files of word/ by name: styles, footnotes …"""
    kinds = {name: name.rstrip("0123456789") for name in parts}
    links = "".join(
        f'<Relationship Id="p{number}" Type="{R}/{kinds[name]}" Target="{name}.xml"/>'
        for number, name in enumerate(parts)
    )
    return pack({
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _ROOT,
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        "word/document.xml": f"{head}<w:document {W}><w:body>{body}</w:body></w:document>",
        **{f"word/{name}.xml": content for name, content in parts.items()},
    })  # fmt: skip


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of Word with one run."""
    settings = f"<w:pPr>{properties}</w:pPr>" if properties else ""
    return f'<w:p>{settings}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def eml(text: str, *, html: str = "", attachments: dict[str, bytes] | None = None) -> bytes:
    """Return a mail."""
    message = email.message.EmailMessage()
    message["From"] = "Ines Corvo <ines@corvo-law.example>"
    message["To"] = "Tomas Beran <tomas@alder-mills.example>"
    message["Subject"] = "Notice under clause 9"
    message["Date"] = "Mon, 02 Mar 2020 09:30:00 +0000"
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in (attachments or {}).items():
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def xlsx(*rows: list[object], title: str = "Sheet", more: dict[str, list[list[object]]] | None = None,
         merged: tuple[str, ...] = ()) -> bytes:  # fmt: skip
    """Return a workbook; `sheets` are further sheets by name."""
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for area in merged:
        book.active.merge_cells(area)
    for name, lines in (more or {}).items():
        sheet = book.create_sheet(name)
        for row in lines:
            sheet.append(row)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def scan(*lines: str, kind: str = "PNG") -> bytes:
    """Return a picture of lines of text."""
    image = Image.new("RGB", (1240, 400), "white")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=34)
    for row, line in enumerate(lines):
        pen.text((90, 60 + 80 * row), line, font=font, fill="black")
    data = io.BytesIO()
    image.save(data, kind, **({"resolution": 150} if kind == "PDF" else {}))
    return data.getvalue()


def msg(
    *, subject: str, body: str = "", sender: str = "Ines Corvo", attachments: dict[str, bytes] | None = None
) -> bytes:
    """Return a mail as Outlook saves it: an OLE file with a stream for each property."""
    times = bytes(32) + struct.pack("<HHIQ", 0x0040, 0x0039, 6, 132_276_186_000_000_000)
    tree: dict[str, object] = {
        "__properties_version1.0": times,
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": sender.encode("utf-16-le"),
        "__substg1.0_0E04001F": "Tomas Beran".encode("utf-16-le"),
        "__substg1.0_1000001F": body.encode("utf-16-le"),
    }
    for number, (name, data) in enumerate((attachments or {}).items()):
        tree[f"__attach_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            "__substg1.0_37010102": data,
        }
    return ole(tree)


_SECTOR, _FREE, _END = 512, 0xFFFFFFFF, 0xFFFFFFFE


def ole(tree: dict[str, object]) -> bytes:
    """Return an OLE file ([MS-CFB], version 3) of streams and storages.

    Streams are padded so that none is small enough for the mini stream.
    """
    entries: list[list[object]] = [["Root Entry", 5, _FREE, _FREE, _FREE, _END, 0]]
    streams: list[tuple[int, bytes]] = []

    def add(children: dict[str, object]) -> int:
        # each entry has only a right child: this chain is a valid tree for every reader
        numbers = []
        for name in sorted(children, key=lambda name: (len(name), name.upper())):
            content = children[name]
            entries.append([name, 2 if isinstance(content, bytes) else 1, _FREE, _FREE, _FREE, _END, 0])
            numbers.append(len(entries) - 1)
            if isinstance(content, bytes):
                streams.append((numbers[-1], content))
            else:
                inner = numbers[-1]
                entries[inner][4] = add(content)  # type: ignore[arg-type]
        for number, other in itertools.pairwise(numbers):
            entries[number][3] = other
        return numbers[0] if numbers else _FREE

    entries[0][4] = add(tree)
    table: list[int] = []
    sectors: list[bytes] = []

    def store(data: bytes) -> int:
        first = len(sectors)
        count = max(-(-len(data) // _SECTOR), 1)
        for index in range(count):
            sectors.append(data[index * _SECTOR : (index + 1) * _SECTOR].ljust(_SECTOR, b"\0"))
            table.append(first + index + 1 if index < count - 1 else _END)
        return first

    for number, data in streams:
        # pad with zeros: a stream of less than 4,096 bytes would have to be in the mini stream
        padded = data if len(data) >= 4096 else data.ljust(4096, b"\0")
        entries[number][5], entries[number][6] = store(padded), len(padded)
    directory = b"".join(_entry(*entry) for entry in entries)  # type: ignore[arg-type]
    first_directory = store(directory + bytes(-len(directory) % _SECTOR))
    needed = 1
    while (len(sectors) + needed) * 4 > needed * _SECTOR:
        needed += 1
    first_table = len(sectors)
    table += [0xFFFFFFFD] * needed
    packed = struct.pack(f"<{len(table)}I", *table)
    packed += b"\xff" * (needed * _SECTOR - len(packed))
    head = struct.pack("<8s16xHHHHH6xIIIIIIIII", bytes.fromhex("d0cf11e0a1b11ae1"), 0x3E, 3, 0xFFFE, 9, 6,
                       0, needed, first_directory, 0, 4096, _END, 0, _END, 0)  # fmt: skip
    head += struct.pack("<109I", *range(first_table, first_table + needed), *[_FREE] * (109 - needed))
    return head + b"".join(sectors) + packed


def _entry(name: str, kind: int, left: int, right: int, child: int, start: int, size: int) -> bytes:
    wide = name.encode("utf-16-le") + b"\0\0"
    return wide.ljust(64, b"\0") + struct.pack(
        "<HBBIII16xI16xIQ", len(wide), kind, 1, left, right, child, 0, start, size
    )  # fmt: skip


def write_pdf(objects: list[bytes], *, trailer: bytes = b"") -> bytes:
    """Return a PDF of numbered objects; the first is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    return bytes(out)


def stream(content: bytes, head: bytes = b"", *, packed: bool = False) -> bytes:
    """Return a stream object."""
    data = zlib.compress(content, 9) if packed else content
    filtered = b"/Filter /FlateDecode " if packed else b""
    return b"<< /Length %d %s%s >>\nstream\n%s\nendstream" % (len(data), filtered, head, data)


def pdf(text: str) -> bytes:
    """Return a PDF of one line of Helvetica."""
    return drawn_pdf(f"BT /F 11 Tf 60 700 Td ({text}) Tj ET")


def drawn_pdf(content: str, form: str = "") -> bytes:
    """Return a PDF of one page with this content stream.

    The font `/F` is Helvetica; the graphics states are `/Faint` (transparent) and `/Marker` (highlighter ink).
    `/Form Do` draws the form.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F 5 0 R >> /XObject << /Form 6 0 R >>"
        b" /ExtGState << /Faint << /ca 0 >> /Marker << /BM /Multiply >> >> >> >>",
        stream(content.encode("ascii")),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        stream(
            form.encode("ascii"),
            b"/Type /XObject /Subtype /Form /BBox [-9000 -9000 9000 9000] /Resources << /Font << /F 5 0 R >> >>",
        ),
    ]
    return write_pdf(objects)


GOOD: dict[str, Callable[[str], bytes]] = {
    ".pdf": pdf,
    ".txt": lambda text: text.encode("utf-8"),
    ".log": lambda text: f"“Note” – {text}".encode("cp1252"),
    ".md": lambda text: f"# Notice\n\n{text.replace('shall', '**shall**')}\n".encode(),
    ".html": lambda text: f"<title>x</title><p>{text.replace('shall', '<b>shall</b>')}</p>".encode(),
    ".htm": lambda text: f"<p>{text}</p>".encode(),
    ".xhtml": lambda text: f"<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{text}</p></body></html>".encode(),
    ".csv": lambda text: f'clause,words\n1,"{text}"\n'.encode("utf-16"),
    ".tsv": lambda text: f"clause\twords\n1\t{text}\n".encode(),
    ".docx": lambda text: docx(paragraph(text)),
    ".docm": lambda text: docx(paragraph(text)),
    ".eml": lambda text: eml(text),
    ".msg": lambda text: msg(subject="Notice", body=text),
    ".xlsx": lambda text: xlsx(["clause", "words"], [1, text]),
}
"""A valid file of each kind that needs no other program."""

BROKEN: dict[str, bytes] = {
    ".pdf": b"%PDF-1.4\n1 0 obj <<",
    ".txt": bytes(range(32)) * 8 + b"\xff",
    ".log": b"\x00\x01\x02\xfe\xff" * 40,
    ".md": bytes(range(32)) * 8 + b"\xff",
    ".html": b"\xff\x00\x01\x02" * 40,
    ".htm": b"\xff\x00\x01\x02" * 40,
    ".xhtml": b"\xff\x00\x01\x02" * 40,
    ".csv": b"\x00\x01\x02\xfe\xff" * 40,
    ".tsv": b"\x00\x01\x02\xfe\xff" * 40,
    ".docx": docx(paragraph("cut"))[:400],
    ".docm": pack({"word/document.xml": "<w:document"}),
    ".eml": b"\x00\x01 nothing of a mail",
    ".msg": ole({"WordDocument": b"x" * 5000}),
    ".xlsx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    ".png": b"\x89PNG\r\n\x1a\n cut",
    ".tiff": b"II*\0 cut",
}


_OFFICE = """#!/bin/sh
while [ "$#" -gt 1 ]; do
  case "$1" in
    --convert-to) to="$2" ;;
    --outdir) out="$2" ;;
  esac
  shift
done
mkdir -p "$out"
tail -c +9 "$1" > "$out/document.$to"
"""


def write_stub_office(folder: Path) -> Path:
    """Write a stub of the LibreOffice command; it returns a file's bytes after the first eight as the conversion."""
    folder.mkdir()
    command = folder / "soffice"
    command.write_text(_OFFICE, encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command
