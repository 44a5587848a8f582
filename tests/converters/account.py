"""What a bundle says of itself: its documents, its counts, what was left out, and how it was made."""

from __future__ import annotations

import json
from pathlib import Path


def account_of(bundle: Path) -> str:
    """Return what does not depend on how pages are printed, or on a version."""
    told = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    documents = [
        [one["filename"], one["title"], one.get("source", ""), one.get("labels", {})] for one in told["documents"]
    ]
    kept = ("counts", "groups", "headline", "left_out", "noted", "account", "options")
    return (
        json.dumps({"documents": documents, **{name: told.get(name) for name in kept}}, ensure_ascii=False, indent=1)
        + "\n"
    )
