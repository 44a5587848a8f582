"""Archives, attachments, markup, pictures and marks on a page, each at its edge and by hand."""

from __future__ import annotations

import io
import zipfile
from types import SimpleNamespace

import pytest
from PIL import Image

from exhibit.evidence import Box, Document, Page, Span, check, files, locate, read, show
from exhibit.evidence.files import convert_parser_errors, open_archive, read_part
from exhibit.evidence.markup import Piece, split_markup, unescape
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.read import NamedFile, list_folder, with_attachments
from exhibit.evidence.readers import powerpoint
from exhibit.evidence.scan import Ocr, read_scan, sort_lines
from exhibit.evidence.show import compress_image
from exhibit.schemas.errors import BundleError, DocumentError, ToolkitError

# ---------------------------------------------------------------- archives


@pytest.fixture
def pack(tmp_path):
    """A function that writes an archive of members of these sizes, which compress well."""

    def write(*sizes: int, head: bytes = b""):
        path = tmp_path / "a.docx"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, size in enumerate(sizes):
                archive.writestr(f"part{number}.xml", b"x" * size)
        if head:
            path.write_bytes(head)
        return path

    return write


@pytest.mark.parametrize(
    ("limit", "value", "fits"),
    [("MAX_PARTS", 2, True), ("MAX_PARTS", 1, False), ("MAX_BYTES", 300, True), ("MAX_BYTES", 299, False)],
)
def test_an_archive_is_as_large_as_it_may_be(pack, monkeypatch, limit, value, fits):
    monkeypatch.setattr(files, limit, value)
    path = pack(100, 200)
    if fits:
        with open_archive(path, "Word") as archive:
            assert read_part(archive, "part1.xml") == b"x" * 200 and read_part(archive, "none.xml") is None
        return
    with pytest.raises(DocumentError, match=r"unpacks to 0 MiB in 2 parts; the limits are"), open_archive(path, "Word"):
        pass


def test_what_packs_too_well_is_refused_once_it_is_large(pack, monkeypatch):
    path = pack(10_000)
    with zipfile.ZipFile(path) as archive:
        small = archive.infolist()[0].compress_size
    monkeypatch.setattr(files, "MAX_RATIO", 10_000 // small)
    for floor, fits in ((10_000, True), (9_999, False)):
        monkeypatch.setattr(files, "_RATIO_FROM", floor)
        if fits:
            with open_archive(path, "Word"):
                continue
        with (
            pytest.raises(DocumentError, match=rf"'part0\.xml' unpacks to {10_000 // small} times"),
            open_archive(path, ""),
        ):
            pass
    monkeypatch.setattr(files, "MAX_RATIO", 10_000 // small + 1)
    with open_archive(path, "Word"):
        pass
    assert (files.MAX_PARTS, 4 << 20) == (20_000, 4_194_304)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "encrypted, or an old format with a new extension"),
        (b"%PDF-1.7", r"not a valid Word: it starts with b'%PDF-1\.7'; is the file name's extension right\?"),
        (b"PK\x03\x04rest", "damaged or incomplete"),
    ],
)
def test_what_is_no_archive_says_what_it_is(pack, head, message):
    with pytest.raises(DocumentError, match=message), open_archive(pack(head=head), "Word"):
        pass


def test_an_empty_file_and_an_encrypted_part(pack, tmp_path):
    (tmp_path / "empty.docx").touch()
    with (
        pytest.raises(DocumentError, match="empty file; download or copy it again"),
        open_archive(tmp_path / "empty.docx", "Word"),
    ):
        pass
    info = zipfile.ZipInfo("a.xml")
    info.flag_bits = 1
    with pytest.raises(DocumentError, match="encrypted; open it, remove the password"):
        files.check_parts(tmp_path, [info])
    info.flag_bits = 2
    files.check_parts(tmp_path, [info])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("odd\nvery"), r"x: damaged, or not a valid Word \(odd\); open it"),
        (ValueError("y" * 130), rf"\({'y' * 120}\); open it"),
        (KeyError(), r"\(KeyError\); open it"),
        (OSError(13, "Permission denied"), "x: cannot be read: Permission denied"),
        (OSError("unknown picture"), "x: cannot be read: damaged, or not a valid Word"),
    ],
)
def test_whatever_a_parser_raises_is_one_error(error, message, tmp_path):
    with pytest.raises(DocumentError, match=message), convert_parser_errors(tmp_path / "x", "Word"):
        raise error
    with pytest.raises(ToolkitError, match="mine"), convert_parser_errors(tmp_path / "x", "Word"):
        raise ToolkitError("mine")


