"""Hostile sources: tables that unpack above a limit are refused; special files and links are skipped and named."""

import contextlib
import os
import socket
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from exhibit.converters import Tally
from exhibit.converters.tables.records import read_records
from exhibit.engine import Limits, apply_limits
from exhibit.evidence.read import list_folder
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import LINK, NO_FILE, NOWHERE, list_left_out

pytestmark = pytest.mark.slow

SMALL = Limits(memory=256 << 20)


def write_parquet(path: Path) -> None:
    """Write two million equal rows in a few kilobytes."""
    rows = pyarrow.repeat("When is the rent due?", 2_000_000).dictionary_encode()
    parquet.write_table(pyarrow.table({"question": rows}), path, compression="zstd")


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
        # Arrow aborts if no thread can be started
        ("a.parquet", write_parquet, "(MiB of memory, the limit for a file of|ended with SIGABRT)"),
        pytest.param(
            "a.xlsx",
            write_far_cell,
            "(takes more processor time than the limit|MiB of memory, the limit for a file of)",
            marks=pytest.mark.slow,
        ),
        ("a.csv", write_wide, "20001 columns, but rows below lack 40000000 cells"),
    ],
)
def test_read_records_refuses_a_table_that_unpacks_above_the_limit(tmp_path, name, write, why):
    path = tmp_path / name
    write(path)
    assert path.stat().st_size < 300_000
    with apply_limits(SMALL), pytest.raises(SourceError, match=f"{name}: .*{why}"):
        read_records(path, path.read_bytes(), Tally())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_list_folder_and_index_report_skipped_special_files(tmp_path):
    """Reading a pipe would never end."""
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
        lines = [line.rpartition("documents/")[2] for line in report.set_aside]
        assert len(lines) == 5 and "pipe.pdf: a pipe, socket or device, not a file" in lines
