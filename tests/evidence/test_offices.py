"""Office files and mails in detail: the HTML of each element, and the limits that keep a broken file harmless."""

import email.message
import io
import os
import re
import struct
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from datetime import date, datetime, time
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.evidence import files as shared
from exhibit.evidence import read as folder
from exhibit.evidence.read import list_folder, read_document
from exhibit.evidence.readers import excel, libreoffice, word
from exhibit.evidence.readers import mail as mails
from exhibit.evidence.readers.html import cut_fragment, extract_text
from exhibit.schemas.errors import DocumentError, ToolkitError
from tests.evidence import files


def make_entry(size: int, packed: int, name: str = "a"):
    info = shared.zipfile.ZipInfo(name)
    info.file_size, info.compress_size = size, packed
    return info


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            [make_entry((512 << 20) + 1, 4 << 20)],
            "unpacks to 512 MiB in 1 parts; the limits are 512 MiB and 20000 parts",
        ),
        ([make_entry(1, 1)] * 20_001, "in 20001 parts"),
        ([make_entry(4 << 20, 1)], ""),
        ([make_entry((4 << 20) + 1, 0)], "unpacks to 4194305 times its size"),
        ([make_entry((200 << 16) + 1, 1 << 16)], "unpacks to 200 times its size"),
    ],
)
def test_check_sizes_refuses_an_archive_above_a_limit(parts, message):
    with pytest.raises(DocumentError, match=message) if message else nullcontext():
        shared.check_sizes(Path("a.docx"), parts, most_bytes=512 << 20, most_parts=20_000)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("x" * 200 + "\nmore"), r"\(x{120}\)"),
        (KeyError(), r"\(KeyError\)"),
        (PermissionError(13, "Permission denied"), "cannot be read: Permission denied"),
        (OSError("what"), "cannot be read: damaged, or not a valid thing"),
        (ToolkitError("as it is"), "^as it is$"),
    ],
)
def test_convert_parser_errors_turns_any_exception_into_a_toolkit_error(error, message):
    with pytest.raises(ToolkitError, match=message), shared.convert_parser_errors(Path("a.x"), "thing"):
        raise error


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (True, "TRUE"), (400.0, "400"), (1e15, "1000000000000000.0"), (-1e14, "-100000000000000"),
        (0.5, "0.5"), (datetime(2021, 5, 3), "2021-05-03"), (datetime(2021, 5, 3, 9, 30), "2021-05-03 09:30"),
        (date(2021, 5, 3), "2021-05-03"), (time(9, 30), "09:30:00"), ("x", "x"), (7, "7"),
    ],
)  # fmt: skip
def test_format_cell_returns_a_value_as_displayed_in_the_sheet(value, shown):
    assert excel.format_cell(value) == shown


def test_excel_reader_omits_empty_rows_and_trailing_empty_cells(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(files.xlsx(["a", "b", None], [None], ["c"]))
    assert excel.page(tmp_path / "a.xlsx").html.count("<td>") == 3


def test_cut_fragment_returns_the_safe_body_of_an_html_page():
    assert cut_fragment(" \n") == "" and cut_fragment("a & b") == "a &amp; b"
    assert cut_fragment("\ufeff<?xml version='1.0' encoding='x'?><p>a</p>") == "<p>a</p>"
    unseen = "<script>x</script><iframe src='x'></iframe><meta http-equiv='refresh' content='0;url=http://x'>"
    assert cut_fragment(f"<body>a{unseen}b<!-- c --><p>d</p></body>") == "ab<p>d</p>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b</p>", "a\nb"),
        ("a<br>b <b>c</b>  d", "a\nb c d"),
        ("<table><tr><td>a<td>b<tr><td>c", "a\tb\nc"),
        ("<tr><td></td><td>b</td></tr>", "b"),
        ("<pre> a\n  b </pre> c", "a\nb\nc"),
        ("<pre>a</pre><p>  b\nc</p>", "a\nb c"),
        ("</pre><p>a  b</p>", "a b"),
        ("<pre>a<pre>b</pre> c  d</pre> e  f", "a\nb\nc  d\ne f"),
        ("<head><title>x</title></head><body>a", "a"),
        ("<svg><style>x</style>y<svg>z</svg>w</svg>a", "a"),
        ("<noscript>x<template>y</noscript>a</template>b", "ab"),
        ("a<div><div><div>b</div></div></div><br><br><br><br>c", "a\nb\n\nc"),
        (" <p> a </p> ", "a"),
        ("<p>&pound;1 < 2 &lt; 3<!-- a > b --><p title='a > b'>&#x41;<p a='\"'>b", "£1 < 2 < 3\nA\nb"),
        ("<ul><li>one<li>two</ul><q>a</q><a href=x>b</a><input value=v><hr>c", "one\ntwo\nab\nc"),
    ],
)
def test_extract_text_breaks_html_lines_like_a_browser(html, text):
    assert extract_text(html) == text


