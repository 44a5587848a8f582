"""Small readers: JSON exports, LibreOffice, the text of PDF and Word files."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from exhibit.evidence import read_document
from exhibit.evidence.read import has_page, is_readable
from exhibit.evidence.readers import export, libreoffice, pdf, word
from exhibit.schemas.errors import DocumentError
from exhibit.storage.locations import parse_location
from tests.evidence import files
from tests.evidence.test_geometry import made, words


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"content": "a", "text": "b"}, "a"),
        ({"chunks": [{"text": "a"}, {"chunk": "b"}], "text": "c"}, "a\n\nb"),
        ({"chunks": [], "text": "c"}, "c"),
        ({"chunks": [{"x": 1}], "body": "c"}, "c"),
        ([{"page_content": "a"}, {"more": {"text": "b"}}, {"more": [{"text": "c"}]}, 5], "a\n\nb\n\nc"),
        ({"text": 5, "inner": {"text": "a"}}, "a"),
    ],
)
def test_export_reader_returns_the_text_of_a_json_export(tmp_path, data, text):
    (tmp_path / "a.json").write_text("\ufeff" + json.dumps(data), encoding="utf-8")
    assert export.read(tmp_path / "a.json").text == text


# ---------------------------------------------------------------- LibreOffice


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (subprocess.TimeoutExpired("soffice", 180), "did not finish within 180 s"),
        (PermissionError(13, "Permission denied"), "does not start: Permission denied"),
    ],
)
def test_libreoffice_reader_reports_a_failed_start_or_timeout(tmp_path, monkeypatch, raised, message):
    def run(*_: object, **options: object) -> None:
        assert options["seconds"] == 180
        raise raised

    monkeypatch.setattr("exhibit.evidence.readers.libreoffice._COMMANDS", (sys.executable,))
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.run_program", run)
    (tmp_path / "a.doc").write_bytes(OLE)
    with pytest.raises(DocumentError, match=message):
        libreoffice.page(tmp_path / "a.doc")


@pytest.mark.parametrize(
    ("said", "shown"), [(b"", "cannot convert this file$"), (b"first\nlast " + b"x" * 200, r"\(last x{115}\)$")]
)
def test_libreoffice_reader_shows_program_output_if_no_file_is_written(tmp_path, monkeypatch, said, shown):
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(stdout=said, stderr=b"")

    monkeypatch.setattr("exhibit.evidence.readers.libreoffice._COMMANDS", (sys.executable,))
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.run_program", run)
    (tmp_path / "a.xls").write_bytes(OLE)
    with pytest.raises(DocumentError, match=shown):
        libreoffice.page(tmp_path / "a.xls")
    assert asked[0][1:3] == ["--headless", "--norestore"] and asked[0][4:6] == ["--convert-to", "xlsx"]
    (tmp_path / "a.xls").write_bytes(b"")
    with pytest.raises(DocumentError, match="empty file"):
        libreoffice.page(tmp_path / "a.xls")


# ---------------------------------------------------------------- documents


def test_is_readable_and_has_page_depend_on_the_file_suffix(tmp_path):
    assert is_readable(parse_location("a.PDF")) and not is_readable(parse_location("a.mp4"))
    assert (
        has_page(parse_location("a.docx"))
        and not has_page(parse_location("a.pdf"))
        and not has_page(parse_location("a"))
    )
    (tmp_path / "No. 4").write_bytes(made(words(50, 150, "Words")))
    assert read_document(tmp_path / "No. 4").text == "Words"


def test_read_document_names_the_file_when_a_reader_fails(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")

    def fail(path: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("exhibit.evidence.readers.text.read", fail)
    with pytest.raises(DocumentError, match=r"a\.txt: damaged, or not a valid file \(odd\); open it in the program"):
        read_document(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("well\ufffeknown", "well-known"),
        ("a\u00a0b\u2003c\x07d\u2028e", "a b c d e"),
        ("é“", "é“"),
    ],
)
def test_clean_text_replaces_special_spaces_and_hyphens_of_a_pdf(raw, clean):
    assert pdf.clean_text(raw) == clean


def test_word_reader_names_a_file_without_text(tmp_path):
    (tmp_path / "a.docx").write_bytes(files.pack({"word/styles.xml": f"<w:styles {files.W}/>"}))
    with pytest.raises(DocumentError, match=r"a\.docx: no text in it \(word/document\.xml\)"):
        word.page(tmp_path / "a.docx")
