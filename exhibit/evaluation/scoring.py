"""Ask the questions of a dataset, and score the replies.

A question is asked only if the journal has no reply to it. Replies are read back a few at a time; in
memory, each reply takes only the eight bytes of its offset.
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
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.confidence import compute_weighted_means, confidence_of, describe
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.flips import Flips
from exhibit.evaluation.journal import JOURNAL, Id, Journal, TextOf
from exhibit.evaluation.judgement import prefer_judge
from exhibit.evaluation.label_choices import LABELS, Chosen, describe_choices, find_chosen_label
from exhibit.evaluation.metrics import CEILING, Options, find_needing, measure
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.provisions import ProvisionPlacer
from exhibit.evaluation.ranking import Mismatch, pool_mismatches, total_mismatches
from exhibit.evaluation.score_table import Column, Table, Values
from exhibit.evaluation.stages import GoldStages, StageName
from exhibit.evaluation.statistics import summarise
from exhibit.evaluation.targets import Target
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, FLIPS, SUMMARY

_NOWHERE = -1
"""The offset of a question that was refused and has no reply in the journal."""


@dataclass(frozen=True)
class Failures:
    """The numbers of questions asked and failed, and the error message of the first failure."""

    asked: int
    failed: int
    first: str = ""

    @property
    def share(self) -> float:
        """The share of failed questions."""
        return self.failed / self.asked if self.asked else 0.0

    def __add__(self, other: Failures) -> Failures:
        return Failures(self.asked + other.asked, self.failed + other.failed, self.first or other.first)


def journal_of(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Journal:
    """Return the journal of one round, in which every question is asked once; rounds are numbered from 0."""
    name = JOURNAL if number == 0 else JOURNAL.replace(".", f"-{number + 1}.")
    return Journal(place / name, text_of(dataset, target), texts=not target.exact)


def text_of(dataset: Dataset, target: Target) -> TextOf:
    """Return a function that maps a file name to the text of that document.

    If the target provides texts of its own, the function returns the target's text, otherwise the text in the
    dataset. None stands for a missing document.
    """
    kept: TextOf | None = getattr(target, "text", None)
    if kept is not None:
        return kept

    def read(filename: str) -> str | None:
        document = dataset.documents.get(filename)
        return None if document is None else document.text

    return read


# ---------------------------------------------------------------- asking


def find_failures(dataset: Dataset, journal: Journal) -> dict[Id, bool]:
    """Return, for each question with a reply in the journal, whether the reply is an error."""
    return {kept.id: kept.failed for kept in journal.scan({case.id: case.question for case in dataset.cases})}


def list_left_to_ask(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases that still have to be asked: first those without a reply, then those that failed.

    If one turn of a conversation has to be asked, all its turns are included. Questions that cannot be scored
    (`dataset.refused`) are left out.
    """
    cases = [case for case in dataset.cases if case.id not in dataset.refused]
    waiting = [case for case in cases if failed.get(case.id, True)]
    ids = {case.id for case in waiting}
    sessions = {case.session for case in waiting if case.session is not None}
    left = [case for case in cases if case.id in ids or case.session in sessions]
    again = {case.session or case.id for case in left if failed.get(case.id)}
    return sorted(left, key=lambda case: (case.session or case.id) in again)


