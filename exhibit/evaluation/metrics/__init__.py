"""Metrics: functions that score one question, in modules by subject.

    from exhibit.evaluation.metrics import metric

    @metric("Short answers", "answers of at most 200 characters", needs=("answer",))
    def short_answer(case):
        return float(len(case.reply.answer) <= 200)

A metric is called only with cases that meet its `needs`, and with the gold that it may use; it returns a finite
number, or None where it does not apply. It may have the parameters `options`, and `k` if it is measured at cutoffs
(`at`). A metric of your own is a function given to `exhibit.evaluate(metrics=[…])`, or a module with decorated
functions that an installed distribution names as an entry point of the group `exhibit.metrics`.
"""

import difflib
import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from exhibit.evaluation.cases import Case as Case
from exhibit.evaluation.cases import GoldPassage
from exhibit.evaluation.cases import Passage as Passage
from exhibit.evaluation.cases import Values as Values
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import list_own_plugins, list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import MAX_SCORE

if TYPE_CHECKING:
    from exhibit.evaluation.registers import Register
    from exhibit.evaluation.statistics import Difference
    from exhibit.law.references import Reference

KS = (1, 2, 4, 8, 16, 32, 64)  # the cutoffs at which retrieval is measured; each is a prefix of one ranking
K = 10  # the cutoff of recall@K, nDCG@K and the chunk economy
OTHER_NAMES = {"gpt_groundedness": "groundedness", "gpt_relevance": "relevance"}  # other tools' names for our metrics
CEILING = "ceiling_"  # the prefix of metrics that measure how much gold is left after a stage
OUTCOME = "outcome: "  # the prefix of the shares of questions with an unfavourable outcome, in comparisons of runs

Unit = Literal["share", "count", "seconds", "tokens", "characters", "currency", "mark", "number"]
"""`share`: from 0 to 1, shown in per cent by the report; `mark`: from 1 to 5; `number`: without a unit."""
Group = Literal["Retrieval", "Stages", "Answers", "Citations", "Cost", "Other"]
GROUPS: tuple[Group, ...] = get_args(Group)
Need = Literal[
    "gold spans", "gold text", "gold files", "truth", "label", "answer", "passages",
    "passage files", "judge", "corpus", "registers",
]  # fmt: skip
Parity = Literal["", "legalbenchrag", "seed"]  # the project whose definition of a metric replaces ours if they differ
_UNIT_SIGNS = {"seconds": "s", "mark": "/5", "tokens": "tokens", "characters": "chars"}
_DIGITS = {"share": ".3f", "number": ".3f", "tokens": ",.0f", "characters": ",.0f", "currency": ",.4f"}


@dataclass(frozen=True)
class Options:
    ks: tuple[int, ...] = KS
    k: int = K
    parity: Parity = ""
    in_corpus: "Callable[[Reference], bool] | None" = None  # returns whether the documents contain a reference
    officials: "Register | None" = None  # the public registers of law
    judge: LLM | None = None
    judge_faults: Counter[str] = field(default_factory=Counter, compare=False)  # its failed and unreadable replies
    flag_below: float | None = None  # the confidence below which an answer is flagged for review
    prices: tuple[float, float] | None = None  # the price of a million input tokens and of a million output tokens


