"""Finds the column of a table for each role, such as `question` or `answer`.

The user names the column, or it is recognised by its name or its cells.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from tqdm import tqdm

from exhibit.converters.benchmark import Tally
from exhibit.converters.raw.cells import is_number, list_cell_values, read_cell_words, read_refusal
from exhibit.converters.raw.documents import Shelf, Texts, is_url
from exhibit.converters.raw.records import Record, columns_of
from exhibit.evidence.fields import HELPS, choose_name, flatten_object
from exhibit.evidence.fold import fold
from exhibit.law.provisions import read_provisions
from exhibit.schemas.errors import SourceError

ROLES = HELPS

Columns = dict[str, str | None]

_GOLD = ("answer", "text", "provision", "document", "must-contain", "must-not-contain")
"""Roles by which a reply can be judged: a table needs one of these, or questions that must be refused."""
_NUMERIC = ("page", "start", "end", "grade")
_NESTED = ("text", "provision", "document")
"""Roles that are searched in the objects of a list whose own name is unknown."""


def choose_columns(table: Path, seen: Sequence[str], named: Mapping[str, str | None]) -> Columns:
    """Return the column of each role: the one that the user named, else the first with a usual name for the role.

    A dotted path (`evidence.words`) names a field of the objects in a column.
    """
    chosen: Columns = {}
    for role, name in named.items():
        if name and split_path(name, seen) is None:
            raise SourceError(f"{table}: no column {name!r} for --{role}{list_columns(seen)}")
        if name is not None:
            chosen[role] = name or None
    for role in ROLES:
        if role not in chosen:
            chosen[role] = choose_name((name for name in seen if name not in chosen.values()), role)
    return chosen


def split_path(path: str, seen: Iterable[str]) -> tuple[str, str] | None:
    """Return the column at the start of a dotted path, and the rest of the path; None if there is no such column."""
    if path in seen:
        return path, ""
    fitting = [name for name in seen if path.startswith(f"{name}.")]
    column = max(fitting, key=len, default=None)
    return (column, path[len(column) + 1 :]) if column is not None else None


def list_nested_columns(records: Sequence[Record]) -> list[str]:
    """Return the dotted paths, such as `evidence.text`, of all fields of objects in the columns."""
    paths: dict[str, None] = {}
    for record in records:
        for column, cell in record.cells.items():
            for value in list_cell_values(cell) if isinstance(cell, list | dict | str) else ():
                if isinstance(value, dict):
                    paths |= dict.fromkeys(f"{column}.{field}" for field in flatten_object(value))
    return list(paths)


def show_columns(
    table: Path,
    seen: Sequence[str],
    chosen: Columns,
    named: Mapping[str, str | None],
    tally: Tally,
    records: Sequence[Record] = (),
) -> None:
    """Print the role of each column and the reason for it; raise if the table has no questions or no gold."""
    by_name = choose_columns(table, seen, {})
    shown = []
    for role in ROLES:
        if chosen.get(role) is None:
            continue
        guessed = named.get(role) is None
        why = "by its name" if chosen[role] == by_name[role] else "by its cells"
        shown.append(f"{role} = {chosen[role]}{f' ({why})' if guessed else ''}")
        if guessed:
            tally.note("column guessed from its name or its cells", f"{role} = {chosen[role]}")
    used = {split[0] for path in chosen.values() if path and (split := split_path(path, seen))}
    unread = [name for name in seen if name not in used]
    kept = f"; kept as labels: {', '.join(unread)}" if unread else ""
    tqdm.write(f"columns: {', '.join(shown) or 'none is known'}{kept}", file=sys.stderr)
    if chosen["question"] is None:
        hint = _suggest_flags(("question",), unread, records)
        raise SourceError(f"{table}: which column is the question?{list_columns(seen)}; {hint}")
    if not any(chosen.get(role) for role in (*_GOLD, "impossible", "answerable")):
        hint = _suggest_flags(("answer", "text", "provision"), unread, records)
        raise SourceError(
            f"{table}: no column of answers, passages, provisions or documents{list_columns(seen)}; {hint}"
        )


def _suggest_flags(roles: Sequence[str], free: Sequence[str], records: Sequence[Record]) -> str:
    """Return a hint for an error message: up to three flags to try, such as `--answer reply`."""
    lengths = {name: _compute_mean_length(records, name) for name in free}
    ranked = sorted(lengths, key=lambda name: -lengths[name])[:_FLAGS]
    if not ranked:
        return f"name it with {' or '.join(f'--{role} COLUMN' for role in roles)}"
    pairs = [(role, name) for name in ranked for role in roles]
    if len(ranked) == _FLAGS:
        pairs = [(roles[min(at, len(roles) - 1)], name) for at, name in enumerate(ranked)]
    return "name it: " + ", or ".join(f"--{role} {quote(name)}" for role, name in pairs[:_FLAGS])


_FLAGS = 3
"""Most flags that an error proposes."""


def _compute_mean_length(records: Sequence[Record], column: str) -> float:
    cells = [
        len(read_cell_words(cell))
        for record in records[:_LOOKED_AT]
        for cell in list_cell_values(record.cells.get(column))
    ]
    return sum(cells) / len(cells) if cells else 0.0


def list_columns(columns: Sequence[str]) -> str:
    """Return a table's column names as one text for an error message: " (its columns: id, question)"."""
    return f" (its columns: {', '.join(columns) or 'none'})"


