"""Scans are straightened and recognised; their text becomes an invisible layer of the PDF."""

import argparse
import io
from pathlib import Path
from typing import Any

import pdfplumber
import pypdf
import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont
from pypdf.generic import ArrayObject, NameObject, StreamObject

from exhibit.evidence import locate, read_document
from exhibit.evidence.ocr import TextLine, tesseract
from exhibit.evidence.readers.pdf import find_boxes, render
from exhibit.evidence.scan import (
    Layer,
    Ocr,
    add_ocr_arguments,
    choose_ocr,
    measure_skew,
    read_ocr_flags,
    read_scan,
    sort_lines,
    write_layer,
)
from exhibit.schemas.errors import DocumentError, ToolkitError
from tests.evidence import files

LINES = ["The tenant shall keep the premises in repair.", "Nájemné je splatné – předem; čtvrtletně.", "Fee: 450 £"]


def picture(*, angle: float = 0.0, size: tuple[int, int] = (1240, 1754)) -> Image.Image:
    """Return an image of a page of text, rotated by an angle."""
    image = Image.new("L", size, 255)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=30)
    for row in range(30):
        pen.text((100, 120 + 50 * row), "The tenant shall keep the premises in good repair.", font=font, fill=0)
    return image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Ocr:
    """An OCR engine that finds three lines on every page, the last two side by side."""
    places = [(200, 300, 1000, 340), (200, 400, 700, 440), (750, 402, 1000, 441)]
    lines = [TextLine(*place, text, 0.9) for place, text in zip(places, LINES, strict=True)]
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: lambda picture: lines[::-1])
    return Ocr("tesseract", "cs")


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """A PDF with a page of text and a page that is a picture."""
    written = pypdf.PdfReader(io.BytesIO(files.pdf("A page with text.")))
    drawn = io.BytesIO()
    picture(angle=2).save(drawn, "PDF", resolution=150)
    writer = pypdf.PdfWriter()
    writer.append(written)
    writer.append(pypdf.PdfReader(drawn))
    writer.write(tmp_path / "scan.pdf")
    return tmp_path / "scan.pdf"


def test_read_scan_skips_and_names_a_page_that_cannot_be_drawn(tmp_path, engine):
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"
    tree = b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>"
    path = tmp_path / "half.pdf"
    path.write_bytes(files.write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", tree, page, b"<< /Type /Foo >>"]))
    before = read_document(path)
    assert before.notes == ("page 2 is damaged and was read as empty",)
    found = read_scan(before, tmp_path / "read.pdf", engine)
    assert found is not None and found.confidence == {"1": 0.9}
    assert found.document.notes[-1].startswith("not read by OCR: page 2 is damaged and cannot be drawn")


def test_read_scan_adds_an_invisible_text_layer_that_pdfium_and_pypdf_extract(scan, tmp_path, engine):
    before = read_document(scan)
    found = read_scan(before, tmp_path / "read.pdf", engine)
    assert found is not None and found.confidence == {"2": 0.9}
    document = found.document
    assert document.filename == "scan.pdf" and document.notes == ("page 2 read by OCR with confidence 90%",)
    assert document.text == f"A page with text.\n{LINES[0]}\n{LINES[1]} {LINES[2]}"
    assert read_document(tmp_path / "read.pdf").text == document.text
    assert pypdf.PdfReader(tmp_path / "read.pdf").pages[1].extract_text().split() == " ".join(LINES).split()
    with pdfplumber.open(tmp_path / "read.pdf") as pdf:
        assert pdf.pages[1].extract_text().split() == " ".join(LINES).split()
    # the page of text is unchanged; the picture was straightened, and no letter of the layer is visible
    assert ImageChops.difference(render(scan, 1), render(tmp_path / "read.pdf", 1)).getbbox() is None
    assert measure_skew(render(tmp_path / "read.pdf", 2).convert("L")) == 0.0


@pytest.mark.parametrize("turned", [90, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (0, 180, 270))])
def test_read_scan_text_layer_has_boxes_at_the_ocr_positions(scan, tmp_path, engine, turned):
    writer = pypdf.PdfWriter(clone_from=scan)
    writer.pages[1].rotate(turned)
    writer.pages[1].cropbox = pypdf.generic.RectangleObject((20, 30, 560, 800))
    writer.write(scan)
    found = read_scan(read_document(scan), tmp_path / "read.pdf", engine)
    assert found is not None
    [match, *_] = locate("keep the premises in repair", found.document)
    [marked] = find_boxes(found.document, [match.span])
    points = 72 / 200  # the engine receives 200 pixels per inch
    assert {box.page for box in marked} == {2}
    assert min(box.top for box in marked) == pytest.approx(300 * points, abs=2)
    assert max(box.bottom for box in marked) == pytest.approx(340 * points, abs=2)
    assert max(box.right for box in marked) == pytest.approx(1000 * points, abs=10)
    assert 350 * points < min(box.left for box in marked) < 600 * points


