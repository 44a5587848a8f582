"""Bytes decoded to text: UTF-8 first, then the encodings of office programs; binary data is not text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import read_document
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
        ("question;answer – später\n", "utf-16"),
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Árvíztűrő tükörfúrógép", "cp1250"),
        ("šđčćž i još", "cp1250"),
        ("Ærø, Åse, søt", "cp1252"),
        ("¿Qué año?", "cp1252"),
        ("perché così", "cp1252"),
        ("№ 5: Ёлка", "cp1251"),
    ],
)
def test_decode_finds_encoding_by_the_letters_of_the_language(text, encoding):
    assert decode_bytes(text.encode(encoding)) == (text, encoding)
    if text == CZECH:  # also in the older encoding
        found = decode_bytes(text.encode("iso8859_2"))
        assert found is not None and found.text == text


@pytest.mark.parametrize("name", ["page.html", "note.txt", "note.md"])
def test_read_document_adds_a_note_about_an_encoding_other_than_utf8(tmp_path, name):
    (tmp_path / name).write_bytes("<p>“the Seller” shall pay £400</p>".encode("cp1252"))
    document = read_document(tmp_path / name)
    assert "£400" in document.text and document.notes == ("read as cp1252, because it is not UTF-8",)


@pytest.mark.parametrize("data", [b"\x00\x01\x02\xfe\xff" * 40, b"\xff\x00\x01\x02" * 40, bytes(range(256))])
def test_decode_returns_none_for_binary_data(data):
    assert decode_bytes(data) is None


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_decode_prefers_utf8(text):
    assert decode_bytes(text.encode("utf-8")) == (text, "utf-8")


@given(st.binary())
def test_decode_never_raises(data):
    found = decode_bytes(data)
    assert found is None or isinstance(found.text, str)
