"""Compares how this project locates gold with simpler methods.

    python -m bench.locate [--source CUAD_v1] [--contracts 40]

The simpler methods are pypdf's text, one regular expression per quote, and unique verbatim matches only.
All run on the same contracts, so that the ratios hold on any machine.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pypdf import PdfReader

from bench._table import find_cuad_folder, print_table
from exhibit.converters.cuad import QUESTIONS, quotes_of, read_table
from exhibit.converters.raw.titles import pair_files
from exhibit.evidence import Document, locate, read_document
from exhibit.runtime.command import guarded


@dataclass(frozen=True)
class Contract:
    """A contract with the quotes of each of its clauses."""

    pdf: Path
    text: Path
    clauses: list[list[str]]

    @property
    def quotes(self) -> list[str]:
        """The quotes of all clauses, in one list."""
        return [quote for quotes in self.clauses for quote in quotes]


def load(root: Path, limit: int) -> list[Contract]:
    """Read the first contracts of a CUAD release."""
    table = root / "master_clauses.csv"
    records = read_table(table, table.read_bytes())
    names = [record["Filename"] for record in records]
    pdfs = pair_files(names, sorted(p for p in root.rglob("*") if p.suffix.lower() == ".pdf")).files
    texts = pair_files(names, sorted((root / "full_contract_txt").iterdir())).files
    return [
        Contract(pdfs[row], texts[row], [q for clause in QUESTIONS if (q := quotes_of(record[clause]))])
        for row, record in enumerate(records[:limit])
        if row in pdfs and row in texts
    ]


Result = TypeVar("Result")


def time_work(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a function, and the seconds that it takes."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def matches_expression(quote: str, text: str) -> bool:
    """Return whether a quote matches in a text, with any white space between its words."""
    return re.search(r"\s+".join(map(re.escape, quote.split())), text) is not None


def is_unique_verbatim(clause: list[str], text: str) -> bool:
    """Return whether every quote of a clause occurs in a text exactly once, verbatim.

    One of the simpler methods that are compared here keeps only the questions about such clauses.
    """
    return all(text.count(quote) == 1 for quote in clause)


def compare_extraction(contracts: list[Contract]) -> list[Document]:
    """Print how long this project and pypdf take to read the PDFs, and the share of quotes found in each text.

    Return the documents as this project reads them.
    """
    ours, our_time = time_work(lambda: [read_document(contract.pdf) for contract in contracts])
    theirs, their_time = time_work(
        lambda: ["\n".join(page.extract_text() for page in PdfReader(contract.pdf).pages) for contract in contracts]
    )
    pairs = list(zip(contracts, ours, theirs, strict=True))
    total = sum(len(contract.quotes) for contract in contracts)
    verbatim = sum(quote in text for contract, _, text in pairs for quote in contract.quotes)
    located = sum(bool(locate(quote, document)) for contract, document, _ in pairs for quote in contract.quotes)
    print_table(
        f"Reading {len(contracts)} PDFs, {total} quotes",
        ["", "seconds", "ratio", "quotes found in the PDF"],
        [
            ["pypdf, quotes verbatim", f"{their_time:.2f}", "1.0", f"{100 * verbatim / total:.1f}%"],
            [
                "ours, located",
                f"{our_time:.2f}",
                f"{their_time / our_time:.1f} x",
                f"{100 * located / total:.2f}%",
            ],
        ],
    )
    return ours


def compare_search(contracts: list[Contract], documents: list[Document]) -> None:
    """Compare `locate` with one regular expression per quote on the same text: print times and found quotes."""
    pairs = list(zip(contracts, documents, strict=True))
    total = sum(len(contract.quotes) for contract in contracts)
    fresh = [Document(d.filename, d.text, d.pages, d.path) for d in documents]  # copies without a cached folded text
    ours, our_time = time_work(
        lambda: sum(bool(locate(q, d)) for c, d in zip(contracts, fresh, strict=True) for q in c.quotes)
    )
    theirs, their_time = time_work(lambda: sum(matches_expression(q, d.text) for c, d in pairs for q in c.quotes))
    print_table(
        "Searching the extracted text",
        ["", "seconds", "ratio", "found", "not found"],
        [
            ["re per quote, first place only", f"{their_time:.2f}", "1.0", theirs, total - theirs],
            ["ours, every place", f"{our_time:.2f}", f"{their_time / our_time:.1f} x", ours, total - ours],
        ],
    )


def compare_rule(contracts: list[Contract], documents: list[Document]) -> None:
    """Print how many questions pass the simple rule, and how many this project locates.

    The simple rule keeps a question if every quote of it occurs in the text exactly once, verbatim. This
    project locates a question if it locates all its quotes in the PDF.
    """
    texts = [read_document(contract.text) for contract in contracts]
    questions = sum(len(contract.clauses) for contract in contracts)
    kept, rule_time = time_work(
        lambda: sum(is_unique_verbatim(q, d.text) for c, d in zip(contracts, texts, strict=True) for q in c.clauses)
    )
    ours, our_time = time_work(
        lambda: sum(
            all(locate(quote, d) for quote in clause)
            for c, d in zip(contracts, documents, strict=True)
            for clause in c.clauses
        )
    )
    print_table(
        f"Questions with an answer: {questions}",
        ["", "kept", "share", "ratio", "seconds"],
        [
            [
                "one verbatim place in the TXT, or dropped",
                kept,
                f"{100 * kept / questions:.1f}%",
                "1.0",
                f"{rule_time:.2f}",
            ],
            [
                "ours, in the PDF",
                ours,
                f"{100 * ours / questions:.1f}%",
                f"{ours / max(kept, 1):.2f} x",
                f"{our_time:.2f}",
            ],
        ],
    )


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Compare this project's location of quotes with simpler methods on CUAD's contracts; print three tables.

    Each table compares this project with one simpler method: reading the PDFs with pypdf, searching the quotes
    with regular expressions, and keeping only questions whose quotes all occur exactly once, verbatim.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.locate", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--source", type=Path, metavar="DIR", help="a CUAD_v1 folder (default: real data, else samples)"
    )
    parser.add_argument("--contracts", type=int, default=40, metavar="N", help="the number of contracts (default: 40)")
    options = parser.parse_args(argv)
    contracts = load(find_cuad_folder(options.source), options.contracts)
    documents = compare_extraction(contracts)
    compare_search(contracts, documents)
    compare_rule(contracts, documents)
    return 0


if __name__ == "__main__":
    sys.exit(main())
