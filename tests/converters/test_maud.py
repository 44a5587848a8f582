"""MAUD: each row is matched to an agreement by its MAE definition, and excerpts are located in order."""

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from exhibit.converters import maud
from exhibit.converters.maud import find_excerpts, read_cell, titles_of
from exhibit.evidence import Document
from tests.conversion import read_source


def locate_excerpts(text: str, *excerpts: str) -> list[tuple[str | None, int]]:
    """Return, for each excerpt, the text before its match (None without a match), and the number of other matches."""
    document = Document("contract_0.txt", text)
    found = find_excerpts(read_cell(" <omitted> ".join(excerpts))[0], document)
    return [(text[: e.match.span.start].rsplit("|", 1)[-1] if e.match else None, len(e.others)) for e in found]


@pytest.mark.parametrize(
    ("cell", "excerpts", "pages"),
    [
        ("Words. (Page 18)", ("Words.",), "Page 18"),
        ("Words.  (Pages 27-28) ", ("Words.",), "Pages 27-28"),
        ("One (Page 3)<omitted>two (Pages 3, 5 and 6)", ("One", "two"), "Page 3; Pages 3, 5 and 6"),
        ("as shown (Page 4) above", ("as shown (Page 4) above",), ""),
        ("One < omitted > . <omitted> One", ("One", "."), ""),
        (" (Page 12)", (), "Page 12"),
        ("N/A", (), ""),
        ("", (), ""),
    ],
)
def test_read_cell_splits_excerpts_and_removes_page_marks(cell, excerpts, pages):
    assert read_cell(cell) == (excerpts, pages)


@pytest.mark.parametrize(
    ("text", "excerpts", "places"),
    [
        # the order of the excerpts decides between repeated words
        ("|a two|Head|c two|Tail|e two|", ("Head", "two", "Tail"), [("", 0), ("c ", 0), ("", 0)]),
        ("|a twice said|Head|c twice said|", ("Head", "twice said"), [("", 0), ("c ", 0)]),
        ("|a twice said|Tail|c twice said|", ("twice said", "Tail"), [("a ", 0), ("", 0)]),
        # if their order does not decide, the nearest is chosen
        ("|5.2 Scope 44|at 5.2 Scope of|x|they were kept|", ("5.2 Scope", "they were kept"), [("at ", 1), ("", 0)]),
        ("|a said twice|b said twice|", ("said twice",), [("a ", 1)]),
        # an excerpt inside another is dropped, and adjacent ones are joined
        ("|Here the board may vary. It may not.", ("the board may vary", "may vary"), [("Here ", 0)]),
        ("|x One.\n\n Two. y", ("One.", "Two."), [("x ", 0)]),
        ("|a|", ("absent words",), [(None, 0)]),
    ],
)  # fmt: skip
def test_find_excerpts_prefers_matches_in_the_order_of_the_excerpts_and_close_together(text, excerpts, places):
    assert locate_excerpts(text, *excerpts) == places


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (
            "\ufeffExhibit 2.1\n\nAGREEMENT AND PLAN OF MERGER\n\nby and among\n\nACME, INC.,\n\nBIRCH SUB LLC\n\n"
            "and\n\nCEDAR BANK AND TRUST COMPANY\n\nDated as of May 1, 2021",
            "Agreement and Plan of Merger among Acme, Inc., Birch Sub LLC and Cedar Bank and Trust Company",
        ),
        (
            "Ex. 2.1   MERGER AGREEMENT   dated as of   MAY 1, 2021   between   ACME, INC.   AND   mBIRCH N.V.   _____",
            "Merger Agreement between Acme, Inc. and mBIRCH N.V.",
        ),
        (
            "AGREEMENT AND PLAN OF REORGANIZATION By and Between ACME, INC. And BIRCH BANCORP June 1, 2021 CONTENTS",
            "Agreement and Plan of Reorganization between Acme, Inc. and Birch Bancorp",
        ),
        (
            "AMENDED AND RESTATED AGREEMENT AND PLAN OF MERGER\nAMONG\nACME PLC, an Irish public limited company,\n"
            "ACME US INC.\nOAK MERGER SUB, INC.,\na Delaware corporation,\nFIR LP\nand\n"
            "(SOLELY FOR PURPOSES OF Section 2)\nELM CORP.\nDated as of May 1, 2021\nAcme plc is a company.",
            "Amended and Restated Agreement and Plan of Merger among Acme plc, Acme US Inc., Fir LP and Elm Corp.",
        ),
        ("Some other paper", "Merger Agreement between Birch and Acme"),
    ],
)
def test_maud_title_is_read_from_the_first_page(page, title):
    assert (titles_of(page, deal="Birch_Acme.pdf", stem="contract_0"))[0] == title


def test_maud_reads_a_repository_whose_data_is_zipped(samples, tmp_path):
    data = samples / "maud/maud-main/data"
    (tmp_path / "maud-main").mkdir()
    with zipfile.ZipFile(tmp_path / "maud-main/data.zip", "w") as packed:
        for path in sorted(p for p in data.rglob("*") if p.is_file()):
            packed.write(path, Path("data") / path.relative_to(data))
    assert read_source(maud, tmp_path)[0] == read_source(maud, data)[0] == read_source(maud, samples / "maud")[0]


@pytest.mark.data
@pytest.mark.slow
def test_maud_spans_equal_the_spans_of_legalbenchrag(data):
    benchmark, _ = read_source(maud, data / "maud")
    names = {document.text: document.filename for document in benchmark.documents}
    ours = Counter(
        (row.filename, tuple(span for q in row.quotes for span in map(tuple, q.spans))) for row in benchmark.rows
    )
    folder = data / "legalbenchrag"
    tests = json.loads((folder / "benchmarks/maud.json").read_text(encoding="utf-8"))["tests"]
    theirs: Counter[tuple[str, tuple[tuple[int, int], ...]]] = Counter()
    for test in tests:
        paths = {snippet["file_path"] for snippet in test["snippets"]}
        assert len(paths) == 1
        text = (folder / "corpus" / paths.pop()).read_bytes().decode("utf-8")
        theirs[names[text], tuple(trim_span(text, *snippet["span"]) for snippet in test["snippets"])] += 1
    assert sum(theirs.values()) == 194
    assert theirs - ours == Counter()


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())