# ---------------------------------------------------------------- attachments


@pytest.fixture
def in_place(monkeypatch):
    """Read attachments in this process, where a test can patch the functions that read them."""
    monkeypatch.setattr(read, "run_in_worker", lambda read, path: read(path))


def test_attachments_follow_their_mail_with_names_that_differ(tmp_path, monkeypatch, in_place):
    (tmp_path / "b.txt").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.eml").touch()
    inside = {"a.eml": [("x.txt", b"1"), ("x.txt", b"2"), ("c/d.eml", b"3")], "a.eml - c_d.eml": [("y.txt", b"4")]}
    monkeypatch.setattr(read, "read_attachments", lambda path: inside.get(path.name, []))
    listed = list_folder(tmp_path)
    assert [(one.name, one.aliases) for one in listed] == [
        ("b.txt", ()),
        ("sub/a.eml", ()),
        ("sub/a.eml/x.txt", ("x.txt", "x.txt")),
        ("sub/a.eml/2 x.txt", ("2 x.txt", "x.txt")),
        ("sub/a.eml/c_d.eml", ("c_d.eml", "c/d.eml")),
        ("sub/a.eml/c_d.eml/y.txt", ("y.txt", "y.txt")),
    ]
    assert [one.path.read_bytes() for one in listed[2:]] == [b"1", b"2", b"3", b"4"]
    assert listed[3].path.name == "a.eml - 2 x.txt" and listed[5].path.parent != listed[4].path.parent


def test_mails_in_mails_are_opened_to_a_depth_and_a_thousand_attachments(tmp_path, monkeypatch, in_place):
    mail = tmp_path / "m.eml"
    mail.touch()
    monkeypatch.setattr(read, "read_attachments", lambda path: [("m.eml", b"x")])
    assert len(list(with_attachments([NamedFile(mail, "m.eml")]))) == 1 + 5 + 1  # the last is named, and not read
    monkeypatch.setattr(read, "read_attachments", lambda path: [("a", b"x")] * 1001 if path == mail else [])
    monkeypatch.setattr(read.Path, "write_bytes", lambda path, data: None)  # a thousand files take a while
    assert len(list(with_attachments([NamedFile(mail, "m.eml")]))) == 1 + 1001  # the last is named, and not read

    def broken(path):
        raise DocumentError("broken")

    monkeypatch.setattr(read, "read_attachments", broken)
    assert [one.name for one in with_attachments([NamedFile(mail, "m.eml"), NamedFile(mail, "n.eml")])] == [
        "m.eml",
        "n.eml",
    ]


# ---------------------------------------------------------------- markup


def told(markup: str) -> str:
    """Return the tokens in short form: `+p` for a start tag, `-p` for an end tag, text in brackets."""
    signs = {"start": "+", "end": "-"}
    return " ".join(f"[{value}]" if kind == "text" else f"{signs[kind]}{value}" for kind, value in split_markup(markup))


@pytest.mark.parametrize(
    ("markup", "parts"),
    [
        ("a<P class='x>y'>b</p >c", "[a] +p [b] -p [c]"),
        ("<br/>x", "+br -br [x]"),
        ('<a title="1 > 0">z', "+a [z]"),
        ('<a title = "1 > 0">z', "+a [z]"),
        ("<a it's>z", "+a [z]"),
        ('<a x="never closed>z', "+a [z]"),
        ("a<!-- <p> -->b<!-->c<!--->d", "[a] [b] [c] [d]"),
        ("a<!-- never <p>", "[a]"),
        ("a<!DOCTYPE html>b<?xml?>c", "[a] [b] [c]"),
        ("<script>1 < 2 <p></script>x", "+script [1 < 2 <p>] -script [x]"),
        ("<title>a &amp; b</title>", "+title [a & b] -title"),
        ("<style>a &amp; b</style>", "+style [a &amp; b] -style"),
        ("<script>never", "+script [never]"),
        ("a <p", "[a ]"),
        ("a</p", "[a] -p"),
        ("", ""),
        ("x&lt;y &#65; &#99999999; &#x110000000;", "[x<y A \ufffd \ufffd]"),
    ],
)
def test_markup_piece_by_piece(markup, parts):
    assert told(markup) == parts