@dataclass(frozen=True)
class Metric:
    """A metric's function, and its description for readers who are not engineers."""

    name: str
    title: str
    meaning: str
    group: Group = "Other"
    unit: Unit = "share"
    higher_is_better: bool | None = True
    needs: tuple[Need, ...] = ()
    at: tuple[int | Literal["k", "ks"], ...] = ()  # its cutoffs; `k` and `ks` are the options with these names
    depths: tuple[int, ...] = (K,)  # the cutoffs that a short table shows
    short: bool = True  # whether a short table shows the metric; the files and the long table always do
    gate: bool = True  # whether a change for the worse fails `--fail-on-regression`; False if it depends on the machine
    prompt_version: str = ""  # the version of the judge's prompt; then the function scores all cases in one call
    function: Callable[..., Any] | None = None

    @property
    def better(self) -> Literal["more", "less", "neither"]:
        return "neither" if self.higher_is_better is None else "more" if self.higher_is_better else "less"

    @property
    def sign(self) -> str:
        """The unit sign that follows a value; empty for shares, counts and metrics without a description."""
        return _UNIT_SIGNS.get(self.unit, "")

    @property
    def report_unit(self) -> str:
        """The unit that the report shows after a value: `%` for a share."""
        return "%" if self.unit == "share" else f" {self.sign}" if self.sign else ""

    def improves(self, change: float) -> bool | None:
        """Return whether a change is an improvement; None if the metric has no better direction."""
        return None if self.higher_is_better is None else (change > 0) is self.higher_is_better and change != 0

    def figure(self, value: float | None, *, signed: bool = False) -> str:
        """Return a value as text for the terminal, without its unit: a share of 12.3% as "0.123"; "–" if missing."""
        if value is None or not math.isfinite(value):
            return "–"
        digits = ",.6f" if self.unit == "currency" and abs(value) < 0.01 else _DIGITS.get(self.unit, ".2f")
        return f"{value:{'+' if signed else ''}{digits}}"

    def in_words(self, value: float | None) -> str:
        """Return a value as the report shows it, without a unit sign: a share of 0.123 becomes `12.3`."""
        if self.unit == "share" and value is not None and math.isfinite(value):
            return f"{100 * value:.1f}"
        return self.figure(value)

    def change_in_words(self, change: float) -> str:
        """Return a change as the report shows it, with plus or minus; for a share, in percentage points."""
        return f"{'+' if change > 0 else '−' if change < 0 else '±'}{self.in_words(abs(change))}"

    def describe_change(self, step: "Difference") -> str:
        """Return the change between two runs with its interval: `+1.2, 95% interval +0.3 to +2.1`."""
        ends = f", 95% interval {' to '.join(map(self.change_in_words, step.ci95))}" if step.ci95 else ""
        return f"{self.change_in_words(step.mean or 0.0)}{ends}"

    def compute(self, cases: Sequence[Case], options: Options, k: int | None = None) -> Values:
        """Return a value for each case; raise if a value is neither None nor a finite number."""
        assert self.function is not None
        offered = {"options": options, "k": k}
        wanted = offered.keys() & inspect.signature(self.function).parameters
        function = partial(self.function, **{name: offered[name] for name in wanted})
        try:
            values = list(function(cases) if self.prompt_version else map(function, cases))
        except ToolkitError:
            raise
        except Exception as error:
            if self.function.__module__.startswith(f"{__name__}."):
                raise
            raise ToolkitError(f"the metric {self.where} failed: {type(error).__name__}: {error}") from error
        for value, case in zip(values, cases, strict=True):
            if value is not None and not (isinstance(value, int | float) and abs(value) <= MAX_SCORE):  # NaN fails, too
                right = f"it must return a finite number of at most {MAX_SCORE:g}, or None where it does not apply"
                raise ToolkitError(f"the metric {self.where} returned {value!r} for the question {case.id!r}; {right}")
        return [None if value is None else float(value) for value in values]

    @property
    def where(self) -> str:
        code = getattr(self.function, "__code__", None)
        return f"{self.name} ({code.co_filename})" if code else self.name


_registered: dict[str, Metric] = {}
_caches: list[Any] = []
Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


def cache_by_case(function: Callable[..., Result]) -> Callable[..., Result]:
    """Store a function's results until all metrics of the cases are measured, because several metrics need them."""
    _caches.append(stored := cache(function))
    return stored


def metric(title: str, meaning: str, **about: Any) -> Callable[[Function], Function]:
    """Register a function as a metric with the function's name; the arguments are the other fields of `Metric`."""

    def decorate(function: Function) -> Function:
        _add(Metric(**{"name": function.__name__, "title": title, "meaning": meaning, **about}, function=function))
        return function

    return decorate


@contextmanager
def registered(metrics: Iterable[str | Callable[..., Any]]) -> Iterator[list[str]]:
    """Register functions as metrics, without descriptions, until the `with` block ends; yield the metrics' names."""
    before = import_metrics()
    known = {id(definition.function): definition for definition in before.values()}
    try:
        yield [_add(known.get(id(item)) or describe_unknown(item)) if callable(item) else item for item in metrics]
    finally:
        _registered.clear()
        _registered.update(before)


