"""`exhibit ceiling` with known losses: the figures equal what the parser or the chunker was made to lose."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from exhibit.evidence import read_document
from exhibit.viewer.ceiling import main

CLAUSES = {
    "mill": "The Miller grinds the corn of every tenant before his own and keeps one sack in sixteen for his work.",
    "weir": "The Bailiff opens the weir from Lammas to Michaelmas, unless the river stands below the lower mark.",
    "eels": "All eels that are caught at the sluice belong to the Abbey and are counted on the eve of each fast.",
}
FARES = "Dues at the mill\nWheat 3\nBarley 2\nOats 1"


@pytest.fixture
def bundle(tmp_path: Path, convert: Any) -> Path:
    """Two texts with four gold passages, one of them a table."""
    source = tmp_path / "source"
    source.mkdir()
    both = [[CLAUSES["mill"], FARES], [CLAUSES["weir"], CLAUSES["eels"]]]
    rows = []
    for number, golds in enumerate(both):
        text = f"CUSTOMS OF MANOR {number}\n\n" + "\n\nOf other matters nothing is said here.\n\n".join(golds) + "\n"
        (source / f"manor-{number}.txt").write_text(text, encoding="utf-8")
        for at, gold in enumerate(golds):
            row = {"question": f"What is custom {number}.{at}?", "answer": "As it says.", "text": gold}
            rows.append({**row, "document": f"manor-{number}.txt"})
    table = tmp_path / "questions.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    flags = ("--source", table, "--documents", source, "--as", "is")
    columns = ("--question", "question", "--answer", "answer", "--document", "document", "--text", "text")
    return convert("table", *flags, *columns)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return {one["name"]: one for one in json.loads(capsys.readouterr().out)["ceilings"]}


def share(ceiling: dict[str, Any], outcome: str, kind: str = "all") -> float:
    return next(row[outcome]["mean"] for row in ceiling["rows"] if row["kind"] == kind)


def corpus(bundle: Path) -> dict[str, str]:
    return {path.name: read_document(path).text for path in sorted((bundle / "corpus").iterdir())}


def test_a_parsed_folder_without_its_table_says_which_gold_is_gone(bundle: Path, tmp_path: Path, capsys: Any) -> None:
    for name, without in (("all", ""), ("poor", FARES)):
        (tmp_path / name).mkdir()
        for file, text in corpus(bundle).items():
            (tmp_path / name / f"{Path(file).stem}.md").write_text(text.replace(without, ""), encoding="utf-8")
    found = run(capsys, bundle, "--parsed", f"all={tmp_path / 'all'}", "--parsed", f"poor={tmp_path / 'poor'}")
    assert share(found["all"], "whole") == 1.0
    assert share(found["poor"], "whole") == 0.75
    assert share(found["poor"], "lost", "table") == 1.0
    (lost,) = found["poor"]["lost"]
    assert lost["kind"] == "table"
    assert lost["missing"] == [" ".join(FARES.split())]
    assert found["all"]["lost"] == []


def write_chunks(path: Path, bundle: Path, golds: list[str], *, cut: bool) -> None:
    """Write chunks that end in the middle of each gold passage, or just before it if `cut` is false."""
    rows = []
    for file, text in corpus(bundle).items():
        places = sorted(text.index(gold) + (len(gold) // 2 if cut else -1) for gold in golds if gold in text)
        edges = [0, *places, len(text)]
        rows += [{"text": text[a:b], "file": file} for a, b in pairwise(edges) if text[a:b].strip()]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_a_chunk_file_that_cuts_every_gold_loses_all_of_it(bundle: Path, tmp_path: Path, capsys: Any) -> None:
    golds = [*CLAUSES.values(), FARES]
    write_chunks(tmp_path / "cut.jsonl", bundle, golds, cut=True)
    write_chunks(tmp_path / "between.jsonl", bundle, golds, cut=False)
    found = run(capsys, bundle, "--chunks", tmp_path / "cut.jsonl", "--chunks", tmp_path / "between.jsonl")
    assert share(found["cut.jsonl"], "part") == 1.0
    assert len(found["cut.jsonl"]["lost"]) == len(golds)
    assert share(found["between.jsonl"], "whole") == 1.0
    # of the four only the weir has a condition, and it stands behind the middle
    assert [one["before_proviso"] for one in found["cut.jsonl"]["lost"]].count(True) == 1


def test_a_splitter_cuts_what_is_longer_than_its_chunks(bundle: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "texts").mkdir()
    for file, text in corpus(bundle).items():
        (tmp_path / "texts" / f"{Path(file).stem}.txt").write_text(text, encoding="utf-8")
    words = ("--splitter", "rcts:60", "--splitter", "rcts:2000", "--splitter", "sections:sentences:400")
    found = run(capsys, bundle, "--parsed", f"own={tmp_path / 'texts'}", *words)
    assert share(found["own + rcts:60"], "part", "text") == 1.0
    assert share(found["own + rcts:2000"], "whole") == 1.0
    assert "own + sections:sentences:400" in found


def test_the_parsers_read_the_pdfs_of_a_bundle_and_the_page_is_drawn(
    converted: Any, tmp_path: Path, capsys: Any
) -> None:
    page = tmp_path / "ceiling.html"
    words = ("--parser", "pypdf", "--parser", "pdfplumber", "--parser", "pypdfium2", "--splitter", "rcts:300")
    assert main([str(converted("table")), *words, "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("pdfplumber") == 2  # itself, and cut
    assert "[" in printed
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<svg") >= 6
    assert "http" not in drawn  # nothing is fetched


def test_a_document_that_is_no_pdf_is_named_and_its_gold_not_known(bundle: Path, capsys: Any) -> None:
    found = run(capsys, bundle, "--parser", "pypdf")
    assert set(found["pypdf"]["faults"].values()) == {"not a PDF"}
    assert found["pypdf"]["rows"][0]["unknown"] == 4
    assert share(found["pypdf"], "whole") is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--parser", "nobody"), "there are pdfplumber, pypdf"),
        (("--parser", "pypdf:fast"), "takes no argument"),
        (("--parsed", "folder"), "NAME=VALUE"),
        (("--splitter", "nothing:300"), "no splitter 'nothing'"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_ones(
    words: tuple[str, str], why: str, bundle: Path, capsys: Any
) -> None:
    assert main([str(bundle), *words]) == 1
    assert why in capsys.readouterr().err
