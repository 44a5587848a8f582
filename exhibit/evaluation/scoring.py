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
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.confidence import compute_weighted_means, confidence_of, describe
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.journal import JOURNAL, Id, Journal, TextOf
from exhibit.evaluation.label_choices import LABELS, Chosen, describe_choices, find_chosen_label
from exhibit.evaluation.metrics import CEILING, Options, describe_metric, find_needing, limit_gold, measure
from exhibit.evaluation.metrics.retrieval import count_wrong_files
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.outcomes import MARK, Finding, find_outcome, make_outcome_columns
from exhibit.evaluation.score_table import Table, Values
from exhibit.evaluation.stages import GoldStages, PreparedDocuments, StageName, ceilings_of, stages_of
from exhibit.evaluation.statistics import summarise
from exhibit.evaluation.targets import Target
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, SUMMARY, Outcome

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
    """Return a function that maps a file name to the text of that document."""
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
    """Return the cases that still have to be asked: first those without a reply, then those that failed."""
    cases = [case for case in dataset.cases if case.id not in dataset.refused]
    waiting = [case for case in cases if failed.get(case.id, True)]
    ids = {case.id for case in waiting}
    sessions = {case.session for case in waiting if case.session is not None}
    left = [case for case in cases if case.id in ids or case.session in sessions]
    again = {case.session or case.id for case in left if failed.get(case.id)}
    return sorted(left, key=lambda case: (case.session or case.id) in again)


