"""Metrics: one file each; its name, a name it yields, or that name without its `@k` is its name on the command line."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from rag.cases import Case, Values
from rag.metrics._options import KS, K, Options, Parity
from rag.metrics._ranking import Ranking, ranking_of
from schemas.errors import ToolkitError

__all__ = [
    "KS",
    "K",
    "MetricModule",
    "Options",
    "Parity",
    "Ranking",
    "check_names",
    "measure",
    "metric_modules",
    "metric_names",
    "ranking_of",
]


class MetricModule(Protocol):
    """A module in `rag/metrics/`."""

    NAMES: tuple[str, ...]
    """What it yields with the default options."""

    def measure(self, cases: Sequence[Case], options: Options) -> dict[str, Values]:
        """Return one value a case under each name, in order; None where it does not apply."""


@cache
def metric_modules() -> dict[str, MetricModule]:
    """Return every metric by the name of its file, in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return {name: cast(MetricModule, import_module(f"{__name__}.{name}")) for name in names}


def metric_names() -> list[str]:
    """Return every name that is yielded with the default options."""
    return [name for module in metric_modules().values() for name in module.NAMES]


def check_names(names: Sequence[str]) -> None:
    """Raise one error that lists every name no metric has."""
    unknown = [n for n in names if not any(_answers_to(n, file, module) for file, module in metric_modules().items())]
    if unknown:
        families = sorted({_family(name) for name in metric_names()})
        raise ToolkitError(f"no metric {', '.join(map(repr, unknown))}; there are {', '.join(families)}")


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the metrics named, of all when none is."""
    options = options or Options()
    check_names(names)
    found: dict[str, Values] = {}
    for file, module in metric_modules().items():
        if names and not any(_answers_to(name, file, module) for name in names):
            continue
        for name, values in module.measure(cases, options).items():
            if not names or {file, name, _family(name)} & set(names):
                found[name] = values
    missing = [name for name in names if "@" in name and name not in found]
    if missing:
        ks = ", ".join(map(str, options.ks))
        raise ToolkitError(f"no {', '.join(missing)}: this run reads rankings at k = {ks} and recall at {options.k}")
    return found


def _answers_to(name: str, file: str, module: MetricModule) -> bool:
    return name == file or _family(name) in {_family(yielded) for yielded in module.NAMES}


def _family(name: str) -> str:
    return name.partition("@")[0]
