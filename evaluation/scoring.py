"""Scoring as replies are read from disk, a few cases at a time; neither they nor their replies are kept."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

from exhibit.engine import track
from exhibit.evaluation import records
from exhibit.evaluation.cases import LABELS, Case, Chosen, choices_made, describe_choices
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.diagnostics import Evidence, confidence_of, describe, weighted_means
from exhibit.evaluation.metrics import Options, measure, needing
from exhibit.evaluation.metrics.drm import Mismatch, pooled, totals
from exhibit.evaluation.ranking import Lines
from exhibit.evaluation.replies import Failures
from exhibit.evaluation.statistics import Column, Table, summarise
from exhibit.law.references import ReferenceCorpus, references
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, SUMMARY

BATCH = 64
"""Cases that are scored at once."""
JUDGED = 256
"""Cases at once where a model judges: it is asked about those together, and waits at the end of each batch."""

Times = tuple[tuple[Case, ...], ...]
"""The same cases once for each time that they were asked, each with its reply."""


@dataclass(frozen=True)
class Scoring:
    """What is measured."""

    options: Options
    names: tuple[str, ...]
    tag: str
    """What the run is called in the files for other tools."""


def batches_of(rounds: Sequence[Iterable[Case]], *, size: int) -> Iterator[Times]:
    """Yield the cases of all rounds, so many of each at a time."""
    together = zip(*rounds, strict=True)
    while waiting := list(islice(together, size)):
        yield tuple(zip(*waiting, strict=True))


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

    def add(self, times: Times, scoring: Scoring) -> None:
        """Measure the next few cases."""
        first = times[0]
        for number, cases in enumerate(times):
            for name, column in measure(cases, scoring.options, names=scoring.names).items():
                self._values[number].setdefault(name, Column()).extend(column)
            errors = [case.reply.error for case in cases]
            self._failed[number].extend(map(bool, errors))
            self._first_errors[number] = self._first_errors[number] or next(filter(None, errors), "")
        self.evidence.add(first)
        self._choices += choices_made(first)
        self._sure.extend(map(confidence_of, first))
        for name, count in totals(first, scoring.options).items():
            self._wrong[name] += count.wrong
            self._counted[name] += count.passages
        rows = (records.row_text(asked, self._dataset.matches, tag=scoring.tag) for asked in zip(*times, strict=True))
        self._rows.writelines(json.dumps(row).encode("ascii") + b"\n" for row in rows)

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
    rounds: Sequence[Iterable[Case]],
    scoring: Scoring,
    *,
    corpus: Callable[[], ReferenceCorpus | None],
) -> Measured:
    """Score the replies; `corpus` is called when an answer cites the law."""
    measured = Measured(place, dataset, len(rounds))
    size = BATCH if scoring.options.judge is None else JUDGED
    total = -(-len(dataset.cases) // size)
    for times in track(batches_of(rounds, size=size), total=total, label=f"{dataset.name}: score", unit="part"):
        if scoring.options.corpus is None and any(_refers(case) for cases in times for case in cases):
            scoring = replace(scoring, options=replace(scoring.options, corpus=corpus()))
        measured.add(times, scoring)
    return measured


def _refers(case: Case) -> bool:
    """Return whether an answer refers to the law."""
    return bool(references(case.reply.answer or "", context=case.question))
