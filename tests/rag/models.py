"""Models that are opened once for all tests of a process: a session in full precision takes 90 MB and some time."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from exhibit.storage.cache import find_cache_folder

_BUILT = find_cache_folder() / "models"
"""Where they are before any test names another cache."""


@cache
def opened(plugin: ModuleType, variant: str) -> Any:
    """Return the model that a plug-in opens for this variant, opened once."""
    return plugin.open(variant)


def link_models(cache: Path) -> Path:
    """Link the models of this machine into a test's own cache, since building one takes five seconds."""
    _BUILT.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process that runs the tests was first
        (cache / "models").symlink_to(_BUILT)
    return cache
