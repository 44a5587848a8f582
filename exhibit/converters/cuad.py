"""CUAD v1: 510 commercial contracts, each with lawyers' quotes for 41 kinds of clause.

python -m converters.cuad --out datasets_out/cuad
"""

import ast
import hashlib
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.raw.source import find_one, key_by_name, read_csv
from exhibit.converters.raw.titles import ask_titles, choose_unique_titles, join_names, pair_files
from exhibit.converters.steps.cli import main
from exhibit.evidence.read import read_within
from exhibit.law.casing import tidy
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

QUESTIONS = INFO.asked
"""Our wording of the 41 clauses, in the order of the source's columns: an id is row x 41 + position in this list."""

_AMBIGUOUS = re.compile(r"agreement[234](?!\d)|part ?[12](?!\d)", re.IGNORECASE)
_AMENDMENT = re.compile(r"amend", re.IGNORECASE)
_ALIAS = re.compile(r"\s{0,50}[(\[][^()\[\]]*[)\]]\s*")
_COLLECTIVE = re.compile(r"\b(each|collectively|individually|together|hereinafter)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Contract:
    """A row of master_clauses.csv and its PDF."""

    row: int
    cells: dict[str, str]
    path: Path


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read master_clauses.csv and pair its rows with the PDFs."""
    table = find_one(source, INFO, "master_clauses.csv")
    data = table.read_bytes()
    records = read_table(table, data)
    contracts = _pair(records, _list_pdfs(table.parent), tally)
    # make titles unique over the whole source, so that neither a filter nor a limit changes a title
    titles = choose_unique_titles({c.path.name: list(_list_titles(c)) for c in contracts})
    if not options.keep_ambiguous:
        contracts = [c for c in contracts if not _leave_ambiguous(c, titles[c.path.name], tally)]
    contracts = contracts[: options.limit]
    if options.titles == "llm":
        asked = ask_titles({c.path.name: partial(_text_of, c.path) for c in contracts})
        titles = choose_unique_titles({name: [title, f"{title} ({Path(name).stem})"] for name, title in asked.items()})
    return Benchmark(
        documents=[RawDocument(c.path.name, titles[c.path.name], c.path) for c in contracts],
        rows=[row for c in contracts for row in _make_rows(c, titles[c.path.name], tally)],
        sha256={table.name: hashlib.sha256(data).hexdigest()},
    )


# ---------------------------------------------------------------- the table


def read_table(path: Path, data: bytes) -> list[dict[str, str]]:
    """Return the rows of master_clauses.csv, each as a dictionary by column name."""
    wanted = ["Filename", *QUESTIONS, *(f"{clause}-Answer" for clause in QUESTIONS)]
    # the release has a superfluous space in one header: "Notice Period To Terminate Renewal- Answer"
    return read_csv(path, data, wanted, INFO, header=lambda name: name.strip().replace("- Answer", "-Answer"))


# ---------------------------------------------------------------- rows and their PDFs


def _list_pdfs(root: Path) -> list[Path]:
    folder = root / "full_contract_pdf"
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() == ".pdf" and p.is_file())
    if not paths:
        raise SourceError(f"{folder}: no PDF in it; expected {INFO.expects}, from {INFO.url}")
    return list(key_by_name(paths).values())


def _pair(records: list[dict[str, str]], pdfs: list[Path], tally: Tally) -> list[_Contract]:
    """Pair each row with its PDF; the two names may differ in case, spaces, quotes, `&`, accents and length."""
    names = [record["Filename"] for record in records]
    pairs = pair_files(names, pdfs)
    for name, similar in pairs.similar:
        tally.note("PDF paired with its row by a similar name", f"{name} -> {similar}")
    for row in pairs.doubled:
        tally.fault("second row for a PDF that another row has", names[row])
    for row in pairs.missing:
        tally.fault("no PDF for the contract", names[row] or f"row {row}")
    return [_Contract(row, records[row], pairs.files[row]) for row in sorted(pairs.files)]


def _leave_ambiguous(contract: _Contract, title: str, tally: Tally) -> bool:
    name = contract.path.stem
    match = _AMBIGUOUS.search(name)
    if not match or (match.group().lower().startswith("agreement") and _AMENDMENT.search(title)):
        return False
    tally.leave_out("ambiguous contract: one of several versions or parts", contract.path.name)
    return True


# ---------------------------------------------------------------- titles


def _text_of(path: Path) -> str:
    return read_within(path).text


def _list_titles(contract: _Contract) -> Iterator[str]:
    """Yield candidate titles of a contract, from the shortest to the most precise."""
    cells = contract.cells
    name = tidy(cells["Document Name-Answer"]) or tidy(_find_first_quote(cells["Document Name"])) or contract.path.stem
    parties = join_names(split_party_names(cells["Parties-Answer"]))
    title = f"{name} between {parties}" if " and " in parties else f"{name} of {parties}" if parties else name
    yield title
    date = cells["Agreement Date-Answer"].strip() or cells["Effective Date-Answer"].strip()
    if date and "[" not in date:
        title += f" dated {date}"
        yield title
    yield f"{title} ({contract.path.stem})"


def split_party_names(answer: str) -> list[str]:
    """Return the names in a cell like `Acme Inc. ("Buyer"); Bolt Ltd. ("Seller")("Party", together "Parties")`."""
    names: list[str] = []
    for part in answer.split(";"):
        if _COLLECTIVE.search(_ALIAS.split(part)[0]) or re.match(r"\s*\(", part):
            continue
        # `A and B (each a "Party")` only repeats the other names
        if _COLLECTIVE.search(part) and " and " in _ALIAS.split(part)[0] and names:
            continue
        name = tidy(_ALIAS.sub(" ", part))
        if name:
            names.append(name)
    return list(dict.fromkeys(names))


def _find_first_quote(cell: str) -> str:
    try:
        return next(iter(quotes_of(cell)), "")
    except ValueError:
        return ""


# ---------------------------------------------------------------- questions


def _make_rows(contract: _Contract, title: str, tally: Tally) -> Iterator[RawRow]:
    for column, (clause, question) in enumerate(QUESTIONS.items()):
        place = f"{contract.path.name}: {clause}"
        try:
            quotes = quotes_of(contract.cells[clause])
        except ValueError as error:
            tally.fault(f"cell is not a list of quotes ({error})", place)
            continue
        answer = contract.cells[f"{clause}-Answer"].strip()
        if not quotes and answer and answer != "No":
            tally.note("answer without a quote, so counted as impossible", f"{place}: {answer}")
        yield RawRow(
            id=contract.row * len(QUESTIONS) + column,
            question=f"Consider the {title}; {question}",
            answer=answer or "; ".join(quotes),
            quotes=tuple(Quote(contract.path.name, text) for text in quotes),
            filename=contract.path.name,
            is_impossible=not quotes,
            labels={"clause": clause, "contract": contract.path.stem, "answer": answer},
            place=place,
        )


def quotes_of(cell: str) -> list[str]:
    """Return the quotes of a cell, which contains a Python list as a string."""
    if not cell.strip():
        return []
    try:
        value = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("the text is not valid Python") from error
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("the value is not a list of strings")
    # skip empty quotes; the same quote twice is one passage
    return [text for text in dict.fromkeys(value) if text.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
