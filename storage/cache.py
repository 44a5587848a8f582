"""Where downloads, models and vectors are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache: `EXHIBIT_CACHE`, or a folder of the user's own cache."""
    chosen = os.environ.get("EXHIBIT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exhibit"
