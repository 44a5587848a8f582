"""Plug-ins by name: a file in a folder is something a user can name, and there is no central list."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

from exhibit.schemas.errors import ToolkitError


def load_plugin(package: str, wanted: str) -> tuple[ModuleType, str | None]:
    """Return the module that `NAME[:ARGUMENT]` names in a package, and the argument.

    A file name cannot hold a hyphen, so `sentence-transformers` is read as `sentence_transformers`.
    """
    name, _, argument = wanted.partition(":")
    file = name.replace("-", "_")
    if file not in plugin_names(package):
        kind = package.rpartition(".")[2].removesuffix("s")
        names = ", ".join(file_name.replace("_", "-") for file_name in plugin_names(package))
        raise ToolkitError(f"no {kind} {name!r}; there are {names}")
    return import_module(f"{package}.{file}"), argument or None


def plugin_names(package: str) -> list[str]:
    """Return the files of a package that can be named; those that start with `_` are machinery."""
    path = import_module(package).__path__
    return sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_"))
