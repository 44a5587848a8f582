"""A summary of a bundle: its documents, its counts, the items left out, and the options of its conversion."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.validate import validate

FIELDS = ("id", "context", "filename", "how", "labels")


def account_of(bundle: Path) -> str:
    """Return the parts of bundle.json that depend neither on printed pages nor on a version, as JSON."""
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    documents = [
        [doc["filename"], doc["title"], doc.get("source", ""), doc.get("labels", {})] for doc in info["documents"]
    ]
    kept = ("counts", "groups", "headline", "left_out", "noted", "account", "options")
    return (
        json.dumps({"documents": documents, **{name: info.get(name) for name in kept}}, ensure_ascii=False, indent=1)
        + "\n"
    )


def read_rows(bundle: Path) -> dict[int, dict[str, Any]]:
    """Return the rows of train.json by id."""
    return {row["id"]: row for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))}


def read_gold(bundle: Path) -> list[dict[str, Any]]:
    """Return the lines of gold.jsonl."""
    return [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def compare_golden(name: str, bundle: Path, golden: Callable[[str, str], None], fields: Sequence[str] = ()) -> None:
    """Compare a bundle with tests/golden/NAME; `fields` are the fields of gold that do not depend on printing."""
    assert validate(bundle) == []
    golden(f"{name}/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden(f"{name}/account.json", account_of(bundle))
    lines = []
    for line in read_gold(bundle):
        if fields:
            line["alternatives"] = len(line["alternatives"])
        if name in ("contractnli", "table"):  # the ends of printed lines depend on the browser
            line["how"] = "folded" if line["how"] == "exact" else line["how"]
        lines.append(json.dumps({field: line[field] for field in fields or line}, ensure_ascii=False) + "\n")
    golden(f"{name}/gold.jsonl", "".join(lines))
