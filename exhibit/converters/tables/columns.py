"""Finds the column for each role, such as `question`: by the user's choice, else by the column's name or cells."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from tqdm import tqdm

from exhibit.converters import Tally
from exhibit.converters.tables.cells import list_cell_values, read_cell_words, read_number, read_refusal
from exhibit.converters.tables.documents import Shelf, is_url
from exhibit.converters.tables.records import Record, columns_of
from exhibit.evidence.fields import HELPS, choose_name, flatten_object
from exhibit.evidence.fold import fold
from exhibit.law.provisions import read_provisions
from exhibit.schemas.errors import SourceError

Columns = dict[str, str | None]
ROLES = HELPS

_GOLD = ("answer", "text", "provision", "document", "must-contain", "must-not-contain")
MAX_FLAGS = 3  # most flags that an error proposes
MAX_CELLS = 20  # most cells of a column that are searched in the documents
MIN_SHARE = 0.5  # least share of a column's cells that fit a role
MIN_SHARE_OF_OTHER = 0.9  # the same for a column whose name fits another role: some answers are file names
MIN_PASSAGE_CHARS = 20  # of a folded text: a shorter text occurs in any contract
MAX_PROVISION_CHARS = 80  # a longer cell is a sentence that cites a provision


def assign_columns(
    table: Path, records: Sequence[Record], named: Mapping[str, str | None], shelf: Shelf, tally: Tally
) -> Columns:
    """Return the column of each role, and print it with the reason; raise if the table has no questions or no gold."""
    seen = columns_of(records)
    by_user = [role for role, name in named.items() if name is not None]
    columns = _correct_columns(_choose_columns(table, seen, named), by_user, records, shelf)
    _show_columns(table, seen, columns, by_user, tally)
    return columns


def _choose_columns(table: Path, seen: Sequence[str], named: Mapping[str, str | None]) -> Columns:
    """Return the column of each role: the user's choice, else the first column with a usual name for the role."""
    chosen: Columns = {role: name or None for role, name in named.items() if name is not None}
    for role, name in chosen.items():
        if name and split_path(name, seen) is None:
            raise SourceError(f"{table}: no column {name!r} for --{role}{list_columns(seen)}")
    for role in ROLES:
        if role not in chosen:
            chosen[role] = choose_name((name for name in seen if name not in chosen.values()), role)
    return chosen


def split_path(path: str, seen: Iterable[str]) -> tuple[str, str] | None:
    """Return the column that begins a dotted path, such as `evidence.words`, and the rest; None if there is none."""
    if path in seen:
        return path, ""
    column = max((name for name in seen if path.startswith(f"{name}.")), key=len, default=None)
    return (column, path[len(column) + 1 :]) if column is not None else None


def list_columns(columns: Sequence[str]) -> str:
    """Return a table's column names for an error message: " (its columns: id, question)"."""
    return f" (its columns: {', '.join(columns) or 'none'})"


def _show_columns(table: Path, seen: Sequence[str], chosen: Columns, by_user: Collection[str], tally: Tally) -> None:
    by_name, shown = _choose_columns(table, seen, {}), list[str]()
    for role, column in ((role, chosen[role]) for role in ROLES if chosen[role] is not None):
        reason = "" if role in by_user else " (by its name)" if column == by_name[role] else " (by its cells)"
        shown.append(f"{role} = {column}{reason}")
        if reason:
            tally.note("column guessed from its name or its cells", f"{role} = {column}")
    used = {split[0] for path in chosen.values() if path and (split := split_path(path, seen))}
    unread = [name for name in seen if name not in used]
    kept = f"; kept as labels: {', '.join(unread)}" if unread else ""
    tqdm.write(f"columns: {', '.join(shown) or 'none is known'}{kept}", file=sys.stderr)
    problem = ""
    roles: tuple[str, ...] = ("question",)
    if chosen["question"] is None:
        problem = "which column is the question?"
    elif not any(chosen[role] for role in (*_GOLD, "impossible", "answerable")):
        problem, roles = "no column of answers, passages, provisions or documents", ("answer", "text", "provision")
    if problem:
        raise SourceError(f"{table}: {problem}{list_columns(seen)}; name it: {_suggest_flags(roles, unread)}")


def _suggest_flags(roles: Sequence[str], free: Sequence[str]) -> str:
    """Return up to three flags to try, such as `--answer reply`."""
    names = [quote(name) for name in free[:MAX_FLAGS]] or ["COLUMN"]
    return ", or ".join(f"--{roles[min(at, len(roles) - 1)]} {name}" for at, name in enumerate(names))


# ---------------------------------------------------------------- by the cells


def _correct_columns(columns: Columns, named: Collection[str], records: Sequence[Record], shelf: Shelf) -> Columns:
    """Return the column of each role, corrected by the content of its cells unless the user named it.

    Whatever its name, a column of file names of the folder is the document, a column of texts in those files is the
    passage, and a column of provisions is the provision.
    """
    columns = _check_cells(dict(columns), named, records)
    if shelf.folder is not None and "document" not in named:
        columns = _assign_by_names(columns, records, shelf)
    if "provision" not in named and columns["provision"] is None:
        columns = _assign_by_provisions(columns, named, records, shelf)
    columns = _assign_by_nesting(columns, named, records)
    document = columns["document"]
    if shelf.folder is not None and columns["text"] is None and "text" not in named and document:
        columns["text"] = _choose_free(columns, records, lambda name: _measure_quotes(records, name, document, shelf))
    return columns


