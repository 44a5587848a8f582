"""Running headers, footers and page numbers are distinguished from the text."""

from __future__ import annotations

from exhibit.evidence.document import find_furniture


def found(*pages: str) -> list[str]:
    text = "\n".join(pages)
    spans = []
    start = 0
    for page in pages:
        spans.append((start, start + len(page)))
        start += len(page) + 1
    return [text[slice(*line)].strip() for line in find_furniture(text, spans)]


def test_furniture_includes_recurring_edge_lines_with_changing_numbers():
    pages = [f"ACME Inc. / Supply\nbody text {word}\n- {n} -" for n, word in enumerate(("aa", "bb", "cc"), 1)]
    assert found(*pages) == [
        "ACME Inc. / Supply",
        "- 1 -",
        "ACME Inc. / Supply",
        "- 2 -",
        "ACME Inc. / Supply",
        "- 3 -",
    ]


def test_furniture_includes_page_numbers_of_every_style():
    for number in ("3", "- 3 -", "Page 3", "Page 3 of 9", "3/9", "iv", "[3]", "A-3", "xii"):
        assert found(f"one\n{number}", "two\nand a sentence here") == [number], number


def test_furniture_excludes_headings_that_differ_in_number():
    pages = ["ARTICLE 4\nterm one\nx a", "more words here\nx b", "ARTICLE 5\nterm two\nx c", "ARTICLE 6\nend\nx d"]
    assert found(*pages) == []


def test_furniture_includes_page_numbers_that_start_above_1():
    pages = [f"words {word}\nAnnex B, sheet {number} of 60" for number, word in ((41, "a"), (42, "b"), (43, "c"))]
    assert found(*pages) == [f"Annex B, sheet {number} of 60" for number in (41, 42, 43)]


def test_furniture_excludes_recurring_lines_inside_the_page():
    assert (
        found(
            "first\nsecond\nthird\nfourth\nBy: ____\nfifth\nsixth\nseventh\neighth", "a\nb\nc\nd\nBy: ____\ne\nf\ng\nh"
        )
        == []
    )


def test_furniture_excludes_recurring_lines_separated_from_the_edge_by_text():
    # the same words recur, but a line of text stands between them and the page's edge
    assert found("text one\nNotice", "text two\nNotice", "intro\nNotice\ntext three") == ["Notice", "Notice"]


def test_furniture_is_empty_for_a_single_page():
    assert found("Title\nbody\n1") == []