def test_read_scan_writes_the_same_bytes_for_the_same_scan(scan, tmp_path, engine):
    for name in ("one.pdf", "two.pdf"):
        read_scan(read_document(scan), tmp_path / name, engine)
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()


def test_read_scan_skips_pages_with_text_and_blank_pages(tmp_path, engine, monkeypatch):
    (tmp_path / "text.pdf").write_bytes(files.pdf("A page with text."))
    assert read_scan(read_document(tmp_path / "text.pdf"), tmp_path / "out.pdf", engine) is None
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: lambda picture: [])
    Image.new("L", (300, 300), 255).save(tmp_path / "blank.pdf")
    assert read_scan(read_document(tmp_path / "blank.pdf"), tmp_path / "out.pdf", engine) is None
    assert not (tmp_path / "out.pdf").exists()


@pytest.mark.parametrize("angle", [pytest.param(-3.0, marks=pytest.mark.slow), 0.0])  # other tests check the details
def test_measure_skew_returns_the_angle_of_a_page(angle):
    assert measure_skew(picture(angle=angle)) == pytest.approx(-angle, abs=0.15)


def test_sort_lines_orders_lines_from_top_to_bottom_and_left_to_right():
    boxes = [(300, 10, 400, 30, "right"), (10, 12, 90, 32, "left"), (10, 50, 90, 70, "below")]
    assert [line.text for line in sort_lines([TextLine(*box, 1.0) for box in boxes])] == ["left", "right", "below"]


def test_choose_ocr_selects_an_installed_engine_for_the_languages(monkeypatch):
    monkeypatch.setattr("exhibit.evidence.ocr.rapidocr.missing", lambda language: "")
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: "")
    assert choose_ocr("cs-CZ") == Ocr("rapidocr", "cs")
    assert choose_ocr("ru_RU") == Ocr("tesseract", "ru")
    assert choose_ocr("en", "tesseract") == Ocr("tesseract", "en")
    assert choose_ocr("ces+eng") == choose_ocr("cs-CZ+en") == Ocr("rapidocr", "cs+en")
    assert choose_ocr("cs+ru") == Ocr("tesseract", "cs+ru"), "one engine must support all languages"
    monkeypatch.setattr("exhibit.evidence.ocr.rapidocr.missing", lambda language: "get rapidocr")
    assert choose_ocr("cs-CZ") == Ocr("tesseract", "cs")
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: f"get tesseract for {language}")
    with pytest.raises(ToolkitError, match="get rapidocr; or get tesseract for cs"):
        choose_ocr("cs-CZ")
    with pytest.raises(ToolkitError, match="no OCR engine reads it; choose from rapidocr: cs da de"):
        choose_ocr("tlh")
    with pytest.raises(ToolkitError, match="--ocr-engine magic .*: no OCR engine reads it"):
        choose_ocr("en", "magic")


def test_tesseract_parse_table_joins_words_into_lines_with_confidence():
    head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
    rows = ["5\t1\t1\t1\t1\t1\t10\t20\t30\t10\t90\tThe", '5\t1\t1\t1\t1\t2\t50\t18\t30\t14\t80\t"fee"']
    rows += ["5\t1\t1\t1\t2\t1\t10\t40\t9\t9\t-1\t ", "4\t1\t1\t1\t2\t0\t10\t40\t9\t9\t-1\t"]
    [line] = tesseract.parse_table(head + "\n".join(rows))
    assert line[:5] == (10, 18, 80, 32, 'The "fee"')
    assert line.confidence == pytest.approx((0.9 * 3 + 0.8 * 5) / 8)


def test_missing_tesseract_error_names_packages_to_install(monkeypatch):
    tesseract._list_installed.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert tesseract.missing("cs") == "Tesseract is not installed: apt-get install tesseract-ocr tesseract-ocr-ces"
    tesseract._list_installed.cache_clear()


