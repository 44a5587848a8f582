"""OCR in the pipeline caches its result as a PDF with the recognised words."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhibit.evidence import Span, read_document
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.readers.pdf import find_boxes
from exhibit.evidence.scan import Ocr
from exhibit.rag.ingest import read_with_ocr
from exhibit.schemas.errors import ToolkitError
from tests.evidence import files

WORDS = "The tenant shall keep the premises in repair."
HOW = Ocr("tesseract", "en")


@pytest.fixture
def ocr_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[int, int]]:
    """A stub OCR engine that recognises the same words on each image; the fixture lists the image sizes."""
    sizes: list[tuple[int, int]] = []

    def read(picture):
        sizes.append(picture.size)
        return [TextLine(100, 100, 900, 140, WORDS, 0.8)]

    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: read)
    return sizes


@pytest.mark.parametrize("name", ["scan.pdf", "scan.png", "scan.tiff"])
def test_read_with_ocr_caches_scan_with_word_boxes(tmp_path, ocr_sizes, name):
    path = tmp_path / name
    path.write_bytes(files.scan(WORDS, kind=path.suffix[1:].upper()))
    assert not read_document(path).has_text
    document = read_with_ocr(path, HOW)
    assert document.text == WORDS and document.filename == name
    assert document.notes == ("page 1 read by OCR with confidence 80%",)
    assert find_boxes(document, [Span(4, 10)]) != [[]]
    assert read_with_ocr(path, HOW) == document
    assert len(ocr_sizes) == 1


def test_read_with_ocr_does_not_run_ocr_on_document_with_text(tmp_path, ocr_sizes):
    for name, data in (("lease.pdf", files.pdf(WORDS)), ("lease.txt", WORDS.encode())):
        (tmp_path / name).write_bytes(data)
        assert read_with_ocr(tmp_path / name, HOW) == read_document(tmp_path / name)
    assert ocr_sizes == []


def test_choose_ocr_names_install_command_when_engine_is_missing(monkeypatch):
    from exhibit.evidence.scan import choose_ocr

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("exhibit.evidence.ocr.rapidocr.find_spec", lambda name: None)
    with pytest.raises(ToolkitError, match=r"pip install 'exhibit-rag\[ocr\]'"):
        choose_ocr("en", "rapidocr")
