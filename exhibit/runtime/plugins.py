"""Finds plug-ins by name: files in this project's plug-in folders, and modules of other distributions."""

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType

from exhibit.schemas.errors import ToolkitError

_GROUP = "exhibit."


def load_plugin(package: str, wanted: str) -> tuple[ModuleType, str | None]:
    """Return the plug-in module that `NAME[:ARGUMENT]` names in a package, and the argument."""
    name, _, argument = wanted.partition(":")
    file = name.replace("-", "_")
    if file in list_own_plugins(package):
        return import_module(f"{package}.{file}"), argument or None
    brought = points_of(package)
    if file not in brought:
        kind = package.rpartition(".")[2].removesuffix("s")
        names = ", ".join(plugin.replace("_", "-") for plugin in list_plugins(package))
        raise ToolkitError(f"no {kind} {name!r}; choose one of {names}")
    return _load(brought[file]), argument or None


def list_plugins(package: str) -> list[str]:
    """Return the sorted names of a package's plug-ins; subfolders, and files that start with `_`, are not plug-ins."""
    return sorted({*list_own_plugins(package), *points_of(package)})


def import_plugins(package: str) -> dict[str, ModuleType]:
    return {name: load_plugin(package, name)[0] for name in list_plugins(package)}


def list_own_plugins(package: str) -> set[str]:
    # find the files without an import, because listing names must not import the plug-ins' libraries
    path = getattr(find_spec(package), "submodule_search_locations", None)  # None for a module without a folder
    return {file.name for file in pkgutil.iter_modules(path or []) if not (file.ispkg or file.name.startswith("_"))}


@cache
def points_of(package: str) -> dict[str, EntryPoint]:
    """Return the plug-ins that other installed distributions add to a package, as entry points by name."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=_GROUP + package.rpartition(".")[2]):
        points.setdefault(point.name.replace("-", "_"), point)
    return points


@cache
def _load(point: EntryPoint) -> ModuleType:
    try:
        module = point.load()
    except (Exception, SystemExit) as error:  # a plug-in that exits must not make the command look successful
        owner = point.dist.name if point.dist else "an installed distribution"
        raise ToolkitError(
            f"{point.name} ({point.group}) of {owner} cannot be loaded: {type(error).__name__}: {error}; "
            f"fix {point.value} or uninstall {owner}"
        ) from error
    if not isinstance(module, ModuleType):
        raise ToolkitError(
            f"{point.name} ({point.group}): {point.value} is not a module; name a module, without a colon"
        )
    return module
