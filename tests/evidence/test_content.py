"""Files without an extension are read by their content."""

from __future__ import annotations

import pytest

from exhibit.evidence import read_document
from exhibit.evidence.read import is_readable
from tests.evidence import files

KINDS = {
    "Report_2023": b"The rent is due on the first day of each month.",
    "Annual Report No. 4": "La durée est de cinq ans.".encode(),
    "page": b"<!DOCTYPE html><html><body><p>The rent is due.</p></body></html>",
    "contract": files.docx(files.paragraph("The rent is due.")),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_without_an_ending_is_read_by_its_content(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(KINDS[name])
    assert is_readable(path)
    assert ("rent is due" in (text := read_document(path).text) or "cinq ans" in text) and "<p>" not in text


def test_what_is_no_text_and_what_has_an_ending_of_its_own_is_not_guessed_at(tmp_path):
    for name, data in (("blob", b"\0\1\2"), ("film.mp4", b"ftyp words"), ("empty", b"")):
        (tmp_path / name).write_bytes(data)
        assert not is_readable(tmp_path / name)