def to_probe(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases from which a probe of the target takes its questions.

    The list is empty if no question is left to ask. Cases whose last reply failed are used only if there are no
    others.
    """
    left = list_left_to_ask(dataset, failed)
    good = [case for case in left if not failed.get(case.id)]
    good = good or [case for case in dataset.cases if failed.get(case.id) is False]
    return good or left if left else []


def ask(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Round:
    """Ask the questions that have no reply yet or only a failed reply, and return the replies to all questions.

    Earlier replies are read from the journal, the file in the folder `place` to which each reply is added.
    `number` is the number of the round.
    """
    journal = journal_of(place, dataset, target, number)
    questions = {case.id: case.question for case in dataset.cases}
    places: dict[Id, int] = {}
    failed: dict[Id, bool] = {}
    for kept in journal.scan(questions):
        places[kept.id], failed[kept.id] = kept.at, kept.failed
    left = list_left_to_ask(dataset, failed)
    place.mkdir(parents=True, exist_ok=True)
    asked = track(target.ask(dataset, left), total=len(left), label=f"{dataset.name}: ask", unit="question")
    for position, reply in asked:
        places[left[position].id] = journal.add(left[position], reply)
    return Round(dataset, journal, places, exact=target.exact)


# ---------------------------------------------------------------- what came back


class Round:
    """The replies to all questions of a dataset in one round; they are on disk and can be read several times."""

    def __init__(self, dataset: Dataset, journal: Journal, places: Mapping[Id, int], *, exact: bool) -> None:
        """Store, for each case of the dataset, the offset of its reply in the journal.

        When a reply is read, its passages are located in the documents. With `exact`, they are not located, because
        the target itself gives the positions of its passages.
        """
        self._dataset, self._journal, self._exact = dataset, journal, exact
        self._provisions = ProvisionPlacer(dataset.documents)
        self._places = array("q", (self._place(case, places) for case in dataset.cases))

    def _place(self, case: Case, places: Mapping[Id, int]) -> int:
        return _NOWHERE if case.id in self._dataset.refused else places[case.id]

    def __iter__(self) -> Iterator[Case]:
        """Yield the cases with their replies, in order, reading one at a time."""
        for case, at in zip(self._dataset.cases, self._places, strict=True):
            if at == _NOWHERE:
                yield replace(case, reply=Reply(error=self._dataset.refused[case.id]))
            else:
                reply = self._journal.read(at)
                yield replace(case, reply=reply if self._exact else self._place_reply(case, reply))

    def _place_reply(self, case: Case, reply: Reply) -> Reply:
        """Locate a reply's passages, and the provisions that its answer cites, in the documents; return the reply."""
        place, named = self._dataset.documents.place, self._provisions.place
        passages = tuple(place(named(passage), case.gold) for passage in reply.passages)
        before = reply.retrieved and tuple(place(named(passage), case.gold) for passage in reply.retrieved)
        cited = self._provisions.cited(reply.answer or "", case.gold)
        return replace(reply, passages=passages, retrieved=before, provisions=cited)


BATCH = 64
"""The number of cases that are scored together."""
JUDGED = 256
"""The number of cases that are scored together with a judge, which gets them in one batch."""

Times = tuple[tuple[Case, ...], ...]
"""The same cases once for each round, each with its reply."""


@dataclass(frozen=True)
class Scoring:
    """The metrics to compute, and their options."""

    options: Options
    names: tuple[str, ...]
    tag: str
    """The name of the run in the files for other tools."""
    prepared: PreparedDocuments | None = None
    """The system's texts and chunks of the documents, where they are known."""


def batches_of(rounds: Sequence[Iterable[Case]], *, size: int) -> Iterator[Times]:
    """Yield the questions in batches of at most `size`.

    Every question is asked once in each round. A batch has one tuple of cases for each round, all about the
    same questions.
    """
    together = zip(*rounds, strict=True)
    while waiting := list(islice(together, size)):
        yield tuple(zip(*waiting, strict=True))


Say = Callable[[str], None]


class Scored:
    """The scores of a dataset's replies, 8 bytes per question and metric; the replies are not kept in memory."""

    def __init__(self, place: Path, dataset: Dataset, times: int) -> None:
        self._place, self._dataset = place, dataset
        self._values: tuple[dict[str, Column], ...] = tuple({} for _ in range(times))
        self._failed = tuple(array("b") for _ in range(times))
        self._first_errors = [""] * times
        self._choices: list[Chosen] = []
        self._told: set[StageName] = set()
        """The stages of gold about which something is known."""
        self.evidence = Evidence()
        """The data that the replies lack."""
        self._flips = Flips()
        self._sure = Column()
        self._wrong: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        place.mkdir(parents=True, exist_ok=True)
        # an unnamed temporary file of rows, which the system deletes with the process; it is open until all datasets
        # are scored
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115

    def add(self, times: Times, scoring: Scoring) -> None:
        """Score the next batch of cases, and write their rows.

        `times` has one tuple for each round of asking: the same cases, with the replies of that round.
        """
        first = times[0]
        stages: list[list[list[GoldStages]]] = [
            [stages_of(case, scoring.prepared) for case in cases] for cases in times
        ]
        for number, cases in enumerate(times):
            for name, column in _measure_cases(cases, stages[number], scoring).items():
                self._values[number].setdefault(name, Column()).extend(column)
            errors = [case.reply.error for case in cases]
            self._failed[number].extend(map(bool, errors))
            self._first_errors[number] = self._first_errors[number] or next(filter(None, errors), "")
            self._told |= {stage for own in stages[number] for gold in own for stage in gold.known}
        self.evidence.add(first)
        self._choices += list_choices(first)
        self._sure.extend(map(confidence_of, first))
        for name, count in total_mismatches(first, scoring.options).items():
            self._wrong[name] += count.wrong
            self._counted[name] += count.passages
        for asked in zip(*times, strict=True) if len(times) > 1 else ():
            self._flips.add(asked)
        followed = zip(*stages, strict=True)
        self._rows.writelines(
            records.format_row(asked, tag=scoring.tag, stages=own)
            for asked, own in zip(zip(*times, strict=True), followed, strict=True)
        )

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self._dataset.name

    @property
    def failures(self) -> Failures:
        """The number of replies that are errors, over all rounds, and the first error."""
        failed = sum(map(sum, self._failed))
        return Failures(sum(map(len, self._failed)), failed, next(filter(None, self._first_errors), ""))

    def table(self, say: Say) -> Table:
        """Return the table of scores; `say` reports what is not measured.

        If no reply of the dataset has passages, the metrics that need passages are None: the system does not report
        its passages, and a score of 0 would wrongly mean that it retrieved nothing.
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
        # where no reply reports a stage, the share of gold after that stage is unknown
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
        """Write the dataset's result files.

        `table` has only the metrics that apply to the run. `failed` is the score that failed questions get in the
        rows.
        """
        with self._rows as file:
            file.seek(0)
            records.write_rows(self._place, file, table, failed=failed)
        records.write_json(self._place / BREAKDOWN, records.make_breakdown_json(table))
        counts = {name: Mismatch(self._wrong[name], total) for name, total in self._counted.items()}
        means = records.with_drm_means(summarise(table), pool_mismatches(counts), table)
        records.write_json(self._place / EVIDENCE, self.evidence.as_json(self._dataset.name))
        if self._flips.asked:
            records.write_json(self._place / FLIPS, self._flips.counts.model_dump())
        if self._choices:
            records.write_json(self._place / LABELS, describe_choices(self._choices))
        pairs = zip(self._sure, self._dataset.cases, strict=True)
        answered = [(sure, not case.is_impossible) for sure, case in pairs if sure is not None]
        confidence = describe(answered, compute_weighted_means(table.values, self._sure))
        if confidence is not None:
            records.write_json(self._place / CONFIDENCE, confidence)
        records.write_json(self._place / SUMMARY, records.make_summary_json(means))


def _measure_cases(
    cases: Sequence[Case], stages: Sequence[Sequence[GoldStages]], scoring: Scoring
) -> dict[str, list[float | None]]:
    """Return, for each metric, its values for all cases.

    If `scoring` names metrics, only these are computed. Otherwise all metrics are computed, together with the
    share of gold that is left after each stage of the system.
    """
    values = prefer_judge(measure(cases, scoring.options, names=scoring.names))
    if scoring.names:
        return values
    left = [ceilings_of(own) for own in stages]
    ceilings = {name: [one[name] for one in left] for name in ceilings_of(())}
    return {**values, **ceilings}


def table_of(
    cases: Sequence[Case],
    values: Mapping[str, Values],
    *,
    name: str = "",
    groups: str | None = None,
    failed: Sequence[int] | None = None,
) -> Table:
    """Return a table with the values of metrics for a list of cases.

    `failed` has the number of failed replies for each case; by default it is read from the replies of the
    cases.
    """
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
    """Score the replies to a dataset's questions; in each round, every question was asked once."""
    measured = Scored(place, dataset, len(rounds))
    size = BATCH if scoring.options.judge is None else JUDGED
    total = -(-len(dataset.cases) // size)
    for times in track(batches_of(rounds, size=size), total=total, label=f"{dataset.name}: score", unit="part"):
        measured.add(times, scoring)
    return measured


_ABOUT = ("hypothesis", "deal_point")
"""The labels by which confusion tables are separated, where questions have one of them."""


def list_choices(cases: Iterable[Case]) -> list[Chosen]:
    """Return a tuple (subject, right label, chosen label) for each answered question that asks for a label.

    The subject is the question's label `hypothesis` or `deal_point`; it is empty without these labels. The
    chosen label is empty if the reply names no label.
    """
    asked = (case for case in cases if case.choices and case.reply.answer is not None and not case.reply.error)
    return [
        (
            str(next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")),
            str(case.label),
            find_chosen_label(case.reply.answer or "", case.choices) or "",
        )
        for case in asked
    ]
