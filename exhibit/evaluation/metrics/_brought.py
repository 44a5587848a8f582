"""Checks on metrics from other installed packages: their names must be unique, and their values valid.

If such a metric fails, a ToolkitError names its file.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from exhibit.schemas.errors import ToolkitError


def check_names_are_own(modules: Mapping[str, Any], *, own: Collection[str]) -> None:
    """Raise an error if two metric modules return a figure with the same name.

    The order of the files would otherwise decide which of the two figures is used.
    """
    owners: dict[str, str] = {}
    # our metrics come first, so that the error asks to rename the other distribution's metric
    for file in sorted(modules, key=lambda name: (name not in own, name)):
        for family in sorted(_list_families(file, modules[file])):
            other = owners.setdefault(family, file)
            if other != file:
                where = modules[file].__file__
                raise ToolkitError(
                    f"the metrics {file!r} and {other!r} both return the name {family!r}; change this name in {where}"
                )


def _list_families(file: str, module: Any) -> set[str]:
    names = getattr(module, "NAMES", None)
    if not isinstance(names, tuple | list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ToolkitError(
            f"the metric {file!r} has no NAMES, the list of the figures that it returns; add it in {module.__file__}"
        )
    return {name.partition("@")[0] for name in names}


def values_of(
    module: Any, cases: Sequence[Any], options: Any, parameters: Mapping[str, Any], *, own: Path
) -> dict[str, Any]:
    """Return the values of a metric.

    For a metric outside the folder `own`, check the values and turn any exception into a `ToolkitError`.
    """
    if Path(module.__file__).is_relative_to(own):
        measured: dict[str, Any] = module.measure(cases, options, **parameters)
        return measured
    try:
        families = _list_families(module.__name__, module)
        measured = module.measure(cases, options, **parameters)
        return {name: _check_values(name, list(values), len(cases), families) for name, values in measured.items()}
    except ToolkitError:
        raise
    except Exception as error:
        raise ToolkitError(f"the metric of {module.__file__} failed: {type(error).__name__}: {error}") from error


def _check_values(name: str, values: list[Any], count: int, families: set[str]) -> list[float | None]:
    if name.partition("@")[0] not in families:
        raise ValueError(f"it returns {name!r}, which is not in its NAMES")
    if len(values) != count:
        raise ValueError(f"{name}: {len(values)} values for {count} cases")
    if any(value is not None and not isinstance(value, int | float) for value in values):
        raise ValueError(f"{name}: a value that is neither a number nor None")
    return values
