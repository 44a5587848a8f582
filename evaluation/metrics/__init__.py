"""Metrics: one file each; its name, a name it yields, or that name without its `@k` is its name on the command line.

A file has `NAMES`, what it yields with the default options; `ABOUT`, an `About` for each of them without its `@k`; and
`measure(cases, options)`, which is given the cases that have what the `About` needs, with the gold it may use
(`_scope`). One that needs a judge or the corpus also has `missing(options)`, which says what it lacks, and one that
asks a judge `PROMPT_VERSION`. No other file has to be edited: tables, report and `diff` ask `about`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import GROUPS, About, undescribed
from exhibit.evaluation.metrics._options import KS, K, Options, Parity
from exhibit.evaluation.metrics._scope import scoped
from exhibit.schemas.errors import ToolkitError

__all__ = [
    "GROUPS",
    "KS",
    "About",
    "K",
    "MetricModule",
    "Options",
    "Parity",
    "Ranking",
    "about",
    "check_names",
    "measure",
    "metric_modules",
    "metric_names",
    "names_of",
    "needing",
    "ranking_of",
    "scoped",
    "shortened",
]  # fmt: skip
from exhibit.evaluation.metrics._ranking import Ranking, ranking_of


class MetricModule(Protocol):
    """A module in `evaluation/metrics/`."""

    NAMES: tuple[str, ...]
    """What it yields with the default options."""
    ABOUT: Mapping[str, About]
    """What each of them is, under its name without `@k`."""

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


def about(name: str) -> About:
    """Return what a metric says about itself; of one that no file yields, only that nothing is known."""
    return _described().get(_family(name)) or undescribed(name)


@cache
def _described() -> dict[str, About]:
    return {
        family: told for module in metric_modules().values() for family, told in getattr(module, "ABOUT", {}).items()
    }


def needing(names: Iterable[str], need: str) -> list[str]:
    """Return those of some metrics that need something to apply at all."""
    return [name for name in names if need in about(name).needs]


def shortened(names: Iterable[str], *, all_families: bool = False) -> list[str]:
    """Return the metrics that a short table shows, by group; of a family the depths it names, or the nearest to them.

    With `all_families` those are there, too, that say a short table need not show them.
    """
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(_family(name), []).append(name)
    chosen = [family for family in families if all_families or about(family).short]
    chosen.sort(key=lambda family: GROUPS.index(about(family).group))
    return [name for family in chosen for name in _nearest(families[family])]


def _nearest(family: Sequence[str]) -> list[str]:
    by_depth = {int(depth): name for name in family if (depth := name.partition("@")[2]).isdecimal()}
    if not by_depth:
        return list(family)
    wanted = about(family[0]).depths
    return list(dict.fromkeys(by_depth[min(by_depth, key=lambda k: (abs(k - depth), k))] for depth in wanted))


def names_of(text: str) -> list[str]:
    """Return the metrics that a list with commas names; `answer-f1`, as the help prints it, is `answer_f1`."""
    return [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]


def check_names(names: Iterable[str]) -> list[str]:
    """Return names as metrics have them; raise one error that lists those no metric has."""
    names = names_of(",".join(names))
    unknown = [n for n in names if not any(_answers_to(n, file, module) for file, module in metric_modules().items())]
    if unknown:
        families = sorted({_family(name) for name in metric_names()})
        raise ToolkitError(f"no metric {', '.join(map(repr, unknown))}; there are {', '.join(families)}")
    return names


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the metrics named, of all when none is; None where a case lacks what a metric needs."""
    options = options or Options()
    names = check_names(names)
    measured: dict[str, Values] = {}
    for file, module in metric_modules().items():
        if names and not any(_answers_to(name, file, module) for name in names):
            continue
        for name, values in _measured(module, cases, options).items():
            if not names or {file, name, _family(name)} & set(names):
                measured[name] = values
    missing = [name for name in names if "@" in name and name not in measured]
    if missing:
        ks = ", ".join(map(str, options.ks))
        raise ToolkitError(f"no {', '.join(missing)}: this run reads rankings at k = {ks} and recall at {options.k}")
    return measured


def _measured(module: MetricModule, cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return what a file yields, each name over the cases that have what it needs."""
    columns: dict[str, Values] = {}
    for needs in dict.fromkeys(about(name).needs for name in module.NAMES):
        rows = [(row, kept) for row, case in enumerate(cases) if (kept := scoped(case, needs, options)) is not None]
        for name, values in module.measure([case for _, case in rows], options).items():
            if about(name).needs == needs:
                columns[name] = [None] * len(cases)
                for (row, _), value in zip(rows, values, strict=True):
                    columns[name][row] = value
    return columns


def _answers_to(name: str, file: str, module: MetricModule) -> bool:
    return name == file or _family(name) in {_family(yielded) for yielded in module.NAMES}


def _family(name: str) -> str:
    return name.partition("@")[0]
