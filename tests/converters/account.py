"""A summary of a bundle: its documents, its counts, the items left out, and the options of its conversion."""

from __future__ import annotations

import json
from pathlib import Path


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
