"""Text printed as PDF: every character can be extracted, and the bytes are always the same."""

from pathlib import Path

from exhibit.converters import Block
from exhibit.converters.civil_procedure.corpus import blocks_of
from exhibit.converters.pages.chromium import split_filed_text, strip_filing
from exhibit.converters.pages.text_pdf import find_font, make_sealed_environment, pdf_of, read_font_hashes
from exhibit.evidence import fold, read_document


def read_back(path: Path, *blocks: Block) -> str:
    path.write_bytes(pdf_of(blocks, title="T"))
    return read_document(path).text


def test_printed_pdf_text_equals_the_source_text_for_unusual_characters(tmp_path):
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


def test_print_draws_a_box_for_characters_missing_from_all_fonts(tmp_path):
    assert read_back(tmp_path / "a.pdf", Block("p", "Thai ก, a card 🂡, bold 𝐀.")) == "Thai □, a card □, bold □."


def test_print_blocks_never_ends_a_page_with_a_heading(tmp_path):
    text = "\n\n".join(
        ["1. General", *["Every party must serve a list of its documents."] * 60, "---", "Costs", "Paid."]
    )
    blocks = blocks_of("Part 4", text)
    (tmp_path / "a.pdf").write_bytes(pdf_of(blocks, title="Part 4"))
    document = read_document(tmp_path / "a.pdf")
    assert len(document.pages) > 1 and document.text.startswith("Part 4\n")
    for page in document.pages:
        words = document.text[page.span.start : page.span.end].strip()
        assert words and not words.endswith("Costs"), "the last line of a page must not be a heading"


def test_split_filed_text_starts_a_pdf_page_at_each_page_mark(tmp_path):
    page = strip_filing(b"<DOCUMENT><TEXT>\n          AGREEMENT\n<PAGE>\n  1. Term.\n</TEXT></DOCUMENT>")
    text = read_back(tmp_path / "a.pdf", *split_filed_text(page))
    assert "AGREEMENT" in text and "<" not in text
    assert len(read_document(tmp_path / "a.pdf").pages) == 2


def test_printing_environment_has_only_bundled_fonts_and_no_desktop_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("GTK_THEME", "dark")
    monkeypatch.setenv("KEPT", "yes")
    environment = make_sealed_environment(tmp_path)
    assert environment["LANG"] == "C.UTF-8" and "GTK_THEME" not in environment and environment["KEPT"] == "yes"
    assert Path(environment["FONTCONFIG_FILE"]).read_text(encoding="utf-8").count("<dir>") == len(
        {find_font(name).parent for name in read_font_hashes()}
    )
