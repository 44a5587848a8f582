"""Metrics: functions that score one question, in six modules by subject.

    from exhibit.evaluation.metrics import metric

    @metric(title="Short answers", meaning="answers of at most 200 characters", needs=("answer",))
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
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Protocol, TypeVar, get_args

from exhibit.evaluation.cases import Case as Case
from exhibit.evaluation.cases import GoldPassage
from exhibit.evaluation.cases import Passage as Passage
from exhibit.evaluation.cases import Values as Values
from exhibit.law.references import Reference
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import list_own_plugins, list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError

KS = (1, 2, 4, 8, 16, 32, 64)
"""The cutoffs at which retrieval is measured; each is a prefix of one ranking."""
K = 10
"""The cutoff of recall@K, nDCG@K and the chunk economy."""
OTHER_NAMES = {"gpt_groundedness": "groundedness", "gpt_relevance": "relevance"}
"""Names that other tools have for our metrics."""
CEILING = "ceiling_"
"""The prefix of the figures that say how much gold is left after a stage."""
OUTCOME = "outcome: "
"""The prefix of the shares of questions with an unfavourable outcome, in comparisons of runs."""

Unit = Literal["share", "count", "seconds", "tokens", "characters", "currency", "mark", "number"]
"""`share`: from 0 to 1, shown in per cent by the report; `mark`: from 1 to 5; `number`: without a unit."""
Group = Literal["Retrieval", "Stages", "Answers", "Citations", "Cost", "Other"]
GROUPS: tuple[Group, ...] = get_args(Group)
Need = Literal[
    "gold spans", "gold text", "gold files", "grades", "truth", "expected", "label", "answer", "passages",
    "passage files", "judge", "corpus", "registers",
]  # fmt: skip
Parity = Literal["", "legalbenchrag", "seed", "squad"]
"""The project whose definition of a metric is used where it differs from ours."""
Cutoffs = tuple[int | Literal["k", "ks"], ...]
_UNIT_SIGNS = {"seconds": "s", "mark": "/5", "tokens": "tokens", "characters": "chars"}


class Citable(Protocol):
    """A corpus in which references are looked up, such as `law.references.ReferenceCorpus`."""

    def contains(self, reference: Reference, /) -> bool: ...


class Registers(Protocol):
    """The public registers of law: `found` if a reference exists, `absent` if not, else they cannot decide."""

    def outcome(self, reference: Reference) -> str: ...


@dataclass(frozen=True)
class Options:
    """Settings shared by all metrics; each metric reads those that it needs."""

    ks: tuple[int, ...] = KS
    k: int = K
    parity: Parity = ""
    count_added: bool = False
    """Whether words of a passage that no document has count against precision."""
    corpus: Citable | None = None
    officials: Registers | None = None
    judge_faults: Counter[str] = field(default_factory=Counter, compare=False)
    """The judge's failed and unreadable replies, by their message; the metrics that ask it add to them."""
    judge: LLM | None = None
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


# ---------------------------------------------------------------- a metric


