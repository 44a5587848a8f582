"""Thresholds in reading files and locating quotes, each tested at its exact value."""

from __future__ import annotations

import argparse
import json
import unicodedata

import pytest
from PIL import Image, ImageDraw

from exhibit.evidence import Document, Page, Span, locate, read_document
from exhibit.evidence.check import compute_similarity, faults_of
from exhibit.evidence.files import decode_bytes
from exhibit.evidence.fold import Fold, align
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.scan import Ocr, add_ocr_arguments, measure_skew, read_ocr_flags, read_scan, sort_lines
from exhibit.schemas.bundle import LooseContext, Question
from exhibit.schemas.models import Gold

# ---------------------------------------------------------------- encodings


def test_a_few_controls_are_a_slip_and_more_are_no_text():
    letter = "é".encode("cp1252")
    assert decode_bytes(letter + b"a" * 98 + b"\x01") is not None
    assert decode_bytes(letter + b"a" * 97 + b"\x01\x01") is None
    assert decode_bytes(letter + b"a\t\r\n\x0b\x0c\x1b") is not None, (
        "tabs, ends of lines and pages, and escapes are none"
    )


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a\0b\0", "utf-16-le"),
        (b"\0a\0b", "utf-16-be"),
        (b"a\0", "utf-8"),
        (b"a\0b\0c", "utf-8"),
        (b"a\0b\0cdef" + b"g\0", "utf-16-le"),
        (b"a\0b\0cdefgh", "utf-16-le"),
        (b"a\0bcdefghi", "utf-8"),
    ],
)
def test_two_fifths_of_zeros_in_every_second_byte_are_utf_16(data, encoding):
    found = decode_bytes(data)
    assert found is not None and found.encoding == encoding


def test_zeros_in_both_halves_and_halves_that_are_no_letters_are_not_utf_16():
    assert decode_bytes(b"a\0" * 18 + b"\0a" * 2).encoding == "utf-8"  # type: ignore[union-attr]
    assert decode_bytes(b"a\0" * 19 + b"\0\0").encoding == "utf-16-le"  # type: ignore[union-attr]
    assert decode_bytes(b"\x01\0" * 4 + b"a\0" * 16).encoding == "utf-8"  # type: ignore[union-attr]
    assert decode_bytes(b"\x01\0" * 3 + b"a\0" * 17).encoding == "utf-16-le"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Zażółć gęślą jaźń", "cp1250"), ("Árvíztűrő tükörfúrógép", "cp1250"), ("šđčćž i još", "cp1250"),
        ("Ærø, Åse, søt", "cp1252"), ("¿Qué año?", "cp1252"), ("perché così", "cp1252"), ("№ 5: Ёлка", "cp1251"),
    ],
)  # fmt: skip
def test_languages_by_their_letters(text, encoding):
    assert decode_bytes(text.encode(encoding)) == (text, encoding)


# ---------------------------------------------------------------- locating


def document(text: str, *pages: str) -> Document:
    if not pages:
        return Document("a.txt", text)
    start, made = 0, []
    for number, page in enumerate(pages, 1):
        made.append(Page(number, Span(start, start + len(page)), 612, 792))
        start += len(page) + 1
    return Document("a.pdf", "\n".join(pages), tuple(made))


FORTY = "abcdefghijklmnopqrstuvwxyz0123456789QRST"


def test_a_quote_of_forty_characters_may_differ_in_two():
    assert locate(FORTY[:10] + "!!" + FORTY[12:], document(f"x {FORTY} y"))[0].score == 0.95
    assert locate(FORTY[:10] + "!!!" + FORTY[13:], document(f"x {FORTY} y")) == []
    assert locate(FORTY[:10] + "!" + FORTY[11:39], document(f"x {FORTY} y")) == [], "shorter ones are not matched so"


def test_alike_places_apart_are_all_found_and_the_best_of_those_that_overlap():
    quote = FORTY[:20] + "!" + FORTY[21:]
    text = f"{FORTY} and {FORTY[:30]}?{FORTY[31:]}"
    found = locate(quote, document(text))
    assert [(match.span, match.score, match.how) for match in found] == [
        ((0, 40), 0.975, "fuzzy"), ((45, 85), 0.95, "fuzzy"),
    ]  # fmt: skip


def test_pieces_of_a_quote_must_be_most_of_it():
    text = "The rent is due monthly. " + "x " * 40 + "The fee is due yearly."
    assert len(locate("The rent is due monthly.<omitted>The fee is due yearly.", document(text))) == 1
    assert locate("The rent is due monthly.<omitted>y<omitted>The fee is due yearly.", document(text))
    long = "The rent is due monthly.<omitted>" + "<omitted>".join("zqwv")
    assert locate(long, document(text)) == [], "four stray letters are more than a twentieth"


