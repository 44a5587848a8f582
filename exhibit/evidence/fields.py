"""The names that the fields of test sets may have: fields.toml is the only list of such names.

Names are compared by their letters and digits, without case. The first name in the list is used; names after one of the
`prefixes` rank last.

- `rows`: fields with a list of rows.
- `wrapper`: objects whose fields are fields of the row.
- `assertions`: lists of checks of an answer (promptfoo's `assert`); the lists `assert-…` name the types of checks.
- `verdict`: a column whose cells, true or false or a word of the lists `refuse` and `comply`, state the refusal.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from exhibit.schemas.parsing import read_beside

_TABLES = read_beside(__file__)
FIELDS: dict[str, list[str]] = _TABLES["names"]
HELPS: dict[str, str] = _TABLES["help"]  # The fields that the command line can name, each with a description


def name_key(name: str) -> str:
    """Return the common key of all spellings of a name: `File Name`, `file_name` and `fileName`."""
    return "".join(character for character in name.casefold() if character.isalnum())


@cache
def _rank_names(field: str) -> dict[str, int]:
    names = [*FIELDS[field], *(f"{prefix}_{name}" for name in FIELDS[field] for prefix in FIELDS["prefixes"])]
    return {name_key(name): rank for rank, name in reversed([*enumerate(names)])}


def choose_name(names: Iterable[str], field: str) -> str | None:
    """Return the name that ranks best; a dotted path has the rank of its longest known end; None if none is known."""
    ranks = _rank_names(field)
    ranked = []
    for at, name in enumerate(names):
        path = name.split(".")
        ends = ((name_key(".".join(path[depth:])), depth) for depth in range(len(path)))
        ranked += [(ranks[key], depth, at, name) for key, depth in ends if key in ranks][:1]
    return min(ranked)[3] if ranked else None


def flatten_object(value: Mapping[str, Any], *, inside: str | None = None, depth: int = 6) -> dict[str, Any]:
    """Return the fields of an object and of nested objects (with `inside`, of those named so) by their dotted paths."""
    fields: dict[str, Any] = {}
    for name, held in value.items():
        opened = inside is None or name_key(str(name).rpartition(".")[2]) in _rank_names(inside)
        if isinstance(held, Mapping) and held and depth and opened:
            nested = flatten_object(held, inside=inside, depth=depth - 1)
            fields |= {f"{name}.{path}": part for path, part in nested.items()}
        else:
            fields[str(name)] = held
    return fields