def mail(tree: dict[str, object], tmp_path: Path) -> Path:
    (tmp_path / "a.msg").write_bytes(files.ole(tree))
    return tmp_path / "a.msg"


def encode_utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def make_property(tag: int, minutes: int, *, head: int = 32) -> bytes:
    ticks = 600_000_000 * minutes
    return bytes(head) + struct.pack("<HHIQ", 0x0040, tag, 6, ticks)


def test_outlook_mail_page_shows_sender_date_and_html_body(tmp_path):
    tree: dict[str, object] = {
        "__properties_version1.0": make_property(0x0E06, 61),
        "__substg1.0_0C1A001F": encode_utf16("Ines"),
        "__substg1.0_0C1F001F": encode_utf16("ines@x.org"),
        "__substg1.0_0E03001E": "Tomáš".encode("cp1250"),
        "__substg1.0_10130102": b"<p>Seen</p>",
        "__substg1.0_1000001F": encode_utf16("not seen"),
    }
    html = mails.page(mail(tree, tmp_path)).html
    assert "<td>Ines &lt;ines@x.org&gt;</td>" in html and "<td>1601-01-01 01:01 UTC</td>" in html
    assert "<td>Cc</td>" in html and "<p>Seen</p>" in html and "not seen" not in html and "<td>To</td>" not in html
    alone = {**tree, "__substg1.0_0C1F001F": encode_utf16("/o=EX"), "__properties_version1.0": bytes(32)}
    html = mails.page(mail(alone, tmp_path)).html
    assert "<td>Ines</td>" in html and "Date" not in html
    nobody = {name: data for name, data in alone.items() if "0C1A" not in name}
    assert "<td>/o=EX</td>" in mails.page(mail(nobody, tmp_path)).html


def test_outlook_attachments_without_name_get_a_number(tmp_path):
    inner = {
        "__properties_version1.0": make_property(0x0039, 5, head=24),
        "__substg1.0_0037001F": encode_utf16("Inner"),
    }
    tree: dict[str, object] = {
        "__properties_version1.0": bytes(32),
        "__attach_version1.0_#00000000": {"__substg1.0_37010102": b"data"},
        "__attach_version1.0_#00000001": {"__substg1.0_3701000D": inner, "__substg1.0_3001001F": encode_utf16("fwd")},
    }
    first, second = mails.attachments(mail(tree, tmp_path))
    assert (first.name, first.data.rstrip(b"\0")) == ("attachment 1", b"data")
    assert second.name == "fwd.html" and b"Inner" in second.data and b"1601-01-01 00:05 UTC" in second.data


def test_eml_mail_with_unknown_charset_is_read(tmp_path):
    message = email.message.EmailMessage()
    message["Subject"] = "Notice"
    message.set_content("plain")
    message.add_attachment(b"x", maintype="application", subtype="octet-stream")
    inner = email.message.EmailMessage()
    inner["Subject"] = "Inner"
    message.add_attachment(inner)
    path = tmp_path / "a.eml"
    path.write_bytes(message.as_bytes())
    html = mails.page(path).html
    assert "<td>Subject</td><td>Notice</td>" in html and "<td>From</td>" not in html and "plain" in html
    assert [attachment.name for attachment in mails.attachments(path)] == ["attachment 1", "mail 2.eml"]
    assert b"Inner" in mails.attachments(path)[1].data
    odd = b"Subject: x\nContent-Type: text/plain; charset=klingon\n\ncaf\xe9"
    path.write_bytes(odd)
    assert "café" in mails.page(path).html


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a/b:c.txt", "a_b_c.txt"), (" . ", "attachment"), ("", "attachment"), ("a." + "e" * 30, "a." + "e" * 19)],
)
def test_make_safe_name_replaces_characters_that_file_systems_refuse(name, plain):
    assert folder.make_safe_name(name) == plain


