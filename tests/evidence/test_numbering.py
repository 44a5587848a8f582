"""Word's automatic numbers: every format, what restarts a count, and which number a paragraph gets."""

from typing import Any

import pytest
from lxml import etree

from exhibit.evidence.readers.word import Numbering, W, format_numeral

NAMESPACE = W.strip("{}")


@pytest.mark.parametrize(
    ("form", "numbers"),
    [
        ("decimal", {0: "0", 12: "12", 10_001: "9999", -3: "0"}),
        ("lowerLetter", {0: "", 1: "a", 26: "z", 27: "aa", 53: "aaa"}),
        ("upperLetter", {1: "A", 28: "BB"}),
        ("lowerRoman", {0: "", 3: "iii", 4: "iv", 9: "ix", 14: "xiv", 49: "xlix", 1999: "mcmxcix"}),
        ("upperRoman", {4: "IV"}),
        ("none", {5: ""}),
        ("ordinal", {5: "5"}),
    ],
)
def test_format_numeral_writes_numbers_in_each_number_format_of_word(form, numbers):
    assert {number: format_numeral(number, form) for number in numbers} == numbers


def level(depth: int, text: str, form: str = "decimal", more: str = "") -> str:
    xml = f'<w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>{more}'
    return f'<w:lvl w:ilvl="{depth}">{xml}</w:lvl>'


def numbering(*levels: str, nums: str = '<w:num w:numId="1"><w:abstractNumId w:val="9"/></w:num>') -> Any:
    inner = f'<w:abstractNum w:abstractNumId="9">{"".join(levels)}</w:abstractNum>{nums}'
    return etree.fromstring(f'<w:numbering xmlns:w="{NAMESPACE}">{inner}</w:numbering>')


def paragraph(depth: int | None = None, *, num: str | None = "1", style: str = "") -> Any:
    place = (f'<w:ilvl w:val="{depth}"/>' if depth is not None else "") + (f'<w:numId w:val="{num}"/>' if num else "")
    own = f"<w:numPr>{place}</w:numPr>" if place else ""
    worn = f'<w:pStyle w:val="{style}"/>' if style else ""
    return etree.fromstring(f'<w:p xmlns:w="{NAMESPACE}"><w:pPr>{worn}{own}</w:pPr></w:p>')


def labels(root: Any, *depths: int, styles: Any = None) -> list[str]:
    lists = Numbering(root, styles)
    return [lists.label(paragraph(depth)) for depth in depths]


THREE = (level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter"))


@pytest.mark.parametrize(
    ("restart", "expected"),
    [
        ("", ["1.", "1.1", "(a)", "1.2", "(a)", "2.", "2.1", "(a)"]),
        ('<w:lvlRestart w:val="0"/>', ["1.", "1.1", "(a)", "1.2", "(b)", "2.", "2.1", "(c)"]),
        ('<w:lvlRestart w:val="1"/>', ["1.", "1.1", "(a)", "1.2", "(b)", "2.", "2.1", "(a)"]),
        ('<w:lvlRestart w:val="2"/>', ["1.", "1.1", "(a)", "1.2", "(a)", "2.", "2.1", "(a)"]),
    ],
)
def test_numbering_follows_the_restart_setting_of_a_level(restart, expected):
    levels = (level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter", restart))
    assert labels(numbering(*levels), 0, 1, 2, 1, 2, 0, 1, 2) == expected


def test_numbering_shows_legal_levels_in_digits():
    roman = level(0, "%1", "upperRoman")
    assert labels(numbering(roman, level(1, "%1.%2", "lowerLetter")), 0, 0, 1) == ["I", "II", "II.a"]
    assert labels(numbering(roman, level(1, "%1.%2", "lowerLetter", "<w:isLgl/>")), 0, 0, 1) == ["I", "II", "2.1"]


def test_numbering_continues_a_shared_list_unless_a_start_override_is_given():
    num = '<w:num w:numId="{}"><w:abstractNumId w:val="9"/>{}</w:num>'
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{}"/></w:lvlOverride>'

    def read(inner: str) -> list[str]:
        lists = Numbering(numbering(*THREE, nums=num.format(1, "") + num.format(2, inner)), None)
        return [lists.label(paragraph(0, num=num)) for num in ("1", "1", "2", "2", "1")]

    assert read("") == ["1.", "2.", "3.", "4.", "5."]
    assert read(override.format(7)) == ["1.", "2.", "7.", "8.", "9."]
    assert read(override.format("x")) == ["1.", "2.", "1.", "2.", "3."]
    other = f'<w:lvlOverride w:ilvl="0">{level(0, "Rule %1")}</w:lvlOverride>'
    assert read(other) == ["1.", "2.", "Rule 3", "Rule 4", "5."]


def styles(*rows: tuple[str, str, str]) -> Any:
    inner = "".join(
        f'<w:style w:styleId="{name}"><w:basedOn w:val="{based}"/>'
        + (f"<w:pPr><w:numPr>{place}</w:numPr></w:pPr>" if place else "")
        + "</w:style>"
        for name, based, place in rows
    )
    return etree.fromstring(f'<w:styles xmlns:w="{NAMESPACE}">{inner}</w:styles>')


def test_numbering_uses_the_style_of_a_paragraph_or_the_base_style():
    style_sheet = styles(
        ("Clause", "Base", ""), ("Base", "", '<w:numId w:val="1"/>'), ("Sub", "Base", '<w:ilvl w:val="1"/>'),
        ("Loop", "Pool", ""), ("Pool", "Loop", ""), ("Plain", "", ""),
    )  # fmt: skip
    lists = Numbering(numbering(*THREE), style_sheet)

    def label(style: str, depth: int | None = None, num: str | None = None) -> str:
        return lists.label(paragraph(depth, num=num, style=style))

    assert [label("Clause"), label("Sub"), label("Sub"), label("Base"), label("Sub")] == [
        "1.", "1.1", "1.2", "2.", "2.1",
    ]  # fmt: skip
    assert [label("Loop"), label("Plain"), label("Unknown")] == ["", "", ""]
    assert label("Sub", 2) == "(a)", "the level of the paragraph in the list of its style"
    assert label("Sub", None, "1") == "3.", "a paragraph with a list and no level uses the first level"
    assert label("Clause", 0, "0") == "", "list 0 removes the number"
    bare = etree.fromstring(f'<w:p xmlns:w="{NAMESPACE}"/>')
    assert lists.label(bare) == ""