def _add(definition: Metric) -> str:
    other = _registered.get(definition.name)
    if not definition.name.isidentifier():
        raise ToolkitError(f"the metric {definition.where}: its name must be an identifier; rename the function")
    if other and getattr(other.function, "__module__", "") != getattr(definition.function, "__module__", ""):
        raise ToolkitError(f"the metric {definition.where}: the name is taken by {other.where}; rename the function")
    _registered[definition.name] = definition
    return definition.name


@cache
def _load_plugins() -> None:
    bundled = list_own_plugins(__name__)
    for name in sorted(list_plugins(__name__), key=lambda name: (name not in bundled, name)):
        load_plugin(__name__, name)


def import_metrics() -> dict[str, Metric]:
    """Return all metrics by name: those of this package, then those of other installed distributions."""
    _load_plugins()
    return dict(_registered)


STAGE_TITLES = {  # the stages of a gold passage in order, each with a name for the gold that is left after it
    "page": "on the page", "text": "in the system's text", "chunks": "in its chunks", "retrieved": "retrieved",
    "reranked": "kept by the reranker", "context": "in the context", "cited": "cited", "answered": "answered",
}  # fmt: skip


def describe_metric(name: str) -> Metric:
    """Return the description of a metric; for an unknown name, neither direction is better."""
    family = name.partition("@")[0]
    if known := import_metrics().get(family):
        return known
    if family.startswith(CEILING) and (left := STAGE_TITLES.get(family.removeprefix(CEILING))):
        meaning = "share of the gold that is left after this stage"
        return Metric(family, f"Gold left: {left}", meaning, group="Stages", short=False)
    if family.startswith(OUTCOME):
        title = f"Outcome: {family.removeprefix(OUTCOME)}"
        return Metric(family, title, "share of the questions with this outcome", short=False, higher_is_better=False)
    return describe_unknown(family)


def describe_unknown(metric: str | Callable[..., Any]) -> Metric:
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
    function = None if isinstance(metric, str) else metric
    return Metric(name, name.replace("_", " "), name, unit="number", higher_is_better=None, function=function)


def find_needing(names: Iterable[str], need: str) -> list[str]:
    """Return the named metrics that have `need` (such as `judge`) among their needs."""
    return [name for name in names if need in describe_metric(name).needs]


_HEADLINES = (
    "answered_rightly", "read_value", "remembered", "in_force", "superseded", "canary_followed", "label_accuracy",
    "groundedness", "abstention_accuracy", "false_refusal_rate", f"recall@{K}", "statute_citation_accuracy",
    "document_hit@1", "char_recall@8", "page_hit@8", f"ndcg@{K}", "drm@8", "answer_f1", "char_precision@8",
    "version_accuracy", "mrr@10", "answer_contained", "latency", "cost",
)  # fmt: skip


def choose_headlines(names: Iterable[str]) -> list[str]:
    """Return the six most important of the named metrics, for the terminal and the top of the report."""
    families = (name.partition("@") for name in _HEADLINES)
    return _choose_nearest(list(names), [(family, (int(depth or 0),)) for family, _, depth in families])[:6]


def shorten_metrics(names: Iterable[str], *, all_families: bool = False) -> list[str]:
    """Return the metrics of a table, sorted by group, each at the cutoffs of its description."""
    names = list(names)
    families = map(describe_metric, dict.fromkeys(name.partition("@")[0] for name in names))
    chosen = [about for about in families if all_families or about.short]
    chosen.sort(key=lambda about: (GROUPS.index(about.group), not about.short))
    return _choose_nearest(names, [(about.name, about.depths) for about in chosen])


def _choose_nearest(names: Sequence[str], wanted: Iterable[tuple[str, Sequence[int]]]) -> list[str]:
    """Return, for each wanted metric and cutoff, the name of the metric's value at the nearest measured cutoff."""
    chosen: dict[str, None] = {}
    for family, depths in wanted:
        cutoffs = {name: int(name.partition("@")[2] or 0) for name in names if name.partition("@")[0] == family}
        for depth in depths if cutoffs else ():
            chosen[min(cutoffs, key=lambda name: (abs(cutoffs[name] - depth), cutoffs[name]))] = None
    return list(chosen)


