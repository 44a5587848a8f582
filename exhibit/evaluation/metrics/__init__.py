"""Metrics, one file each. On the command line a metric is named by its file, or by a figure that it returns.

A metric is a module with `NAMES`, `ABOUT` and `measure(cases, options)`. `NAMES` lists the figures that the
metric returns with the default options. `ABOUT` maps each figure's name, without `@k`, to an `About` (a
description); Exhibit's own metrics have a TOML file beside the module instead. `measure` is called only
with cases that meet the needs in the `About`, and only with gold that the metric may use (`limit_gold`).
Its keyword-only arguments are the metric's parameters: `--metrics 'ndcg(cutoff=20)'`.

`HEADLINE` names the figure that represents the metric; by default it is the first of `NAMES`. A metric that
needs a judge or the corpus says so in the needs of its `About`. A metric that asks a judge has
`PROMPT_VERSION`. A new metric needs no change in other files: tables, report and `diff` call
`describe_metric`. A metric in another distribution imports what it needs from this module.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, cast

from pydantic import Field, TypeAdapter

from exhibit.evaluation.cases import Case as Case
from exhibit.evaluation.cases import GoldPassage
from exhibit.evaluation.cases import Passage as Passage
from exhibit.evaluation.cases import Values as Values
from exhibit.evaluation.metric_about import GROUPS as GROUPS
from exhibit.evaluation.metric_about import About as About
from exhibit.evaluation.metric_about import Better as Better
from exhibit.evaluation.metric_about import Group as Group
from exhibit.evaluation.metric_about import K as K
from exhibit.evaluation.metric_about import Need as Need
from exhibit.evaluation.metric_about import Unit as Unit
from exhibit.evaluation.metrics._brought import check_names_are_own, values_of
from exhibit.evaluation.metrics._requests import Request, check_parameters, parse_request
from exhibit.evaluation.metrics._requests import name_request as name_request
from exhibit.evaluation.metrics._requests import parameters_of as parameters_of
from exhibit.evaluation.metrics._requests import split_requests as split_requests
from exhibit.law.references import Reference
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import import_plugins, list_own_plugins
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import read_beside

KS = (1, 2, 4, 8, 16, 32, 64)
"""The cutoffs at which retrieval is measured; each is a prefix of one ranking."""

_FOLDER = Path(__file__).parent
_ABOUTS = TypeAdapter(dict[str, About])


Cutoff = Annotated[int, Field(ge=1)]
"""The parameter of a metric: how many passages of a ranking are read."""
Votes = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]

Parity = Literal["", "legalbenchrag", "seed", "squad"]
"""The project whose definition of a metric is used where it differs from ours."""


class Citable(Protocol):
    """A corpus in which references are looked up, such as `law.references.ReferenceCorpus`."""

    def contains(self, reference: Reference, /) -> bool:
        """Return whether a reference occurs in the corpus."""


class Registers(Protocol):
    """An object that looks up whether a legal reference exists, such as `evaluation.registers.Register`."""

    def outcome(self, reference: Reference) -> str:
        """Look up a reference: return `found` if it exists and `absent` if it does not.

        Any other text means that the register cannot decide.
        """


@dataclass(frozen=True)
class Options:
    """Settings shared by all metrics; each metric reads those that it needs."""

    ks: tuple[int, ...] = KS
    k: int = K
    parity: Parity = ""
    count_added: bool = False
    """Whether words of a passage that no document has count against precision."""
    corpus: Citable | None = None
    """The corpus in which `references_exist` looks references up."""
    officials: Registers | None = None
    """The public registers that `references_official` queries."""
    judge: LLM | None = None
    """The model that gives marks; without one the judged metrics do not apply."""
    votes: int = 1
    """How many times the judge of correctness is asked about an answer."""
    flag_below: float | None = None
    """The confidence below which an answer is flagged for review."""
    prices: tuple[float, float] | None = None
    """The price of a million input tokens and of a million output tokens."""

    def __post_init__(self) -> None:
        if not self.ks or any(low >= high for low, high in zip((0, *self.ks), self.ks, strict=False)):
            raise ToolkitError(f"ks = {self.ks}: must be positive and ascending, such as {KS}")
        if self.k < 1:
            raise ToolkitError(f"k = {self.k}: must be at least 1")


def score_each(cases: Sequence[Case], score: Callable[[Case], float | None]) -> Values:
    """Return one value for each case; None where the system failed to reply."""
    return [None if case.reply.error else score(case) for case in cases]


Measure = Callable[[Sequence[Case], Options], dict[str, Values]]


def score_per_case(**scores: Callable[[Case], float | None]) -> tuple[tuple[str, ...], Measure]:
    """Return the `NAMES` and the `measure` function of a metric module.

    `scores` maps the name of each figure to a function that computes it for one case.
    """

    def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
        return {name: score_each(cases, score) for name, score in scores.items()}

    return tuple(scores), measure


def with_options(**scores: Callable[[Case, Options], float | None]) -> tuple[tuple[str, ...], Measure]:
    """Return the `NAMES` and the `measure` function of a metric module.

    `scores` maps the name of each figure to a function that computes it from one case and the options.
    """

    def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
        def score_name(name: str) -> Values:
            return score_each(cases, lambda case: scores[name](case, options))

        return {name: score_name(name) for name in scores}

    return tuple(scores), measure


def list_gold_texts(case: Case) -> list[str]:
    """Return the texts of the gold passages; an empty list for an impossible question."""
    return [] if case.is_impossible else [gold.text for gold in case.gold if gold.text and gold.text.strip()]


def list_gold_files(case: Case) -> frozenset[str]:
    """Return the names of the files with gold; an empty set for an impossible question."""
    return frozenset() if case.is_impossible else frozenset(gold.filename for gold in case.gold if gold.filename)


_KNOWN: dict[Need, Callable[[Case], bool]] = {
    "gold spans": lambda case: not case.is_impossible and any(gold.located for gold in case.gold),
    "gold text": lambda case: not case.is_impossible and bool(case.grades or any(gold.worded for gold in case.gold)),
    "gold files": lambda case: bool(list_gold_files(case)),
    "grades": lambda case: bool(case.grades) and not case.is_impossible,
    "truth": lambda case: bool(case.truth.strip()) and not case.is_impossible,
    "expected": lambda case: bool(case.truth.strip()) and not case.is_impossible,
    "label": lambda case: bool(case.choices) and case.label is not None,
    "answer": lambda case: case.reply.answer is not None,
    "passages": lambda case: not case.reply.passages or any(passage.tells for passage in case.reply.passages),
    "impossible": lambda case: case.is_impossible,
    # false where all quoted gold is absent from the documents
    "answerable": lambda case: not case.is_impossible and not (case.gold and all(gold.absent for gold in case.gold)),
}
"""Functions that check whether a case has what a metric needs."""
_OF_RUN: dict[Need, str] = {"judge": "judge", "corpus": "corpus", "registers": "officials"}
"""The options that a need requires; needs in neither table are checked by the metric itself."""
_KEPT: dict[Need, Callable[[GoldPassage], bool]] = {
    "gold spans": lambda gold: gold.located,
    "gold text": lambda gold: gold.worded,
}


def limit_gold(case: Case, needs: Collection[Need], options: Options) -> Case | None:
    """Return a case with only the gold that a metric may use.

    None if the reply failed, or if the case or the options lack something that the metric needs.
    """
    # SQuAD 2.0 also scores the answers to impossible questions
    open_needs = set(needs) - ({"expected"} if options.parity == "squad" else set())
    if case.reply.error or not all(_KNOWN[need](case) for need in open_needs & _KNOWN.keys()):
        return None
    if any(getattr(options, name) is None for need, name in _OF_RUN.items() if need in needs):
        return None
    rules = [rule for need, rule in _KEPT.items() if need in needs]
    kept = tuple(gold for gold in case.gold if all(rule(gold) for rule in rules))
    return case if len(kept) == len(case.gold) else replace(case, gold=kept)


def is_wrong_file(passage: Passage, files: Collection[str]) -> bool | None:
    """Return whether a passage is from a file other than `files`; None if its file is unknown.

    If the bundle has neither the passage's file name nor its text, the passage is from a wrong file. If its
    text occurs in several files, the result is None.
    """
    if passage.filename is not None:
        return passage.filename not in files
    return True if passage.told_filename and passage.text.strip() and not passage.also_in else None


# ---------------------------------------------------------------- every metric


class MetricModule(Protocol):
    """The interface of a metric: every module in `evaluation/metrics/` has these names."""

    __file__: str
    NAMES: tuple[str, ...]
    """The figures that the metric returns with the default options."""

    def measure(self, cases: Sequence[Case], options: Options, **parameters: Any) -> dict[str, Values]:
        """Return, for each figure, one value per case in the order of the cases; None where the metric does not
        apply.
        """


@cache
def import_metrics() -> dict[str, MetricModule]:
    """Return every metric module by its file name, sorted by name.

    Raise an error if two modules return a metric of the same name.
    """
    modules = {name: cast(MetricModule, module) for name, module in import_plugins(__name__).items()}
    check_names_are_own(modules, own=list_own_plugins(__name__))
    return modules


def list_metrics() -> list[str]:
    """Return the names of all figures that the metrics return with the default options."""
    return [name for module in import_metrics().values() for name in module.NAMES]


def describe_metric(name: str) -> About:
    """Return the description of a metric; for an unknown name, a default one in which no direction is better."""
    family = _find_family(name)
    return _describe_all().get(family) or About(family.replace("_", " "), name, unit="number", better="neither")


CEILING = "ceiling_"
"""The prefix of the figures that say how much gold is left after a stage."""
_DERIVED = _ABOUTS.validate_python(read_beside(__file__, "_derived.toml"))
"""Descriptions of the figures that the evaluation derives from the stages of the gold."""


@cache
def _describe_all() -> dict[str, About]:
    metrics = {family: entry for module in import_metrics().values() for family, entry in abouts_of(module).items()}
    return _DERIVED | metrics


def abouts_of(module: MetricModule) -> Mapping[str, About]:
    """Return the descriptions of a metric's figures, from its `ABOUT` or the TOML file beside it."""
    there = Path(module.__file__).with_suffix(".toml").is_file()
    return getattr(module, "ABOUT", None) or (_ABOUTS.validate_python(read_beside(module.__file__)) if there else {})


