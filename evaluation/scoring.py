"""Scoring as a map over cases, which workers share: a metric's value for a case depends on that case alone.

A worker is sent a few cases with their replies, and returns their values and their rows as text; neither it nor the
run keeps the replies.
"""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO

from exhibit.engine import open_engine, track
from exhibit.evaluation import records
from exhibit.evaluation.cases import LABELS, Case, Chosen, Values, choices_made, describe_choices
from exhibit.evaluation.datasets import Dataset, GoldMatch
from exhibit.evaluation.diagnostics import Evidence, confidence_of, describe, weighted_means
from exhibit.evaluation.metrics import Options, about, lacking, measure, needing
from exhibit.evaluation.metrics.drm import Mismatch, pooled, totals
from exhibit.evaluation.ranking import Lines
from exhibit.evaluation.replies import Failures, Round
from exhibit.evaluation.statistics import Column, Table, summarise
from exhibit.law.references import ReferenceCorpus, references
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, SUMMARY

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
    rows: list[records.RowText]
    failed: tuple[list[int], ...]
    """For each time: 1 for a case whose reply is an error."""
    first_errors: tuple[str, ...]
    """For each time: the first error, empty where there is none."""
    refers: bool
    """Whether an answer refers to the law."""
    confidences: Values = field(default_factory=list)
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
            rows=[records.row_text(times, batch.matches, tag=self.tag) for times in zip(*batch.times, strict=True)],
            failed=tuple([int(bool(error)) for error in each] for each in errors),
            first_errors=tuple(next(filter(None, each), "") for each in errors),
            refers=any(references(case.reply.answer or "", context=case.question) for case in everything),
            confidences=[confidence_of(case) for case in first],
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
    here, sent = scoring.options, replace(scoring.options, judge=None, corpus=None, officials=None)
    few = engine == "serial" or (engine == "local" and cases <= _FEW)
    under_way: deque[Batch] = deque()

    def noted() -> Iterator[Batch]:
        for batch in batches:
            under_way.append(batch)
            yield batch

    runner = open_engine("serial" if few else engine, jobs=jobs, limits=None)
    for outcome in runner.map(replace(scoring, options=sent), noted()):
        batch, scored = under_way.popleft(), outcome.unwrap()
        if scored.refers and here.corpus is None:
            here = replace(here, corpus=corpus())
        # what a worker could not measure
        needs = {name: about(name).needs for name in scored.values[0]}
        names = [name for name, own in needs.items() if lacking(own, sent) and not lacking(own, here)]
        pairs = zip(scored.values, batch.times, strict=True)
        more = tuple(own | measure(times, here, names=names) for own, times in pairs) if names else scored.values
        yield replace(scored, values=more)


def batches_of(rounds: Sequence[Iterable[Case]], located: Places, *, size: int) -> Iterator[Batch]:
    """Yield the cases of all rounds, so many of each at a time."""
    together = zip(*rounds, strict=True)
    while waiting := list(islice(together, size)):
        keys = [(times[0].id, index) for times in waiting for index in range(len(times[0].gold))]
        yield Batch(tuple(zip(*waiting, strict=True)), {key: located[key] for key in keys if key in located})


Say = Callable[[str], None]


class Measured:
    """What is known of a dataset's replies when all are scored: 8 bytes a question and metric, and no reply."""

    def __init__(self, place: Path, dataset: Dataset, times: int) -> None:
        self._place, self._dataset = place, dataset
        self._values: tuple[dict[str, Column], ...] = tuple({} for _ in range(times))
        self._failed = tuple(array("b") for _ in range(times))
        self._first_errors = [""] * times
        self._choices: list[Chosen] = []
        self.evidence = Evidence()
        """What is missing to judge the replies by."""
        self._sure = Column()
        self._wrong: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        place.mkdir(parents=True, exist_ok=True)
        # rows as text without a name, gone with the process: it lives through the measuring of all datasets
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115

    def add(self, scored: Scored) -> None:
        """Add what was made of the next few cases."""
        for number, values in enumerate(scored.values):
            for name, column in values.items():
                self._values[number].setdefault(name, Column()).extend(column)
            self._failed[number].extend(scored.failed[number])
            self._first_errors[number] = self._first_errors[number] or scored.first_errors[number]
        self.evidence += scored.evidence
        self._choices += scored.choices
        self._sure.extend(scored.confidences)
        self._wrong.update({name: count.wrong for name, count in scored.mismatches.items()})
        self._counted.update({name: count.passages for name, count in scored.mismatches.items()})
        self._rows.writelines(json.dumps(row).encode("ascii") + b"\n" for row in scored.rows)

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self._dataset.name

    @property
    def failures(self) -> Failures:
        """How many replies are errors, of all times that the questions were asked."""
        failed = sum(map(sum, self._failed))
        return Failures(sum(map(len, self._failed)), failed, next(filter(None, self._first_errors), ""))

    def table(self, say: Say) -> Table:
        """Return the values, those of metrics that need passages as None where no reply has any.

        A system that does not tell what it retrieved has not retrieved nothing: that would be a zero.
        """
        blind: set[str] = set()
        failures = self.failures
        if failures.failed < failures.asked and not self.evidence.passages:
            names = self._values[0]
            blind = {*needing(names, "passages"), *needing(names, "passage files")}
            if blind:
                say(f"{self._dataset.name}: no reply has passages, so retrieval is not measured")
        nothing = Column([None] * len(self._dataset.cases)) if blind else Column()
        tables = [
            Table.of(
                self._dataset.cases,
                {name: nothing if name in blind else own for name, own in values.items()},
                name=self._dataset.name,
                groups=self._dataset.groups,
                failed=failed,
            )
            for values, failed in zip(self._values, self._failed, strict=True)
        ]
        return Table.of_repeats(tables)

    def write(self, table: Table, *, failed: float | None) -> None:
        """Write the dataset's files, now that it is known which metrics apply to the run."""
        with self._rows as file:
            file.seek(0)
            rows = (records.RowText(row, Lines(*trec)) for row, trec in map(json.loads, file))
            records.write_rows(self._place, rows, table, failed=failed)
        records.write_json(self._place / BREAKDOWN, records.breakdown(table))
        counts = {name: Mismatch(self._wrong[name], total) for name, total in self._counted.items()}
        means = records.with_drm_means(summarise(table), pooled(counts), table)
        records.write_json(self._place / EVIDENCE, self.evidence.as_json(self._dataset.name))
        if self._choices:
            records.write_json(self._place / LABELS, describe_choices(self._choices))
        pairs = zip(self._sure, self._dataset.cases, strict=True)
        told = [(sure, not case.is_impossible) for sure, case in pairs if sure is not None]
        confidence = describe(told, weighted_means(table.values, self._sure))
        if confidence is not None:
            records.write_json(self._place / CONFIDENCE, confidence)
        records.write_json(self._place / SUMMARY, records.summary_json(means))


def measure_rounds(
    place: Path,
    dataset: Dataset,
    rounds: Sequence[Round],
    scoring: Scoring,
    *,
    engine: str,
    jobs: int | None,
    corpus: Callable[[], ReferenceCorpus | None],
) -> Measured:
    """Score the replies as they are read from disk."""
    measured = Measured(place, dataset, len(rounds))
    total = len(dataset.cases)
    size = BATCH if scoring.options.judge is None else JUDGED
    batches = batches_of(rounds, dataset.matches, size=size)
    scored = score(batches, scoring, cases=total * len(rounds), engine=engine, jobs=jobs, corpus=corpus)
    for one in track(scored, total=-(-total // size), label=f"{dataset.name}: score", unit="part"):
        measured.add(one)
    return measured
