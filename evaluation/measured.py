"""A dataset as it is measured: columns of values in memory, rows on disk, and its files when the run is complete."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from exhibit.engine import track
from exhibit.evaluation.cases import Case
from exhibit.evaluation.choices import LABELS, Chosen, describe_choices
from exhibit.evaluation.columns import Column
from exhibit.evaluation.confidence import describe
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.metrics import needing
from exhibit.evaluation.metrics.drm import Mismatch, pooled
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.ranking import Lines
from exhibit.evaluation.records import RowText, breakdown, summary_json, with_drm_means, write_json, write_rows
from exhibit.evaluation.replies import Failures, Round
from exhibit.evaluation.scoring import BATCH, JUDGED, Scored, Scoring, batches_of, score
from exhibit.evaluation.statistics import Table, summarise
from exhibit.law.references import ReferenceCorpus
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, SUMMARY

Say = Callable[[str], None]


class Rows:
    """Rows as text in a file without a name, gone with the process: read back once, in order."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # lives as long as this object, through the measuring of all datasets
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, rows: Sequence[RowText]) -> None:
        """Put rows behind those there are."""
        self._file.writelines(json.dumps(row).encode("ascii") + b"\n" for row in rows)

    def __iter__(self) -> Iterator[RowText]:
        self._file.seek(0)
        for line in self._file:
            row, trec = json.loads(line)
            yield RowText(row, Lines(*trec))

    def close(self) -> None:
        """Give the space back."""
        self._file.close()


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
        self._sure, self._exists = array("d"), array("b")
        self._wrong: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._rows = Rows(place)

    def add(self, scored: Scored) -> None:
        """Add what was made of the next few cases."""
        for number, values in enumerate(scored.values):
            for name, column in values.items():
                self._values[number].setdefault(name, Column()).extend(column)
            self._failed[number].extend(scored.failed[number])
            self._first_errors[number] = self._first_errors[number] or scored.first_errors[number]
        self.evidence += scored.evidence
        self._choices += scored.choices
        self._sure.extend(confidence for confidence, _ in scored.confidences)
        self._exists.extend(exists for _, exists in scored.confidences)
        self._wrong.update({name: count.wrong for name, count in scored.mismatches.items()})
        self._counted.update({name: count.passages for name, count in scored.mismatches.items()})
        self._rows.add(scored.rows)

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
            replace(
                _table(self._dataset, {name: nothing if name in blind else own for name, own in values.items()}),
                failed=failed,
            )
            for values, failed in zip(self._values, self._failed, strict=True)
        ]
        return Table.of_repeats(tables)

    def write(self, table: Table, *, failed: float | None) -> None:
        """Write the dataset's files, now that it is known which metrics apply to the run."""
        write_rows(self._place, self._rows, table, failed=failed)
        self._rows.close()
        write_json(self._place / BREAKDOWN, breakdown(table))
        counts = {name: Mismatch(self._wrong[name], total) for name, total in self._counted.items()}
        means = with_drm_means(summarise(table), pooled(counts), table)
        write_json(self._place / EVIDENCE, self.evidence.as_json(self._dataset.name))
        if self._choices:
            write_json(self._place / LABELS, describe_choices(self._choices))
        confidence = describe([(sure, bool(exists)) for sure, exists in zip(self._sure, self._exists, strict=True)])
        if confidence is not None:
            write_json(self._place / CONFIDENCE, confidence)
        write_json(self._place / SUMMARY, summary_json(means))


def _table(dataset: Dataset, values: dict[str, Column]) -> Table:
    cases: Sequence[Case] = dataset.cases
    return Table.of(cases, values, name=dataset.name, groups=dataset.groups)


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