def find_needing(names: Iterable[str], need: str) -> list[str]:
    """Return those of the named metrics that need something special, such as `judge`."""
    return [name for name in names if need in describe_metric(name).needs]


def shorten_metrics(names: Iterable[str], *, all_families: bool = False) -> list[str]:
    """Return the metrics that a short table shows, sorted by group.

    If a metric was computed at several cutoffs, only the cutoffs in its description are shown; a cutoff that
    was not computed is replaced by the nearest one. With `all_families`, metrics that a short table normally
    omits are included.
    """
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(_find_family(name), []).append(name)
    chosen = [family for family in families if all_families or describe_metric(family).short]
    chosen.sort(key=lambda family: (GROUPS.index(describe_metric(family).group), not describe_metric(family).short))
    return [name for family in chosen for name in _find_nearest(families[family])]


def _find_nearest(family: Sequence[str]) -> list[str]:
    by_depth = {int(depth): name for name in family if (depth := name.partition("@")[2]).isdecimal()}
    if not by_depth:
        return list(family)
    wanted = describe_metric(family[0]).depths
    return list(dict.fromkeys(by_depth[min(by_depth, key=lambda k: (abs(k - depth), k))] for depth in wanted))


def check_names(names: Sequence[str]) -> None:
    """Raise one error that lists every unknown metric name."""
    known = import_metrics().items()
    unknown = [name for name in names if not any(_answers_to(parse_request(name).name, *one) for one in known)]
    if unknown:
        families = sorted({_find_family(name) for name in list_metrics()})
        raise ToolkitError(f"no metric {', '.join(map(repr, unknown))}; the metrics are {', '.join(families)}")


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the named metrics, or of all; None where a case lacks something that a metric needs."""
    options = options or Options()
    check_names(names)
    requests = [parse_request(name) for name in names]
    measured: dict[str, Values] = {}
    for file, module in import_metrics().items():
        asked = [request for request in requests if _answers_to(request.name, file, module)]
        plain = {request.name for request in asked if not request.parameters}
        if plain or not requests:
            values = _measure_module(module, cases, options)
            measured |= {
                name: own for name, own in values.items() if not plain or {file, name, _find_family(name)} & plain
            }
        for request in asked:
            if request.parameters or ("@" in request.name and request.name not in measured):
                measured |= _measure_with_parameters(cases, options, request, file)
    return measured


def _measure_module(
    module: MetricModule, cases: Sequence[Case], options: Options, **parameters: Any
) -> dict[str, Values]:
    """Return the values of each figure of a metric module, one value for each case.

    A value is None if the case lacks something that the figure needs.
    """
    columns: dict[str, Values] = {}
    for needs in dict.fromkeys(describe_metric(name).needs for name in module.NAMES):
        rows = [(row, kept) for row, case in enumerate(cases) if (kept := limit_gold(case, needs, options)) is not None]
        for name, values in values_of(module, [case for _, case in rows], options, parameters, own=_FOLDER).items():
            if describe_metric(name).needs == needs:
                columns[name] = [None] * len(cases)
                for (row, _), value in zip(rows, values, strict=True):
                    columns[name][row] = value
    return columns


def _measure_with_parameters(cases: Sequence[Case], options: Options, request: Request, file: str) -> dict[str, Values]:
    """Return the figures of a metric called with parameters; `ndcg@20` sets the parameter cutoff to 20."""
    module = import_metrics()[file]
    family, _, depth = request.name.partition("@")
    given = {"cutoff": depth, **request.parameters} if depth else request.parameters
    parameters = check_parameters(Request(family, given), module)
    if parameters.get("cutoff", 0) > max(options.ks):
        raise ToolkitError(
            f"{request}: its cutoff is too large: only {max(options.ks)} passages are ranked; give a smaller one"
        )
    values = _measure_module(module, cases, options, **parameters)
    return {name: own for name, own in values.items() if family in (file, _find_family(name))}


def find_headline(file: str) -> str:
    """Return the name of the main figure of a metric module: `char_recall@8` for `characters`."""
    return str(getattr(module := import_metrics()[file], "HEADLINE", module.NAMES[0]))


def _answers_to(name: str, file: str, module: MetricModule) -> bool:
    return name == file or _find_family(name) in {_find_family(yielded) for yielded in module.NAMES}


def _find_family(name: str) -> str:
    return name.partition("@")[0]
