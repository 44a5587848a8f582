"""Hostile files, each with its expected result."""

import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from tests.evidence.files import docx, stream, write_pdf


class HostileFile(NamedTuple):
    """A hostile file, and whether it is expected to be read, refused with a reason, or stopped by a limit.

    A file that is not read must be reported by name.
    """

    name: str
    make: Callable[[], bytes]
    slow: bool = False
    """Whether only a limit of time or memory ends its reading."""
    read: bool = False
    """Whether the file is read, because it is odd but harmless."""


_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def page_pdf(
    content: bytes, *, box: bytes = b"0 0 612 792", forms: list[bytes] | None = None, packed: bool = False
) -> bytes:
    """Return a PDF of one page; forms are objects from number 6 on."""
    named = b" ".join(b"/F%d %d 0 R" % (n, n + 6) for n in range(len(forms or [])))
    resources = b"<< /Font << /H 5 0 R >> /XObject << %s >> >>" % named
    return write_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R /Resources %s >>" % (box, resources),
            stream(content, packed=packed),
            _FONT,
            *(forms or []),
        ]
    )


def form(content: bytes, resources: bytes) -> bytes:
    """Return a PDF form, a drawing that a page can use."""
    return stream(content, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources %s" % resources)


def draws_itself() -> bytes:
    """Return a page with a form that draws itself twice."""
    return page_pdf(b"/F0 Do", forms=[form(b"/G Do /G Do", b"<< /XObject << /G 6 0 R >> >>")])


def text_bomb() -> bytes:
    """Return a page of fifty million characters in some fifty kilobytes."""
    return page_pdf(
        b"BT /H 1 Tf 0 0 Td " + b"(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj " * 1_200_000 + b"ET", packed=True
    )


def many_pages() -> bytes:
    """Return a PDF whose page tree has six levels; each node lists its one child thirty times."""
    nodes = [b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"%d 0 R " % (n + 3) * 30, 30 ** (6 - n)) for n in range(6)]
    leaf = b"<< /Type /Page /Parent 7 0 R /MediaBox [0 0 9 9] >>"
    return write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", *nodes, leaf])


def compress_twice() -> bytes:
    """Return a page with a gigabyte of spaces in four kilobytes, compressed twice."""
    packer, block = zlib.compressobj(9), b" " * (1 << 20)
    once = b"".join(packer.compress(block) for _ in range(1024)) + packer.flush()
    twice = zlib.compress(once, 9)
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>" % len(twice)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << >> >>"
    content = b"%s\nstream\n%s\nendstream" % (head, twice)
    return write_pdf(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, content]
    )


def billion_laughs() -> bytes:
    """Return a Word document with one entity that consists of ten entities, each of ten entities, and so on."""
    return docx("<w:p><w:r><w:t>&a11;</w:t></w:r></w:p>", head=_LAUGHS)


def tables_in_tables(depth: int = 3000) -> bytes:
    """Return a Word document of tables within tables."""
    opening, closing = "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
    return docx(opening * depth + "<w:p><w:r><w:t>Rent</w:t></w:r></w:p>" + closing * depth)


def mail_in_mail(depth: int = 2000) -> bytes:
    """Return a mail with an attached mail, which has an attached mail, and so on."""
    return b"From: a@b.example\nSubject: x\n" + b"Content-Type: message/rfc822\n\n" * depth + b"From: x\n\nRent."


def huge_picture(side: int = 20_000) -> bytes:
    """Return a picture of 400 million pixels in fifty kilobytes."""

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer, rows = zlib.compressobj(9), bytes(side // 8 + 1) * 1000
    data = b"".join(packer.compress(rows) for _ in range(side // 1000)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", head) + block(b"IDAT", data) + block(b"IEND", b"")


_ENTITIES = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
_LAUGHS = f'<!DOCTYPE d [<!ENTITY a0 "ha">{_ENTITIES}]>'
"""An entity that consists of ten entities, each of ten entities, and so on."""


FILES = [
    HostileFile("form-twice.pdf", draws_itself, slow=True),
    HostileFile("text-bomb.pdf", text_bomb, slow=True),
    HostileFile("packed-twice.pdf", compress_twice, slow=True),
    HostileFile("pages.pdf", many_pages),
    HostileFile(
        "huge-page.pdf",
        lambda: page_pdf(b"BT /H 9 Tf 9 9 Td (Rent is due.) Tj ET", box=b"0 0 14400000 14400000"),
        read=True,
    ),
    HostileFile("states.pdf", lambda: page_pdf(b"q " * 3_000_000, packed=True), slow=True),
    HostileFile(
        "no-box.pdf", lambda: page_pdf(b"BT /H 9 Tf 9 9 Td (Rent is due.) Tj ET", box=b"0 0 -1e38 1e39"), read=True
    ),
    HostileFile("arrays.pdf", lambda: page_pdf(b"BT " + b"[" * 500_000 + b" ET")),
    HostileFile("cut.pdf", lambda: page_pdf(b"BT ET")[:200]),
    HostileFile("empty.pdf", lambda: b""),
    HostileFile("not.pdf", lambda: b"MZ\x90\x00 this is a program"),
    HostileFile("no-text.pdf", lambda: page_pdf(b"0 0 9 9 re f")),
    HostileFile("comments.html", lambda: b"<!--" * 100_000),
    HostileFile("quotes.html", lambda: b"<p>Rent.</p>" + b'<a b="' * 50_000, read=True),
    HostileFile("section.html", lambda: b"<p>The rent is due.</p><![foo[ x ]]>", read=True),
    HostileFile("nested.html", lambda: b"<div>" * 60_000 + b"The rent is due."),
    HostileFile("number.html", lambda: b"<p>Rent &#" + b"1" * 5_000 + b"; is due.</p>", read=True),
    HostileFile("latin.txt", lambda: "Miete für März".encode("latin-1"), read=True),
    HostileFile("blanks.txt", lambda: (b" " * 200_000 + b"\n") * 3 + b"The rent is due.", read=True),
    HostileFile("line.txt", lambda: b"a" * 2_000_000, read=True),
    HostileFile("laughs.docx", billion_laughs),
    HostileFile("paragraphs.docx", lambda: docx("<w:p/>" * 650_000), slow=True),
    HostileFile("laughs.xhtml", lambda: f"{_LAUGHS}<html><body><p>Rent &a11;</p></body></html>".encode(), read=True),
    HostileFile("tables.docx", tables_in_tables),
    HostileFile("long-word.docx", lambda: docx(f"<w:p><w:r><w:t>{'a' * 9_000_000}</w:t></w:r></w:p>")),
    HostileFile("mails.eml", mail_in_mail),
    HostileFile(
        "charset.eml", lambda: b"From: a@b.example\nContent-Type: text/plain; charset=zlib_codec\n\nRent.", read=True
    ),
    HostileFile("brackets.md", lambda: b"[" * 8_000, read=True),
    HostileFile("columns.csv", lambda: b"," * 200_000),
    HostileFile("cell.csv", lambda: b'a,b\n"' + b"x" * 2_000_000 + b'",1\n'),
    HostileFile("picture.png", huge_picture),
]
