"""Scoring as a map over cases, which workers share: a metric's value for a case depends on that case alone.

A worker is sent a few cases with their replies, and returns their values and their rows as text; neither it nor the
run keeps the replies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from exhibit.engine import open_engine
from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.choices import Chosen, choices_made
from exhibit.evaluation.confidence import Told, confidences
from exhibit.evaluation.datasets import GoldMatch
from exhibit.evaluation.metrics import Options, about, lacking, measure
from exhibit.evaluation.metrics.drm import Mismatch, totals
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.records import RowText, row_text
from exhibit.law.references import ReferenceCorpus, references

BATCH = 64
"""Cases that a worker scores at once."""
JUDGED = 256
"""Cases at once where a model judges: it is asked about those together, and waits at the end of each batch."""
_FEW = 1024
"""Cases that are scored before workers on this machine would have started."""

Times = tuple[tuple[Case, ...], ...]
"""The same cases once for each time that they were asked, each with its reply."""
Places = Mapping[tuple[int | str, int], GoldMatch]


@dataclass(frozen=True)
class Batch:
    """A few cases, and how their gold was found."""

    times: Times
    matches: Places

    def __str__(self) -> str:
        """Return what an error calls it."""
        return f"{len(self.times[0])} cases from {self.times[0][0].id!r}"


@dataclass(frozen=True)
class Scored:
    """What is kept of a few cases."""

    values: tuple[dict[str, Values], ...]
    """Under each metric's name one value a case, for each time that they were asked."""
    rows: list[RowText]
    failed: tuple[list[int], ...]
    """For each time: 1 for a case whose reply is an error."""
    first_errors: tuple[str, ...]
    """For each time: the first error, empty where there is none."""
    refers: bool
    """Whether an answer refers to the law."""
    confidences: list[Told] = field(default_factory=list)
    mismatches: dict[str, Mismatch] = field(default_factory=dict)
    choices: list[Chosen] = field(default_factory=list)
    """The labels that were asked for and chosen."""
    evidence: Evidence = field(default_factory=Evidence)
    """What is missing to judge them by."""


@dataclass(frozen=True)
class Scoring:
    """The work of one worker on a few cases: picklable, so that any engine can run it."""

    options: Options
    names: tuple[str, ...]
    tag: str
    """What the run is called in the files for other tools."""

    def __call__(self, batch: Batch) -> Scored:
        """Return the cases' values and rows."""
        first = batch.times[0]
        errors = [[case.reply.error for case in cases] for cases in batch.times]
        everything = [case for cases in batch.times for case in cases]
        return Scored(
            values=tuple(measure(cases, self.options, names=self.names) for cases in batch.times),
            rows=[row_text(times, batch.matches, tag=self.tag) for times in zip(*batch.times, strict=True)],
            failed=tuple([int(bool(error)) for error in each] for each in errors),
            first_errors=tuple(next(filter(None, each), "") for each in errors),
            refers=any(references(case.reply.answer or "", context=case.question) for case in everything),
            confidences=confidences(first),
            mismatches=totals(first, self.options),
            choices=choices_made(first),
            evidence=Evidence.of(first),
        )


def score(
    batches: Iterable[Batch],
    scoring: Scoring,
    *,
    cases: int,
    engine: str = "local",
    jobs: int | None = None,
    corpus: Callable[[], ReferenceCorpus | None] = lambda: None,
) -> Iterator[Scored]:
    """Yield what is kept of each batch, the same whatever the engine; `corpus` is called when an answer cites the law.

    `cases` says how many there are in all: few are scored here, at once.
    """
    # the judge has one budget, and the corpus is as large as its law: neither is sent about
    sent = replace(scoring.options, judge=None, corpus=None, officials=None)
    here = _Here(scoring, sent, corpus)
    few = engine == "serial" or (engine == "local" and cases <= _FEW)
    under_way: deque[Batch] = deque()

    def noted() -> Iterator[Batch]:
        for batch in batches:
            under_way.append(batch)
            yield batch

    runner = open_engine("serial" if few else engine, jobs=jobs, limits=None)
    for outcome in runner.map(replace(scoring, options=sent), noted()):
        yield here.complete(under_way.popleft(), outcome.unwrap())


class _Here:
    """What is measured in this process alone."""

    def __init__(self, scoring: Scoring, sent: Options, corpus: Callable[[], ReferenceCorpus | None]) -> None:
        self._options, self._sent, self._corpus = scoring.options, sent, corpus

    def complete(self, batch: Batch, scored: Scored) -> Scored:
        """Return what a worker made with the values of the metrics that it could not measure."""
        if scored.refers and self._options.corpus is None:
            self._options = replace(self._options, corpus=self._corpus())
        needs = {name: about(name).needs for name in scored.values[0]}
        names = [n for n, own in needs.items() if lacking(own, self._sent) and not lacking(own, self._options)]
        if not names:
            return scored
        values = (
            own | measure(cases, self._options, names=names)
            for own, cases in zip(scored.values, batch.times, strict=True)
        )
        return replace(scored, values=tuple(values))


def batches_of(rounds: Sequence[Iterable[Case]], located: Places, *, size: int) -> Iterator[Batch]:
    """Yield the cases of all rounds, so many of each at a time."""
    together = zip(*rounds, strict=True)
    waiting: list[tuple[Case, ...]] = []
    for times in together:
        waiting.append(times)
        if len(waiting) == size:
            yield _batch(waiting, located)
            waiting = []
    if waiting:
        yield _batch(waiting, located)


def _batch(waiting: Sequence[tuple[Case, ...]], located: Places) -> Batch:
    keys = [(times[0].id, index) for times in waiting for index in range(len(times[0].gold))]
    return Batch(tuple(zip(*waiting, strict=True)), {key: located[key] for key in keys if key in located})
