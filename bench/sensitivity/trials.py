"""The settings that `bench.sensitivity` varies, one at a time, and the figures at each value.

Some are settings of the preset, which a trial passes in the configuration, as a user does. The others are
constants of a module. Users should not tune constants, so no function has a parameter for them: a trial
assigns the value to the constant's name in the module, and restores it afterwards. A trial runs within one
process, so that no other process is affected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bench.reword import unname
from exhibit.evaluation.cases import Case, Passage, Reply, Values
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.scoring import table_of
from exhibit.evaluation.statistics import Difference, compare, summarise, summarise_by
from exhibit.rag import Config, Pipeline
from exhibit.rag.lexicon import bm25, documents
from exhibit.rag.retrieval import extents
from exhibit.schemas.errors import ToolkitError

METRICS = {"char_precision@1": "P@1", "char_recall@8": "R@8", "char_recall@64": "R@64", "drm@8": "DRM@8"}
LOWER = "drm@8"
"""The metric for which a lower value is better."""
_OPTIONS = Options(ks=(1, 8, 64), parity="legalbenchrag")
_FAMILIES = ("characters", "drm")

Value = float | bool


class Setting(NamedTuple):
    """A setting of the preset `routed`, or a constant of a module, with the values to try beside the default.

    `why` is the reason for the default value.
    """

    name: str
    others: tuple[Value, ...]
    why: str
    module: ModuleType | None = None
    """The module of a constant; None = a setting of the recipe."""
    unnamed: bool = False
    """Whether it is tried on questions that name no document; it has no effect on others."""

    @property
    def default(self) -> Value:
        """The default value."""
        if self.module is None:
            value: Value = Config.preset("routed").get_setting(self.name)
            return value
        if not hasattr(self.module, self.name):
            raise ToolkitError(
                f"{self.module.__name__} has no name {self.name}; correct SETTINGS in bench/sensitivity/trials.py"
            )
        constant: Value = getattr(self.module, self.name)
        return constant

    @property
    def values(self) -> list[Value]:
        """The values to measure, including the default, in ascending order."""
        return sorted({*self.others, self.default})

    @property
    def shown(self) -> str:
        """The setting's name as tables and pictures show it; a constant is preceded by its module's name."""
        return f"{self.module.__name__.rpartition('.')[2]}.{self.name}" if self.module else self.name


SETTINGS = (
    Setting("weight_lexical", (0, 0.3, 1, 1.5), "half of the dense evidence: single words know less than meaning"),
    Setting("weight_heading", (0, 0.3, 0.5), "a heading speaks for its whole section, so little for any chunk"),
    Setting("weight_neighbours", (0, 0.4, 0.8), "a chunk's edges are chance, but its own words count most"),
    Setting("weight_section", (0, 0.3, 1, 1.5), "the rest of a clause follows its best part"),
    Setting("weight_likeness", (0, 1, 2), "the first chunks tell more of an answer's words than the question does"),
    Setting("weight_document", (1, 2, 5), "a document half as likely needs a passage better by 2 deviations"),
    Setting("most_documents", (1, 3, 20), "as many as may share a name; more only add chunks to read"),
    Setting("trim_first", (False,), "the first passage is the sentences that answer"),
    Setting("candidate_chunks", (64, 128, 512), "four times the depth of the ranking", unnamed=True),
    Setting("_MENTION", (0, 1 / 3, 1), "a defined term is in more files than their cube root", documents, unnamed=True),
    Setting("_TELLING", (1, 2), "nobody says a name by chance", documents),
    Setting("_OTHER_KIND", (0, 1.2, 4.6), "one time in ten a kind is misread or loosely said", documents),
    Setting("KEEP", (0.3, 0.5, 1), "sentences nearly as good as the best one stay with it", extents),
    Setting("LEAST", (20, 80, 120), "less is a number, a label, the end of a line", extents),
    Setting("SATURATION", (0.6, 2.4), "the textbook's k1", bm25),
    Setting("LENGTH", (0, 0.75), "chunks are cut to one size: their lengths say less than usual", bm25),
)  # fmt: skip


def choose_settings(names: Sequence[str] = ()) -> list[Setting]:
    """Return the settings with these names, or all if none is given; raise one error for all unknown names."""
    known = {setting.name: setting for setting in SETTINGS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolkitError(f"no setting {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(SETTINGS)


# ---------------------------------------------------------------- one trial


class Way(NamedTuple):
    """A way of asking: with or without the document's name, with or without file names in the index."""

    unnamed: bool
    filenames: bool

    @property
    def title(self) -> str:
        """The description of this way of asking, for tables and pictures: `with file names`, for example."""
        named = "questions that name no document, " if self.unnamed else ""
        return f"{named}{'with' if self.filenames else 'without'} file names"


def ways_of(setting: Setting) -> list[Way]:
    """Return the conditions under which a setting is measured: which questions, and which index.

    Most settings are measured twice: with file names in the index and without them. A setting with `unnamed` is
    measured once: with file names in the index, and with questions that name no document.
    """
    return [Way(True, True)] if setting.unnamed else [Way(False, True), Way(False, False)]


class Trial(NamedTuple):
    """One measurement: a setting, its value, and the variant of the questions and the index (`way`).

    A variant says whether the questions name their document, and whether the index has file names. In the
    measurement with all defaults, `setting` is empty.
    """

    way: Way
    setting: str = ""
    value: Value = 0

    def __str__(self) -> str:
        """Return a description of the trial for error messages."""
        return f"{self.setting or 'defaults'} = {self.value}, {self.way.title}"


