"""Metrics: one file each; its name, a name it yields, or that name without its `@k` is its name on the command line.

A metric is a module with `NAMES`, what it yields with the default options; `ABOUT`, an `About` for each of them without
its `@k`; and `measure(cases, options)`, which is given the cases that have what the `About` needs, with the gold it may
use (`_scope`), and whose keyword-only arguments are its parameters: `--metrics 'ndcg(cutoff=20)'`.
Of several names, `HEADLINE` is the one that stands for all; without it, the first. One that needs a judge or the corpus
also has `missing(options)`, which says what it lacks, and one that asks a judge `PROMPT_VERSION`. No other file has to
be edited: tables, report and `diff` ask `about`. Parts of other distributions import from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, cast

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import GROUPS, About, undescribed
from exhibit.evaluation.metrics._each import each, gold_files, gold_texts
from exhibit.evaluation.metrics._options import KS, Cutoff, K, Options, Parity, Share
from exhibit.evaluation.metrics._scope import scoped
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.plugins import plugin_modules

__all__ = [
    "GROUPS",
    "KS",
    "About",
    "Cutoff",
    "K",
    "MetricModule",
    "Options",
    "Parity",
    "Ranking",
    "Share",
    "about",
    "check_names",
    "each",
    "gold_files",
    "gold_texts",
    "headline",
    "headline_of",
    "measure",
    "metric_modules",
    "metric_names",
    "named",
    "needing",
    "parameters_of",
    "ranking_of",
    "scoped",
    "shortened",
    "split_requests",
]  # fmt: skip
from exhibit.evaluation.metrics._ranking import Ranking, ranking_of
from exhibit.evaluation.metrics._requests import (
    Request,
    checked,
    named,
    parameters_of,
    parse_request,
    split_requests,
)


class MetricModule(Protocol):
    """A module in `evaluation/metrics/`."""

    NAMES: tuple[str, ...]
    """What it yields with the default options."""
    ABOUT: Mapping[str, About]
    """What each of them is, under its name without `@k`."""

    def measure(self, cases: Sequence[Case], options: Options, **parameters: Any) -> dict[str, Values]:
        """Return one value a case under each name, in order; None where it does not apply."""


@cache
def metric_modules() -> dict[str, MetricModule]:
    """Return every metric by the name of its file, in order."""
    return {name: cast(MetricModule, module) for name, module in plugin_modules(__name__).items()}


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


def check_names(names: Sequence[str]) -> None:
    """Raise one error that lists every name no metric has."""
    unknown = [
        name
        for name in names
        if not any(_answers_to(parse_request(name).name, *one) for one in metric_modules().items())
    ]
    if unknown:
        families = sorted({_family(name) for name in metric_names()})
        raise ToolkitError(f"no metric {', '.join(map(repr, unknown))}; there are {', '.join(families)}")


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the metrics named, of all when none is; None where a case lacks what a metric needs."""
    options = options or Options()
    check_names(names)
    requests = [parse_request(name) for name in names]
    measured: dict[str, Values] = {}
    for file, module in metric_modules().items():
        asked = [request for request in requests if _answers_to(request.name, file, module)]
        plain = {request.name for request in asked if not request.parameters}
        if plain or not requests:
            values = _measured(module, cases, options)
            measured |= {name: own for name, own in values.items() if not plain or {file, name, _family(name)} & plain}
        for request in asked:
            if request.parameters or ("@" in request.name and request.name not in measured):
                measured |= _with_parameters(cases, options, request, file)
    return measured


def _measured(module: MetricModule, cases: Sequence[Case], options: Options, **told: Any) -> dict[str, Values]:
    """Return what a file yields, each name over the cases that have what it needs."""
    columns: dict[str, Values] = {}
    for needs in dict.fromkeys(about(name).needs for name in module.NAMES):
        rows = [(row, kept) for row, case in enumerate(cases) if (kept := scoped(case, needs, options)) is not None]
        for name, values in module.measure([case for _, case in rows], options, **told).items():
            if about(name).needs == needs:
                columns[name] = [None] * len(cases)
                for (row, _), value in zip(rows, values, strict=True):
                    columns[name][row] = value
    return columns


def _with_parameters(cases: Sequence[Case], options: Options, request: Request, file: str) -> dict[str, Values]:
    """Return what a metric yields when it is told something; `ndcg@20` tells it the cutoff 20."""
    module = metric_modules()[file]
    family, _, depth = request.name.partition("@")
    told = checked(Request(family, {"cutoff": depth, **request.parameters} if depth else request.parameters), module)
    if told.get("cutoff", 0) > max(options.ks):
        raise ToolkitError(f"no {request}: the rankings of this run have {max(options.ks)} passages")
    values = _measured(module, cases, options, **told)
    return {name: own for name, own in values.items() if family in (file, _family(name))}


_USUAL = ("recall@10", "document_hit@1", "answer_contained", "answer_f1")  # retrieval first: what fails there fails all


def headline_of(benchmark: str | None, having: Collection[str]) -> str | None:
    """Return the metric that stands for a benchmark's run: its own where the run has it, else the first usual one."""
    return next((name for name in (benchmark, *_USUAL, *having) if name in having), None)


def headline(file: str) -> str:
    """Return the name that stands for all that a metric yields."""
    module = metric_modules()[file]
    return str(getattr(module, "HEADLINE", module.NAMES[0]))


def _answers_to(name: str, file: str, module: MetricModule) -> bool:
    return name == file or _family(name) in {_family(yielded) for yielded in module.NAMES}


def _family(name: str) -> str:
    return name.partition("@")[0]
