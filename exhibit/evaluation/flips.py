"""Measure how often the verdict, the cited files and the answer of a question change when it is asked several times."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from exhibit.evaluation.answer_words import find_cited_files, split_words, without_citations
from exhibit.evaluation.cases import Case
from exhibit.evaluation.verdicts import examine
from exhibit.schemas.run import FlipCounts, QuestionFlips

_SHOWN = 20
"""The number of questions that are listed, the most unstable first."""


def flips_of(times: Sequence[Case]) -> QuestionFlips | None:
    """Return how many replies to one question differ from the most frequent reply.

    Verdict, cited files and answer are counted separately. None if fewer than two replies are valid.
    """
    replied = [case for case in times if not case.reply.error]
    if len(replied) < 2:
        return None
    return QuestionFlips(
        id=replied[0].id,
        asked=len(replied),
        verdict=_count_rare([examine(case).verdict for case in replied]),
        files=_count_rare([frozenset(find_cited_files(case)) for case in replied]),
        answer=_count_rare([tuple(split_words(without_citations(case.reply.answer or ""))) for case in replied]),
    )


def _count_rare(values: Sequence[Hashable]) -> int:
    """Return how many values differ from the most frequent one."""
    return len(values) - Counter(values).most_common(1)[0][1]


@dataclass
class Flips:
    """A counter of the questions in a dataset whose repeated replies differ."""

    asked: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    questions: list[QuestionFlips] = field(default_factory=list)

    def add(self, times: Sequence[Case]) -> None:
        """Count the differences between the repeated replies to one question."""
        one = flips_of(times)
        if one is None:
            return
        self.asked += 1
        for name in ("verdict", "files", "answer"):
            self.changed[name] += bool(getattr(one, name))
        if one.verdict or one.files or one.answer:
            self.questions.append(one)

    @property
    def counts(self) -> FlipCounts:
        """The content of flips.json: how many questions get different replies when asked again, and the worst 20."""
        worst = sorted(self.questions, key=lambda one: (-one.verdict, -one.files, -one.answer, str(one.id)))
        return FlipCounts(
            questions=self.asked,
            verdict=self.changed["verdict"],
            files=self.changed["files"],
            answer=self.changed["answer"],
            most=worst[:_SHOWN],
        )

    def in_words(self, name: str) -> str:
        """Return one line on how often replies differ when the same question is asked several times.

        The line has the number of questions with a changing verdict, with changing cited files, and with a changing
        answer. `name` is the name of the dataset.
        """
        counts = self.counts
        return (
            f"{name}: {counts.verdict} of {counts.questions} questions flip between repetitions (their verdict "
            f"changes); the cited files change in {counts.files}, the words of the answer in {counts.answer}"
        )
