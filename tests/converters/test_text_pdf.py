"""Plain text to PDF: every character can be found again, and the bytes are the same everywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.converters.benchmark import Block
from exhibit.converters.civil_procedure.parsing import blocks_of
from exhibit.converters.printing import text_pdf
from exhibit.converters.printing.press import split_filed_text, strip_filing
from exhibit.converters.printing.text_pdf import (
    find_font,
    join_arabic_letters,
    make_sealed_environment,
    needs_browser,
    pdf_of,
    print_blocks,
    read_font_hashes,
)
from exhibit.evidence import fold, read_document
from exhibit.schemas.errors import ServiceError

SCRIPTS = {
    "latin": "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞß ĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮİĲĴĶĹĻĽĿŁ ŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽ ȘȚẠẢẤỆỰ",
    "typographic": "“a” ‘b’ „c‚ «d» ‹e› – — ― … • ‣ · † ‡ § ¶ ° ′ ″ ‰ № ™ ® © ℠ € £ ¥ ₹ ₽ ¢ ½ ⅓ ⅞ ﬁnal ﬂoor",
    "greek": "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ αβγδεζηθικλμνξοπρστυφχψως άέήίόύώ ἀλήθεια",
    "cyrillic": "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ абвгдеёжзийклмнопрстуфхцчшщъыьэюя ЄІЇҐ Ђ Ћ Џ",
    "mathematical": "± × ÷ ≤ ≥ ≠ ≈ ∑ ∏ √ ∞ ∫ ∂ ∆ ∈ ∉ ∀ ∃ ∅ ∩ ∪ ⊂ ⊆ ∧ ∨ ¬ ⇒ ⇔ → ← ↑ ↓ ↔ ≡ ∝ ⊥ ∥",
    "bullets and boxes": "● ○ ■ □ ▪ ▫ ◆ ◇ ► ◦ ☐ ☑ ☒ ✓ ✔ ✗ ✘ ★ ☆ ➢ ❑ ❖ ─ │ ┌ ┐ └ ┘ ┼ ① ② ③",
    "hebrew": "הסכם זה נחתם בין הצדדים",
    "arabic": "هذا العقد مبرم بين الطرفين",
    "chinese": "本协议由双方签订。繁體中文條款",
    "japanese": "本契約は、両当事者間で締結される。カタカナ",
    "korean": "본 계약은 양 당사자 간에 체결된다.",
}


def read_back(path: Path, *blocks: Block) -> str:
    print_blocks(blocks, path, title="T")
    return read_document(path).text


def test_every_character_is_found_again(tmp_path):
    lines = [
        "ARTICLE I — “Definitions” ‘and’ § 1.01 ¶ 2; ½ × € £ ¥ ° ™ ® ©",
        "Société Générale, Škoda, Łódź, Ærø, ñandú, ﬁnal ﬂoor, Ελλάδα, Москва",
        "non-exclusive, re-\u00adentry, zero\u200bwidth, NBSP\u00a0here, tab\there",
        '<script>alert(1)</script> & <b>not bold</b> &amp; "quotes" (a) \\ %',
        "a" * 300,
        "    indented by four, and      spaced",
    ]
    text = "\n".join(lines)
    assert fold(read_back(tmp_path / "a.pdf", Block("p", text)), loose=True) == fold(text, loose=True)


def test_what_no_font_has_is_drawn_as_a_box(tmp_path):
    assert read_back(tmp_path / "a.pdf", Block("p", "Thai ก, a card 🂡, bold 𝐀.")) == "Thai □, a card □, bold □."


@settings(max_examples=25)
@given(st.text(st.characters(max_codepoint=0x24F, categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=400))
def test_whatever_is_printed_is_read_back(tmp_path_factory, text):
    read = read_back(tmp_path_factory.mktemp("any") / "a.pdf", Block("p", text))
    assert fold(read, loose=True) == fold(text, loose=True)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_drawn_and_read_back_or_left_to_the_browser(tmp_path, script):
    words = SCRIPTS[script]
    assert needs_browser(words) == (script in ("chinese", "japanese", "korean"))
    if not needs_browser(words):
        print_blocks([Block("h1", words), Block("p", words)], tmp_path / "a.pdf", title="T")
        assert fold(read_document(tmp_path / "a.pdf").text, loose=True) == fold(words * 2, loose=True)


def test_arabic_letters_are_drawn_joined_and_read_as_letters(tmp_path):
    words = SCRIPTS["arabic"]
    text = read_back(tmp_path / "a.pdf", Block("p", words))
    assert text == words, "in order, and no form of a letter instead of it"
    assert "ﻌ" in join_arabic_letters("العقد") and join_arabic_letters("plain") == "plain"


def test_the_bytes_are_the_same_in_another_process_language_and_place(tmp_path):
    text = "Clause 1. The parties agree “as follows”.\n" * 90 + "\n".join(
        words for words in SCRIPTS.values() if not needs_browser(words)
    )
    here = pdf_of([Block("h1", "An Agreement"), Block("p", text)], title="An Agreement")
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    program = (
        "import hashlib, sys; from pathlib import Path\n"
        "from exhibit.converters.benchmark import Block\n"
        "from exhibit.converters.printing.text_pdf import pdf_of\n"
        "text = Path(sys.argv[1]).read_text(encoding='utf-8')\n"
        "data = pdf_of([Block('h1', 'An Agreement'), Block('p', text)], title='An Agreement')\n"
        "print(hashlib.sha256(data).hexdigest())"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "text.txt"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONHASHSEED": "7",
            "LC_ALL": "C",
            "TZ": "Asia/Tokyo",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == hashlib.sha256(here).hexdigest()
    assert b"FlateDecode" not in here, "what a compressor writes depends on its make"
    # the bytes themselves are known: whoever changes the print, its library or its fonts sees it here
    assert hashlib.sha256(here).hexdigest() == "aae91e8fd2d1227456fa1c615fdabc7e43b1f0b6b1d79c1909b791bc554c5f03"


def test_a_long_text_fills_pages_and_a_heading_stays_with_its_text(tmp_path):
    text = "\n\n".join(
        ["1. General", *["Every party must serve a list of its documents."] * 60, "---", "Costs", "Paid."]
    )
    blocks = blocks_of("Part 4", text)
    print_blocks(blocks, tmp_path / "a.pdf", title="Part 4")
    document = read_document(tmp_path / "a.pdf")
    assert len(document.pages) > 1 and document.text.startswith("Part 4\n")
    for page in document.pages:
        words = document.text[page.span.start : page.span.end].strip()
        assert words and not words.endswith("Costs"), "a heading is never the last line of a page"


def test_a_filing_keeps_its_columns_and_its_page_ends(tmp_path):
    page = strip_filing(b"<DOCUMENT><TEXT>\n          AGREEMENT\n<PAGE>\n  1. Term.\n</TEXT></DOCUMENT>")
    text = read_back(tmp_path / "a.pdf", *split_filed_text(page))
    assert "AGREEMENT" in text and "<" not in text
    assert len(read_document(tmp_path / "a.pdf").pages) == 2


def test_lines_for_a_typewriter_stand_as_close_in_two_blocks_as_in_one():
    apart = pdf_of([Block("pre", "one"), Block("pre", "two")], title="T")
    assert apart == pdf_of([Block("pre", "one\ntwo")], title="T")
    assert apart != pdf_of([Block("p", "one"), Block("p", "two")], title="T")


def test_long_words_marks_of_the_page_and_scripts_from_the_right_stand_where_they_stood():
    blocks = [
        Block("h1", "An Agreement of " + "W" * 90),
        Block("p", "a" * 300 + " b\tc   d\n\n" + "Long words stand in lines as they are broken between words. " * 12),
        Block("p", "هذا العقد مبرم بين الطرفين\nA → ☐ b"),
        *(Block(style, text) for n in range(12) for style, text in (("h2", f"{n}. Term"), ("p", "Paid.\n" * n))),
        Block("pre", "  1  2\n\fnext\n" + "x" * 200),
    ]
    digest = hashlib.sha256(pdf_of(blocks, title="T\x00\r\n")).hexdigest()
    # whoever changes where a line breaks or stands, a page ends or a letter is joined sees it here
    assert digest == "aa33e1d6f80fbc513ca42d48375d0e39f7482f024a3a58d97c420fdd5ccc32a8"


def test_arabic_letters_join_those_beside_them():
    forms = {"initial": "ﺑ", "medial": "ﺒ", "final": "ﺐ", "isolated": "ﺏ"}
    assert (
        join_arabic_letters("ب") == forms["isolated"] and join_arabic_letters("بب") == forms["initial"] + forms["final"]
    )
    assert join_arabic_letters("ببب") == forms["initial"] + forms["medial"] + forms["final"]
    assert join_arabic_letters("اب") == "ﺍ" + forms["isolated"], "an alif joins nothing after it"
    assert join_arabic_letters("بx") == forms["isolated"] + "x"


def test_a_font_that_is_missing_or_another_is_told(tmp_path, monkeypatch):
    name = next(iter(read_font_hashes()))
    monkeypatch.setattr(text_pdf, "_FOLDER", tmp_path)
    find_font.cache_clear()
    with pytest.raises(ServiceError, match="is missing; install the project again"):
        find_font(name)
    (tmp_path / name).write_bytes(b"another")
    with pytest.raises(ServiceError, match="is not the font that documents are printed with"):
        find_font(name)
    find_font.cache_clear()


def test_a_browser_sees_our_fonts_and_no_settings_of_the_desktop(tmp_path, monkeypatch):
    monkeypatch.setenv("GTK_THEME", "dark")
    monkeypatch.setenv("KEPT", "yes")
    told = make_sealed_environment(tmp_path)
    assert told["LANG"] == "C.UTF-8" and "GTK_THEME" not in told and told["KEPT"] == "yes"
    assert Path(told["FONTCONFIG_FILE"]).read_text(encoding="utf-8").count("<dir>") == len(
        {find_font(name).parent for name in read_font_hashes()}
    )
