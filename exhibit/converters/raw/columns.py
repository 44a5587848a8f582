"""What the columns of a table hold, named or guessed from the names they commonly have; and what their cells do."""

import ast
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from exhibit.converters.benchmark import Label, Tally
from exhibit.converters.raw.documents import Shelf, Texts, is_url
from exhibit.converters.raw.records import Record, columns_of
from exhibit.evidence.fold import fold
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import read_beside

_LARGEST = 2**63 - 1
"""Larger whole numbers are kept as text: no table has a column for them."""


_ROLES = read_beside(__file__)
ROLES: dict[str, str] = {role: entry["help"] for role, entry in _ROLES.items()}
GUESSES: dict[str, list[str]] = {role: entry["names"] for role, entry in _ROLES.items()}

Columns = dict[str, str | None]


def choose_columns(table: Path, seen: Sequence[str], named: Mapping[str, str | None]) -> Columns:
    """Return the column of each role: the one named, else the first with a common name."""
    chosen: Columns = {}
    for role, name in named.items():
        if name and name not in seen:
            raise SourceError(f"{table}: no column {name!r} for --{role}{listed(seen)}")
        if name is not None:
            chosen[role] = name or None
    for role in ROLES:
        if role not in chosen:
            free = {_key(name): name for name in reversed(seen) if name not in chosen.values()}
            chosen[role] = next((free[_key(name)] for name in GUESSES[role] if _key(name) in free), None)
    return chosen


def show_columns(
    table: Path, seen: Sequence[str], chosen: Columns, named: Mapping[str, str | None], tally: Tally
) -> None:
    """Show the role of each column; raise on a table without questions, or without answers and passages."""
    shown = []
    for role in ROLES:
        guessed = named.get(role) is None and chosen[role] is not None
        shown.append(f"{role} = {chosen[role] or 'none'}{' (guessed)' if guessed else ''}")
        if guessed:
            tally.note("column guessed from its name or its cells", f"{role} = {chosen[role]}")
    tqdm.write(f"columns: {', '.join(shown)}", file=sys.stderr)
    if chosen["question"] is None:
        raise SourceError(f"{table}: which column is the question?{listed(seen)}; name it with --question")
    if chosen["answer"] is None and chosen["text"] is None:
        raise SourceError(f"{table}: no column of answers or passages{listed(seen)}; name one: --answer or --text")


def listed(columns: Sequence[str]) -> str:
    """Return the columns that a table has, for an error message."""
    return f" (its columns: {', '.join(columns) or 'none'})"


def inside(value: Mapping[str, Any], role: str) -> str:
    """Return what an object in a cell (`{"filename": …, "text": …}`) says, under any of the common names."""
    keys = {_key(name): name for name in reversed(list(value))}
    return next((words(value[keys[_key(name)]]) for name in GUESSES[role] if _key(name) in keys), "")


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


# ---------------------------------------------------------------- cells


def values(cell: Any) -> list[Any]:
    """Return what a cell holds as a list: a list, a list written as text, or one value; nothing blank."""
    if isinstance(cell, str) and cell.strip().startswith("[") and cell.strip().endswith("]"):
        cell = _parsed(cell.strip())
    if isinstance(cell, dict) and isinstance(cell.get("text"), list):
        cell = cell["text"]  # SQuAD's answers: {"text": […], "answer_start": […]}
    items = cell if isinstance(cell, list | tuple) else [cell]
    return [item for item in items if words(item)]


def _parsed(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list):
            return value
    return text


def words(cell: Any) -> str:
    """Return a cell as text, without white space at its edges; missing values are empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # a column of integers with a gap comes as floats
    return str(cell).strip()


def label(cell: Any) -> Label:
    """Return a cell as a label of gold.jsonl, which holds no lists and no infinities."""
    if isinstance(cell, int) and abs(cell) > _LARGEST:
        return str(cell)
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return str(cell)


_LOOKED_AT = 20
"""Cells of a column that are looked for in the documents."""
_MOST = 0.5
"""Share of a column's cells that must be what the column is taken for."""
_NEARLY_ALL = 0.9
"""The same for a column that its heading says is something else: a few answers may be the names of files, too."""
_LONG = 20
"""Folded characters: fewer stand in any contract."""


def columns_by_cells(columns: Columns, named: Iterable[str], records: Sequence[Record], texts: Texts) -> Columns:
    """Return the columns, the document and the passage known by what their cells hold where nobody named them.

    A column whose cells name files of the folder is the document, whatever its heading; one whose cells stand in those
    files is the passage.
    """
    columns, shelf = dict(columns), texts.shelf
    free = columns_of(records)
    if shelf.folder is not None and "document" not in named:
        guessed = columns["document"]
        others = {name for role, name in columns.items() if role != "document"}
        shares = {name: _naming(records, name, shelf) for name in free}
        likely = [name for name in free if shares[name] >= (_NEARLY_ALL if name in others else _MOST)]
        best = max(likely, key=lambda name: shares[name], default=None)
        if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
            columns = {role: None if name == best else name for role, name in columns.items()} | {"document": best}
    document = columns["document"]
    if shelf.folder is not None and columns["text"] is None and "text" not in named and document:
        taken = set(columns.values())
        quoted = {name: _quotes(records, name, document, texts) for name in free if name not in taken}
        best = max(quoted, key=lambda name: quoted[name], default=None)
        if best and quoted[best] >= _MOST:
            columns["text"] = best
    return columns


def _cells(records: Sequence[Record], column: str) -> list[tuple[Record, str]]:
    cells = [(record, words(cell)) for record in records for cell in values(record.cells.get(column))]
    return [(record, cell) for record, cell in cells if not is_url(cell)]


def _naming(records: Sequence[Record], column: str, shelf: Shelf) -> float:
    """Return the share of a column's cells that name a file of the folder."""
    cells = _cells(records, column)
    return sum(shelf.names.find(cell) is not None for _, cell in cells) / len(cells) if cells else 0.0


def _quotes(records: Sequence[Record], column: str, document: str, texts: Texts) -> float:
    """Return the share of a column's cells that stand in the document of their row."""
    files = {file.name: file for file in texts.shelf.files}
    looked = [(record, fold(cell, loose=True)) for record, cell in _cells(records, column)]
    looked = [(record, cell) for record, cell in looked if len(cell) >= _LONG][:_LOOKED_AT]
    hits = 0
    for record, cell in looked:
        names = (texts.shelf.names.find(words(name)) for name in values(record.cells.get(document)))
        hits += any(cell in texts.of(files[name]) for name in names if name)
    return hits / len(looked) if looked else 0.0