def test_paragraphs_of_twenty_characters_are_looked_for_one_by_one():
    one, two = "abcdefghij klmnopqrst", "rstabcdefg hijklmnopq"
    text = f"{one}\n{'heading ' * 9}\n{two}"
    [match] = locate(f"{one}\n{two}", document(text))
    assert match.how == "parts" and [text[slice(*span)] for span in match.spans] == [one, two]
    assert locate(f"{one[1:]}\n{two}", document(text)) == [], "nineteen letters say too little"


def test_a_chain_twice_as_long_as_the_shortest_is_kept_and_a_longer_one_is_not():
    def found(gap: int) -> int:
        text = f"Aaa bbb Zzz yyy. {'Aaa bbb' + '.' * gap + 'Zzz yyy'}"
        return len(locate("Aaa bbb<omitted>Zzz yyy", document(text)))

    assert found(16) == 2 and found(17) == 1, "fifteen characters against thirty, and thirty-one"


def test_pieces_out_of_order_are_taken_where_each_first_stands():
    text = "Bbb bbb. x Bbb bbb. y Aaa aaa."
    [match] = locate("Aaa aaa.<omitted>Bbb bbb.", document(text))
    assert match.spans == (Span(0, 8), Span(22, 30))


def test_words_half_in_a_ligature_are_marked_with_the_whole_of_it():
    text = "x" * 40 + " the oﬃce"
    [match] = locate("x" * 40 + " the of", document(text))
    assert (match.how, match.whole, match.span) == ("fuzzy", False, (0, 47))
    assert locate("the of", document("the oﬃce")) == [], "of so few characters it is too much"


def test_furniture_is_cut_out_of_a_span_with_the_space_around_it():
    pages = [f"HEAD\nwords {name} and\nFOOT {number}" for number, name in enumerate("abc", 1)]
    doc = document("", *pages)
    [match] = locate("words a and words b", doc)
    assert match.how == "parts" and [doc.text[slice(*span)] for span in match.spans] == ["words a and", "words b"]


@pytest.mark.parametrize(("before", "running"), [("", True), ("70a80b90", True), ("60z70a80b90", False)])
def test_of_four_numbers_in_a_line_one_may_go_up_with_the_page(before, running):
    pages = [f"Draft {before} of {number}\nwords {name} alone" for number, name in enumerate("abc", 1)]
    furniture = document("", *pages).furniture
    assert (len(furniture) == 3) is running


def test_folds_there_and_back_where_marks_were_sorted():
    folded = Fold.of("xa\u0301\u0323b")
    assert folded.find_folded_range(0, 1) == (0, 1) and folded.find_folded_range(2, 4) == (2, 4)
    assert folded.find_folded_range(5, 9) == (0, 0) and folded.span(2, 4) == (2, 4)
    edges = "\u0301\u0323a\u0301"
    assert Fold.of(edges).text == unicodedata.normalize("NFKD", edges) and Fold.of(edges).offsets.tolist() == [
        1,
        0,
        2,
        3,
    ]
    assert Fold.of("a-b").without("-").text == "ab" and Fold.of("a-b").without("-").offsets.tolist() == [0, 2]


def test_of_places_as_near_the_one_as_long_as_the_pattern_is_taken():
    assert align("abcd", "xxabcxx", most=1) == (1, 2, 6), "abcx, and not abc"
    assert align("ab", "ab ab", most=0) == (0, 0, 2)
    assert align("a" * 64, "a" * 63, most=1) == (1, 0, 63) and align("a" * 64, "a" * 62, most=1) is None
    assert align("x", "", most=1) is None


# ---------------------------------------------------------------- checking gold


def question(*quotes: str) -> Question:
    return Question(1, "?", "x", contexts=tuple(LooseContext("a.txt", quote) for quote in quotes))


def gold(**fields: object) -> Gold:
    told = {"id": 1, "filename": "a.txt", "context": 0, "spans": [[0, 4]], "alternatives": [], "pages": []}
    return Gold.model_validate_json(json.dumps({**told, "how": "exact", **fields}))


def faults(line: Gold, text: str = "rent is due", quote: str = "rent") -> list[str]:
    return list(faults_of(line, question(quote), Document("a.txt", text)))


def test_each_fault_of_a_line_is_told():
    assert faults(gold()) == []
    assert faults(gold(context=1)) == ["there is no context 1 in train.json"]
    assert faults(gold(spans=[[5, 12]])) == ["span (5, 12) is beyond the end of the text (11)"]
    assert faults(gold(spans=[[5, 11]]), quote="is due") == []
    assert faults(gold(spans=[[0, 5]]), quote="rents")[0].startswith(
        "span [(0, 5)] contains other words (similarity 0."
    )
    assert faults(gold(pages=[2])) == ["is on pages [], not [2]"]
    assert len(faults(gold(alternatives=[[[5, 7]]]))) == 1


