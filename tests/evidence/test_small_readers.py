"""Small readers and tools: images, EPUB books, exports, LibreOffice, rapidocr, pages of a span, plain texts."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from PIL import Image

from exhibit.evidence import Document, Page, Span, read_document
from exhibit.evidence.markup import Attachment
from exhibit.evidence.ocr import TextLine, rapidocr
from exhibit.evidence.read import has_page, is_readable, read_printable, suffix_of
from exhibit.evidence.readers import epub, export, libreoffice, msg, opendocument, pdf, picture, powerpoint, word
from exhibit.evidence.text import main as write_texts
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.storage.locations import parse_location
from tests.evidence import files
from tests.evidence.test_geometry import made, words
from tests.rag.bundles import write_bundle


def tiff(path, *sizes: tuple[int, int]) -> None:
    first, *rest = (Image.new("L", size, 255) for size in sizes)
    first.save(path, save_all=True, append_images=rest)


def test_a_picture_has_a_page_for_each_frame_and_no_words(tmp_path):
    tiff(tmp_path / "a.tiff", (4, 4), (4, 4), (4, 4))
    document = read_document(tmp_path / "a.tiff")
    assert document.text == "\n\n" and not document.has_text
    assert document.pages == tuple(Page(n + 1, Span(n, n), 595, 842) for n in range(3))
    page = read_printable(tmp_path / "a.tiff")
    assert page is not None and page.html.count('<img class="scan" src="data:image/png;base64,') == 3


def test_the_limits_of_a_picture(tmp_path, monkeypatch):
    assert (picture._MOST_PIXELS, picture._MOST_FRAMES) == (80_000_000, 2000)
    tiff(tmp_path / "a.tiff", (4, 5), (4, 5))
    monkeypatch.setattr(picture, "_MOST_PIXELS", 20)
    monkeypatch.setattr(picture, "_MOST_FRAMES", 2)
    assert len(picture.read(tmp_path / "a.tiff").pages) == 2
    for name, limit in (("_MOST_PIXELS", 19), ("_MOST_FRAMES", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(picture, name, limit)
            for step in (picture.read, picture.page):
                with pytest.raises(DocumentError, match="the image is too large"):
                    step(tmp_path / "a.tiff")


def test_a_book_in_the_order_of_its_spine_and_what_is_missing_is_said(tmp_path):
    (tmp_path / "a.epub").write_bytes(files.epub("one", "two"))
    assert epub.page(tmp_path / "a.epub") == (
        '<article class="sheet"><p>one</p></article><article class="sheet"><p>two</p></article>', (),
    )  # fmt: skip
    book = (
        '<package><manifest><item id="a" href="a%20b.xhtml"/><item id="b" href="../c.xhtml"/><item id="d" href="d"/>'
        '</manifest><spine><itemref idref="b"/><itemref idref="x"/>'
        '<itemref idref="a"/><itemref idref="d"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    parts = {
        "META-INF/container.xml": container,
        "OPS/book.opf": book,
        "OPS/a b.xhtml": "<p>A</p>",
        "c.xhtml": "<p>C</p>",
    }
    (tmp_path / "a.epub").write_bytes(files.pack(parts))
    found = epub.page(tmp_path / "a.epub")
    assert found.html.index("C") < found.html.index("A") and found.notes == (
        "its chapter 'OPS/d' is missing or is no text",
    )
    (tmp_path / "a.epub").write_bytes(files.pack({**parts, "OPS/book.opf": "<package/>"}))
    with pytest.raises(DocumentError, match="no chapter in it"):
        epub.page(tmp_path / "a.epub")


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
def test_the_text_of_an_export(tmp_path, data, text):
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
def test_a_program_that_does_not_start_or_end(tmp_path, monkeypatch, raised, message):
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
def test_a_program_that_makes_nothing_is_quoted(tmp_path, monkeypatch, said, shown):
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


# ---------------------------------------------------------------- rapidocr


def test_rapidocr_is_given_blue_first_and_its_corners_become_boxes(monkeypatch):
    seen = []

    class Engine:
        def __init__(self, params):
            assert params == {"Global.log_level": "critical", "Global.max_side_len": 4000}

        def __call__(self, pixels, *, use_cls):
            seen.append((pixels[0, 0].tolist(), use_cls))
            return (
                SimpleNamespace(boxes=[[(5, 2), (9, 1), (9, 7), (4, 8)]], txts=["Rent"], scores=[0.75])
                if pixels.any()
                else (SimpleNamespace(boxes=None, txts=None, scores=None))
            )

    fakes = {"rapidocr": SimpleNamespace(RapidOCR=Engine), "onnxruntime": SimpleNamespace()}
    monkeypatch.setattr(rapidocr, "import_module", lambda name: fakes[name])
    rapidocr.load_models.cache_clear()
    read = rapidocr.open("en")
    assert read(Image.new("RGB", (3, 3), (1, 2, 3))) == [TextLine(4, 1, 9, 8, "Rent", 0.75)]
    assert seen == [([3, 2, 1], False)] and read(Image.new("RGB", (3, 3))) == []
    rapidocr.load_models.cache_clear()

    def refuse(name: str) -> None:
        raise ImportError("no such")

    monkeypatch.setattr(rapidocr, "import_module", refuse)
    with pytest.raises(ToolkitError, match="needs the extra 'ocr'"):
        rapidocr.open("en")
    rapidocr.load_models.cache_clear()


@pytest.mark.parametrize(
    ("here", "missing"), [({"rapidocr", "onnxruntime"}, False), ({"rapidocr"}, True), (set(), True)]
)
def test_both_packages_of_rapidocr_are_needed(monkeypatch, here, missing):
    monkeypatch.setattr(rapidocr, "find_spec", lambda name: name if name in here else None)
    assert bool(rapidocr.missing("en")) is missing


# ---------------------------------------------------------------- documents


def test_the_pages_that_a_span_touches():
    pages = tuple(Page(n + 1, Span(10 * n, 10 * n + 9), 1, 1) for n in range(3))
    document = Document("a.pdf", "x" * 29, pages)
    touched = {
        (0, 9): [1],
        (0, 10): [1],
        (0, 11): [1, 2],
        (9, 11): [1, 2],
        (10, 10): [2],
        (5, 29): [1, 2, 3],
        (20, 20): [3],
    }
    assert {ends: document.pages_of(Span(*ends)) for ends in touched} == touched
    assert Document("a.txt", "x").pages_of(Span(0, 1)) == []
    later = Document("a.pdf", "x" * 9, (Page(1, Span(5, 9), 1, 1),))
    assert later.pages_of(Span(0, 1)) == [] and later.pages_of(Span(0, 6)) == [1]
    two = Document("a.pdf", "x" * 19, (Page(1, Span(5, 9), 1, 1), Page(2, Span(10, 19), 1, 1)))
    assert two.pages_of(Span(0, 6)) == [1] and two.pages_of(Span(0, 11)) == [1, 2]


def test_what_can_be_read_is_known_by_its_ending(tmp_path):
    assert is_readable(parse_location("a.PDF")) and not is_readable(parse_location("a.mp4"))
    assert (
        has_page(parse_location("a.docx"))
        and not has_page(parse_location("a.pdf"))
        and not has_page(parse_location("a"))
    )
    assert suffix_of("application/msword") == ".doc" and suffix_of("video/mp4") == ""
    (tmp_path / "No. 4").write_bytes(made(words(50, 150, "Words")))
    assert read_document(tmp_path / "No. 4").text == "Words"


def test_a_reader_that_fails_names_the_file(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")

    def fail(path: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("exhibit.evidence.readers.text.read", fail)
    with pytest.raises(DocumentError, match=r"a\.txt: its reader failed \(ValueError: odd\); is it damaged\?"):
        read_document(tmp_path / "a.txt")


def test_coordinates_to_a_hundredth_of_a_point(tmp_path):
    (tmp_path / "a.pdf").write_bytes(made(words(50, 150, "Words")))
    with pdf.open_pdf(tmp_path / "a.pdf") as opened:
        assert pdf.to_page(opened[0], 100, 50) == (100.0, 150.0)
        assert pdf.to_page(opened[0], 0, 0) == (0.0, 200.0)
    [origin, far] = pdf.to_user_space(tmp_path / "a.pdf", 1, [(0, 0), (400, 200)])
    assert origin == pytest.approx((0, 200), abs=1e-3) and far == pytest.approx((400, 0), abs=1e-3)
    (tmp_path / "stamp.pdf").write_bytes(made(words(5, 15, "x"), box="0 0 40 30"))
    [near, far] = pdf.to_user_space(tmp_path / "stamp.pdf", 1, [(10, 6), (40, 30)])
    assert near == pytest.approx((10, 24), abs=1e-3) and far == pytest.approx((40, 0), abs=1e-3)


def test_what_is_no_pdf_is_told_by_its_first_kilobyte(tmp_path):
    whole = made(words(50, 150, "Words"))
    (tmp_path / "a.pdf").write_bytes(b" " * 1019 + whole)
    assert read_document(tmp_path / "a.pdf").text == "Words"
    (tmp_path / "a.pdf").write_bytes(b" " * 1020 + whole)
    with pytest.raises(DocumentError, match="not a PDF"):
        read_document(tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("well\ufffeknown", "well-known"),
        ("a\u00a0b\u2003c\x07d\u2028e", "a b c d e"),
        ("é“", "é“"),
    ],
)
def test_spaces_and_hyphens_of_a_pdf_are_plain(raw, clean):
    assert pdf.clean_text(raw) == clean


def test_texts_are_written_one_a_document(tmp_path, capsys):
    bundle = write_bundle(tmp_path / "leases")
    assert write_texts([str(bundle), "--out", str(tmp_path / "texts")]) == 0
    texts = sorted((tmp_path / "texts").iterdir())
    corpus = sorted((bundle / "corpus").iterdir())
    assert [path.name for path in texts] == [f"{path.name}.txt" for path in corpus]
    assert texts[0].read_text(encoding="utf-8") == read_document(corpus[0]).text
    assert f"{len(texts)} texts ->" in capsys.readouterr().out
    assert write_texts([str(bundle), "--out", str(tmp_path / "texts")]) == 1
    assert write_texts([str(bundle), "--out", str(tmp_path / "texts"), "--force"]) == 0


def test_a_mail_holds_a_megabyte_and_four_times_its_own_size(tmp_path):
    (tmp_path / "a.msg").write_bytes(bytes(10))
    most = [Attachment("a", bytes(1 << 20)), Attachment("b", bytes(40))]
    assert msg.check_attachment_sizes(most, tmp_path / "a.msg") == most
    with pytest.raises(DocumentError, match="its attachments have 1048617 bytes, but the mail only 10 bytes;"):
        msg.check_attachment_sizes([*most, Attachment("c", b"x")], tmp_path / "a.msg")


def test_a_list_of_which_more_levels_are_shown_than_there_are(tmp_path):
    form = 'style:num-format="1" text:display-levels="3"'
    levels = "".join(f'<text:list-level-style-number text:level="{depth}" {form}/>' for depth in (0, 1))
    items = '<text:list text:style-name="L"><text:list-item><text:p>x</text:p></text:list-item></text:list>'
    style = f'<text:list-style style:name="L">{levels}</text:list-style>'
    (tmp_path / "a.odt").write_bytes(files.odt(items, automatic=style))
    assert opendocument.page(tmp_path / "a.odt").html == "<p>1 x</p>"


def test_a_word_file_without_a_text_is_named(tmp_path):
    (tmp_path / "a.docx").write_bytes(files.pack({"word/styles.xml": f"<w:styles {files.W}/>"}))
    with pytest.raises(DocumentError, match=r"a\.docx: no text in it \(word/document\.xml\)"):
        word.page(tmp_path / "a.docx")


@pytest.mark.parametrize(("groups", "read"), [(20, True), (21, False)])
def test_groups_of_a_slide_are_opened_twenty_deep(groups, read):
    line = SimpleNamespace(text="deep")
    shape = SimpleNamespace(has_text_frame=True, is_placeholder=False, text_frame=SimpleNamespace(paragraphs=[line]))
    for _ in range(groups):
        shape = SimpleNamespace(shapes=[shape], has_text_frame=False)
    slide = SimpleNamespace(shapes=[shape], has_notes_slide=False)
    assert powerpoint.slide_page(slide) == ("<p>deep</p>" if read else "")
