"""Reads the assertions of a test set (promptfoo's `assert`) as texts that an answer must contain, or must not."""

from collections.abc import Mapping
from typing import Any

from exhibit.converters.benchmark import Tally
from exhibit.converters.raw.cells import list_cell_values
from exhibit.converters.raw.records import Record
from exhibit.evidence.fields import FIELDS, choose_name, flatten_object, name_key

_ROLES = {
    name_key(kind): role.removeprefix("assert-")
    for role, kinds in FIELDS.items()
    if role.startswith("assert-")
    for kind in kinds
}
_COLUMNS = {
    "must-contain": "must_contain",
    "must-not-contain": "must_not_contain",
    "answer": "expected_answer",
    "impossible": "must_refuse",
}


def open_record(record: Record, tally: Tally) -> Record:
    """Return a row whose nested objects (`vars`, `inputs`, `expected`) and assertions have become columns."""
    cells = flatten_object(record.cells, inside="wrapper")
    name = choose_name(cells, "assertions")
    checks = [check for check in list_cell_values(cells[name]) if isinstance(check, Mapping)] if name else []
    if name is None or not all("type" in check for check in checks) or not checks:
        return Record(record.index, record.place, cells)
    del cells[name]
    found: dict[str, list[Any]] = {}
    for check in checks:
        role = _ROLES.get(name_key(str(check["type"])))
        if role is None:
            tally.note("assertion that is not read", f"{record.place}: {check['type']}")
        elif role == "impossible":
            found[role] = [True]
        elif role == "must-contain" and str(check["type"]).endswith("any"):
            found.setdefault(role, []).append(list_cell_values(check.get("value")))  # one of these texts is enough
        else:
            found.setdefault(role, []).extend(list_cell_values(check.get("value")))
    for role, held in found.items():
        single = role in ("answer", "impossible")
        cells.setdefault(_COLUMNS[role], held[0] if single and held else held)
    return Record(record.index, record.place, cells)