_LOOKED_AT = 20
"""Cells of a column that are searched in the documents."""
_MOST = 0.5
"""Least share of a column's cells that must fit a role."""
_NEARLY_ALL = 0.9
"""The same for a column whose name says something else: a few answers may also be names of files."""
_LONG = 20
"""Fewest folded characters of a passage: a shorter text occurs in any contract."""


def correct_columns(columns: Columns, named: Iterable[str], records: Sequence[Record], texts: Texts) -> Columns:
    """Return the column of each role, corrected by the content of the cells unless the user named the column.

    A column whose cells name files of the folder is the document, whatever its name. A column whose cells occur
    in those files is the passage. A column whose cells name provisions is the provision. A column called `page`
    has no role if one of its cells is not a number.
    """
    given = set(named)
    columns = _check_columns(dict(columns), given, records)
    if texts.shelf.folder is not None and "document" not in given:
        columns = _assign_by_names(columns, records, texts.shelf)
    if "provision" not in given and columns.get("provision") is None:
        columns = _assign_by_provisions(columns, given, records, texts.shelf)
    columns = _assign_by_nesting(columns, given, list_nested_columns(records))
    document = columns["document"]
    if texts.shelf.folder is not None and columns["text"] is None and "text" not in given and document:
        free = [name for name in columns_of(records) if name not in columns.values()]
        columns["text"] = _choose_best(free, lambda name: _measure_quotes(records, name, document, texts), _MOST)
    return columns


def _check_columns(columns: Columns, given: set[str], records: Sequence[Record]) -> Columns:
    """Return the column of each role after two checks of the cells; roles in `given` are not changed.

    A numeric role, such as `page`, loses its column if a cell of the column is not a number. A column of
    verdicts gets the role `impossible` if each cell says whether the question must be refused.
    """
    for role in _NUMERIC:
        column = columns.get(role)
        if column is not None and role not in given and not _is_true_of_all(records, column, is_number):
            columns[role] = None
    verdict = choose_name((name for name in columns_of(records) if name not in columns.values()), "verdict")
    asked = columns["impossible"] or columns.get("answerable") or "impossible" in given
    if verdict and not asked and _is_true_of_all(records, verdict, lambda cell: read_refusal(cell) is not None):
        columns["impossible"] = verdict
    return columns


def _is_true_of_all(records: Sequence[Record], column: str, check: Callable[[Any], bool]) -> bool:
    cells = [cell for record in records for cell in list_cell_values(record.cells.get(column))]
    return bool(cells) and all(map(check, cells))


