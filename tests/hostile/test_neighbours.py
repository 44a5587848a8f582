"""Variants of known attacks: endless lines and loops, duplicate archive members, hostile settings."""

from __future__ import annotations

import json
import unicodedata
import zipfile
from pathlib import Path

import pytest

from exhibit.converters import Tally
from exhibit.converters.raw.records import read_records
from exhibit.converters.raw.source import unpack
from exhibit.engine import Limits, open_engine
from exhibit.evaluation.bands import read_scale
from exhibit.evaluation.settings import read_config_file
from exhibit.evidence import read_document
from exhibit.evidence.read import list_folder
from exhibit.rag.config import Config
from exhibit.schemas.bundle import read_gold
from exhibit.schemas.errors import LimitError, SourceError, ToolkitError
from exhibit.storage.atomic import list_files, list_left_out
from tests.hostile.work import take_all

GOOD = json.dumps({"question": "When is the rent due?", "document": "a.txt"})
LONG = 3_000_000  # characters, of which nothing ends


def test_a_line_of_json_without_end_is_counted_and_the_others_are_read(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(GOOD + '\n{"question": "' + "x" * LONG + "\n" + "[" * LONG + "\n" + GOOD, encoding="ascii")
    tally = Tally()
    assert len(list(read_records(path, path.read_bytes(), tally))) == 2
    assert [len(names) for names in tally.left_out.values()] == [2]


@pytest.mark.parametrize(("cell", "length"), [('"' + "x" * LONG, LONG), ('"' + '""' * (LONG // 2), LONG // 2)])
def test_a_cell_without_end_is_one_cell_of_its_table(tmp_path, cell, length):
    path = tmp_path / "rows.csv"
    path.write_text(f"question,document\n{cell}", encoding="ascii")
    [record] = read_records(path, path.read_bytes(), Tally())
    assert len(str(record.cells["question"])) == length


def test_a_document_of_one_cell_without_end_is_set_aside_by_name(tmp_path):
    path = tmp_path / "cell.csv"
    path.write_text('a,b\n"' + "x" * LONG, encoding="ascii")
    [outcome] = open_engine("local", items=1).map(read_document, [path])
    assert str(outcome.error).startswith(str(path))


@pytest.mark.parametrize(
    "rtf", [rb"{\rtf1 " + b"{" * LONG, rb"{\rtf1 \bin99999999999 x}", rb"{\rtf1 \bin" + b"9" * 5000 + b" x}"]
)
def test_a_text_that_only_an_office_program_reads_is_set_aside_by_name(tmp_path, monkeypatch, rtf):
    """Its counts and nesting are not evaluated here; the office program gets the file, or the file is refused."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "bomb.doc"
    path.write_bytes(rtf)
    [outcome] = open_engine("local", items=1).map(read_document, [path])
    assert str(outcome.error).startswith(str(path)) and "LibreOffice" in str(outcome.error)


def test_folders_that_lead_into_themselves_are_walked_once(tmp_path):
    folder = tmp_path / "documents"
    (folder / "deeper").mkdir(parents=True)
    (folder / "lease.txt").write_text("The rent is due.", encoding="ascii")
    (folder / "deeper" / "again").symlink_to("..", target_is_directory=True)
    (folder / "one").symlink_to("other")
    (folder / "other").symlink_to("one")
    assert [path.name for path in list_files(folder)] == ["lease.txt"]
    assert [listed.name for listed in list_folder(folder)] == ["lease.txt"]
    assert {path.name for path, _ in list_left_out(folder)} >= {"one", "other"}


def test_memory_that_a_worker_is_refused_is_told_with_the_item_and_the_limit():
    outcomes = list(open_engine("local", jobs=1, limits=Limits(60, 64 << 20)).map(take_all, ["lease.pdf", "nda.pdf"]))
    for name, outcome in zip(["lease.pdf", "nda.pdf"], outcomes, strict=True):
        assert isinstance(outcome.error, LimitError)
        assert str(outcome.error) == f"{name}: needs more than 64 MiB of memory (--item-memory); left out"


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = \x01"])
def test_settings_made_to_hurt_are_one_error_that_names_their_file(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    for read in (lambda: read_config_file(path), lambda: read_scale(path), lambda: Config.preset(str(path))):
        with pytest.raises(ToolkitError, match=r"settings\.toml: "):
            read()


@pytest.mark.parametrize("data", [b"\xff\xfe", b'{"a": ' + b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_settings_in_json_likewise(tmp_path, data):
    path = tmp_path / "settings.json"
    path.write_bytes(data)
    with pytest.raises(ToolkitError, match=r"settings\.json: "):
        read_config_file(path)


ACCENTED = "Café.txt"


@pytest.mark.parametrize(
    "names",
    [
        ("a/Lease.txt", "a/LEASE.TXT"),
        ("lease.txt", "lease.txt"),
        (unicodedata.normalize("NFC", ACCENTED), unicodedata.normalize("NFD", ACCENTED)),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_names_of_an_archive_that_are_one_file_elsewhere_are_refused(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for name in names:
            file.writestr(name, name)
    with pytest.raises(SourceError, match="the same file name on many systems"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is unpacked before all is looked at"


def test_a_million_empty_lines_hold_no_gold(tmp_path: Path):
    line = '{"id": 1, "context": null, "filename": null, "pages": [], "spans": [], "alternatives": [], "how": "absent"}'
    path = tmp_path / "gold.jsonl"
    path.write_text("\n" * 1_000_000 + line + "\n" * 1_000_000, encoding="ascii")
    assert [gold.id for gold in read_gold(path)] == [1]
