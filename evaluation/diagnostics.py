"""What a run lacks to be judged by: gold that is not located, passages without a known file, replies without an answer.

Metrics are None where they cannot be known (`metrics._scope`); this counts why, for the terminal, the report and
`evidence.json`, so that a mean over fewer questions is never a surprise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.metrics import about
from exhibit.law.names import FileNames
from exhibit.schemas.parsing import read_beside
from exhibit.schemas.run import Confidence

_EXAMPLES = 3  # names: enough to see what they look like
_MUCH = 0.1
"""Share of the questions that may lack something before the run's last line says so."""

_WORDS = read_beside(__file__)
PASSAGES: dict[str, str] = _WORDS["passages"]
"""What a passage may lack."""
QUESTIONS: dict[str, str] = _WORDS["questions"]
"""What a question or its reply may lack."""


def passage_lacks(passage: Passage) -> Iterator[str]:
    """Yield which of `PASSAGES` a passage lacks."""
    told = passage.told_filename
    files = [passage.filename] if passage.filename else passage.also_in
    if told and not FileNames(files).find_all(told):
        yield "foreign"
    if told == "" or (told is None and passage.filename is None):
        yield "nameless"
    if passage.also_in:
        yield "ambiguous"
    elif not passage.text.strip():
        yield "wordless"
    elif passage.span is None:
        yield "nowhere"


def question_lacks(case: Case) -> Iterator[str]:
    """Yield which of `QUESTIONS` an answered question or its reply lacks."""
    passages = case.reply.passages
    if not case.is_impossible and case.gold:
        worded = [gold for gold in case.gold if gold.worded]
        if not worded:
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
    """Return what a question lacks, for its row of the results."""
    if case.reply.error:
        return []
    counts = Counter(kind for passage in case.reply.passages for kind in passage_lacks(passage))
    total = len(case.reply.passages)
    passages = [f"{counts[kind]} of {total} passages {words}" for kind, words in PASSAGES.items() if counts[kind]]
    return [*(QUESTIONS[kind] for kind in question_lacks(case)), *passages]


@dataclass
class Evidence:
    """How much is missing over some questions."""

    questions: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    passages: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """A few of the names that the bundle lacks."""

    def add(self, cases: Iterable[Case]) -> None:
        """Count what answered questions lack."""
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
        """Return what is missing of a dataset in words: of its passages, then of more than a tenth of its questions."""
        told = []
        for kind in ("foreign", "nameless", "ambiguous"):
            if self.kinds[kind]:
                listed = f": {', '.join(self.examples)}" if kind == "foreign" else ""
                told.append(f"{name}: {self.kinds[kind]:,} of {self.passages:,} passages {PASSAGES[kind]}{listed}")
        much = [
            f"{QUESTIONS[kind]} ({self.lacking[kind]:,} of {self.questions:,} questions)"
            for kind in QUESTIONS
            if self.lacking[kind] > _MUCH * self.questions
        ]
        return [*told, *([f"{name}: what is missing is in no mean: {'; '.join(much)}"] if much else [])]

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the counts and the lines, as `evidence.json` has them."""
        return {
            "questions": self.questions,
            "lacking": {kind: self.lacking[kind] for kind in QUESTIONS if self.lacking[kind]},
            "passages": self.passages,
            "passages_lacking": {kind: self.kinds[kind] for kind in PASSAGES if self.kinds[kind]},
            "examples": self.examples,
            "lines": self.lines(name),
        }


_BINS = 10  # of the calibration curve, as usual
_WEIGHTED = ("answer_contained", "answer_gold_f1", "recall@10")
"""Means that a line has as weighted by confidence; confidence.json has all."""
_COVERAGES = tuple(share / 10 for share in range(1, 11))

Told = tuple[float, bool]
"""A confidence, and whether an answer exists."""


def confidence_of(case: Case) -> float | None:
    """Return the confidence beside a reply, None where there is none or the reply is an error."""
    return None if case.reply.error else case.reply.confidence


def describe(told: Sequence[Told], weighted: Mapping[str, float] | None = None) -> dict[str, Any] | None:
    """Return AUROC, calibration, risk against coverage and weighted means; None where no reply has a confidence."""
    if not told:
        return None
    return {
        "questions": len(told),
        "answerable": sum(exists for _, exists in told),
        "auroc": auroc(told),
        "calibration": calibration(told),
        "risk_at_coverage": risk_at_coverage(told),
        "weighted": dict(weighted or {}),
    }


def weighted_means(values: Mapping[str, Sequence[float | None]], sure: Sequence[float | None]) -> dict[str, float]:
    """Return each metric's mean with every question counted by the confidence beside its reply."""
    means = {}
    for name, column in values.items():
        pairs = [(value, weight) for value, weight in zip(column, sure, strict=True) if None not in (value, weight)]
        total = math.fsum(weight for _, weight in pairs if weight)
        if total:
            means[name] = math.fsum((value or 0.0) * (weight or 0.0) for value, weight in pairs) / total
    return means


def in_words(name: str, told: Confidence) -> str:
    """Return what the confidence of a dataset's replies is worth, in a line."""
    worth = "every question has an answer, or none has" if told.auroc is None else f"AUROC {told.auroc:.2f}"
    shown = [
        f"{metric} {about(metric).figure(told.weighted[metric])}" for metric in _WEIGHTED if metric in told.weighted
    ]
    means = f"; means weighted by it: {', '.join(shown)}" if shown else ""
    return f"{name}: confidence beside {told.questions} answers, {told.answerable} of them answerable: {worth}{means}"


def auroc(told: Sequence[Told]) -> float | None:
    """Return how likely a question with an answer has more confidence than one without; equals count half."""
    yes, no = (np.sort([confidence for confidence, exists in told if exists is wanted]) for wanted in (True, False))
    if not len(yes) or not len(no):
        return None
    below, up_to = (int(np.searchsorted(no, yes, side).sum()) for side in ("left", "right"))
    return (below + up_to) / 2 / (len(yes) * len(no))


def calibration(told: Sequence[Told]) -> list[dict[str, float]]:
    """Return, for each tenth of the scale that has questions, the mean confidence and the share that is answerable."""
    bins: dict[int, list[Told]] = {}
    for confidence, exists in told:
        bins.setdefault(min(int(confidence * _BINS), _BINS - 1), []).append((confidence, exists))
    return [
        {
            "questions": len(rows),
            "confidence": sum(confidence for confidence, _ in rows) / len(rows),
            "answerable": sum(exists for _, exists in rows) / len(rows),
        }
        for _, rows in sorted(bins.items())
    ]


def risk_at_coverage(told: Sequence[Told]) -> list[dict[str, float]]:
    """Return the share without an answer among the surest tenth of the questions, the surest two tenths, and so on."""
    ranked = sorted(told, key=lambda row: -row[0])
    curve = []
    for coverage in _COVERAGES:
        kept = ranked[: max(1, round(coverage * len(ranked)))]
        curve.append({"coverage": coverage, "risk": sum(not exists for _, exists in kept) / len(kept)})
    return curve