def trials_of(settings: Sequence[Setting]) -> list[Trial]:
    """Return all trials: first those with all defaults, then those with one changed setting.

    Each trial has a `Way`: whether the questions name their document, and whether the index has file names.
    Each `Way` has one trial with all defaults. Each setting has one trial for every value other than its
    default, in each `Way` in which the setting is measured.
    """
    ways = dict.fromkeys(way for setting in settings for way in ways_of(setting))
    varied = [(s, way, value) for s in settings for way in ways_of(s) for value in s.values if value != s.default]
    return [*map(Trial, ways), *(Trial(way, setting.name, value) for setting, way, value in varied)]


@dataclass(frozen=True)
class Trying:
    """A picklable function that measures one trial, so that any engine can run it."""

    index: Path
    cases: tuple[Case, ...]
    recipe: Mapping[str, Any]
    """The settings of every trial, such as another embedder."""

    def __call__(self, trial: Trial) -> dict[str, Values]:
        """Search all cases with the trial's value of a setting.

        Return `{metric: values}` for the four metrics in `METRICS`, with one value for each case.
        """
        told: dict[str, Any] = {**self.recipe, "filenames": trial.way.filenames}
        constants: list[tuple[ModuleType, str, Value]] = []
        for setting in choose_settings([trial.setting]) if trial.setting else []:
            if setting.module is None:
                told[setting.name] = trial.value
            else:
                constants.append((setting.module, setting.name, trial.value))
        with _set(constants):
            return self._measure(self._open_pipeline(told), trial.way)

    def _open_pipeline(self, told: Mapping[str, Any]) -> Pipeline:
        # k is the number of sources of an answer, which is not needed: the ranking is the same, and tokens are not
        # counted
        return Pipeline(Config.preset("routed", **{"k": 1, "candidates": 1, **told})).open(self.index)

    def _measure(self, pipeline: Pipeline, way: Way) -> dict[str, Values]:
        results = pipeline.search([word_question(case, way) for case in self.cases])
        replied = []
        for case, retrieved in zip(self.cases, results, strict=True):
            passages = (Passage(hit.text, hit.chunk.document, hit.chunk.span) for hit in retrieved.ranked)
            replied.append(replace(case, reply=Reply(passages=tuple(passages))))
        values = measure(replied, _OPTIONS, names=_FAMILIES)
        return {name: values[name] for name in METRICS}


def word_question(case: Case, way: Way) -> str:
    """Return a case's question, without the document's name if `way.unnamed` is true."""
    return unname(case.question) if way.unnamed else case.question


@contextmanager
def _set(constants: Sequence[tuple[ModuleType, str, Value]]) -> Iterator[None]:
    """Set constants in modules while the block runs, and restore them afterwards."""
    before = [(module, name, getattr(module, name)) for module, name, _ in constants]
    try:
        for module, name, value in constants:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


# ---------------------------------------------------------------- figures


class Figure(NamedTuple):
    """A metric in percent at one value of a setting.

    It has the mean over all datasets, the mean of the worst dataset, and the change from the default value.
    """

    mean: float
    worst: float
    change: float = 0.0
    ci95: tuple[float, float] | None = None
    """The paired interval of the change; None for the default, and if there are too few documents."""

    @property
    def beyond_chance(self) -> bool:
        """Whether the metric's change from the default value is significant: its 95% interval excludes 0."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]

    @property
    def told(self) -> str:
        """The change from the default value and its 95% interval as text, such as `+1.2 [+0.3, +2.1]`."""
        ends = f" [{self.ci95[0]:+.1f}, {self.ci95[1]:+.1f}]" if self.ci95 else ""
        return f"{self.change:+.1f}{ends}".replace("-", "−")


Figures = Mapping[str, Figure]
"""The figure of each metric."""


@dataclass(frozen=True)
class Curve:
    """The metrics that were measured at each value of one setting, in one way of asking.

    A way of asking says whether the questions name their document, and whether the index has file names.
    """

    setting: Setting
    way: Way
    points: tuple[tuple[Value, Figures], ...]


def curves_of(
    settings: Sequence[Setting],
    measured: Mapping[Trial, Mapping[str, Values]],
    cases: Sequence[Case],
    groups: str | None,
) -> list[Curve]:
    """Return one curve of metric values for each setting, and for each variant of the questions and the index.

    A variant says whether the questions name their document, and whether the index has file names.
    """
    tables = {trial: table_of(cases, values, groups=groups) for trial, values in measured.items()}
    curves = []
    for setting in settings:
        for way in ways_of(setting):
            chosen = [(v, Trial(way) if v == setting.default else Trial(way, setting.name, v)) for v in setting.values]
            points = tuple((value, _make_figures(tables[trial], tables[Trial(way)])) for value, trial in chosen)
            curves.append(Curve(setting, way, points))
    return curves


def _make_figures(table: Table, default: Table) -> dict[str, Figure]:
    means = summarise(table)
    parts = summarise_by(table, table.groups).values() if table.groups else [means]
    changes: Mapping[str, Difference] = {} if table is default else compare([default], [table])
    figures = {}
    for name in METRICS:
        by_dataset = [100 * value for part in parts if (value := part[name].mean) is not None]
        mean, change = means[name].mean, changes.get(name)
        if mean is None:
            continue
        moved = Figure(100 * mean, max(by_dataset) if name == LOWER else min(by_dataset))
        if change is not None and change.mean is not None:
            ends = change.ci95 and (100 * change.ci95[0], 100 * change.ci95[1])
            moved = moved._replace(change=100 * change.mean, ci95=ends)
        figures[name] = moved
    return figures