@dataclass(frozen=True)
class Metric:
    """A metric's function, with its description for readers who are not engineers."""

    name: str
    title: str
    meaning: str
    group: Group = "Other"
    unit: Unit = "share"
    higher_is_better: bool | None = True
    needs: tuple[Need, ...] = ()
    at: Cutoffs = ()
    """The cutoffs at which it is measured; `k` and `ks` are those of the options."""
    depths: tuple[int, ...] = (K,)
    """The cutoffs that a short table shows."""
    short: bool = True
    """Whether a short table shows the metric; the files and the long table always do."""
    gate: bool = True
    """Whether a change for the worse fails `--fail-on-regression`; False for figures that depend on the machine."""
    prompt_version: str = ""
    """The version of the judge's prompt, for a metric that a judge decides: it scores all cases in one call."""
    function: Callable[..., Any] | None = None

    @property
    def better(self) -> Literal["more", "less", "neither"]:
        """The direction of an improvement, in a word."""
        return "neither" if self.higher_is_better is None else "more" if self.higher_is_better else "less"

    @property
    def sign(self) -> str:
        """The unit sign that is shown after a value; empty for shares, counts and metrics without a description."""
        return _UNIT_SIGNS.get(self.unit, "")

    @property
    def unit_behind(self) -> str:
        """The unit that the report shows after a value: `%` for a share."""
        return "%" if self.unit == "share" else f" {self.sign}" if self.sign else ""

    def improves(self, change: float) -> bool | None:
        """Return whether a change is an improvement; None where neither direction is better."""
        return None if self.higher_is_better is None else (change > 0) is self.higher_is_better and change != 0

    def figure(self, value: float | None, *, signed: bool = False) -> str:
        """Return a value as text for the terminal, without its unit: a share of 12.3% as "0.123"; "–" if missing."""
        if value is None or not math.isfinite(value):
            return "–"
        if self.unit in ("tokens", "characters"):
            places = ",.0f"
        elif self.unit == "currency":
            places = ",.6f" if abs(value) < 0.01 else ",.4f"
        elif self.unit in ("share", "number"):
            places = ".3f" if abs(value) < 10 else ",.0f"
        else:
            places = ".2f"
        return f"{value:{'+' if signed else ''}{places}}"

    def in_words(self, value: float | None) -> str:
        """Return a value as the report shows it, without a unit sign: a share of 0.123 becomes `12.3`."""
        known = self.unit == "share" and value is not None and math.isfinite(value)
        return f"{100 * value:.1f}" if known and value is not None else self.figure(value)

    def change_in_words(self, change: float) -> str:
        """Return a change as the report shows it, with plus or minus; for a share, in percentage points."""
        return f"{'+' if change > 0 else '−' if change < 0 else '±'}{self.in_words(abs(change))}"

    def list_figures(self, options: Options) -> list[tuple[str, int | None]]:
        """Return the figures that the metric yields, each with its cutoff: `("recall@10", 10)`."""
        named = {"k": (options.k,), "ks": options.ks}
        depths = sorted({k for at in self.at for k in (named[at] if isinstance(at, str) else (at,))})
        return [(f"{self.name}@{k}", k) for k in depths] or [(self.name, None)]

    def score(self, case: Case, options: Options, k: int | None) -> float | None:
        """Return the metric's value for a case that meets its needs."""
        assert self.function is not None
        offered = {"options": options, "k": k}
        given = {name: value for name, value in offered.items() if name in _list_parameters(self.function)}
        return self._check(self._call(case, **given), case)

    def score_all(self, cases: Sequence[Case], options: Options) -> dict[str, Values]:
        """Return the values of a metric that a judge decides, and for how many answers the judge gave none."""
        values = self._call(cases, options=options)
        return {
            name: [self._check(one, case) for one, case in zip(own, cases, strict=True)] for name, own in values.items()
        }

    def _call(self, *given: Any, **named: Any) -> Any:
        assert self.function is not None
        try:
            return self.function(*given, **named)
        except ToolkitError:
            raise
        except Exception as error:
            if self.function.__module__.startswith(f"{__name__}."):
                raise
            raise ToolkitError(f"the metric {self.where} failed: {type(error).__name__}: {error}") from error

    def _check(self, value: Any, case: Case) -> float | None:
        if value is None:
            return None
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ToolkitError(
                f"the metric {self.where} returned {value!r} for the question {case.id!r}; it must return a finite "
                "number, or None where it does not apply"
            )
        return float(value)

    @property
    def where(self) -> str:
        """The metric's name with the file that defines it."""
        code = getattr(self.function, "__code__", None)
        return f"{self.name} ({code.co_filename})" if code else self.name


@cache
def _list_parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function written in C
        return frozenset()


_registered: dict[str, Metric] = {}


Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


def metric(**about: Any) -> Callable[[Function], Function]:
    """Register a function as a metric; the arguments are the fields of `Metric`, and its name is the function's."""

    def decorate(function: Function) -> Function:
        about.setdefault("name", function.__name__.rstrip("_"))
        register(Metric(**about, function=function))
        return function

    return decorate


def metrics_of(group: Group) -> Callable[..., Callable[[Function], Function]]:
    """Return the decorator `metric` for a group."""
    return lambda **about: metric(**{"group": group, **about})


def register(one: Metric | Callable[..., Any]) -> str:
    """Register a metric, or a plain function as one, and return its name; raise if another file has the name."""
    if not isinstance(one, Metric):
        known = next((other for other in _registered.values() if other.function is one), None)
        name = getattr(one, "__name__", type(one).__name__)
        one = known or Metric(name, name.replace("_", " "), name, unit="number", higher_is_better=None, function=one)
    other = _registered.get(one.name)
    same_place = other is not None and getattr(other.function, "__module__", "") == getattr(
        one.function, "__module__", ""
    )
    if not one.name.isidentifier() or (other is not None and not same_place):
        taken = f"the name is taken by {other.where}" if other else "its name must be an identifier"
        raise ToolkitError(f"the metric {one.where}: {taken}; rename the function")
    _registered[one.name] = one
    _load_plugins.cache_clear()
    return one.name


