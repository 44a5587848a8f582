"""Running headers, footers and page numbers are distinguished from the text."""

from __future__ import annotations

import pytest

from exhibit.evidence.document import find_furniture

HEADED = [f"ACME Inc. / Supply\nbody text {word}\n- {n} -" for n, word in enumerate(("aa", "bb", "cc"), 1)]
SHEETS = [f"words {word}\nAnnex B, sheet {number} of 60" for number, word in ((41, "a"), (42, "b"), (43, "c"))]
ARTICLES = ["ARTICLE 4\nterm one\nx a", "more words here\nx b", "ARTICLE 5\nterm two\nx c", "ARTICLE 6\nend\nx d"]
SIGNED = ["first\nsecond\nthird\nfourth\nBy: ____\nfifth\nsixth\nseventh\neighth", "a\nb\nc\nd\nBy: ____\ne\nf\ng\nh"]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (HEADED, [line for n in (1, 2, 3) for line in ("ACME Inc. / Supply", f"- {n} -")]),
        (SHEETS, [f"Annex B, sheet {number} of 60" for number in (41, 42, 43)]),  # numbers that start above 1
        (ARTICLES, []),  # headings that differ in their number
        (SIGNED, []),  # a recurring line inside the page
        (["text one\nNotice", "text two\nNotice", "intro\nNotice\ntext three"], ["Notice", "Notice"]),  # text below it
        (["Title\nbody\n1"], []),  # a single page
        *(
            ([f"one\n{number}", "two\nand a sentence here"], [number])
            for number in ("3", "- 3 -", "Page 3", "Page 3 of 9", "3/9", "iv", "[3]", "A-3", "xii")
        ),
    ],
)
def test_page_furniture_is_repeated_edge_lines_and_page_numbers(pages, expected):
    text, spans = "\n".join(pages), []
    for page in pages:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(page)))
    assert [text[slice(*line)].strip() for line in find_furniture(text, spans)] == expected
