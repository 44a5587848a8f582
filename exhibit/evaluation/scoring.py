"""Score the replies to a dataset's questions, a few at a time, and write the dataset's result files."""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from exhibit.engine import track
from exhibit.evaluation import records
from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.metrics import CEILING, Options, describe_metric, find_needing, limit_gold, measure
from exhibit.evaluation.metrics.retrieval import count_wrong_files
from exhibit.evaluation.missing import Evidence
from exhibit.evaluation.outcomes import (
    LABELS,
    MARK,
    Chosen,
    describe_choices,
    find_outcome,
    list_choices,
    make_outcome_columns,
)  # fmt: skip
from exhibit.evaluation.stages import PreparedDocuments, ceilings_of, stages_of
from exhibit.evaluation.statistics import Table, Values, compute_macro_mean, summarise, summarise_confidences
from exhibit.schemas.run import BREAKDOWN, CONFIDENCE, EVIDENCE, SUMMARY, Outcome

BATCH = 64
"""The number of cases that are scored together."""
JUDGED = 256
"""The number of cases that a judge gets in one batch."""


class Scored:
    """The scores of a dataset's replies; the replies are not kept in memory."""

    def __init__(
        self, place: Path, dataset: Dataset, replied: Iterable[Case], options: Options, *,
        names: Sequence[str] = (), tag: str = "", answers: bool = True, prepared: PreparedDocuments | None = None,
        repeats: "Sequence[Scored]" = (),
    ) -> None:  # fmt: skip
        """Score the replied cases with the metrics `names` or, if empty, with all metrics.

        `answers` says whether any reply has an answer, `tag` names the run in files for other tools, and `prepared` has
        the system's texts and chunks of the documents, if known. `repeats` are the scores of further replies to the
        same questions.
        """
        self.name, self.evidence, self.first_error = dataset.name, Evidence(), ""
        self._rounds = (self, *repeats)
        self._place, self._dataset, self._options, self._names, self._tag = place, dataset, options, names, tag
        self._answers, self._prepared = answers, prepared
        self._values: dict[str, list[float | None]] = defaultdict(list)
        self._outcomes: list[Outcome] = []
        self._choices: list[Chosen] = []
        self._known_stages = set[str]()
        self._confidences: list[float | None] = []
        self._drm = {f"drm@{k}": Counter[str]() for k in options.ks}
        """The numbers of passages from wrong files, and of all passages whose file is known."""
        place.mkdir(parents=True, exist_ok=True)
        # an unnamed temporary file of rows, which the operating system deletes when the process ends
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115
        size = BATCH if options.judge is None else JUDGED
        cases = iter(replied)
        batches = iter(lambda: list(islice(cases, size)), [])
        total = -(-len(dataset.cases) // size)
        for batch in track(batches, total=total, label=f"{dataset.name}: score", unit="part"):
            self._add(batch)
        self.first_error = next((scored.first_error for scored in self._rounds if scored.first_error), "")

    def _add(self, cases: Sequence[Case]) -> None:
        """Score the next cases and write their rows."""
        columns = measure(cases, self._options, names=self._names)
        for name, column in columns.items():
            self._values[name] += column
        for case, mark in zip(cases, columns.get(MARK) or [None] * len(cases), strict=True):
            finding = find_outcome(case, mark=mark, answers=self._answers)
            stages = stages_of(case, self._prepared, finding.outcome)
            notes = self.evidence.add(case)
            self._rows.write(records.format_row(case, finding, stages, notes=notes, tag=self._tag))
            self._outcomes.append(finding.outcome)
            self.first_error = self.first_error or case.reply.error
            self._known_stages |= {key for gold in stages for key in gold}
            for name, left in ceilings_of(stages).items() if not self._names else ():
                self._values[name].append(left)
        self._choices += list_choices(cases)
        self._confidences += [None if case.reply.error else case.reply.confidence for case in cases]
        needs = describe_metric("drm").needs
        for case in filter(None, (limit_gold(case, needs, self._options) for case in cases)):
            for k in self._options.ks:
                wrong, known = count_wrong_files(case, k)
                self._drm[f"drm@{k}"].update(wrong=wrong, known=known)

    def table(self, say: Callable[[str], None]) -> Table:
        """Return the table of scores, of all rounds together; `say` reports what is not measured."""
        first, *others = self._rounds
        return Table.of_rounds([first._make_table(say), *(other._make_table(lambda _: None) for other in others)])

    def _make_table(self, say: Callable[[str], None]) -> Table:
        names = self._values
        # if no reply reports a stage, the share of gold after that stage is unknown
        unknown = {name for name in names if name.startswith(CEILING)} - {f"{CEILING}{s}" for s in self._known_stages}
        failed = [outcome is Outcome.FAILED for outcome in self._outcomes]
        if not self.evidence.passages and not all(failed):
            needing = {*find_needing(names, "passages"), *find_needing(names, "passage files")}
            unknown |= needing
            if needing:
                say(f"{self.name}: no reply has passages, so retrieval is not measured")
        nothing = [None] * len(self._dataset.cases)
        impossible = [case.is_impossible for case in self._dataset.cases]
        columns = {name: nothing if name in unknown else column for name, column in self._values.items()}
        shares = make_outcome_columns(self._outcomes, impossible) if self._answers else {}
        return table_of(
            self._dataset.cases, {**shares, **columns, **shares}, name=self.name, groups=self._dataset.groups,
            failed=failed, outcomes=self._outcomes,
        )  # fmt: skip

    def write(self, table: Table, *, failed: float | None) -> None:
        with ExitStack() as opened:
            rows = [opened.enter_context(scored._rows) for scored in self._rounds]
            for file in rows:
                file.seek(0)
            records.write_rows(self._place, zip(*rows, strict=True), table, failed=failed)
        breakdown = {
            label: {value: records.make_summary_json(means) for value, means in groups.items()}
            for label, groups in records.compute_breakdown(table).items()
        }
        records.write_json(self._place / BREAKDOWN, breakdown)
        means = summarise(table)
        for name, counts in self._drm.items():
            if counts and name in means:  # also the share over all passages, and the mean over documents
                pooled = counts["wrong"] / counts["known"] if counts["known"] else None
                macro = compute_macro_mean(table.values[name], table.documents)
                means[name] = replace(means[name], pooled=pooled, macro=macro)
        records.write_json(self._place / EVIDENCE, {"lines": self.evidence.lines(self.name)})
        if self._choices:
            records.write_json(self._place / LABELS, describe_choices(self._choices))
        answerable = [not case.is_impossible for case in self._dataset.cases]
        if confidence := summarise_confidences(self._confidences, answerable, table.values):
            records.write_json(self._place / CONFIDENCE, confidence)
        records.write_json(self._place / SUMMARY, records.make_summary_json(means))


def table_of(cases: Sequence[Case], values: Mapping[str, Values], **fields: Any) -> Table:
    """Return a table with the values of metrics for a list of cases; `fields` are further fields of the table."""
    failed = [bool(case.reply.error) for case in cases]
    return Table(
        ids=[case.id for case in cases],
        documents=[case.document for case in cases],
        labels=[case.labels for case in cases],
        values=values,
        **{"name": "", "failed": failed, **fields},
    )