@cache
def _load_plugins() -> dict[str, Metric]:
    own = list_own_plugins(__name__)
    for name in sorted(list_plugins(__name__), key=lambda name: (name not in own, name)):
        load_plugin(__name__, name)
    return _registered


def import_metrics() -> dict[str, Metric]:
    """Return every metric by its name, ours first."""
    return dict(_load_plugins())


def list_metrics() -> list[str]:
    """Return the names of all figures that the metrics return with the default options."""
    return [name for one in import_metrics().values() for name, _ in one.list_figures(Options())]


_LEFT = {
    "page": "on the page", "text": "in the system's text", "chunks": "in its chunks",
    "retrieved": "in what was retrieved", "reranked": "behind the reranker", "context": "in the context",
    "cited": "in the passages cited",
}  # fmt: skip
_UNJUDGED = "_unjudged"


def describe_metric(name: str) -> Metric:
    """Return the description of a metric; for an unknown name, a default one in which no direction is better."""
    family = name.partition("@")[0]
    known = import_metrics().get(family)
    if known is not None:
        return known
    if (stage := family.removeprefix(CEILING)) in _LEFT and family.startswith(CEILING):
        meaning = "share of the gold that no stage up to this one loses"
        return Metric(family, f"Gold left {_LEFT[stage]}", meaning, group="Stages", short=False)
    if family.endswith(_UNJUDGED) and (judged := import_metrics().get(family.removesuffix(_UNJUDGED))):
        meaning = "share of the answers that the judge gave no mark"
        return Metric(
            family, f"{judged.title} not judged", meaning, judged.group, "share", False, judged.needs, short=False
        )
    if family.startswith(OUTCOME):
        title = f"Outcome: {family.removeprefix(OUTCOME)}"
        return Metric(family, title, "share of the questions with this outcome", short=False, higher_is_better=False)
    return Metric(family, family.replace("_", " "), name, unit="number", higher_is_better=None)


def find_needing(names: Iterable[str], need: str) -> list[str]:
    """Return those of the named metrics that need something special, such as `judge`."""
    return [name for name in names if need in describe_metric(name).needs]


# ---------------------------------------------------------------- the metrics that tables show

_HEADLINES = (
    "answered_rightly", "read_value", "remembered", "in_force", "superseded", "canary_followed", "label_accuracy",
    "groundedness", "abstention_accuracy", "false_refusal_rate", f"recall@{K}", "statute_citation_accuracy",
    "document_hit@1", "char_recall@8", "page_hit@8", f"ndcg@{K}", "drm@8", "answer_f1", "char_precision@8",
    "version_accuracy", "mrr@10", "map", "answer_contained", "latency", "cost",
)  # fmt: skip
_SHOWN = 6


def choose_headlines(names: Iterable[str]) -> list[str]:
    """Return the six most important of the named figures, for the terminal and the top of the report."""
    families = _group_families(names)
    wanted = [(family, int(depth or 0)) for family, _, depth in (name.partition("@") for name in _HEADLINES)]
    chosen = [_find_nearest(families[family], [depth])[0] for family, depth in wanted if family in families]
    return chosen[:_SHOWN]


def shorten_metrics(names: Iterable[str], *, all_families: bool = False) -> list[str]:
    """Return the figures that a short table shows, sorted by group: of several cutoffs, those of the description.

    With `all_families`, metrics that a short table normally omits are included.
    """
    families = _group_families(names)
    chosen = [family for family in families if all_families or describe_metric(family).short]
    chosen.sort(key=lambda family: (GROUPS.index(describe_metric(family).group), not describe_metric(family).short))
    return [name for family in chosen for name in _find_nearest(families[family], describe_metric(family).depths)]


def _group_families(names: Iterable[str]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("@")[0], []).append(name)
    return families


def _find_nearest(figures: Sequence[str], wanted: Iterable[int]) -> list[str]:
    by_depth = {int(depth): name for name in figures if (depth := name.partition("@")[2]).isdecimal()}
    if not by_depth:
        return list(figures)
    return list(dict.fromkeys(by_depth[min(by_depth, key=lambda k: (abs(k - depth), k))] for depth in wanted))


# ---------------------------------------------------------------- measuring


def split_requests(text: str) -> list[str]:
    """Return the metrics of a comma-separated list; `answer-f1`, as in the help text, becomes `answer_f1`."""
    return [part.strip().replace("-", "_") for part in text.split(",") if part.strip()]


