"""The replies to a dataset's questions, and what they score.

They are asked for where they are not in the journal, and read back from there a few at a time; none is kept in memory:
what a run holds of a reply is eight bytes, the place of its line.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

from exhibit.engine import track
from exhibit.evaluation import records
from exhibit.evaluation.case_stages import PreparedDocuments, ceilings_of, stages_of
from exhibit.evaluation.cases import LABELS, Case, Chosen, Reply, choices_made, describe_choices
from exhibit.evaluation.confidence import confidence_of, describe, weighted_means
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.flips import Flips
from exhibit.evaluation.journal import JOURNAL, Id, Journal, TextOf
from exhibit.evaluation.judgement import ANSWERED_RIGHTLY, answered_rightly
from exhibit.evaluation.metrics import CEILING, Options, find_needing, measure
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.provisions import ProvisionPlacer
from exhibit.evaluation.ranking import Mismatch, pool_mismatches, totals
from exhibit.evaluation.stages import GoldStages, StageName
from exhibit.evaluation.statistics import Column, Table, Values, summarise
from exhibit.evaluation.targets import Target
from exhibit.evaluation.verdicts import examine
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, FLIPS, SUMMARY

_NOWHERE = -1
"""The place of a reply that is in no journal, as its question was refused."""


@dataclass(frozen=True)
class Failures:
    """How many questions got no reply, and what the first of those got instead."""

    asked: int
    failed: int
    first: str = ""

    @property
    def share(self) -> float:
        """The failed among those asked."""
        return self.failed / self.asked if self.asked else 0.0

    def __add__(self, other: Failures) -> Failures:
        return Failures(self.asked + other.asked, self.failed + other.failed, self.first or other.first)


def journal_of(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Journal:
    """Return the journal of the first time that the questions are asked, or of a later one."""
    name = JOURNAL if number == 0 else JOURNAL.replace(".", f"-{number + 1}.")
    return Journal(place / name, text_of(dataset, target), texts=not target.exact)


def text_of(dataset: Dataset, target: Target) -> TextOf:
    """Return what gives the text of a document: the target, where it has the texts at hand, else the corpus itself."""
    kept: TextOf | None = getattr(target, "text", None)
    if kept is not None:
        return kept

    def read(filename: str) -> str | None:
        document = dataset.documents.get(filename)
        return None if document is None else document.text

    return read


# ---------------------------------------------------------------- asking


def outcomes(dataset: Dataset, journal: Journal) -> dict[Id, bool]:
    """Return the ids of the questions that have a reply, and whether it is an error."""
    return {kept.id: kept.failed for kept in journal.scan({case.id: case.question for case in dataset.cases})}


def left_to_ask(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases without a reply, then those that failed; of a conversation with such a turn, all turns."""
    waiting = [case for case in dataset.cases if failed.get(case.id, True)]
    ids = {case.id for case in waiting}
    sessions = {case.session for case in waiting if case.session is not None}
    left = [case for case in dataset.cases if case.id in ids or case.session in sessions]
    again = {case.session or case.id for case in left if failed.get(case.id)}
    return sorted(left, key=lambda case: (case.session or case.id) in again)