def to_probe(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases from which a probe of the target takes its questions."""
    left = list_left_to_ask(dataset, failed)
    good = [case for case in left if not failed.get(case.id)]
    good = good or [case for case in dataset.cases if failed.get(case.id) is False]
    return good or left if left else []


def ask(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Round:
    """Ask the questions that have no reply yet or only a failed reply, and return the replies to all questions."""
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
        """Store, for each case of the dataset, the offset of its reply in the journal."""
        self._dataset, self._journal, self._exact = dataset, journal, exact
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

    def has_answers(self) -> bool:
        """Return whether the system answers: a reply has an answer, even an empty one, or no question succeeded."""
        replied = False
        for at in self._places:
            reply = self._journal.read(at) if at != _NOWHERE else Reply(error="refused")
            if reply.answer is not None:
                return True
            replied |= not reply.error
        return not replied

    def _place_reply(self, case: Case, reply: Reply) -> Reply:
        """Locate a reply's passages in the documents; return the reply."""
        place = self._dataset.documents.place
        passages = tuple(place(passage, case.gold) for passage in reply.passages)
        before = reply.retrieved and tuple(place(passage, case.gold) for passage in reply.retrieved)
        return replace(reply, passages=passages, retrieved=before)


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
    """Yield the questions in batches of at most `size`."""
    together = zip(*rounds, strict=True)
    while waiting := list(islice(together, size)):
        yield tuple(zip(*waiting, strict=True))


Say = Callable[[str], None]


class Scored:
    """The scores of a dataset's replies; the replies are not kept in memory."""

    def __init__(self, place: Path, dataset: Dataset, times: int, *, answers: bool = True) -> None:
        """Prepare to score replies of `times` rounds; `answers` says whether any reply of the dataset has an answer."""
        self._place, self._dataset, self._answers = place, dataset, answers
        self._outcomes: tuple[list[Outcome], ...] = tuple([] for _ in range(times))
        self._values: tuple[dict[str, list[float | None]], ...] = tuple({} for _ in range(times))
        self._failed = tuple(array("b") for _ in range(times))
        self._first_errors = [""] * times
        self._choices: list[Chosen] = []
        self._told: set[StageName] = set()
        """The stages of gold about which something is known."""
        self.evidence = Evidence()
        """The data that the replies lack."""
        self._sure: list[float | None] = []
        self._wrong: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        place.mkdir(parents=True, exist_ok=True)
        # an unnamed temporary file of rows, which the system deletes with the process; it is open until all datasets
        # are scored
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115

    def add(self, times: Times, scoring: Scoring) -> None:
        """Score the next batch of cases, and write their rows."""
        first = times[0]
        findings: list[list[Finding]] = []
        stages: list[list[list[GoldStages]]] = []
        for number, cases in enumerate(times):
            values = measure(cases, scoring.options, names=scoring.names)
            marks = values.get(MARK) or [None] * len(cases)
            own = [
                find_outcome(case, mark=mark, answers=self._answers) for case, mark in zip(cases, marks, strict=True)
            ]
            followed = [
                stages_of(case, scoring.prepared, finding.outcome) for case, finding in zip(cases, own, strict=True)
            ]
            left = [] if scoring.names else [ceilings_of(one) for one in followed]
            ceilings = {} if scoring.names else {name: [one[name] for one in left] for name in ceilings_of(())}
            for name, column in {**values, **ceilings}.items():
                self._values[number].setdefault(name, []).extend(column)
            findings.append(own)
            stages.append(followed)
            self._outcomes[number].extend(finding.outcome for finding in own)
            errors = [case.reply.error for case in cases]
            self._failed[number].extend(map(bool, errors))
            self._first_errors[number] = self._first_errors[number] or next(filter(None, errors), "")
            self._told |= {stage for gold_stages in followed for gold in gold_stages for stage in gold.known}
        self.evidence.add(first)
        self._choices += list_choices(first)
        self._sure.extend(map(confidence_of, first))
        for case in filter(None, (limit_gold(case, describe_metric("drm").needs, scoring.options) for case in first)):
            for k in scoring.options.ks:
                wrong, known = count_wrong_files(case, k)
                self._wrong[f"drm@{k}"] += wrong
                self._counted[f"drm@{k}"] += known
        per_question = zip(
            zip(*times, strict=True), zip(*findings, strict=True), zip(*stages, strict=True), strict=True
        )
        self._rows.writelines(
            records.format_row(asked, own, followed, tag=scoring.tag) for asked, own, followed in per_question
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
        """Return the table of scores; `say` reports what is not measured."""
        blind: set[str] = set()
        failures = self.failures
        if failures.failed < failures.asked and not self.evidence.passages:
            names = self._values[0]
            blind = {*find_needing(names, "passages"), *find_needing(names, "passage files")}
            if blind:
                say(f"{self._dataset.name}: no reply has passages, so retrieval is not measured")
        # where no reply reports a stage, the share of gold after that stage is unknown
        blind |= {name for name in self._values[0] if name.startswith(CEILING)} - {f"{CEILING}{s}" for s in self._told}
        nothing = [None] * len(self._dataset.cases)
        impossible = [case.is_impossible for case in self._dataset.cases]
        tables = []
        for values, failed, outcomes in zip(self._values, self._failed, self._outcomes, strict=True):
            shares = make_outcome_columns(outcomes, impossible) if self._answers else {}
            own: dict[str, Values] = dict(shares)
            own |= {name: nothing if name in blind else column for name, column in values.items() if name not in shares}
            tables.append(
                table_of(
                    self._dataset.cases, own, name=self._dataset.name, groups=self._dataset.groups, failed=failed,
                    outcomes=outcomes,
                )
            )  # fmt: skip
        return Table.of_repeats(tables)

    def write(self, table: Table, *, failed: float | None) -> None:
        """Write the dataset's result files."""
        with self._rows as file:
            file.seek(0)
            records.write_rows(self._place, file, table, failed=failed)
        records.write_json(self._place / BREAKDOWN, records.make_breakdown_json(table))
        pooled = {name: self._wrong[name] / total if total else None for name, total in self._counted.items()}
        means = records.with_drm_means(summarise(table), pooled, table)
        records.write_json(self._place / EVIDENCE, self.evidence.as_json(self._dataset.name))
        if self._choices:
            records.write_json(self._place / LABELS, describe_choices(self._choices))
        pairs = zip(self._sure, self._dataset.cases, strict=True)
        answered = [(sure, not case.is_impossible) for sure, case in pairs if sure is not None]
        confidence = describe(answered, compute_weighted_means(table.values, self._sure))
        if confidence is not None:
            records.write_json(self._place / CONFIDENCE, confidence)
        records.write_json(self._place / SUMMARY, records.make_summary_json(means))


def table_of(
    cases: Sequence[Case],
    values: Mapping[str, Values],
    *,
    name: str = "",
    groups: str | None = None,
    failed: Sequence[int] | None = None,
    outcomes: Sequence[Outcome] = (),
) -> Table:
    """Return a table with the values of metrics for a list of cases."""
    return Table(
        name=name,
        ids=[case.id for case in cases],
        documents=[case.document for case in cases],
        values=values,
        failed=[int(bool(case.reply.error)) for case in cases] if failed is None else failed,
        labels=[case.labels for case in cases],
        groups=groups,
        outcomes=outcomes,
    )


def measure_rounds(place: Path, dataset: Dataset, rounds: Sequence[Iterable[Case]], scoring: Scoring) -> Scored:
    """Score the replies to a dataset's questions; in each round, every question was asked once."""
    answers = any(one.has_answers() for one in rounds if isinstance(one, Round)) or not isinstance(rounds[0], Round)
    measured = Scored(place, dataset, len(rounds), answers=answers)
    size = BATCH if scoring.options.judge is None else JUDGED
    total = -(-len(dataset.cases) // size)
    for times in track(batches_of(rounds, size=size), total=total, label=f"{dataset.name}: score", unit="part"):
        measured.add(times, scoring)
    return measured


_ABOUT = ("hypothesis", "deal_point")
"""The labels by which confusion tables are separated, where questions have one of them."""


def list_choices(cases: Iterable[Case]) -> list[Chosen]:
    """Return a tuple (subject, right label, chosen label) for each answered question that asks for a label."""
    asked = (case for case in cases if case.choices and case.reply.answer is not None and not case.reply.error)
    return [
        (
            str(next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")),
            str(case.label),
            find_chosen_label(case.reply.answer or "", case.choices) or "",
        )
        for case in asked
    ]
