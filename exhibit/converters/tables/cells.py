"""Reads cells of a table: texts, lists, objects, numbers, and whether a question must be refused."""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from exhibit.converters import Label
from exhibit.evidence.fields import FIELDS, choose_name, flatten_object, name_key

MAX_LABEL = 2**63 - 1  # a larger number is stored as text, because it fits no column type
_YES = frozenset({"true", "yes", "y", "1", "1.0", "t", *map(name_key, FIELDS["refuse"])})
_NO = frozenset({"false", "no", "n", "0", "0.0", "f", "", *map(name_key, FIELDS["comply"])})
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")


def list_cell_values(cell: Any) -> list[Any]:
    """Return the non-blank values of a cell, which may be a list, a list written as text, or a single value."""
    if isinstance(cell, str) and cell.strip()[:1] in "[{" and cell.strip()[-1:] in "]}":
        cell = _parse_text(cell.strip())
    if isinstance(cell, dict) and isinstance(cell.get("text"), list):
        cell = cell["text"]  # SQuAD's answers: {"text": […], "answer_start": […]}
    return [item for item in (cell if isinstance(cell, list | tuple) else [cell]) if read_cell_words(item)]


def _parse_text(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list | dict):
            return value
    return text


def split_values(cell: Any, marks: str = r"[;|\n]") -> list[Any]:
    """Return the values of a cell; a single text is split at semicolons, vertical bars and line ends."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], str):
        return [part.strip(" \t-•*") for part in re.split(marks, values[0]) if part.strip(" \t-•*")]
    return values


def read_cell_words(cell: Any) -> str:
    """Return a cell as text, without white space at its edges; missing values are empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # a column of integers with a gap is read as floats
    return str(cell).strip()


def read_cell_text(cell: Any, field: str) -> str:
    """Return a cell's texts joined by semicolons: the `field` of an object, the last message of a chat."""
    values = list_cell_values(cell)
    if values and all(isinstance(value, dict) and "role" in value for value in values):
        messages = [value for value in values if value["role"] in ("user", "human")] or values
        return read_cell_words(messages[-1].get("content"))
    texts = [
        (read_cell_field(value, field) or read_cell_field(value, "text"))
        if isinstance(value, dict)
        else read_cell_words(value)
        for value in values
    ]
    return "; ".join(filter(None, texts))


def read_cell_field(value: Mapping[str, Any], role: str) -> str:
    """Return the value of an object's field for a role, such as `document`, under any of the field's common names."""
    fields = flatten_object(value)
    name = choose_name((name for name, held in fields.items() if read_cell_words(held)), role)
    return read_cell_words(fields[name]) if name is not None else ""


def label(cell: Any) -> Label:
    """Return a cell as a label of gold.jsonl; a list or an object becomes JSON text, and an infinity becomes None."""
    if isinstance(cell, int) and abs(cell) > MAX_LABEL:
        return str(cell)
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else str(cell)


def read_number(cell: Any) -> int | None:
    """Return a non-negative integer, given as a number or as a string of digits; None for anything else."""
    words = read_cell_words(cell)
    return int(words) if words.isdecimal() else None


def read_refusal(cell: Any) -> bool | None:
    """Return whether a cell says that a question must be refused; False for an empty cell, None for an unclear cell."""
    word = name_key(read_cell_words(cell)) if not isinstance(cell, bool) else str(cell).casefold()
    return True if word in _YES else False if word in _NO else None


def read_options(cell: Any) -> list[str]:
    """Return the options of a multiple-choice question, from a list or from an object such as `{"A": …, "B": …}`."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], dict):
        return [read_cell_words(value) for value in values[0].values()]
    return [read_cell_field(value, "text") if isinstance(value, dict) else read_cell_words(value) for value in values]


def find_chosen_option(answer: str, options: Sequence[str]) -> str:
    """Return the option that an answer such as `B` or `(b)` names, or the answer if it names no option."""
    match = _LETTER.fullmatch(answer.strip())
    at = ord(match[1].upper()) - ord("A") if match else -1
    return options[at] if 0 <= at < len(options) else answer
