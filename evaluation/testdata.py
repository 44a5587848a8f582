"""Ground truth without documents, as other tools keep it: one JSON object a line with `question` and `truth`.

A system that has its documents already needs no more to be asked. What else a line tells (`source_type`, `category`)
are the question's labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from exhibit.schemas.bundle import CORPUS, GOLD, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.cache import cache_folder
from exhibit.storage.place import write_whole

_TRUTHS = ("truth", "ground_truth", "answer")


def bundle_of(path: Path) -> Path:
    """Return a folder with the questions of a file and an empty corpus, made once for the same bytes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from error
    folder = cache_folder() / "testdata" / hashlib.sha256(data).hexdigest()[:16] / path.stem
    rows, gold = [], []
    for id, line in enumerate(_lines(path, data)):
        truth = next((line[name] for name in _TRUTHS if isinstance(line.get(name), str)), "")
        if not isinstance(line.get("question"), str) or not line["question"].strip() or not truth.strip():
            raise SourceError(f"{path}: line {id + 1}: needs 'question' and 'truth', both texts that are not empty")
        rows.append({"id": id, "question": line["question"], "answer": truth, "is_impossible": False, "contexts": []})
        gold.append(_gold(id, line))
    if not rows:
        raise SourceError(f'{path}: no questions in it; a line is {{"question": …, "truth": …}}')
    (folder / CORPUS).mkdir(parents=True, exist_ok=True)
    write_whole(folder / GOLD, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))
    write_whole(folder / TRAIN, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return folder


def _lines(path: Path, data: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            content = parse_json(line, where=f"{path}: line {number}")
            if not isinstance(content, dict):
                raise SourceError(f"{path}: line {number}: must be an object")
            yield content


def _gold(id: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of gold.jsonl that has a question's labels, and no passage."""
    labels = {
        name: value
        for name, value in line.items()
        if name not in ("question", *_TRUTHS) and isinstance(value, str | int | float | bool)
    }
    nowhere: dict[str, Any] = {"pages": [], "spans": [], "alternatives": [], "how": "absent", "score": None}
    return {"id": id, "context": None, "filename": None, **nowhere, "labels": labels}
