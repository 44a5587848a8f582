"""Bounds of readers and of the search for words: the last value that fits and the first that does not."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from lxml import etree
from PIL import Image

from evidence import Document, Page, Span, locate, scan
from evidence.align import align, edit_distance
from evidence.document import Box
from evidence.fold import Fold
from evidence.locate import Match, _apart, _chains, _Effort, _joined, _windows, in_order, stretch, worthy
from evidence.ocr import TextLine
from evidence.read import _limited
from evidence.readers import delimited, opendocument, pdf
from evidence.readers._numbering import _LARGEST, Level, Numbering, _depth, _whole, numeral, read_numbering
from evidence.readers.msg import _Storage
from schemas.errors import DocumentError

# ---------------------------------------------------------------- numbers of paragraphs


@pytest.mark.parametrize(
    ("number", "form", "written"),
    [
        (-1, "decimal", "0"),
        (10**6, "decimal", "1000000"),
        (10**6 + 1, "decimal", "1000000"),
        (0, "lowerLetter", ""),
        (1, "lowerLetter", "a"),
        (26, "upperLetter", "Z"),
        (27, "lowerLetter", "aa"),
        (52, "lowerLetter", "zz"),
        (2600, "lowerLetter", "z" * 100),
        (2601, "lowerLetter", "a" * 100),
        (0, "lowerRoman", ""),
        (1994, "upperRoman", "MCMXCIV"),
        (3888, "lowerRoman", "mmmdccclxxxviii"),
        (449, "lowerRoman", "cdxlix"),
        (9999, "lowerRoman", "mmmmmmmmmcmxcix"),
        (10_000, "lowerRoman", "mmmmmmmmmcmxcix"),
        (7, "decimalZero", "07"),
        (70, "decimalZero", "70"),
        (1, "ordinal", "1st"),
        (2, "ordinal", "2nd"),
        (3, "ordinal", "3rd"),
        (4, "ordinal", "4th"),
        (9, "ordinal", "9th"),
        (10, "ordinal", "10th"),
        (11, "ordinal", "11th"),
        (20, "ordinal", "20th"),
        (21, "ordinal", "21st"),
        (111, "ordinal", "111th"),
        (121, "ordinal", "121st"),
        (5, "none", ""),
        (5, "unheard of", "5"),
    ],
)
def test_a_number_as_word_writes_it(number, form, written):
    assert numeral(number, form) == written


def test_levels_and_starts_that_a_file_may_say():
    assert [_depth(value) for value in (None, "", "x", "0", "8", "9", "99")] == [0, 0, 0, 0, 8, 8, 8]
    W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"  # noqa: N806
    told = {value: _whole(etree.Element("x", {f"{W}val": value}), 7) for value in ("3", "x", "-3", "1000001")}
    assert told == {"3": 3, "x": 7, "-3": 7, "1000001": _LARGEST} and _whole(None, 2) == 2
    assert read_numbering(None, None) == Numbering() and Level() == Level(1, "decimal", "", None, False)


# ---------------------------------------------------------------- mails and tables


class Ole:
    """An OLE file in memory: streams by path."""

    def __init__(self, streams: dict[str, bytes]) -> None:
        self.streams = {tuple(name.split("/")): data for name, data in streams.items()}

    def exists(self, name):
        return tuple(name) in self.streams

    def get_type(self, name):
        return 2

    def openstream(self, name):
        return SimpleNamespace(read=lambda: self.streams[tuple(name)])

    def listdir(self):
        return [list(name) for name in self.streams]


def stamp(when: datetime) -> bytes:
    ticks = int((when - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds() * 10_000_000)
    return ticks.to_bytes(8, "little")


def test_the_time_of_a_mail_is_the_first_there_is_of_those_asked_for():
    sent = (0x0039 << 16 | 0x0040).to_bytes(4, "little") + bytes(4) + stamp(datetime(2021, 3, 4, 5, 6, tzinfo=UTC))
    for folder, head in ((), 32), (("inner",), 24):
        name = "/".join([*folder, "__properties_version1.0"])
        whole = _Storage(Ole({name: bytes(head) + sent}), folder)
        assert whole.time(0x0E06, 0x0039) == "2021-03-04 05:06 UTC" and whole.time(0x0E06) == ""
        for data in (bytes(head) + sent[:-1], bytes(head - 1) + sent, sent):
            assert _Storage(Ole({name: data}), folder).time(0x0039) == ""
        two = bytes(head) + bytes(16) + sent
        assert _Storage(Ole({name: two}), folder).time(0x0039) == "2021-03-04 05:06 UTC"
        more = bytes(head) + sent + b"\xff" * 16
        assert _Storage(Ole({name: more}), folder).time(0x0039) == "2021-03-04 05:06 UTC"
    assert _Storage(Ole({}), ()).time(0x0039) == ""


def test_properties_of_a_mail_in_wide_or_narrow_letters():
    mail = _Storage(
        Ole({
            "__substg1.0_0037001F": "Rént\0".encode("utf-16-le"), "__substg1.0_0C1A001E": b"Ada",
            "__substg1.0_1000001F": " ".encode("utf-16-le"), "a_1/x/y": b"", "a_1/z": b"", "a_0/x": b"", "b/x": b"",
        }), (),
    )  # fmt: skip
    assert mail.text("0037") == "Rént" and mail.text("0C1A") == "Ada" and mail.text("9999", "0C1A") == "Ada"
    assert mail.text("1000") == "" == mail.text("9999") and mail.text("1000", "0037") == "Rént"
    assert mail.data("0C1A", "001E") == b"Ada" and mail.data("0C1A", "001F") is None
    assert [one.folder for one in mail.children("a_")] == [("a_0",), ("a_1",)]
    [inner] = _Storage(mail.mail, ("a_1",)).children("x")
    assert inner.folder == ("a_1", "x")


def test_a_table_is_parted_as_its_first_line_is(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;c\n1,2;3,4;5,6\n", encoding="utf-8")
    page = delimited.page(path)
    assert page.html.count("<td>") + page.html.count("<th>") == 6 and "1,2" in page.html and page.notes == ()
    path.write_bytes("a,b\né,2\n".encode("cp1252"))
    assert delimited.page(path).notes[0].startswith("read as ") and "é" in delimited.page(path).html
    tabbed = tmp_path / "a.TSV"
    tabbed.write_text("\ufeffa,b\tc\n", encoding="utf-8")
    assert "a,b" in delimited.page(tabbed).html and "\ufeff" not in delimited.page(tabbed).html


def test_an_opendocument_text_without_styles_has_no_lists():
    assert opendocument._lists(None) == {} and opendocument._edge(None, "header") == ""


# ---------------------------------------------------------------- quotes


def document(text: str) -> Document:
    return Document("a.txt", text)


def test_a_quote_is_kept_at_five_thousand_places():
    assert len(locate("ab", document("ab " * 4999))) == 4999
    assert len(locate("ab", document("ab " * 5001))) == 5000
    assert [match.span for match in locate("aa", document("aaa"))] == [(0, 2), (1, 3)], "places may overlap"


def match(*spans: tuple[int, int], how: str = "exact", score: float = 1.0, whole: bool = True) -> Match:
    return Match(tuple(Span(*span) for span in spans), how, score, whole)  # type: ignore[arg-type]


def test_the_costly_comparison_is_made_once_and_then_as_far_as_it_may_go(monkeypatch):
    monkeypatch.setattr(sys.modules["evidence.locate"], "_MOST_CELLS", 10)
    effort = _Effort(10)
    assert effort.allows(50) and effort.left == -40 and not effort.allows(1)
    effort = _Effort(10)
    assert [effort.allows(cells) for cells in (4, 6, 1, 0)] == [True, True, False, True] and effort.left == 0


def test_of_places_that_overlap_the_best_is_taken_and_neighbours_are_apart():
    best = {(0, 10): 0.9, (10, 20): 0.8, (5, 15): 0.95, (15, 18): 0.7, (20, 22): 0.6}
    assert list(_apart(best)) == [((5, 15), 0.95), ((15, 18), 0.7), ((20, 22), 0.6)]
    assert list(_apart({(3, 4): 0.5, (1, 2): 0.5})) == [((1, 2), 0.5), ((3, 4), 0.5)]


def test_chains_follow_one_another_and_the_tightest_are_kept():
    a, b, c = [match((0, 2)), match((10, 12))], [match((12, 14)), match((40, 42))], [match((14, 15))]
    assert [[one.span for one in chain] for chain in in_order([a, b, c])] == [
        [(0, 2), (12, 14), (14, 15)], [(10, 12), (12, 14), (14, 15)],
    ]  # fmt: skip
    assert [[one.span for one in chain] for chain in _chains([a, b, c])] == [[(10, 12), (12, 14), (14, 15)]]
    assert [[one.span for one in chain] for chain in _chains([c, a])] == [[(0, 2), (14, 15)]], "out of order"
    assert list(in_order([])) == [] and stretch([match((3, 5)), match((9, 11))]) == 8
    assert [[one.span for one in chain] for chain in _chains([a])] == [[(0, 2)], [(10, 12)]]


def test_a_joined_match_is_as_good_as_its_worst_piece():
    joined = _joined([match((0, 5)), match((3, 8), (10, 12)), match((12, 14))])
    assert joined == match((0, 8), (10, 12), (12, 14), how="parts") and joined.span == (0, 14)
    fuzzy = _joined([match((0, 5), how="fuzzy", score=0.96), match((6, 8), whole=False)])
    assert (fuzzy.how, fuzzy.score, fuzzy.whole) == ("fuzzy", 0.96, False)
    assert worthy([match((0, 1), whole=False), match((2, 3))]) == [match((2, 3))]
    assert worthy([match((0, 1), whole=False)]) == [match((0, 1), whole=False)] and worthy([]) == []


def test_windows_are_where_pieces_of_a_quote_stand():
    needle = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    [window] = _windows(needle, "-" * 50 + needle + "-" * 50, 2)
    assert (window.start, window.end) == (48, 92)
    [first] = _windows(needle, needle + "-" * 50, 2)
    assert (first.start, first.end) == (0, 42)
    two = _windows(needle, needle + "-" * 50 + needle, 2)
    assert sorted((one.start, one.end) for one in two) == [(0, 42), (88, 130)]
    assert _windows(needle, "nothing of it is here", 2) == []


def test_a_piece_that_stands_everywhere_does_not_tell_where_to_look():
    needle = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    for places, windows in ((256, 256), (257, 0)):
        assert len(_windows(needle, (needle[:13] + "-" * 60) * places, 2)) == windows


def test_an_alignment_is_no_farther_than_allowed():
    assert align("rent", "the rent is", most=0).distance == 0
    assert align("rent", "the rant is", most=0) is None and align("rent", "the rant is", most=1).distance == 1


# ---------------------------------------------------------------- pages


class Drawn:
    def __init__(self, width: float, height: float) -> None:
        self.size = width, height

    def get_size(self):
        return self.size

    def render(self, *, scale):
        return SimpleNamespace(to_pil=lambda: ("drawn", scale))


def test_a_page_of_fifty_million_pixels_is_drawn_and_a_larger_one_is_not(monkeypatch, tmp_path):
    pages = [Drawn(5000, 10_000), Drawn(5000, 10_001), Drawn(9, 9), Drawn(5000, 12_000)]

    @contextmanager
    def opened(path):
        yield pages

    monkeypatch.setattr(pdf, "_opened", opened)
    assert pdf.render(tmp_path, 1, scale=1.0) == ("drawn", 1.0)
    with pytest.raises(DocumentError, match="page 2 is 5000 by 10001 points; too large to draw"):
        pdf.render(tmp_path, 2, scale=1.0)
    with pytest.raises(DocumentError, match="too large"):
        pdf.render(tmp_path, 1, scale=1.01)
    assert pdf.page_count(tmp_path) == 4 and pdf.render(tmp_path, 3) == ("drawn", 1.5)
    with pytest.raises(DocumentError, match="page 4 is 5000 by 12000 points"):
        pdf.render(tmp_path, 4, scale=0.92)
    assert pdf.render(tmp_path, 4, scale=0.9) == ("drawn", 0.9), "both sides are drawn smaller"


def test_a_document_without_a_file_has_no_boxes():
    made = Document("a.pdf", "rent", (Page(1, Span(0, 4), 9, 9),))
    assert pdf.boxes(made, Span(0, 4)) == [] and pdf.page_boxes(made, 1, [Span(0, 4)] * 2) == [[], []]
    assert Box(1, 2, 3, 4, 5).page == 1


def test_a_page_is_read_straight_and_its_lines_weigh_by_their_length(monkeypatch, tmp_path):
    asked = []

    def read(picture):
        asked.append(picture.size)
        return [
            TextLine(0, 10, 50, 20, "four", 0.5),
            TextLine(0, 30, 50, 40, "xx", 0.8),
            TextLine(0, 50, 50, 60, "  ", 0.0),
        ]

    monkeypatch.setattr(scan, "render", lambda path, page, scale: Image.new("RGB", (round(72 * scale), 90), "white"))
    monkeypatch.setattr(scan, "_frame", lambda path, page: "frame")
    how = SimpleNamespace(read=read)
    layer, sure = scan._read_page(tmp_path, Page(1, Span(0, 0), 72.0, 72.0), how)  # type: ignore[arg-type]
    assert asked == [(200, 90)] and sure == pytest.approx((4 * 0.5 + 2 * 0.8) / 6)
    scale = 200 / 72
    assert (layer.frame, layer.turn) == ("frame", 0)
    assert [text.words for text in layer.lines] == ["four", "xx"]
    assert layer.lines[0][:4] == pytest.approx((0, 10 / scale, 50 / scale, 20 / scale))
    empty, none = scan._read_page(tmp_path, Page(1, Span(0, 0), 0.0, 0.0), SimpleNamespace(read=lambda _: []))  # type: ignore[arg-type]
    assert list(empty.lines) == [] and none == 0


# ---------------------------------------------------------------- folding


def test_a_fold_there_and_back_by_hand():
    made = Fold.of("a ﬁ-B\u0301.")
    assert made.text == "afi-B\u0301." and made.offsets.tolist() == [0, 2, 2, 3, 4, 5, 6]
    assert made.span(1, 3) == (2, 3) and made.span(0, 7) == (0, 7) and made.folded_range(2, 3) == (1, 3)
    assert made.folded_range(1, 2) == (1, 1), "a space is no character of it"
    assert [made.cuts(at, at) for at in range(8)] == [False, False, True, False, False, True, False, False]
    assert Fold.of("a-B c", loose=True).text == "abc" and Fold.of("").text == "" == Fold.of("\u2003").text
    assert Fold.of("rent", without=[(1, 3)]).text == "rt" and Fold.of("rénts", without=[(1, 3)]).text == "rts"
    assert Fold.of("rents").less("et").text == "rns" and Fold.of("rents").less("et").offsets.tolist() == [0, 2, 4]


def test_marks_out_of_order_are_sorted_by_class_and_found_again():
    made = Fold.of("xq\u0307\u0323y")  # the dot below has the lower class
    assert made.text == "xq\u0323\u0307y" and made.shuffled and made.offsets.tolist() == [0, 1, 3, 2, 4]
    assert made.span(1, 3) == (1, 4) and made.folded_range(2, 4) == (2, 4) and made.folded_range(9, 9) == (0, 0)
    twice = Fold.of("q\u0307\u0323 w\u0307\u0323")
    assert twice.text == "q\u0323\u0307w\u0323\u0307"
    assert Fold.of("q\u0307\u0338").text == "q\u0338\u0307", "the lowest class there is"
    assert not Fold.of("q\u0323\u0307").shuffled and not Fold.of("é").shuffled


def test_alignments_by_hand():
    assert align("rent", "xxrentxx", most=0) == (0, 2, 6)
    assert align("rent", "xxrntxx", most=1) == (1, 2, 5) and align("rent", "xxreentxx", most=1) == (1, 2, 7)
    assert align("rent", "", most=9) is None and align("ab", "xy", most=2) == (2, 0, 2)
    assert align("a" * 70, "b" * 100, most=69) is None and align("a" * 70, "b" + "a" * 69, most=1) == (1, 0, 70)
    assert (
        edit_distance("rent", "rents") == 1
        and edit_distance("", "abc") == 3
        and edit_distance("kitten", "sitting") == 3
    )


@pytest.mark.parametrize(
    ("left", "top", "bottom", "joined"),
    [
        (20, 10, 0, True),  # close by
        (34.9, 10, 0, True),
        (35, 10, 0, False),  # one and a half heights away
        (10.1, 10, 0, True),
        (10, 10, 0, False),  # a height back
        (20, 14.9, 5, True),
        (20, 14, 4, True),
        (20, 15, 5, False),  # half of the height
    ],
)
def test_rectangles_close_by_on_one_line_are_one(left, top, bottom, joined):
    old, new = pdf._Rectangle(0, 10, 20, 0), pdf._Rectangle(left, top, left + 5, bottom)
    assert pdf._side_by_side(old, new) is joined
    assert len(pdf._lines([old, new])) == (1 if joined else 2)


def test_small_type_may_stand_nine_points_apart():
    old = pdf._Rectangle(0, 2, 20, 0)
    assert pdf._side_by_side(old, pdf._Rectangle(28.9, 2, 30, 0)) and not pdf._side_by_side(
        old, pdf._Rectangle(29, 2, 30, 0)
    )
    assert pdf._lines([old, pdf._Rectangle(21, 3, 25, -1)]) == [(0, 3, 25, -1)]


def test_reading_is_limited_unless_another_program_does_it(tmp_path):
    with pytest.raises(DocumentError, match=r"none\.txt: cannot be read: No such file"):
        _limited(SimpleNamespace(), tmp_path / "none.txt")  # type: ignore[arg-type]
    with _limited(SimpleNamespace(STARTS_A_PROGRAM=True), tmp_path / "none.doc"):  # type: ignore[arg-type]
        pass
