"""Regression tests of reading: located quotes and file texts compared with golden files.

`pytest tests/evidence/test_reading.py --update-golden` rewrites tests/golden/evidence; read the diff.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from exhibit.evidence import Document, Span, locate
from exhibit.evidence.document import Page
from exhibit.evidence.locate import prefer_whole_words
from exhibit.evidence.read import read_attachments, read_printable
from tests.evidence.files import eml, msg, xlsx

TEXTS = Path(__file__).parent.parent / "law" / "texts"


def make_paged(name: str, *, lines: int) -> Document:
    """Return a text in the form of a PDF: in pages, each with a head and a foot."""
    text, pages = "", []
    source = (TEXTS / name).read_text(encoding="utf-8").splitlines()
    for number, start in enumerate(range(0, len(source), lines), 1):
        begin = len(text)
        text += "\n".join(["Eastness Harbour Board", *source[start : start + lines], f"Page {number}"]) + "\n"
        pages.append(Page(number, Span(begin, len(text)), 595.0, 842.0))
    return Document(name, text, tuple(pages))


def variants(words: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each variant of a quote: in one line, in capitals, without a word …"""
    yield "as it stands", words
    yield "in one line", " ".join(words.split())
    yield "in capitals", words.upper()
    yield "typed", words.replace('"', "”").replace("'", "’").replace("-", "–")
    parts = words.split()
    third = len(parts) // 3
    yield "in parts", f"{' '.join(parts[:third])} <omitted> {' '.join(parts[-third:])}"
    yield "in parts, the other way", f"{' '.join(parts[-third:])} <omitted> {' '.join(parts[:third])}"
    yield "a word short", " ".join(parts[:third] + parts[third + 1 :])
    yield "with slips", re.sub(r"(?<=\w)e(?=\w)", "c", " ".join(parts), count=2)
    yield "with more around", f"{' '.join(parts)} and nothing of the sort"
    yield "the last words", " ".join(parts[-6:])
    yield "broken", "\n".join([" ".join(parts[:third]), " ".join(parts[third:])]).replace("tion", "ti-\non", 1)


def list_located(document: Document) -> Iterator[str]:
    """Yield a line with location and method for each quote of a document and each of its variants."""
    yield f"furniture {document.furniture}"
    body = re.sub(r"\s*\n(?:Page \d+\nEastness Harbour Board\n)?", "\n", document.text)
    long = [line for line in body.split("\n") if len(line.split()) >= 12]
    quotes = [*long[:24], " ".join(long[2:4]), *(f"{a}\n{b}" for a, b in pairwise(long[4:10]))]
    for number, words in enumerate(quotes):
        for name, quote in variants(words[:400]):
            matches = locate(quote, document)
            lines = [
                f"{match.how} {match.score} {match.whole} {[tuple(span) for span in match.spans]}" for match in matches
            ]
            yield f"{number} {name}: {len(prefer_whole_words(matches))} of {'; '.join(lines[:4]) or 'none'}"


@pytest.mark.parametrize(("name", "lines"), [("agreement.txt", 24), ("skeleton.txt", 3), ("outline.txt", 40)])
def test_located_quotes_match_golden_file(name, lines, golden):
    golden(f"evidence/located-{name}", "\n".join(list_located(make_paged(name, lines=lines))) + "\n")


FILES = {
    "notice.eml": eml("The rent is due.\n\n> as you said\n-- \nInes", html="<p>The <b>rent</b> is due.</p>",
                      attachments={"a.txt": b"one", "b.html": b"<p>two</p>"}),
    "plain.eml": eml("The rent is due.\n\n> as you said\n-- \nInes"),
    "notice.msg": msg(subject="Notice", body="The rent\r\nis due.", attachments={"a.txt": b"x" * 5000}),
    "sheet.xlsx": xlsx(["Fee", "Due", None], [12.5, "May", True], [], [1e6, 0.1, -3], more={"Other": [["x"]]}),
    "table.csv": b'Fee,Due\n"12,5","May\n2020"\n\nlast,\n',
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_printable_page_and_attachments_of_office_files_match_golden_file(name, tmp_path, golden):
    (tmp_path / name).write_bytes(FILES[name])
    page = read_printable(tmp_path / name)
    assert page is not None
    lines = [f"{field}: {value!r}" for field, value in page._asdict().items()]
    lines += [f"attached {part.name} {len(part.data)} {part.data[:20]!r}" for part in read_attachments(tmp_path / name)]
    golden(f"evidence/{name}.txt", "\n".join(lines).replace(str(tmp_path), "") + "\n")