def make_mail(*names: str) -> bytes:
    message = email.message.EmailMessage()
    message["Subject"] = "x"
    message.set_content("y")
    for name in names:
        message.add_attachment(b"z", maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def test_list_folder_makes_attachment_names_unique_and_short_enough(tmp_path):
    (tmp_path / "a.eml").write_bytes(make_mail("same.txt", "same.txt", "SAME.txt"))
    (tmp_path / "b.eml").write_bytes(make_mail("3 x.txt", "x.txt", "x.txt", "2 x.txt"))
    names = [file.name for file in list_folder(tmp_path)]
    assert names == [
        "a.eml", "a.eml/same.txt", "a.eml/2 same.txt", "a.eml/3 SAME.txt",
        "b.eml", "b.eml/3 x.txt", "b.eml/x.txt", "b.eml/3 3 x.txt", "b.eml/2 x.txt",
    ]  # fmt: skip
    long = tmp_path / f"{'ä' * 120}.eml"
    long.write_bytes(make_mail(f"{'n' * 300}.txt", f"{'n' * 299}m.txt"))
    paths = [file.path for file in list_folder(tmp_path)][-2:]
    assert all(len(os.fsencode(path.name)) <= 251 and path.suffix == ".txt" for path in paths)
    assert len({path.name for path in paths}) == 2


def test_read_document_reads_a_word_document_with_a_renamed_main_part(tmp_path):
    whole = files.docx(files.paragraph("Rent is due."), header1=f"<w:hdr {files.W}>{files.paragraph('Secret')}</w:hdr>")
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    moved = {
        name.replace("document.xml", "document2.xml"): text.replace("word/document.xml", "word/document2.xml")
        for name, text in parts.items()
    }
    (tmp_path / "a.docx").write_bytes(files.pack(moved))
    words = read_document(tmp_path / "a.docx").text
    assert "Rent is due." in words and "Secret" in words


ENTITY = '<!DOCTYPE x [<!ENTITY e "expanded">]>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("suffix", "whole", "name"),
    [
        (".xlsx", lambda: files.xlsx(["a", "b"]), "xl/worksheets/sheet1.xml"),
        (".xlsx", lambda: files.xlsx(["a", "b"]), "xl/workbook.xml"),
        (".docx", lambda: files.docx(files.paragraph("x")), "word/document.xml"),
    ],
)
def test_read_document_refuses_a_part_that_declares_xml_entities(tmp_path, suffix, whole, name, encoding):
    with zipfile.ZipFile(io.BytesIO(whole())) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    text = re.sub(r"^<\?xml[^>]*>", "", parts[name].decode("utf-8")).lstrip()
    start = f'<?xml version="1.0" encoding="{encoding}"?><!--{"x" * 500}-->{ENTITY}'
    parts[name] = (start + re.sub(r"(<[^!?][^>]*>)([^<]+)", r"\1&e;", text, count=1)).encode(encoding)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(files.pack(parts))
    with pytest.raises(DocumentError, match="declares entities"):
        read_document(path)


def test_word_reader_error_names_a_file_without_text(tmp_path):
    (tmp_path / "a.docx").write_bytes(files.pack({"word/styles.xml": f"<w:styles {files.W}/>"}))
    with pytest.raises(DocumentError, match=r"a\.docx: no text in it \(word/document\.xml\)"):
        word.page(tmp_path / "a.docx")


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (subprocess.TimeoutExpired("soffice", 180), "did not finish within 180 s"),
        (b"", "cannot convert this file$"),
        (b"first\nlast " + b"x" * 200, r"\(last x{115}\)$"),
    ],
)
def test_libreoffice_reader_reports_a_failed_conversion(tmp_path, monkeypatch, result, message):
    asked: list[list[str]] = []

    def run(command: list[str], *, seconds: int, **_: object) -> SimpleNamespace:
        asked.append([*command, str(seconds)])
        if isinstance(result, Exception):
            raise result
        return SimpleNamespace(stdout=result, stderr=b"")

    monkeypatch.setattr("exhibit.evidence.readers.libreoffice._COMMANDS", (sys.executable,))
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.run_program", run)
    (tmp_path / "a.xls").write_bytes(OLE)
    with pytest.raises(DocumentError, match=message):
        libreoffice.page(tmp_path / "a.xls")
    assert asked[0][1:3] == ["--headless", "--norestore"] and asked[0][4:6] == ["--convert-to", "xlsx"]
    assert asked[0][-1] == "180"
    (tmp_path / "a.xls").write_bytes(b"")
    with pytest.raises(DocumentError, match="not a valid .xls file: it is empty"):
        libreoffice.page(tmp_path / "a.xls")
