"""The replies to a dataset's questions: from the journal where they are there, from the target where they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine import track
from evaluation.cases import Case, Reply
from evaluation.datasets import Dataset
from evaluation.journal import Journal
from evaluation.targets import Target

JOURNAL = "journal.jsonl"


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


def failures_of(cases: Sequence[Case]) -> Failures:
    """Return how many of some replies are errors."""
    errors = [case.reply.error for case in cases if case.reply.error]
    return Failures(len(cases), len(errors), errors[0] if errors else "")


def journal_of(place: Path, dataset: Dataset, target: Target, number: int = 0) -> Journal:
    """Return the journal of the first time that the questions are asked, or of a later one."""
    name = JOURNAL if number == 0 else JOURNAL.replace(".", f"-{number + 1}.")
    return Journal(place / name, dataset.documents, texts=not target.exact)


def left_to_ask(dataset: Dataset, replies: Mapping[int | str, Reply]) -> list[Case]:
    """Return the cases that have no reply, or failed; of a conversation with such a turn, all turns."""
    waiting = [case for case in dataset.cases if case.id not in replies or replies[case.id].error]
    ids = {case.id for case in waiting}
    sessions = {case.session for case in waiting if case.session is not None}
    return [case for case in dataset.cases if case.id in ids or case.session in sessions]


def ask(place: Path, dataset: Dataset, target: Target, number: int = 0) -> list[Case]:
    """Return the cases with their replies; those that are in the journal and did not fail are not asked again."""
    journal = journal_of(place, dataset, target, number)
    replies = journal.read(dataset.cases)
    replies |= {case: Reply(error=reason) for case, reason in dataset.refused.items()}
    left = [case for case in left_to_ask(dataset, replies) if case.id not in dataset.refused]
    with journal.appending() as out:
        asked = track(target.ask(dataset, left), total=len(left), label=f"{dataset.name}: ask", unit="question")
        for position, reply in asked:
            out.add(left[position], reply)
            replies[left[position].id] = reply
    if target.exact:
        return [replace(case, reply=replies[case.id]) for case in dataset.cases]
    cases = track(dataset.cases, total=len(dataset.cases), label=f"{dataset.name}: locate", unit="question")
    return [replace(case, reply=_placed(replies[case.id], dataset)) for case in cases]


def _placed(reply: Reply, dataset: Dataset) -> Reply:
    """Return a reply whose passages have their place, as far as it can be told from their words."""
    return replace(reply, passages=tuple(map(dataset.documents.place, reply.passages)))
