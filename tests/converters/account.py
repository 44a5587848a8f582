"""A summary of a bundle: its documents, its counts, the items left out, and the options of its conversion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def account_of(bundle: Path) -> str:
    """Return the parts of bundle.json that depend neither on printed pages nor on a version, as JSON."""
    told = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    documents = [
        [one["filename"], one["title"], one.get("source", ""), one.get("labels", {})] for one in told["documents"]
    ]
    kept = ("counts", "groups", "headline", "left_out", "noted", "account", "options")
    return (
        json.dumps({"documents": documents, **{name: told.get(name) for name in kept}}, ensure_ascii=False, indent=1)
        + "\n"
    )


def read_rows(bundle: Path) -> dict[int, dict[str, Any]]:
    """Return the rows of train.json by id."""
    return {row["id"]: row for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))}


def read_gold(bundle: Path) -> list[dict[str, Any]]:
    """Return the lines of gold.jsonl."""
    return [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