def to_probe(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases to try a target on where some are left to ask: those that never failed, where there are any."""
    left = left_to_ask(dataset, failed)
    good = [case for case in left if not failed.get(case.id)]
    good = good or [case for case in dataset.cases if failed.get(case.id) is False]
    return good or left if left else []


def ask(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Round:
    """Ask what is not in the journal, or failed; return where the replies are."""
    journal = journal_of(place, dataset, target, number)
    questions = {case.id: case.question for case in dataset.cases}
    places: dict[Id, int] = {}
    failed: dict[Id, bool] = {}
    for kept in journal.scan(questions):
        places[kept.id], failed[kept.id] = kept.at, kept.failed
    failed |= dict.fromkeys(dataset.refused, True)
    left = [case for case in left_to_ask(dataset, failed) if case.id not in dataset.refused]
    place.mkdir(parents=True, exist_ok=True)
    asked = track(target.ask(dataset, left), total=len(left), label=f"{dataset.name}: ask", unit="question")
    for position, reply in asked:
        places[left[position].id] = journal.add(left[position], reply)
    return Round(dataset, journal, places, exact=target.exact)


# ---------------------------------------------------------------- what came back


class Round:
    """The replies to all questions of a dataset, asked once: on disk, and read as often as they are wanted."""

    def __init__(self, dataset: Dataset, journal: Journal, places: Mapping[Id, int], *, exact: bool) -> None:
        """Know where each reply is; passages of a target that is not exact are looked for in the documents."""
        self._dataset, self._journal, self._exact = dataset, journal, exact
        self._provisions = ProvisionPlacer(dataset.documents)
        self._places = array("q", (self._place(case, places) for case in dataset.cases))

    def _place(self, case: Case, places: Mapping[Id, int]) -> int:
        return _NOWHERE if case.id in self._dataset.refused else places[case.id]

    def __iter__(self) -> Iterator[Case]:
        """Yield the cases with their replies, in order; one at a time is read."""
        for case, at in zip(self._dataset.cases, self._places, strict=True):
            if at == _NOWHERE:
                yield replace(case, reply=Reply(error=self._dataset.refused[case.id]))
            else:
                reply = self._journal.read(at)
                yield replace(case, reply=reply if self._exact else self._placed(case, reply))

    def _placed(self, case: Case, reply: Reply) -> Reply:
        """Return a reply whose passages have their place, as far as it can be told from their words."""
        place, named = self._dataset.documents.place, self._provisions.place
        passages = tuple(place(named(passage), case.gold) for passage in reply.passages)
        before = reply.retrieved and tuple(place(named(passage), case.gold) for passage in reply.retrieved)
        cited = self._provisions.cited(reply.answer or "", case.gold)
        return replace(reply, passages=passages, retrieved=before, provisions=cited)


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
    prepared: PreparedDocuments | None = None
    """What the system made of the documents, where that is known."""


def batches_of(rounds: Sequence[Iterable[Case]], *, size: int) -> Iterator[Times]:
    """Yield the cases of all rounds, so many of each at a time."""
    together = zip(*rounds, strict=True)
    while waiting := list(islice(together, size)):
        yield tuple(zip(*waiting, strict=True))


Say = Callable[[str], None]


class Scored:
    """What is known of a dataset's replies when all are scored: 8 bytes a question and metric, and no reply."""

    def __init__(self, place: Path, dataset: Dataset, times: int) -> None:
        self._place, self._dataset = place, dataset
        self._values: tuple[dict[str, Column], ...] = tuple({} for _ in range(times))
        self._failed = tuple(array("b") for _ in range(times))
        self._first_errors = [""] * times
        self._choices: list[Chosen] = []
        self._told: set[StageName] = set()
        """The stages of gold of which anything is known."""
        self.evidence = Evidence()
        """What is missing to judge the replies by."""
        self._flips = Flips()
        self._sure = Column()
        self._wrong: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        place.mkdir(parents=True, exist_ok=True)
        # rows as text without a name, gone with the process: it lives through the measuring of all datasets
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115

    def add(self, times: Times, scoring: Scoring) -> None:
        """Measure the next few cases."""
        first = times[0]
        stages: list[list[list[GoldStages]]] = [
            [stages_of(case, scoring.prepared) for case in cases] for cases in times
        ]
        for number, cases in enumerate(times):
            for name, column in _scores_of(cases, stages[number], scoring).items():
                self._values[number].setdefault(name, Column()).extend(column)
            errors = [case.reply.error for case in cases]
            self._failed[number].extend(map(bool, errors))
            self._first_errors[number] = self._first_errors[number] or next(filter(None, errors), "")
            self._told |= {stage for own in stages[number] for gold in own for stage in gold.known}
        self.evidence.add(first)
        self._choices += choices_made(first)
        self._sure.extend(map(confidence_of, first))
        for name, count in totals(first, scoring.options).items():
            self._wrong[name] += count.wrong
            self._counted[name] += count.passages
        for asked in zip(*times, strict=True) if len(times) > 1 else ():
            self._flips.add(asked)
        followed = zip(*stages, strict=True)
        self._rows.writelines(
            records.row_text(asked, tag=scoring.tag, stages=own)
            for asked, own in zip(zip(*times, strict=True), followed, strict=True)
        )

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
        if self._flips.asked:
            say(self._flips.in_words(self._dataset.name))
        blind: set[str] = set()
        failures = self.failures
        if failures.failed < failures.asked and not self.evidence.passages:
            names = self._values[0]
            blind = {*find_needing(names, "passages"), *find_needing(names, "passage files")}
            if blind:
                say(f"{self._dataset.name}: no reply has passages, so retrieval is not measured")
        # where no reply tells of a stage, gold that was lost before is no share of it
        blind |= {name for name in self._values[0] if name.startswith(CEILING)} - {f"{CEILING}{s}" for s in self._told}
        nothing = Column([None] * len(self._dataset.cases)) if blind else Column()
        tables = [
            table_of(
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
            records.write_rows(self._place, file, table, failed=failed)
        records.write_json(self._place / BREAKDOWN, records.breakdown_json(table))
        counts = {name: Mismatch(self._wrong[name], total) for name, total in self._counted.items()}
        means = records.with_drm_means(summarise(table), pool_mismatches(counts), table)
        records.write_json(self._place / EVIDENCE, self.evidence.as_json(self._dataset.name))
        if self._flips.asked:
            records.write_json(self._place / FLIPS, self._flips.counts.model_dump())
        if self._choices:
            records.write_json(self._place / LABELS, describe_choices(self._choices))
        pairs = zip(self._sure, self._dataset.cases, strict=True)
        answered = [(sure, not case.is_impossible) for sure, case in pairs if sure is not None]
        confidence = describe(answered, weighted_means(table.values, self._sure))
        if confidence is not None:
            records.write_json(self._place / CONFIDENCE, confidence)
        records.write_json(self._place / SUMMARY, records.summary_json(means))


def _scores_of(
    cases: Sequence[Case], stages: Sequence[Sequence[GoldStages]], scoring: Scoring
) -> dict[str, list[float | None]]:
    """Return the values of the metrics asked for; where all are measured, also right answers and gold left by stage."""
    values = measure(cases, scoring.options, names=scoring.names)
    if scoring.names:
        return values
    rows = [{name: column[at] for name, column in values.items()} for at in range(len(cases))]
    right = [answered_rightly(case, examine(case).verdict, row) for case, row in zip(cases, rows, strict=True)]
    left = [ceilings_of(own) for own in stages]
    ceilings = {name: [one[name] for one in left] for name in ceilings_of(())}
    return {ANSWERED_RIGHTLY: right, **values, **ceilings}


def table_of(
    cases: Sequence[Case],
    values: Mapping[str, Values],
    *,
    name: str = "",
    groups: str | None = None,
    failed: Sequence[int] | None = None,
) -> Table:
    """Return the table of some cases and what was measured on them; `failed` where they have no replies."""
    return Table(
        name=name,
        ids=[case.id for case in cases],
        documents=[case.document for case in cases],
        values=values,
        failed=[int(bool(case.reply.error)) for case in cases] if failed is None else failed,
        labels=[case.labels for case in cases],
        groups=groups,
    )


def measure_rounds(place: Path, dataset: Dataset, rounds: Sequence[Iterable[Case]], scoring: Scoring) -> Scored:
    """Score the replies."""
    measured = Scored(place, dataset, len(rounds))
    size = BATCH if scoring.options.judge is None else JUDGED
    total = -(-len(dataset.cases) // size)
    for times in track(batches_of(rounds, size=size), total=total, label=f"{dataset.name}: score", unit="part"):
        measured.add(times, scoring)
    return measured