def _check_cells(columns: Columns, named: Collection[str], records: Sequence[Record]) -> Columns:
    """Remove a numeric role from a column with other cells; give a column of verdicts the role `impossible`."""

    def holds_only(column: str, parse: Callable[[Any], int | None]) -> bool:
        cells = [cell for record in records for cell in list_cell_values(record.cells.get(column))]
        return bool(cells) and all(parse(cell) is not None for cell in cells)

    for role in ("page", "grade"):
        column = columns[role]
        if column is not None and role not in named and not holds_only(column, read_number):
            columns[role] = None
    verdict = choose_name((name for name in columns_of(records) if name not in columns.values()), "verdict")
    decided = columns["impossible"] or columns["answerable"] or "impossible" in named
    if verdict and not decided and holds_only(verdict, read_refusal):
        columns["impossible"] = verdict
    return columns


def _assign_by_names(columns: Columns, records: Sequence[Record], shelf: Shelf) -> Columns:
    """Choose as `document` the column with the largest share of file names of the folder."""
    guessed = columns["document"]
    others = {name for role, name in columns.items() if role not in ("document", "provision")}
    shares = {name: _measure_naming(records, name, shelf) for name in columns_of(records)}
    likely = [name for name in shares if shares[name] >= (MIN_SHARE_OF_OTHER if name in others else MIN_SHARE)]
    best = max(likely, key=lambda name: shares[name], default=None)
    if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
        return {role: None if name == best else name for role, name in columns.items()} | {"document": best}
    return columns


def _assign_by_provisions(columns: Columns, named: Collection[str], records: Sequence[Record], shelf: Shelf) -> Columns:
    """Choose as `provision` an unassigned column of provisions, else a document column without file names."""
    best = _choose_free(columns, records, lambda name: _measure_provisions(records, name))
    document = columns["document"]
    if best or not document or "document" in named or _measure_naming(records, document, shelf):
        return columns | {"provision": best}
    cited = _measure_provisions(records, document) >= MIN_SHARE
    return columns | ({"document": None, "provision": document} if cited else {})


def _assign_by_nesting(columns: Columns, named: Collection[str], records: Sequence[Record]) -> Columns:
    """Assign a nested field to a role without a column: `evidence.text` to `text`."""
    nested = {
        f"{column}.{field}": column
        for record in records
        for column, cell in record.cells.items()
        for value in (list_cell_values(cell) if isinstance(cell, list | dict | str) else ())
        if isinstance(value, dict)
        for field in flatten_object(value)
    }
    for role in ("text", "provision", "document"):
        if role not in named and columns[role] is None and (role == "text" or not columns["text"]):
            taken = {path.split(".")[0] for path in columns.values() if path} if role == "text" else set()
            columns[role] = choose_name((path for path, column in nested.items() if column not in taken), role)
    return columns


def _choose_free(columns: Columns, records: Sequence[Record], measure: Callable[[str], float]) -> str | None:
    """Return the unassigned column with the largest share of fitting cells, if at least half of its cells fit."""
    shares = {name: measure(name) for name in columns_of(records) if name not in columns.values()}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= MIN_SHARE else None


def _list_cells(records: Sequence[Record], column: str) -> list[tuple[Record, str]]:
    cells = (
        (record, read_cell_words(cell))
        for record in records
        for cell in list_cell_values(record.cells.get(column))
        if not isinstance(cell, dict)
    )
    return [(record, cell) for record, cell in cells if not is_url(cell)]


def _compute_share(fits: Sequence[object]) -> float:
    return sum(map(bool, fits)) / len(fits) if fits else 0.0


def _measure_naming(records: Sequence[Record], column: str, shelf: Shelf) -> float:
    """Return the share of a column's cells that name a file of the folder."""
    return _compute_share([shelf.find_named(cell) for _, cell in _list_cells(records, column)])


def _measure_provisions(records: Sequence[Record], column: str) -> float:
    """Return the share of a column's cells that are short and name a provision."""
    cells = [cell for _, cell in _list_cells(records, column)]
    return _compute_share([len(cell) < MAX_PROVISION_CHARS and read_provisions(cell, bare=False) for cell in cells])


def _measure_quotes(records: Sequence[Record], column: str, document: str, shelf: Shelf) -> float:
    """Return the share of a column's longer cells that occur in the document of their row."""
    folded = [(record, fold(cell, loose=True)) for record, cell in _list_cells(records, column)]
    fits = []
    for record, cell in [(record, cell) for record, cell in folded if len(cell) >= MIN_PASSAGE_CHARS][:MAX_CELLS]:
        names = (shelf.names.find(read_cell_words(name)) for name in list_cell_values(record.cells.get(document)))
        fits.append(any(cell in shelf.read_folded(name) for name in names if name))
    return _compute_share(fits)
