"""Finds the column of a table for each role, such as `question`: the user names it, else its name or its cells do."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from tqdm import tqdm

from exhibit.converters.core.benchmark import Tally
from exhibit.converters.tables.cells import list_cell_values, read_number, read_refusal
from exhibit.converters.tables.records import Record, columns_of
from exhibit.evidence.fields import HELPS, choose_name, flatten_object
from exhibit.schemas.errors import SourceError

Columns = dict[str, str | None]
ROLES = HELPS

_GOLD = ("answer", "text", "provision", "document", "must-contain", "must-not-contain")
MAX_FLAGS = 3  # that an error proposes


def choose_columns(table: Path, seen: Sequence[str], named: Mapping[str, str | None]) -> Columns:
    """Return the column of each role: the one that the user named, else the first with a usual name for the role."""
    chosen: Columns = {role: name or None for role, name in named.items() if name is not None}
    for role, name in chosen.items():
        if name and split_path(name, seen) is None:
            raise SourceError(f"{table}: no column {name!r} for --{role}{list_columns(seen)}")
    for role in ROLES:
        if role not in chosen:
            chosen[role] = choose_name((name for name in seen if name not in chosen.values()), role)
    return chosen


def split_path(path: str, seen: Iterable[str]) -> tuple[str, str] | None:
    """Return the column at the start of a dotted path, such as `evidence.words`, and the rest; None if none is."""
    if path in seen:
        return path, ""
    column = max((name for name in seen if path.startswith(f"{name}.")), key=len, default=None)
    return (column, path[len(column) + 1 :]) if column is not None else None


def list_columns(columns: Sequence[str]) -> str:
    """Return a table's column names for an error message: " (its columns: id, question)"."""
    return f" (its columns: {', '.join(columns) or 'none'})"


def show_columns(
    table: Path, seen: Sequence[str], chosen: Columns, named: Mapping[str, str | None], tally: Tally
) -> None:
    """Print the role of each column and the reason for it; raise if the table has no questions or no gold."""
    by_name = choose_columns(table, seen, {})
    shown = []
    for role, column in ((role, chosen[role]) for role in ROLES):
        if column is not None and named.get(role) is None:
            shown.append(f"{role} = {column} ({'by its name' if column == by_name[role] else 'by its cells'})")
            tally.note("column guessed from its name or its cells", f"{role} = {column}")
        elif column is not None:
            shown.append(f"{role} = {column}")
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


def correct_columns(chosen: Columns, named: Collection[str], records: Sequence[Record]) -> Columns:
    """Return the column of each role, corrected by the content of the cells unless the user named the column.

    A column whose cells do not fit its role loses it, a column of verdicts is `impossible`, and a role without a
    column gets a nested field: `text` gets `evidence.text`.
    """
    columns = dict(chosen)

    def holds_only(column: str, parse: Callable[[Any], int | None]) -> bool:
        cells = [cell for record in records for cell in list_cell_values(record.cells.get(column))]
        return bool(cells) and all(parse(cell) is not None for cell in cells)

    for role in ("page", "start", "end", "grade"):
        column = columns[role]
        if column is not None and role not in named and not holds_only(column, read_number):
            columns[role] = None
    verdict = choose_name((name for name in columns_of(records) if name not in columns.values()), "verdict")
    decided = columns["impossible"] or columns["answerable"] or "impossible" in named
    if verdict and not decided and holds_only(verdict, read_refusal):
        columns["impossible"] = verdict
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
