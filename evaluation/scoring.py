"""Scoring as a map over cases, which workers share: a metric's value for a case depends on that case alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine import open_engine, track
from evaluation.cases import Case, Values
from evaluation.metrics import Options, measure, metric_modules

_BATCH = 64
"""Cases that a worker scores at once."""
_FEW = 1024
"""Cases that are scored before workers on this machine would have started."""


@dataclass(frozen=True)
class Batch:
    """A few cases."""

    cases: tuple[Case, ...]

    def __str__(self) -> str:
        """Return what an error calls it."""
        return f"{len(self.cases)} cases from {self.cases[0].id!r}"


@dataclass(frozen=True)
class Scoring:
    """The work of one worker on a few cases: picklable, so that any engine can run it."""

    options: Options
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[str, Values]:
        """Return the cases' values under each metric's name."""
        return measure(batch.cases, self.options, names=self.names)


def score(
    cases: Sequence[Case],
    options: Options,
    *,
    names: Sequence[str] = (),
    engine: str = "local",
    jobs: int | None = None,
    label: str = "score",
) -> dict[str, Values]:
    """Return what `measure` returns, whatever the engine."""
    if not cases or engine == "serial" or (engine == "local" and len(cases) <= _FEW):
        return measure(cases, options, names=names)
    # the judge has one budget, and what is known of the law may be large: neither is sent about
    sent = replace(options, judge=None, corpus=None, officials=None)
    batches = [Batch(tuple(cases[start : start + _BATCH])) for start in range(0, len(cases), _BATCH)]
    outcomes = open_engine(engine, jobs=jobs, limits=None).map(Scoring(sent, tuple(names)), batches)
    values: dict[str, Values] = {}
    for outcome in track(outcomes, total=len(batches), label=label, unit="part"):
        for name, column in outcome.unwrap().items():
            values.setdefault(name, []).extend(column)
    here = [name for name in _unsent(options, sent) if name in values]
    return values | (measure(cases, options, names=here) if here else {})


def _unsent(options: Options, sent: Options) -> list[str]:
    """Return the metrics that lack something in the options that are sent, and do not in the whole ones."""
    asked = [(module, missing) for module in metric_modules().values() if (missing := getattr(module, "missing", None))]
    return [name for module, missing in asked if missing(sent) and not missing(options) for name in module.NAMES]