def test_exact_words_are_exact_and_others_nearly_so():
    text = "x" * 39 + "y"
    assert len(faults(gold(spans=[[0, 40]]), text, "x" * 40)) == 1
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.975), text, "x" * 40) == []
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.9), "x" * 37 + "yyy", "x" * 40) != []


def test_a_section_begins_with_its_heading():
    told = {"how": "section", "spans": [[0, 11]], "labels": {"heading": "Rent"}}
    assert faults(gold(**told), quote="rent is due") == []
    assert "does not begin with the heading" in faults(gold(**{**told, "spans": [[5, 11]]}), quote="is due")[0]
    loud = faults(gold(**{**told, "labels": {"heading": "Re-nt"}}), "RENT is due", "rent is due")
    assert loud == [], "neither case nor a hyphen makes another heading"
    short = faults(gold(**{**told, "spans": [[0, 3], [5, 11]]}), quote="ren<omitted>is due")
    assert short == ["span (0, 3) does not begin with the heading 'Rent'"], "the heading is whole in its first span"
    assert faults(gold(**{**told, "spans": [[0, 4], [5, 11]]}), quote="rent<omitted>is due") == []
    assert faults(gold(**{**told, "labels": {}}), quote="rent is due") == [
        "is a section, but its labels name no heading"
    ]


def test_how_alike_pieces_and_words_are():
    assert compute_similarity([], "") == 1.0 and compute_similarity([], "ab") == 0.0
    assert compute_similarity(["abcd"], "abcx") == 0.75 and compute_similarity(["ab", "cd"], "abxcd") == pytest.approx(
        0.8
    )
    assert compute_similarity(["abcd", ""], "abcd") == 1.0


# ---------------------------------------------------------------- scans


def lines(*boxes: tuple[float, float, float, float, str]) -> list[str]:
    return [line.text for line in sort_lines([TextLine(*box, 1.0) for box in boxes])]


def test_what_stands_side_by_side_reaches_the_middle_of_the_first():
    assert lines((50, 10, 60, 20, "b"), (0, 0, 9, 20, "a")) == ["a", "b"]
    assert lines((50, 0, 60, 20, "b"), (0, 10, 9, 30, "a")) == ["a", "b"], "its middle is the other's foot"
    assert lines((50, 0, 60, 20, "b"), (0, 11, 9, 31, "a")) == ["b", "a"]


def test_a_row_is_as_high_as_its_first_line():
    assert lines((50, 0, 60, 20, "b"), (0, 8, 9, 28, "a"), (20, 12, 30, 32, "c")) == ["a", "b", "c"]


@pytest.mark.slow
def test_the_angle_is_found_to_a_tenth():
    image = Image.new("L", (900, 400), 255)
    pen = ImageDraw.Draw(image)
    for row in range(60, 340, 40):
        pen.rectangle((60, row, 840, row + 12), fill=0)
    for angle in (0.3, -0.5):
        turned = image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
        assert measure_skew(turned) == pytest.approx(-angle, abs=0.051), angle
    assert measure_skew(image.rotate(9, fillcolor=255)) == -5.0, "no more than five degrees"


def test_the_flags_of_scans(capsys):
    parser = argparse.ArgumentParser()
    add_ocr_arguments(parser)
    assert read_ocr_flags(parser.parse_args([])) is None
    assert parser.parse_args(["--ocr-language", "cs_CZ"]).ocr_language == "cs_CZ"
    assert (parser.parse_args([]).ocr_language, parser.parse_args([]).ocr_engine) == ("en", "auto")
    for wrong in ("", "c s", "../x"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--ocr-language", wrong])
        assert "must be a language tag" in capsys.readouterr().err


def test_a_poster_is_read_smaller_and_a_page_at_two_hundred_dots(tmp_path, monkeypatch):
    sizes = []

    def read(picture: Image.Image) -> list[TextLine]:
        sizes.append(picture.size)
        return [TextLine(0, 0, 10, 10, "abc", 0.5), TextLine(0, 20, 10, 30, "d", 1.0), TextLine(0, 40, 9, 50, " ", 0.0)]

    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: read)
    for name, points in (("page", (72, 144)), ("poster", (1440, 2880))):
        Image.new("L", points, 255).save(tmp_path / f"{name}.pdf", resolution=72)
        found = read_scan(read_document(tmp_path / f"{name}.pdf"), tmp_path / "out.pdf", Ocr("tesseract", "en"))
        assert found is not None and found.confidence == {"1": 0.625}, "by the characters of each line"
        assert found.document.text.split() == ["abc", "d"]
    assert sizes == [(200, 400), (2000, 4000)]
