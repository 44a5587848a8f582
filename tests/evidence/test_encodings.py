"""Bytes to characters: UTF-8 first, then what office programs write; bytes that are no text are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.encodings import decode_bytes

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
