"""Hostile source files of converters: exports, pages, tables, mails and links are set aside by name."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from exhibit.converters import Tally, cpr, table
from exhibit.converters.civil_procedure.layout_lines import lines_of
from exhibit.converters.civil_procedure.names import find_citations
from exhibit.converters.civil_procedure.sources import make_candidates
from exhibit.converters.raw.records import read_records
from exhibit.engine import Limits, apply_limits, run_in_worker
from exhibit.evidence import Document, Span
from exhibit.evidence.document import Page
from exhibit.evidence.read import list_folder, read_document
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline, find_files
from exhibit.schemas.errors import DocumentError, SourceError
from exhibit.storage.atomic import LINK, NO_FILE, NOWHERE, list_left_out
from tests.conversion import options_of
from tests.evidence import files as kinds

SMALL = Limits(memory=256 << 20)
GOOD = {"id": "Part 7", "content": "Part 7\n\n7.1 A claim is started when it is issued.", "sourcepage": "Part 7"}


# ---------------------------------------------------------------- exports and pages


def read_cpr(folder: Path, files: dict[str, object]) -> tuple[list[str], Tally]:
    """Read a folder with these files as a CPR source; return the names of its documents and the tally."""
    (folder / "ground_truth.jsonl").write_text('{"question": "When?", "truth": "On issue [Part 7]."}\n')
    for name, content in {"part7.json": GOOD, **files}.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    tally = Tally()
    found = cpr.read(folder, options_of(cpr, "--source", folder), tally)
    assert [quote.filename for row in found.rows for quote in row.quotes] == ["Part 7.pdf"]
    return [raw.filename for raw in found.documents], tally


def test_exports_that_cannot_be_read_are_named_and_odd_ones_are_read(tmp_path):
    many = [{"id": f"Many_chunk_{n}", "content": f"Rule {n}", "sourcepage": f"Section {n}"} for n in range(3000)]
    files = {
        "deep.json": "[" * 100_000,
        "digits.json": '{"id": "x", "content": "y", "n": ' + "9" * 5000 + "}",
        "number.json": {"id": "Long_chunk_" + "9" * 5000, "content": "A chunk with a very high number."},
        "half.json": '{"id": "Half \\ud800", "content": "A name with half of a pair."}',
        "many.json": many,
    }
    documents, tally = read_cpr(tmp_path, files)
    assert documents == ["Half \\ud800.pdf", "Long.pdf", "Many.pdf", "Part 7.pdf"]
    told = {reason: [name.partition(":")[0] for name in names] for reason, names in tally.left_out.items()}
    assert told == {"JSON file cannot be read": ["deep.json", "digits.json"]}


def test_an_export_that_takes_too_much_is_left_out_and_the_others_are_read(tmp_path):
    heavy = '{"id": "x", "content": "y", "junk": [' + "{}," * 1_500_000 + "1]}"
    page = "<title>Part 8</title>" + "<p>8.1 The claim.</p>" * 10
    with apply_limits(Limits(memory=64 << 20)):
        documents, tally = read_cpr(tmp_path, {"heavy.json": heavy, "page.html": page})
        assert documents == ["Part 7.pdf", "page.pdf"]
        limit = "document passes a limit of time, memory or nesting"
        assert list(tally.left_out) == [limit] and "heavy.json" in tally.left_out[limit][0]
        with pytest.raises(SourceError, match=r"heavy.json: .*expected an export of search results"):
            list(make_candidates([tmp_path / "heavy.json"]))


def test_page_numbers_that_are_none_and_citations_without_end_are_passed_over():
    text = "²\nThe rent is due.\n" + "9" * 5000
    lines, _, printed, _ = lines_of(Document("a.pdf", text, (Page(1, Span(0, len(text)), 100.0, 100.0),)))
    assert printed == {} and [line.text for line in lines if line.text.startswith("The")] == ["The rent is due."]
    (only,) = find_citations(f"So it is. [Part 7#page={'9' * 400}] And that. [{'Part 1, ' * 5000}]")
    assert only.document == "Part 7" and only.pages is None


# ---------------------------------------------------------------- tables


def write_parquet(path: Path) -> None:
    """Write two million equal rows in a few kilobytes."""
    rows = pyarrow.repeat("When is the rent due?", 2_000_000).dictionary_encode()
    parquet.write_table(pyarrow.table({"question": rows}), path, compression="zstd")


TEXT = "The tenant shall pay the rent on the first day of each month. " * 2000
LONG: dict[str, Callable[[], pyarrow.Array]] = {
    "one text in many rows, as a category": lambda: pyarrow.repeat(TEXT, 250).dictionary_encode(),
    "one text in many rows, which its pages alone tell": lambda: pyarrow.repeat(TEXT, 250),
    "characters four bytes wide, for the sake of one": lambda: pyarrow.repeat("\U0001f600" + TEXT, 250),
    "one row with a long list": lambda: pyarrow.array([[0] * 1_000_000]),
    "one row with a long list of a category": lambda: pyarrow.ListArray.from_arrays(
        [0, 1_000_000], pyarrow.repeat("rent", 1_000_000).dictionary_encode()
    ),
    "one row with many pairs": lambda: pyarrow.array(
        [[("rent", 1)] * 200_000], pyarrow.map_(pyarrow.string(), pyarrow.int64())
    ),
    "rows in rows": lambda: pyarrow.StructArray.from_arrays([pyarrow.repeat("rent", 100_000)], names=["a"]),
    "nothing, very often": lambda: pyarrow.nulls(2_000_000),
}


@pytest.mark.parametrize("column", LONG.values(), ids=LONG)
def test_a_parquet_file_is_refused_before_memory_ends_within_arrow(tmp_path, column):
    """Arrow ends its whole process in one of four cases when it runs out of memory."""
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"question": column()}), path, compression="zstd")
    assert path.stat().st_size < 300_000
    with (
        apply_limits(SMALL),
        pytest.raises(SourceError, match="16 MiB of memory, the limit for a file of"),
    ):
        read_records(path, path.read_bytes(), Tally())


def test_a_parquet_file_that_just_fits_is_read_in_parts_in_order(tmp_path):
    """A batch might take 42 MB as text of any width; 36 MiB are allowed, and only half of that is used."""
    path = tmp_path / "a.parquet"
    pairs = pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.int64()))
    columns = {
        "question": pyarrow.array([f"{n}" for n in range(1500)]),
        "lists": pyarrow.array([[n, None] * (n % 3) if n % 5 else None for n in range(1500)]),
        "rent": pyarrow.array([{"n": n, "of": {"kind": f"{n}"}} for n in range(1500)]),
        "pairs": pyarrow.array([[(f"{n}", [n])] * (n % 3) for n in range(1500)], pairs),
        "many pairs": pyarrow.array([[[(f"{n}", [n])]] * (n // 1200) for n in range(1500)], pyarrow.list_(pairs)),
        "kind": pyarrow.array([f"kind {n % 7}" for n in range(1500)]).dictionary_encode(),
        "text": pyarrow.repeat(TEXT[:10_000], 1500),
    }
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", row_group_size=1100)
    with apply_limits(Limits(memory=576 << 20)):
        found = read_records(path, path.read_bytes(), Tally())
    assert [record.cells for record in found] == pyarrow.table(columns).to_pylist()


def write_far_cell(path: Path) -> None:
    """Write a sheet whose last cell is in the last row and column that Excel allows."""
    book = openpyxl.Workbook()
    book.active.append(["question"])
    book.active["XFD1048576"] = "x"
    book.save(path)


def write_wide(path: Path) -> None:
    """Write a CSV file with rows of one cell under a header of 20,000 columns."""
    path.write_text("question," + ",".join(f"a{n}" for n in range(20_000)) + "\n" + "q\n" * 2_000, encoding="ascii")


@pytest.mark.parametrize(
    ("name", "write", "why"),
    [
        ("a.parquet", write_parquet, "MiB of memory, the limit for a file of"),
        pytest.param(
            "a.xlsx",
            write_far_cell,
            "(takes more processor time to read|MiB of memory, the limit for a file of)",
            marks=pytest.mark.slow,
        ),
        ("a.csv", write_wide, "20001 columns, but rows below lack 40000000 cells"),
    ],
)
def test_a_table_that_unpacks_to_too_much_is_one_error(tmp_path, name, write, why):
    path = tmp_path / name
    write(path)
    assert path.stat().st_size < 300_000
    with apply_limits(SMALL), pytest.raises(SourceError, match=f"{name}: .*{why}"):
        read_records(path, path.read_bytes(), Tally())


# ---------------------------------------------------------------- folders


def test_links_out_of_a_folder_are_followed_by_nobody_and_named(tmp_path):
    (tmp_path / "secret.txt").write_text("The rent is secret.")
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "lease.txt").write_text("The rent is due.")
    (folder / "out.txt").symlink_to("../secret.txt")
    (folder / "loop").symlink_to(".")
    (folder / "itself.txt").symlink_to("itself.txt")
    assert [file.name for file in list_folder(folder)] == ["lease.txt"]
    assert find_files(folder) == [folder / "lease.txt"]
    (tmp_path / "t.csv").write_text("question,answer,document\nWhen?,due,lease.txt\nWhat?,secret,out.txt\n")
    tally = Tally()
    flags = ["--source", tmp_path / "t.csv", "--documents", folder]
    found = table.read(tmp_path / "t.csv", options_of(table, *flags), tally)
    assert [raw.filename for raw in found.documents] == ["lease.txt.pdf"] and len(found.rows) == 1
    assert tally.left_out[LINK] == ["out.txt"] and tally.left_out[NOWHERE] == ["itself.txt"]
    (folder / "part7.json").write_text(json.dumps(GOOD))
    _, tally = read_cpr(folder, {})
    assert tally.left_out[LINK] == ["out.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_what_is_no_file_is_not_opened_and_named(tmp_path):
    """A pipe would be waited for without end."""
    folder = tmp_path / "documents"
    (folder / "folder.pdf").mkdir(parents=True)
    (folder / "folder.pdf" / "lease.txt").write_text("The rent is due.")
    os.mkfifo(folder / "pipe.pdf")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "gone.txt").symlink_to("nothing.txt")
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(folder):  # the path of a socket must be short
        made.bind("socket.pdf")
        assert [file.name for file in list_folder(folder)] == ["folder.pdf/lease.txt"]
        assert {path.name: why for path, why in list_left_out(folder)} == {
            "device.txt": LINK,
            "elsewhere": LINK,
            "gone.txt": NOWHERE,
            "pipe.pdf": NO_FILE,
            "socket.pdf": NO_FILE,
        }
        report = Pipeline(Config.preset("rcts", embedder="hashing")).index(folder, tmp_path / "index")
        told = [line.rpartition("documents/")[2] for line in report.set_aside]
        assert len(told) == 5 and "pipe.pdf: a pipe, socket or device, not a file" in told


def shared_bytes() -> bytes:
    """Return a mail with thirty attachments, which are all the same half a megabyte of the file."""
    more = {f"{n}.txt": b"y" for n in range(1, 30)}
    data = bytearray(kinds.msg(subject="Lease", body="See below.", attachments={"0.txt": b"x" * 500_000, **more}))
    name = "__substg1.0_37010102".encode("utf-16-le")
    entries, at = [], data.find(name)
    while at >= 0:
        entries.append(at)
        at = data.find(name, at + 1)
    assert len(entries) == 30
    # an entry of the directory: where its stream begins, and its size
    largest = max(entries, key=lambda entry: struct.unpack_from("<I", data, entry + 120)[0])
    for entry in entries:
        data[entry + 116 : entry + 124] = data[largest + 116 : largest + 124]
    return bytes(data)


def test_a_mail_whose_attachments_are_many_times_itself_is_refused_and_named(tmp_path):
    path = tmp_path / "mail.msg"
    path.write_bytes(shared_bytes())
    assert [file.name for file in list_folder(tmp_path)] == ["mail.msg"]
    with pytest.raises(DocumentError, match=r"mail.msg: its attachments have 15\d+ bytes, but the mail only"):
        run_in_worker(read_document, path)


def test_a_mail_whose_head_is_nested_without_end_does_not_stop_the_list(tmp_path):
    (tmp_path / "a.eml").write_bytes(b"From: " + b"(" * 100_000 + b"\nSubject: x\n\nRent.")
    (tmp_path / "b.txt").write_text("The rent is due.")
    assert [file.name for file in list_folder(tmp_path)] == ["a.eml", "b.txt"]
