"""Checks a bundle by the JSON Schemas that are published with it, so that what others check by is what we check by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.schemas import generate
from exhibit.schemas.bundle import GOLD, INFO, TRAIN, read_lines, read_text
from exhibit.schemas.errors import BundleError
from exhibit.schemas.parsing import parse_json
from exhibit.schemas.validate import Problem

SCHEMAS = {TRAIN: "train.schema.json", GOLD: "gold.schema.json", INFO: "bundle.schema.json"}
_LONGEST = 200
"""Characters of a message: it quotes the value that is wrong, which may be a whole document."""


def published_problems(root: Path) -> Iterator[Problem]:
    """Yield where a bundle's files do not follow their published schemas."""
    from jsonschema import Draft202012Validator  # a tenth of a second, which only this check needs

    for file, name in SCHEMAS.items():
        schema = json.loads((generate.FOLDER / name).read_text(encoding="utf-8"))
        validator = Draft202012Validator(schema)
        for row, value in _values(root / file):
            for error in validator.iter_errors(value):
                yield _problem(file, row, list(error.absolute_path), error.message)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what a schema is for: each line of gold, each other file as a whole."""
    if path.name != GOLD:
        yield "", parse_json(read_text(path), where=path, error=BundleError)
        return
    for number, line in enumerate(read_lines(path), 1):
        yield f"line {number}", parse_json(line, where=path, error=BundleError)


def _problem(file: str, row: str, path: list[Any], message: str) -> Problem:
    if file == TRAIN and path:
        row = f"row {path.pop(0)}"
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return Problem(file, row, ".".join(map(str, path)), f"{shown} (by {SCHEMAS[file]})")