def test_a_piece_is_named_in_lower_case_and_a_text_is_read():
    assert list(split_markup("<TABLE>")) == [Piece("start", "table")]
    assert unescape("a&nbsp;b") == "a\xa0b" and unescape("plain") == "plain"


# ---------------------------------------------------------------- pictures and marks


def picture(*colours: tuple[int, int, int], size: tuple[int, int] = (96, 128)) -> Image.Image:
    """A white picture whose first pixels have these colours."""
    made = Image.new("RGB", size, (255, 255, 255))
    for at, colour in enumerate(colours):
        made.putpixel((at % size[0], at // size[0]), colour)
    return made


def test_one_pixel_in_five_hundred_makes_a_picture_coloured():
    red = (255, 0, 0)  # 96 * 128 / 500 is 24.6
    for colour, pixels, kind in ((red, 24, "png"), (red, 25, "webp")):
        assert compress_image(picture(*[colour] * pixels))[1] == kind
    for colour, kind in (((255, 215, 215), "png"), ((255, 213, 213), "webp")):
        assert compress_image(picture(*[colour] * 99))[1] == kind


def test_greys_are_eight_evenly_spaced_and_colours_are_kept():
    greys = [(value, value, value) for value in (0, 18, 19, 128, 250, 255)]
    data, kind = compress_image(picture(*greys))
    assert kind == "png" and data[24] == 4, "four bits a pixel"
    back = Image.open(io.BytesIO(data)).convert("L")
    assert [back.getpixel((at, 0)) for at in range(6)] == [0, 0, 36, 146, 255, 255]
    data, kind = compress_image(Image.new("RGB", (96, 128), (200, 30, 30)))
    assert kind == "webp" and data[8:12] == b"WEBP"


def test_boxes_are_drawn_a_point_wider_than_the_words(monkeypatch):
    asked = []

    def render(path, page, *, scale):
        asked.append((page, scale))
        return Image.new("RGB", (40, 40), (255, 255, 255))

    monkeypatch.setattr(show, "render_within", render)
    drawn = show.draw_boxes("a.pdf", 2, [Box(2, 5, 6, 10, 9), Box(1, 0, 0, 40, 40)], colour=(0, 0, 0), scale=2.0)  # type: ignore[arg-type]
    assert asked == [(2, 2.0)] and drawn.mode == "RGB"
    inside, line = 255 - 90, 255 - 230
    assert [drawn.getpixel((x, 14))[0] for x in (7, 8, 9, 21, 22, 23)] == [255, line, inside, inside, line, 255]
    assert [drawn.getpixel((12, y))[0] for y in (9, 10, 11, 19, 20, 21)] == [255, line, inside, inside, line, 255]


def test_spans_are_drawn_on_the_pages_that_they_touch(monkeypatch):
    with pytest.raises(ToolkitError, match=r"a\.txt: has no pages to draw on; only a PDF has pages"):
        show.draw_spans(Document("a.txt", "rent"), [Span(0, 4)])
    paged = Document("a.pdf", "rent", (Page(1, Span(0, 4), 9, 9),))
    with pytest.raises(ToolkitError, match="has no pages to draw on"):
        show.draw_spans(paged, [Span(0, 4)])
    boxes = [[Box(3, 0, 0, 1, 1)], [Box(1, 0, 0, 1, 1), Box(3, 0, 0, 1, 1)]]
    monkeypatch.setattr(show, "read_boxes", lambda document, spans: boxes)
    monkeypatch.setattr(show, "draw_boxes", lambda path, page, marked, scale: (path, page, len(list(marked)), scale))
    placed = Document("a.pdf", "rent", (Page(1, Span(0, 4), 9, 9),), "a.pdf")  # type: ignore[arg-type]
    assert show.draw_spans(placed, [Span(0, 4)]) == {1: ("a.pdf", 1, 3, 1.5), 3: ("a.pdf", 3, 3, 1.5)}


def gold(row: int, **fields: object) -> SimpleNamespace:
    told = {
        "id": row,
        "filename": "a.txt",
        "spans": [(0, 4)],
        "context": 0,
        "alternatives": [],
        "pages": [],
        "how": "exact",
    }
    return SimpleNamespace(**{**told, "labels": {}, **fields})


def test_a_row_that_cannot_be_shown_says_why(monkeypatch):
    bundle = SimpleNamespace(gold=[gold(1), gold(2, spans=[]), gold(1, spans=[])], files={"a.txt": "there"})
    monkeypatch.setattr(show, "open_bundle", lambda root: bundle)
    monkeypatch.setattr(show, "mirror_bundle", lambda root: root)
    lines, files = show.read_gold_of_row("b", 1)  # type: ignore[arg-type]
    assert lines == bundle.gold[:1] and files == bundle.files
    with pytest.raises(BundleError, match=r"b: no row with id 3 in gold\.jsonl"):
        show.read_gold_of_row("b", 3)  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="row 2 has no located gold"):
        show.read_gold_of_row("b", 2)  # type: ignore[arg-type]


def test_gold_is_checked_file_by_file(monkeypatch, capsys, tmp_path):
    passage = SimpleNamespace(text="rent")
    questions = [SimpleNamespace(id=row, contexts=[passage]) for row in (1, 2, 3)]
    lines = [gold(1), gold(9), gold(2, filename="z.txt"), gold(3, filename="b.txt"), gold(1, spans=[], filename=None)]
    bundle = SimpleNamespace(gold=lines, questions=questions, files={"a.txt": "a.txt", "b.txt": "b.txt"})

    def read(path):
        if path == "b.txt":
            raise DocumentError("b.txt: damaged")
        return Document(path, "rent is due")

    monkeypatch.setattr(check, "open_bundle", lambda root: bundle)
    monkeypatch.setattr(check, "mirror_bundle", lambda root: root)
    monkeypatch.setattr(check, "read_within", read)
    assert check.check_gold(tmp_path) == (
        4, ["gold.jsonl: row 9 is not in train.json", "z.txt: not in corpus/", "b.txt: damaged"],
    )  # fmt: skip
    monkeypatch.setattr("exhibit.storage.validate.choose_folders", lambda roots: (roots, ["one was passed over"]))
    assert check.main([str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == f"{tmp_path}: 4 located passages, 3 wrong locations"
    assert len(told.out.splitlines()) == 4 and told.err == "note: one was passed over\n"
    bundle.gold[1:4] = []
    assert check.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: 1 located passages, 0 wrong locations\n"

    def refuse(root):
        raise ToolkitError("no bundle")

    monkeypatch.setattr(check, "check_gold", refuse)
    assert check.main([str(tmp_path)]) == 1 and "error: no bundle" in capsys.readouterr().err


def test_gold_without_a_context_is_held_against_the_first(tmp_path):
    question = SimpleNamespace(contexts=[SimpleNamespace(text="rent")])
    document = Document("a.txt", "rent is due")
    assert list(check.faults_of(gold(1, context=None), question, document)) == []  # type: ignore[arg-type]
    none = SimpleNamespace(contexts=[])
    assert list(check.faults_of(gold(1, context=0), none, document)) == ["there is no context 0 in train.json"]  # type: ignore[arg-type]


# ---------------------------------------------------------------- shapes and lines


def test_groups_in_groups_are_opened_to_a_depth(tmp_path):
    from pptx import Presentation  # a third of a second for every process that collects the tests

    def nested(depth: int) -> str:
        slides = Presentation()
        shapes = slides.slides.add_slide(slides.slide_layouts[6]).shapes
        for _ in range(depth):
            shapes = shapes.add_group_shape().shapes
        shapes.add_textbox(0, 0, 100, 100).text_frame.text = "deep"
        slides.save(tmp_path / "a.pptx")
        return powerpoint.page(tmp_path / "a.pptx").html

    assert nested(20) == nested(0) and "deep" in nested(0) and "deep" not in nested(21)


def test_lines_side_by_side_are_read_from_the_left():
    lines = [TextLine(20, 0, 30, 10, "b", 1.0), TextLine(0, 0, 10, 10, "a", 1.0), TextLine(0, 11, 10, 20, "c", 1.0)]
    assert [line.text for line in sort_lines(lines)] == ["a", "b", "c"]


def test_only_a_pdf_of_this_machine_is_a_scan(tmp_path):
    blank = (Page(1, Span(0, 0), 100.0, 100.0),)
    for document in (Document("a.pdf", "", blank), Document("a.txt", "", blank, tmp_path / "a.txt")):
        assert read_scan(document, tmp_path / "out.pdf", Ocr(None, "en")) is None  # type: ignore[arg-type]


def test_half_a_ligature_is_as_alike_as_its_characters_are():
    text = "x" * 44 + " the oﬃce"
    [match] = locate("x" * 44 + " the of", Document("a.txt", text))
    assert match.score == round(49 / 51, 4), "spaces are no characters of a fold"
