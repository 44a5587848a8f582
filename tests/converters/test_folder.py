"""A folder with files of every kind: each file and each row is converted, or left out for one correct reason."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from exhibit.evidence import Span, read_document
from exhibit.evidence.fold import fold
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.readers.pdf import find_boxes
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.validate import validate
from tests.evidence import files
from tests.press import SharedPress

SCANS = {".png": "PNG", ".tiff": "TIFF"}
HEADS = {".doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".wpd": b"\xffWPC\x10\0\0\0"}
EVERY = {*files.GOOD, *files.BROKEN, *HEADS, *SCANS}
FEW = {".pdf", ".csv", ".docx", ".doc", *SCANS}
"""One for each way in which a file is read: as it is, as text, packed, by a program, by OCR."""
OCR = "The tenant of the scan shall keep the premises in repair."


def sentence(ending: str) -> str:
    """Return the sentence in the valid file of this kind."""
    return OCR if ending in SCANS else f"The tenant of {ending[1:]} shall keep the premises in repair."


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: set[str]) -> None:
    """Replace LibreOffice by a stub command and Tesseract by a stub function, both with known results."""
    command = files.stand_in_office(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)  # found by every process
    monkeypatch.setattr(SharedPress, "_in_spite", not kinds & {*HEADS})  # LibreOffice is started by who prints
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda _: "")
    line = TextLine(120, 200, 900, 240, OCR, 0.93)
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda _: lambda _: [line])


@pytest.fixture
def folder(tmp_path: Path, kinds: set[str]) -> Path:
    """A folder with a valid and a broken file of each kind, a mail with attachments, and unsupported files.

    Two of its files have no question.
    """
    documents = tmp_path / "documents"
    files.write_all(documents, sentence, kinds)
    for ending, head in HEADS.items():
        if ending not in kinds:
            continue
        (documents / f"good{ending[1:]}{ending}").write_bytes(head + files.docx(files.paragraph(sentence(ending))))
        (documents / f"broken{ending[1:]}{ending}").write_bytes(b"nothing of the kind")
    for ending, kind in SCANS.items():
        (documents / f"good{ending[1:]}{ending}").write_bytes(files.scan(OCR, kind=kind))
    attached = {"annex.docx": files.docx(files.paragraph("The annex is part of the lease.")), "film.mp4": b"ftyp"}
    (documents / "covering.eml").write_bytes(files.eml("See the annex.", attachments=attached))
    (documents / "archive.zip").write_bytes(files.pack({"a": "b"}))
    (documents / "Makefile").write_bytes(b"all:\0\n")
    (documents / "spare.txt").write_bytes(b"Nobody asks about this.")
    return documents


def write_questions(path: Path, documents: Path) -> int:
    """Write a CSV table with a question on each supported file, encoded as cp1252; return the number of rows."""
    rows = [
        (f"Was sagt {name} – über Reparaturen?", "Keep it in repair.", name, sentence(Path(name).suffix))
        for name in sorted(file.name for file in documents.iterdir() if file.name != "spare.txt")
        if not name.startswith("covering")
    ]
    rows.append(("What is the annex?", "Part of the lease.", "annex.docx", "The annex is part of the lease."))
    rows.append(("What is nowhere?", "Nothing.", "nowhere.docx", "Nothing."))
    rows.append(("", "No question.", "spare.txt", "x"))
    with path.open("w", encoding="cp1252", newline="") as out:
        csv.writer(out, delimiter=";").writerows([("question", "answer", "document", "text"), *rows])
    return len(rows)


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(EVERY, marks=pytest.mark.slow, id="every kind"),
        pytest.param(FEW, marks=pytest.mark.slow, id="few kinds"),
        pytest.param(FEW - {".doc"}, id="kinds without a program"),
    ],
)
def test_every_file_and_every_row_ends_in_one_line(convert, tmp_path, folder, programs, kinds):
    count = write_questions(tmp_path / "questions.csv", folder)
    flags = [
        "--ocr",
        "--ocr-engine",
        "tesseract",
        "--keep-originals",
        "--engine",
        "serial",
        "--only-asked",
    ]  # what is patched is here
    bundle = convert("table", "--source", tmp_path / "questions.csv", "--documents", folder, *flags)
    assert validate(bundle) == []
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    good = kinds & {*files.GOOD, *HEADS, *SCANS}
    assert len(good) == {len(EVERY): 22, len(FEW): 6}.get(len(kinds), 5)

    # every quote of the good ones is located, on its page
    rows = {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}
    gold = [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]
    assert {line["filename"].removesuffix(".pdf") for line in gold} == {
        *(f"good{ending[1:]}{ending}".removesuffix(".pdf") for ending in good), "covering.eml - annex.docx"
    }  # fmt: skip
    for line in gold:
        document = read_document(bundle / "corpus" / line["filename"])
        (span,) = line["spans"]
        assert fold(document.text[slice(*span)]) == fold(rows[line["id"]]["contexts"][0]["text"])
        assert line["pages"] and find_boxes(document, Span(*span))

    # the counts add up, by the files that are there and by the names in the lines
    listed = [name for names in info["left_out"].values() for name in names]
    given = sum(1 for _ in folder.iterdir()) + 2
    counted = info["account"]["files"]
    assert counted["given"] == given == counted["kept"] + sum(counted["left_out"].values())
    assert counted["kept"] == len(list((bundle / "corpus").iterdir())) == len(info["documents"]) == len(good) + 1
    for path in folder.iterdir():
        named = [
            line for line in listed if line.startswith((f"{path.name}:", f"{path.name}.pdf:")) or line == path.name
        ]
        kept = any(entry["filename"] in (path.name, f"{path.name}.pdf") for entry in info["documents"])
        assert len(named) + kept == 1, (path.name, named)
    rows_counted = info["account"]["rows"]
    assert rows_counted["given"] == count == rows_counted["kept"] + sum(rows_counted["left_out"].values())
    assert rows_counted["kept"] == len(rows) == len(good) + 1
    lines = [line for line in listed if line.startswith("row ")]
    assert len(lines) == len({line.partition(":")[0] for line in lines}) == count - len(rows)

    # with their true reasons
    reasons = info["left_out"]
    assert "archive.zip: .zip" in reasons["no reader for files of this kind"]
    assert "covering.eml/film.mp4: .mp4" in reasons["no reader for files of this kind"]
    assert any(name.startswith("brokendocx.docx.pdf: damaged") for name in reasons["document cannot be read"])
    assert f"row {count}: nowhere.docx" in reasons["document is not in the folder"]
    assert reasons["the row has no question"] == [f"row {count + 1}"], "as Excel counts"
    assert set(reasons["document that no question is about (--only-asked)"]) == {
        "spare.txt",
        "covering.eml",
    }
    assert info["noted"]["table is not UTF-8"] == ["questions.csv: read as cp1252"]
    assert "goodcsv.csv.pdf: read as utf-16, for it is not UTF-8" in info["noted"]["remarks on documents"]

    # OCR says how sure it is; originals are kept beside the prints
    entries = {entry["filename"]: entry for entry in info["documents"]}
    assert entries["goodpng.png.pdf"]["ocr"] == entries["goodtiff.tiff.pdf"]["ocr"] == {"1": 0.93}
    assert (bundle / "originals" / "gooddocx.docx").read_bytes() == (folder / "gooddocx.docx").read_bytes()
    assert (bundle / "originals" / "covering.eml - annex.docx").is_file()
    assert not (bundle / "originals" / "goodpdf.pdf").exists()


def test_without_ocr_a_scan_is_named_and_its_question_is_counted(convert, tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "scan.pdf").write_bytes(files.scan(OCR, kind="PDF"))
    (documents / "lease.pdf").write_bytes(files.pdf("The tenant pays."))
    (documents / "blank.txt").write_text(" \n", encoding="utf-8")  # it is printed, and then has no words
    table = [{"question": "Who?", "document": "scan.pdf", "text": OCR}]
    table.append({"question": "Who pays?", "document": "lease.pdf", "text": "The tenant pays."})
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, table)), encoding="utf-8")
    bundle = convert("table", "--source", tmp_path / "t.jsonl", "--documents", documents)
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert info["left_out"] == {
        "document cannot be read": [
            "scan.pdf: no text in it, only pictures; add --ocr to have it read",
            "blank.txt.pdf: no words in it",
        ],
        "question about a document that cannot be read": ["line 1: scan.pdf"],
    }
    assert info["account"]["rows"]["kept"] == info["account"]["files"]["kept"] == 1
    assert [path.name for path in (bundle / "corpus").iterdir()] == ["lease.pdf"], "nothing is left of the others"
