"""What the fields of test sets and of replies are called: names are data, and fields.toml is the only list of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from exhibit.schemas.parsing import read_beside

_ENTRIES = read_beside(__file__)
REPLY: dict[str, list[str]] = _ENTRIES.pop("reply")
"""What the fields of replies are called, by what they hold."""
FIELDS: dict[str, list[str]] = {field: entry["names"] for field, entry in _ENTRIES.items()}
HELPS: dict[str, str] = {field: entry["help"] for field, entry in _ENTRIES.items() if "help" in entry}
"""The fields that the command line can name, with their meaning."""
_DEEPEST = 6  # objects in objects: more is no row of a test set


def name_key(name: str) -> str:
    """Return what spellings of one name have in common: `File Name`, `file_name` and `fileName`."""
    return "".join(character for character in name.casefold() if character.isalnum())


@cache
def _ranks(field: str) -> dict[str, int]:
    """Return the names of a field by key, each with its rank; names with a prefix come after all others."""
    names = [*FIELDS[field], *(f"{prefix}_{name}" for name in FIELDS[field] for prefix in FIELDS["prefixes"])]
    ranks: dict[str, int] = {}
    for rank, name in enumerate(names):
        ranks.setdefault(name_key(name), rank)
    return ranks


def is_named(name: str, field: str) -> bool:
    """Return whether a name is one of a field's."""
    return name_key(name) in _ranks(field)


def choose_name(names: Iterable[str], field: str) -> str | None:
    """Return the name that is most likely the field's; of a dotted path its end counts, after plain names."""
    ranks = _ranks(field)
    chosen: tuple[int, int, int] | None = None
    best = None
    for at, name in enumerate(names):
        path = name.split(".")
        for depth in range(len(path)):
            rank = ranks.get(name_key(".".join(path[depth:])))
            if rank is not None:
                if chosen is None or (rank, depth, at) < chosen:
                    chosen, best = (rank, depth, at), name
                break
    return best


def flatten_object(value: Mapping[str, Any], *, inside: str | None = None, depth: int = _DEEPEST) -> dict[str, Any]:
    """Return an object's fields with those of the objects in it under dotted paths.

    `inside` names the field whose names alone are opened (`wrapper`); without it every object is.
    """
    return dict(_flat(value, inside, depth, ""))


def _flat(value: Mapping[str, Any], inside: str | None, depth: int, before: str) -> Iterator[tuple[str, Any]]:
    for name, held in value.items():
        path = f"{before}{name}"
        opened = inside is None or is_named(re.split(r"[.]", str(name))[-1], inside)
        if isinstance(held, Mapping) and held and depth and opened:
            yield from _flat(held, inside, depth - 1, f"{path}.")
        else:
            yield path, held
