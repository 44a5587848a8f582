"""Makes a corpus of any size: documents repeated under new names, each copy with small changes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from bench._table import ROOT
from exhibit.evidence import is_readable
from exhibit.schemas.errors import SourceError

CONTRACTS = ROOT / "samples" / "cuad" / "CUAD_v1"
TEXTS = CONTRACTS / "full_contract_txt"
"""The documents that are repeated by default: six contracts of some 10,000 characters."""

_SENTENCE = re.compile(r"(.{240,}?[.;,:])(?=\s)", re.DOTALL)
"""Matches text shorter than a chunk: one mark after each match makes every chunk of a copy different."""
_GOLD = re.compile(r"[A-Z][^.;]{60,300}[.;]")
_PER_FOLDER = 1000
_QUESTIONS = 2
"""The number of questions about each document of a repeated benchmark."""


def documents_of(folder: Path | None) -> list[Path]:
    """Return the documents that are copied until a corpus is large enough.

    They are the files of the folder or, without a folder, the text files of the sample contracts.
    """
    files = files_of(folder or TEXTS)
    if not files:
        raise SourceError(f"{folder}: no readable document; give another folder")
    return files


def files_of(folder: Path) -> list[Path]:
    """Return the documents below a folder, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_readable(path))


def change_text(text: str, number: int) -> str:
    """Return a text with the number of its copy inserted about every 240 characters: ` (No. 3)`."""
    return _SENTENCE.sub(rf"\1 (No. {number})", text)


def repeat(documents: Sequence[Path], count: int, folder: Path) -> list[Path]:
    """Write `count` documents into a folder, as copies of the given ones under new names; return their paths.

    The copies differ by a number. In a text it is inserted every few hundred characters; in a PDF it is in a
    comment at the end of the file.
    """
    written = []
    for position in range(count):
        turn, which = divmod(position, len(documents))
        source = documents[which]
        path = folder / f"{position // _PER_FOLDER:04}" / f"{source.stem}-{turn:05}{source.suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix.lower() == ".txt":
            path.write_text(change_text(source.read_text(encoding="utf-8"), turn), encoding="utf-8")
        else:
            path.write_bytes(source.read_bytes() + f"\n%% {turn}\n".encode())
        written.append(path)
    return written


def repeat_benchmark(count: int, folder: Path) -> Path:
    """Write a benchmark in LegalBench-RAG's format about `count` contracts; return its folder."""
    paths = repeat(documents_of(None), count, folder / "corpus" / "cuad")
    tests = []
    for number, path in enumerate(paths):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(folder / "corpus").as_posix()
        for match in list(_GOLD.finditer(text))[:_QUESTIONS]:
            snippet = {"file_path": name, "span": list(match.span()), "answer": match[0]}
            tests.append({"query": f"Consider contract {number}; what of {match[0][:40]!r}?", "snippets": [snippet]})
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks" / "cuad.json").write_text(json.dumps({"tests": tests}), encoding="utf-8")
    return folder


def repeat_contracts(count: int, folder: Path) -> Path:
    """Write a dataset of `count` PDFs in the layout of CUAD, made of copies of a few contracts; return `folder`.

    Each copy has a name of its own, and its PDF file differs in its bytes from the other copies.
    """
    with (CONTRACTS / "master_clauses.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    pdfs = {_make_key(path.stem): path for path in files_of(CONTRACTS / "full_contract_pdf")}
    texts = {_make_key(path.stem): path for path in files_of(TEXTS)}
    kept = [row for row in rows if _make_key(row[0]) in pdfs.keys() & texts.keys()]
    for name in ("full_contract_pdf", "full_contract_txt"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with (folder / "master_clauses.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for position in range(count):
            turn, which = divmod(position, len(kept))
            contract = _make_key(kept[which][0])
            name = f"{contract}_{turn:05}_AGREEMENT"
            writer.writerow([f"{name}.pdf", *kept[which][1:]])
            comment = f"\n%% {turn}\n".encode()
            (folder / "full_contract_pdf" / f"{name}.pdf").write_bytes(pdfs[contract].read_bytes() + comment)
            (folder / "full_contract_txt" / f"{name}.txt").write_bytes(texts[contract].read_bytes())
    return folder


def _make_key(name: str) -> str:
    """Return the first letters of a name, by which a contract's PDF, text file and CSV row are matched."""
    return re.sub(r"[^A-Z]", "", name.upper())[:12]
