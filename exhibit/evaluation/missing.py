"""Count the data that questions and replies lack, for the terminal, the report and `evidence.json`.

Metrics are None where data is missing; this module says what is missing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from exhibit.evaluation.cases import Case, Passage
from exhibit.evidence.parser_markup import letters_of
from exhibit.evidence.stretches import TELLING
from exhibit.law.names import FileNames
from exhibit.schemas.parsing import read_beside

_EXAMPLES = 3  # names: enough to recognise their form
_MUCH = 0.1
"""The run's last line mentions missing data when more than this share of the questions lacks it."""

_WORDS = read_beside(__file__)
PASSAGES: dict[str, str] = _WORDS["passages"]
"""Descriptions of the data that a passage may lack."""
QUESTIONS: dict[str, str] = _WORDS["questions"]
"""Descriptions of the data that a question or its reply may lack."""


def passage_lacks(passage: Passage) -> Iterator[str]:
    """Yield the keys of `PASSAGES` (kinds of missing data) that apply to a passage."""
    name = passage.told_filename
    files = [passage.filename] if passage.filename else passage.also_in
    if passage.misnamed:
        yield "misnamed"
    elif name and not FileNames(files).find_all(name):
        yield "foreign"
    if name == "" or (name is None and passage.filename is None):
        yield "nameless"
    if passage.also_in:
        yield "ambiguous"
    elif not passage.text.strip():
        yield "wordless"
    elif passage.span is None:
        few = passage.unplaced and len(letters_of(passage.text).text) < TELLING
        yield "few" if few else "nowhere"
    if passage.added:
        yield "added"


def question_lacks(case: Case) -> Iterator[str]:
    """Yield the kinds of data that an answered question or its reply lacks, as keys of `QUESTIONS`."""
    passages = case.reply.passages
    if not case.is_impossible and case.gold:
        worded = [gold for gold in case.gold if gold.worded]
        if any(gold.ambiguous for gold in case.gold):
            yield "ambiguous gold"
        if not worded and not any(gold.ambiguous for gold in case.gold):
            yield "gold" if any(gold.absent for gold in case.gold) else "quote"
        elif any(gold.absent for gold in case.gold):
            yield "some gold"
    if not passages:
        yield "passages"
    elif not any(passage.filename for passage in passages):
        yield "file"
    elif not any(passage.text.strip() or passage.span for passage in passages):
        yield "words"
    if case.reply.answer is None:
        yield "answer"


def notes_on(case: Case) -> list[str]:
    """Return notes on the data that a question or its reply lacks, for its row of the results.

    Example: how many of the reply's passages have no file name. A failed reply gets no notes.
    """
    if case.reply.error:
        return []
    counts = Counter(kind for passage in case.reply.passages for kind in passage_lacks(passage))
    total = len(case.reply.passages)
    passages = [f"{counts[kind]} of {total} passages {words}" for kind, words in PASSAGES.items() if counts[kind]]
    return [*(QUESTIONS[kind] for kind in question_lacks(case)), *passages]


@dataclass
class Evidence:
    """Counts of the data that questions and replies lack, such as the location of gold or a passage's file name.

    `lacking` counts questions, and `kinds` counts passages. The keys of both are the kinds of missing data.
    """

    questions: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    passages: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """Some file names that the bundle does not have."""

    def add(self, cases: Iterable[Case]) -> None:
        """Count the data that is missing in questions and replies, such as a passage's file name.

        Questions whose reply failed are not counted.
        """
        for case in cases:
            if case.reply.error:
                continue
            self.questions += 1
            self.lacking.update(question_lacks(case))
            for passage in case.reply.passages:
                kinds = list(passage_lacks(passage))
                self.passages += 1
                self.kinds.update(kinds)
                if "foreign" in kinds and len(self.examples) < _EXAMPLES:
                    self.examples = list(dict.fromkeys([*self.examples, str(passage.told_filename)]))

    def lines(self, name: str) -> list[str]:
        """Return lines of text on the data that a dataset's passages and questions lack, such as file names.

        For most kinds of data, one passage that lacks it is enough for a line. Data that questions lack is listed
        only if more than a tenth of the questions lack it.
        """
        notes = []
        for kind in ("foreign", "misnamed", "nameless", "ambiguous", "nowhere", "few"):
            if self.kinds[kind]:
                listed = f": {', '.join(self.examples)}" if kind == "foreign" else ""
                notes.append(f"{name}: {self.kinds[kind]:,} of {self.passages:,} passages {PASSAGES[kind]}{listed}")
        much = [
            f"{QUESTIONS[kind]} ({self.lacking[kind]:,} of {self.questions:,} questions)"
            for kind in QUESTIONS
            if self.lacking[kind] > _MUCH * self.questions
        ]
        return [*notes, *([f"{name}: questions with missing data are in no mean: {'; '.join(much)}"] if much else [])]

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the counts of missing data as the content of `evidence.json`.

        It also has example file names, and lines of text that explain the counts. `name` is the dataset's name.
        """
        return {
            "questions": self.questions,
            "lacking": {kind: self.lacking[kind] for kind in QUESTIONS if self.lacking[kind]},
            "passages": self.passages,
            "passages_lacking": {kind: self.kinds[kind] for kind in PASSAGES if self.kinds[kind]},
            "examples": self.examples,
            "lines": self.lines(name),
        }