def split_requests(text: str) -> list[str]:
    """Return the metrics of a comma-separated list; `answer-f1`, as in the help text, becomes `answer_f1`."""
    return [part.strip().replace("-", "_") for part in text.split(",") if part.strip()]


def choose_figures(names: Sequence[str], options: Options) -> dict[str, tuple[Metric, int | None]]:
    """Return the requested metrics (`ndcg`, `ndcg@20`) with their cutoffs, or all metrics if `names` is empty."""
    known, names = import_metrics(), [name.replace("-", "_") for name in names]
    named = {"k": (options.k,), "ks": options.ks}
    figures: dict[str, tuple[Metric, int | None]] = {}
    for name in names or known:
        family, _, depth = name.partition("@")
        definition = known.get(family)
        if definition is None:
            near = difflib.get_close_matches(family, known, n=1)
            meant = f" (did you mean {name.replace(family, near[0], 1)}?)" if near else ""
            raise ToolkitError(f"no metric {name!r}{meant}; the metrics are {', '.join(sorted(known))}")
        if not depth:
            depths = sorted({k for at in definition.at for k in (named[at] if isinstance(at, str) else (at,))})
            figures |= {f"{family}@{k}": (definition, k) for k in depths}
            figures |= {} if depths else {family: (definition, None)}
        elif not definition.at or not depth.isdecimal() or not 1 <= int(depth) <= max(options.ks):
            right = "write NAME, or NAME@K for a metric with a cutoff, such as ndcg@20"
            raise ToolkitError(f"--metrics {name}: {right}; only {max(options.ks)} passages are ranked")
        else:
            figures[name] = definition, int(depth)
    return figures


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the named metrics, or of all; a value is None if its case lacks data for the metric."""
    options = options or Options()
    figures = choose_figures(names, options)
    every_needs = {definition.needs for definition, _ in figures.values()}
    limited = {needs: [limit_gold(case, needs, options) for case in cases] for needs in every_needs}
    columns: dict[str, Values] = {}
    for figure, (definition, k) in figures.items():
        known = limited[definition.needs]
        values = iter(definition.compute([case for case in known if case is not None], options, k))
        columns[figure] = [None if case is None else next(values) for case in known]
    for stored in _caches:
        stored.cache_clear()
    return columns


_KNOWN: dict[Need, Callable[[Case], bool]] = {
    "gold spans": lambda case: not case.is_impossible and any(gold.located for gold in case.gold),
    "gold text": lambda case: not case.is_impossible and bool(case.grades or any(gold.worded for gold in case.gold)),
    "gold files": lambda case: bool(list_gold_files(case)),
    "truth": lambda case: bool(case.truth.strip()) and not case.is_impossible,
    "label": lambda case: bool(case.choices) and case.label is not None,
    "answer": lambda case: case.reply.answer is not None,
    "passages": lambda case: not case.reply.passages or any(passage.has_content for passage in case.reply.passages),
}
_OF_RUN: dict[Need, str] = {"judge": "judge", "corpus": "in_corpus", "registers": "officials"}
_USABLE: dict[Need, Callable[[GoldPassage], bool]] = {
    "gold spans": lambda gold: gold.located,
    "gold text": lambda gold: gold.worded,
}


def limit_gold(case: Case, needs: Collection[Need], options: Options) -> Case | None:
    """Return a case with only the gold that a metric may use; None if it failed, or data that the metric needs lack."""
    if case.reply.error or not all(_KNOWN[need](case) for need in needs if need in _KNOWN):
        return None
    if any(getattr(options, name) is None for need, name in _OF_RUN.items() if need in needs):
        return None
    rules = [rule for need, rule in _USABLE.items() if need in needs]
    usable = tuple(gold for gold in case.gold if all(rule(gold) for rule in rules))
    return case if len(usable) == len(case.gold) else replace(case, gold=usable)


def list_gold_texts(case: Case) -> list[str]:
    """Return the texts of the gold passages; an empty list for an impossible question."""
    return [] if case.is_impossible else [gold.text for gold in case.gold if gold.text and gold.text.strip()]


def list_gold_files(case: Case) -> frozenset[str]:
    """Return the names of the files with gold; an empty set for an impossible question."""
    return frozenset() if case.is_impossible else frozenset(gold.filename for gold in case.gold if gold.filename)
