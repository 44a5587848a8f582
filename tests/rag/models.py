"""Models that are opened once for all tests of a process: a session in full precision takes 90 MB and opens slowly."""

from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from exhibit.storage.cache import find_cache_folder

_BUILT = find_cache_folder() / "models"
"""The folder of the models in the user's cache, before a test sets another cache."""


@cache
def open_model(plugin: ModuleType, variant: str) -> Any:
    """Return a plug-in's model of this variant; it is opened only once."""
    return plugin.open(variant)


def link_models(cache: Path) -> Path:
    """Link the models of this machine into a test's cache, because building a model takes five seconds."""
    _BUILT.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another test process has linked it
        (cache / "models").symlink_to(_BUILT)
    return cache
