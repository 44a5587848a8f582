"""Rich Text files are read without an office program, and a hostile file gives one error."""

from __future__ import annotations

import pytest

from exhibit.evidence.read import has_page, read_document
from exhibit.schemas.errors import DocumentError


def test_rich_text_is_read_without_an_office_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "lease.rtf"
    path.write_bytes(
        rb"{\rtf1\ansi\ansicpg1250 {\b N\'e1jemce} plat\'ed.\par The rent is due.\par \trowd May\cell 5\cell\row }"
    )
    assert read_document(path).text.split("\n") == ["Nájemce platí.", "The rent is due.", "May|5|"]
    assert has_page(path), "it is printed as it is read"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty file"),
        (b"The rent is due.", "not a valid .rtf file: it starts with"),
        (rb"{\rtf1 \u99999999 ?}", "damaged, or not a valid Rich Text"),
        (rb"{\rtf1 \u" + b"9" * 5000 + b" ?}", "damaged, or not a valid Rich Text"),
    ],
)
def test_what_is_no_rich_text_says_so(tmp_path, data, why):
    (tmp_path / "a.rtf").write_bytes(data)
    with pytest.raises(DocumentError, match=why):
        read_document(tmp_path / "a.rtf")
