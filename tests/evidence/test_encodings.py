"""Bytes decoded to text: UTF-8 first, then the encodings of office programs; binary data is not text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence.files import decode_bytes

CZECH = "Nájemce hradí nájemné čtvrtletně předem, nejpozději do pátého dne. Výpovědní lhůta činí tři měsíce."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("“the Seller” shall – without delay – pay £400", "cp1252"),
        ("café", "cp1252"),
        ("naïve résumé of the élan contract", "cp1252"),
        ("Straße; Müller\nFührerschein für Öl", "cp1252"),
        (CZECH, "cp1250"),
        ("Договор аренды заключён между сторонами", "cp1251"),
        ("question;answer\nWho pays?;The tenant\n", "utf-16-le"),
        ("question;answer\nWho pays?;The tenant\n", "utf-16-be"),
        ("question;answer – später\n", "utf-16"),
    ],
)
def test_the_encoding_is_found(text, encoding):
    assert decode_bytes(text.encode(encoding)) == (text, encoding)


def test_latin_two_is_read_whichever_of_its_names_is_said():
    found = decode_bytes(CZECH.encode("iso8859_2"))
    assert found is not None and found.text == CZECH


@pytest.mark.parametrize("data", [b"\x00\x01\x02\xfe\xff" * 40, b"\xff\x00\x01\x02" * 40, bytes(range(256))])
def test_what_is_no_text_is_none(data):
    assert decode_bytes(data) is None


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_utf8_always_wins(text):
    assert decode_bytes(text.encode("utf-8")) == (text, "utf-8")


@given(st.binary())
def test_no_bytes_raise(data):
    found = decode_bytes(data)
    assert found is None or isinstance(found.text, str)


def utf16(*runs: tuple[str, int]) -> str | None:
    decoded = decode_bytes("".join(character * count for character, count in runs).encode("utf-16-le"))
    return decoded.encoding if decoded and decoded.encoding.startswith("utf-16") else None


def test_more_than_four_fifths_of_the_other_bytes_are_print():
    for edge, printed in (("\x7f", False), ("\x1f", False), ("~", True), (" ", True), ("\t", True), ("\n", True)):
        assert (utf16(("A", 8), (edge, 2)) is not None) is printed, repr(edge)


def test_two_fifths_of_zeros_on_one_side_and_a_twentieth_on_the_other():
    assert utf16(("A", 8), ("\u2041", 12)) == "utf-16-le" and utf16(("A", 7), ("\u2041", 13)) is None
    assert utf16(("A", 19), ("\u2100", 1)) == "utf-16-le" and utf16(("A", 18), ("\u2100", 2)) is None


def test_one_control_character_in_a_hundred_is_a_stray_one():
    assert decode_bytes(b"\x01" + b"a" * 98 + b"\xe9") == ("\x01" + "a" * 98 + "é", "cp1252")
    assert decode_bytes(b"\x01\x02" + b"a" * 97 + b"\xe9") is None


def test_every_letter_counts_and_not_every_kind_of_letter():
    data = "šššš".encode("cp1250") + "çêû".encode("cp1252")  # four letters of Czech, three of French
    assert decode_bytes(data) == ("ššššçęű", "cp1250")