def test_tesseract_receives_several_languages_at_once_and_a_grey_png(tmp_path, monkeypatch):
    command = tmp_path / "tesseract"
    listed = 'if [ "$1" = --list-langs ]; then printf "List\\nces\\neng\\n"; exit; fi\n'
    seen = 'echo "$*" > "$0.given"\ncat > "$0.png"\necho "no such layout" >&2\nexit 1\n'
    command.write_text(f"#!/bin/sh\n{listed}{seen}", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(command))
    caches = (tesseract._list_installed, tesseract.open)
    for cache in caches:
        cache.cache_clear()
    assert tesseract.missing("cs+de+ru").endswith("tesseract-ocr tesseract-ocr-deu tesseract-ocr-rus")
    with pytest.raises(ToolkitError, match="^Tesseract failed: no such layout$"):
        tesseract.open("cs+en")(Image.new("RGB", (7, 9), "white"))
    for cache in caches:
        cache.cache_clear()
    assert "-l ces+eng " in command.with_suffix(".given").read_text(encoding="utf-8")
    with Image.open(command.with_suffix(".png")) as sent:
        assert (sent.format, sent.mode, sent.size) == ("PNG", "L", (7, 9))


def test_read_scan_reports_a_pdf_that_cannot_take_a_text_layer(scan, tmp_path, engine, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise pypdf.errors.PdfReadError("broken")

    monkeypatch.setattr("pypdf.PdfWriter", refuse)
    with pytest.raises(DocumentError, match="damaged, or not a valid PDF"):
        read_scan(read_document(scan), tmp_path / "read.pdf", engine)


@pytest.mark.extra
@pytest.mark.slow
def test_rapidocr_reads_a_skewed_page(tmp_path):
    page = Image.new("L", (1240, 500), 255)
    pen = ImageDraw.Draw(page)
    for row, line in enumerate(["This Agreement is made between Alder Mills and Birch Foods.", "1. Term. Five years."]):
        pen.text((90, 150 + 80 * row), line, font=ImageFont.load_default(size=34), fill=0)
    page.rotate(2, Image.Resampling.BICUBIC, fillcolor=255).save(tmp_path / "scan.pdf", resolution=150)
    found = read_scan(read_document(tmp_path / "scan.pdf"), tmp_path / "read.pdf", choose_ocr("en", "rapidocr"))
    assert found is not None
    assert locate("This Agreement is made between Alder Mills and Birch Foods.", found.document)
    assert float(found.confidence["1"]) > 0.9


def test_ocr_flags_have_defaults_and_refuse_an_invalid_language():
    parser = argparse.ArgumentParser()
    add_ocr_arguments(parser)
    assert read_ocr_flags(parser.parse_args([])) is None
    assert parser.parse_args(["--ocr-language", "cs_CZ"]).ocr_language == "cs_CZ"
    assert (parser.parse_args([]).ocr_language, parser.parse_args([]).ocr_engine) == ("en", "auto")
    for wrong in ("", "c s", "../x"):
        with pytest.raises(ToolkitError, match="no OCR engine reads it"):
            read_ocr_flags(parser.parse_args(["--ocr", "--ocr-language", wrong]))


WORDS = (
    TextLine(10, 20, 110, 40, "Rent is Due", 1.0),  # beside the next text, so that a space follows
    TextLine(150, 22, 190, 38, "MW @", 1.0),
    TextLine(10, 60, 60, 70, "end.", 1.0),
)


def draw_layer_page(tmp_path: Path, layer: Layer, *, drawings: list[bytes] | None = None) -> Any:
    """Write a text layer onto a PDF page of 200 by 100 points; return the page."""
    writer = pypdf.PdfWriter()
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
    return pypdf.PdfReader(tmp_path / "read.pdf").pages[0]


def streams(page: Any) -> list[str]:
    return [item.get_object().get_data().decode("ascii") for item in page["/Contents"].get_object()]


def test_ocr_text_layer_positions_words_by_letter_widths(tmp_path):
    # R 1.2, e n 1, t 0.55, a space 0.55: 4.3 of 9.6 for the first word, and so on; a size of 20 stands 5 above the foot
    before, after = streams(draw_layer_page(tmp_path, Layer(0.0, WORDS)))
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
def test_ocr_text_layer_rotates_the_page_and_keeps_its_existing_content_streams(tmp_path, turn, begin):
    own = [b"0 0 m", b"9 9 l S"]
    first, *drawn, _ = streams(draw_layer_page(tmp_path, Layer(turn, WORDS), drawings=own))
    assert first == begin and drawn == [data.decode() for data in own]
    assert read_document(tmp_path / "read.pdf").text.split() == ["Rent", "is", "Due", "MW", "@", "end."]