def _assign_by_provisions(columns: Columns, given: set[str], records: Sequence[Record], shelf: Shelf) -> Columns:
    """Return the roles of the columns; the column whose cells name provisions gets the role `provision`.

    The column with the role `document` gets the role `provision` instead only if its cells name provisions but
    no files, the user did not choose it, and no other column names provisions.
    """
    free = [name for name in columns_of(records) if name not in columns.values()]
    best = _choose_best(free, lambda name: _measure_naming_provisions(records, name), _MOST)
    document = columns["document"]
    if best or not document or "document" in given or _measure_naming(records, document, shelf):
        return columns | {"provision": best}
    cited = _measure_naming_provisions(records, document) >= _MOST
    return columns | ({"document": None, "provision": document} if cited else {})


def _assign_by_nesting(columns: Columns, given: set[str], nested: Sequence[str]) -> Columns:
    """Return the columns by role; a role without a column may get a nested field: `text` gets `evidence.text`.

    Roles in `given` stay as they are.
    """
    columns = dict(columns)
    for role in _NESTED:
        if role not in given and columns.get(role) is None and (role == "text" or not columns.get("text")):
            taken = {path.split(".")[0] for path in columns.values() if path and role == "text"}
            columns[role] = choose_name((path for path in nested if path.split(".")[0] not in taken), role)
    return columns


def _assign_by_names(columns: Columns, records: Sequence[Record], shelf: Shelf) -> Columns:
    """Choose the column `document`, whose cells name files of the folder; return all columns.

    The column with the largest share of such cells is chosen. The share must be at least 50% (90% for a column
    that has another role), and larger than that of the present column `document`.
    """
    guessed = columns["document"]
    others = {name for role, name in columns.items() if role not in ("document", "provision")}
    shares = {name: _measure_naming(records, name, shelf) for name in columns_of(records)}
    likely = [name for name in shares if shares[name] >= (_NEARLY_ALL if name in others else _MOST)]
    best = max(likely, key=lambda name: shares[name], default=None)
    if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
        return {role: None if name == best else name for role, name in columns.items()} | {"document": best}
    return columns


def _choose_best(names: Sequence[str], share: Callable[[str], float], least: float) -> str | None:
    shares = {name: share(name) for name in names}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= least else None


def _list_cells(records: Sequence[Record], column: str) -> list[tuple[Record, str]]:
    cells = [
        (record, read_cell_words(cell))
        for record in records
        for cell in list_cell_values(record.cells.get(column))
        if not isinstance(cell, dict)
    ]
    return [(record, cell) for record, cell in cells if not is_url(cell)]


def _measure_naming(records: Sequence[Record], column: str, shelf: Shelf) -> float:
    """Return the share of a column's cells that name a file of the folder."""
    cells = _list_cells(records, column)
    return sum(bool(shelf.find_named(cell)) for _, cell in cells) / len(cells) if cells else 0.0


def _measure_naming_provisions(records: Sequence[Record], column: str) -> float:
    """Return the share of a column's cells that are short and name a provision."""
    cells = [cell for _, cell in _list_cells(records, column)]
    return (
        sum(len(cell) < _SHORT and bool(read_provisions(cell, bare=False)) for cell in cells) / len(cells)
        if cells
        else 0
    )


_SHORT = 80
"""Most characters of a cell that names a provision: a longer one is a sentence that cites one."""


def _measure_quotes(records: Sequence[Record], column: str, document: str, texts: Texts) -> float:
    """Return the share of a column's cells that occur in the document of their row."""
    files = {file.name: file for file in texts.shelf.files}
    looked = [(record, fold(cell, loose=True)) for record, cell in _list_cells(records, column)]
    looked = [(record, cell) for record, cell in looked if len(cell) >= _LONG][:_LOOKED_AT]
    hits = 0
    for record, cell in looked:
        names = (texts.shelf.names.find(read_cell_words(name)) for name in list_cell_values(record.cells.get(document)))
        hits += any(cell in texts.of(files[name]) for name in names if name)
    return hits / len(looked) if looked else 0.0