def choose_figures(names: Sequence[str], options: Options) -> dict[str, tuple[Metric, int | None]]:
    """Return the figures of the named metrics (`ndcg`, `ndcg@20`), or of all; raise an error for unknown names."""
    known, names = import_metrics(), [name.replace("-", "_") for name in names]
    unknown = [name for name in names if name.partition("@")[0].removesuffix(_UNJUDGED) not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        listed = f"{', '.join(map(repr, unknown))}{meant}; the metrics are {', '.join(sorted(known))}"
        raise ToolkitError(f"no metric {listed}")
    figures: dict[str, tuple[Metric, int | None]] = {}
    for name in names or known:
        family, _, depth = name.partition("@")
        own = known[family.removesuffix(_UNJUDGED)]
        if not depth:
            figures |= {figure: (own, k) for figure, k in own.list_figures(options)}
        elif not own.at or not depth.isdecimal() or int(depth) < 1:
            raise ToolkitError(f"--metrics {name}: write NAME, or NAME@K for a metric with a cutoff, such as ndcg@20")
        elif int(depth) > max(options.ks):
            raise ToolkitError(f"--metrics {name}: only {max(options.ks)} passages are ranked; give a smaller cutoff")
        else:
            figures[name] = own, int(depth)
    return figures


def measure(cases: Sequence[Case], options: Options | None = None, *, names: Sequence[str] = ()) -> dict[str, Values]:
    """Return the values of the named metrics, or of all; None where a case lacks something that a metric needs."""
    options = options or Options()
    figures = choose_figures(names, options)
    columns: dict[str, Values] = {}
    for figure, (own, _) in figures.items():
        if own.prompt_version:
            columns |= _measure_judged(own, cases, options)
        else:
            columns[figure] = []
    for case in cases:
        limited: dict[tuple[Need, ...], Case | None] = {}
        for figure, (own, k) in figures.items():
            if own.prompt_version:
                continue
            if own.needs not in limited:
                limited[own.needs] = limit_gold(case, own.needs, options)
            known = limited[own.needs]
            columns[figure].append(None if known is None else own.score(known, options, k))
    return columns


def _measure_judged(own: Metric, cases: Sequence[Case], options: Options) -> dict[str, Values]:
    rows = [(row, kept) for row, case in enumerate(cases) if (kept := limit_gold(case, own.needs, options)) is not None]
    columns: dict[str, Values] = {}
    for name, values in own.score_all([case for _, case in rows], options).items():
        columns[name] = [None] * len(cases)
        for (row, _), value in zip(rows, values, strict=True):
            columns[name][row] = value
    return columns


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
}
_OF_RUN: dict[Need, str] = {"judge": "judge", "corpus": "corpus", "registers": "officials"}
_USABLE: dict[Need, Callable[[GoldPassage], bool]] = {
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
    rules = [rule for need, rule in _USABLE.items() if need in needs]
    usable = tuple(gold for gold in case.gold if all(rule(gold) for rule in rules))
    return case if len(usable) == len(case.gold) else replace(case, gold=usable)


# ---------------------------------------------------------------- what several metrics ask of a case


def list_gold_texts(case: Case) -> list[str]:
    """Return the texts of the gold passages; an empty list for an impossible question."""
    return [] if case.is_impossible else [gold.text for gold in case.gold if gold.text and gold.text.strip()]


def list_gold_files(case: Case) -> frozenset[str]:
    """Return the names of the files with gold; an empty set for an impossible question."""
    return frozenset() if case.is_impossible else frozenset(gold.filename for gold in case.gold if gold.filename)


def is_wrong_file(passage: Passage, files: Collection[str]) -> bool | None:
    """Return whether a passage is from a file other than `files`; None if its file is unknown.

    If the bundle has neither the passage's file name nor its text, the passage is from a wrong file. If its
    text occurs in several files, the result is None.
    """
    if passage.filename is not None:
        return passage.filename not in files
    return True if passage.told_filename and passage.text.strip() and not passage.also_in else None


def once_per_case(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember the last result: several figures of one case are computed from it."""
    last: tuple[Any, Any] = (None, None)

    def call(case: Case, *given: Any) -> Result:
        nonlocal last
        (known, arguments), result = last if last[0] else ((None, None), None)
        if known is not case or arguments != given:
            result = function(case, *given)
            last = (case, given), result
        return result  # type: ignore[return-value]

    return call
