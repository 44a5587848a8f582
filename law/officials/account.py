"""What a run's references came to: a file beside each dataset's results, and a line on what could not be decided."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from exhibit.law.officials.register import Register
from exhibit.law.references import references
from exhibit.schemas.bundle import read_lines
from exhibit.schemas.parsing import parse_json
from exhibit.storage.whole import write_whole

REFERENCES = "references.jsonl"
"""One line for each reference of each answer."""


def write_account(results: Iterable[Path], register: Register, *, say: Callable[[str], None]) -> None:
    """Write `references.jsonl` beside each file of results; say in a line which references were not checked."""
    for path in results:
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(path, register)]
        write_whole(path.with_name(REFERENCES), "".join(lines))
    checked = register.checked.values()
    away = [one.detail for one in checked if one.outcome == "unreachable"]
    if away:
        say(f"{len(away)} of {len(checked)} references not checked: {'; '.join(dict.fromkeys(away))}")


def _lines(path: Path, register: Register) -> Iterator[dict[str, Any]]:
    for text in read_lines(path):
        row = parse_json(text, where=path)
        if row["reply"]["error"]:
            continue
        for one in dict.fromkeys(references(row["reply"]["answer"] or "", context=row["question"])):
            yield {"id": row["id"], "reference": str(one), "kind": one.kind, **register.check(one)._asdict()}
