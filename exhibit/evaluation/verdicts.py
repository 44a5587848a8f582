"""What became of a question: what it lacks to be judged by, and one verdict with its evidence.

Metrics are None where they cannot be known; what is missing is counted for the terminal, the report and
`evidence.json`. A verdict says where on the way from document to answer a question went wrong.

Retrieval: the passage that answers was not among those read. Reading: it was, and the answer refuses, or is made from
others. Invented: the answer says what none of its passages does, or answers what the documents do not.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.correctness import decide_case, invented_figures
from exhibit.evaluation.documents import touches
from exhibit.evaluation.metrics import K, Options, about, gold_files, is_wrong_file, scoped
from exhibit.evaluation.metrics.version_accuracy import right_version
from exhibit.evaluation.ranking import holding_answer, matches
from exhibit.law.citations import find_citations
from exhibit.law.names import FileNames
from exhibit.law.refusals import is_refusal
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
    name = passage.told_filename
    files = [passage.filename] if passage.filename else passage.also_in
    if name and not FileNames(files).find_all(name):
        yield "foreign"
    if name == "" or (name is None and passage.filename is None):
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
        notes = []
        for kind in ("foreign", "nameless", "ambiguous"):
            if self.kinds[kind]:
                listed = f": {', '.join(self.examples)}" if kind == "foreign" else ""
                notes.append(f"{name}: {self.kinds[kind]:,} of {self.passages:,} passages {PASSAGES[kind]}{listed}")
        much = [
            f"{QUESTIONS[kind]} ({self.lacking[kind]:,} of {self.questions:,} questions)"
            for kind in QUESTIONS
            if self.lacking[kind] > _MUCH * self.questions
        ]
        return [*notes, *([f"{name}: what is missing is in no mean: {'; '.join(much)}"] if much else [])]

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
_WEIGHTED = ("answer_right", "answer_gold_f1", "recall@10")
"""Means that a line has as weighted by confidence; confidence.json has all."""
_COVERAGES = tuple(share / 10 for share in range(1, 11))

Told = tuple[float, bool]
"""A confidence, and whether an answer exists."""


def confidence_of(case: Case) -> float | None:
    """Return the confidence beside a reply, None where there is none or the reply is an error."""
    return None if case.reply.error else case.reply.confidence


def describe(pairs: Sequence[Told], weighted: Mapping[str, float] | None = None) -> dict[str, Any] | None:
    """Return AUROC, calibration, risk against coverage and weighted means; None where no reply has a confidence."""
    if not pairs:
        return None
    return {
        "questions": len(pairs),
        "answerable": sum(exists for _, exists in pairs),
        "auroc": auroc(pairs),
        "calibration": calibration(pairs),
        "risk_at_coverage": risk_at_coverage(pairs),
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


def in_words(name: str, sure: Confidence) -> str:
    """Return what the confidence of a dataset's replies is worth, in a line."""
    worth = "every question has an answer, or none has" if sure.auroc is None else f"AUROC {sure.auroc:.2f}"
    shown = [
        f"{metric} {about(metric).figure(sure.weighted[metric])}" for metric in _WEIGHTED if metric in sure.weighted
    ]
    means = f"; means weighted by it: {', '.join(shown)}" if shown else ""
    return f"{name}: confidence beside {sure.questions} answers, {sure.answerable} of them answerable: {worth}{means}"


def auroc(pairs: Sequence[Told]) -> float | None:
    """Return how likely a question with an answer has more confidence than one without; equals count half."""
    yes, no = (np.sort([confidence for confidence, exists in pairs if exists is wanted]) for wanted in (True, False))
    if not len(yes) or not len(no):
        return None
    below, up_to = (int(np.searchsorted(no, yes, side).sum()) for side in ("left", "right"))
    return (below + up_to) / 2 / (len(yes) * len(no))


def calibration(pairs: Sequence[Told]) -> list[dict[str, float]]:
    """Return, for each tenth of the scale that has questions, the mean confidence and the share that is answerable."""
    bins: dict[int, list[Told]] = {}
    for confidence, exists in pairs:
        bins.setdefault(min(int(confidence * _BINS), _BINS - 1), []).append((confidence, exists))
    return [
        {
            "questions": len(rows),
            "confidence": sum(confidence for confidence, _ in rows) / len(rows),
            "answerable": sum(exists for _, exists in rows) / len(rows),
        }
        for _, rows in sorted(bins.items())
    ]


def risk_at_coverage(pairs: Sequence[Told]) -> list[dict[str, float]]:
    """Return the share without an answer among the surest tenth of the questions, the surest two tenths, and so on."""
    ranked = sorted(pairs, key=lambda row: -row[0])
    curve = []
    for coverage in _COVERAGES:
        kept = ranked[: max(1, round(coverage * len(ranked)))]
        curve.append({"coverage": coverage, "risk": sum(not exists for _, exists in kept) / len(kept)})
    return curve


Verdict = Literal[
    "answered",
    "wrong document",
    "right document, wrong passage",
    "right text, wrong version",
    "retrieved but not used",
    "figures that no passage has",
    "answered though impossible",
    "refused though answerable",
    "expected answer given",
    "right document, passage unknown",
    "gold not located",
    "cannot be judged",
    "failed",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Stage = Literal["retrieval", "reading", "invented"]
STAGES: dict[Verdict, Stage] = {
    "wrong document": "retrieval",
    "right document, wrong passage": "retrieval",
    "right text, wrong version": "retrieval",
    "retrieved but not used": "reading",
    "refused though answerable": "reading",
    "figures that no passage has": "invented",
    "answered though impossible": "invented",
}
"""Where a failure lies; the other verdicts are no failures of the system, or cannot be told."""


@dataclass(frozen=True)
class Judgment:
    """A verdict and what it rests on."""

    verdict: Verdict
    evidence: str

    @property
    def stage(self) -> Stage | None:
        """Where the failure lies, None where there is none or it cannot be told."""
        return STAGES.get(self.verdict)


def judge(case: Case, *, k: int = K) -> Verdict:
    """Return what became of a question; `answered` is also an impossible one that was refused."""
    return examine(case, k=k).verdict


def examine(case: Case, *, k: int = K) -> Judgment:
    """Return the verdict on a question with its evidence.

    The passages that count are those an answer was made from, where that is known, else the first k. Gold that is
    among the first k, but not among those, or that the answer does not cite though it cites others, was not used.
    """
    reply = case.reply
    if reply.error:
        return Judgment("failed", reply.error)
    refused = reply.answer is not None and is_refusal(reply.answer)
    if case.is_impossible:
        return _impossible(case, refused)
    by_passage = any(gold.worded for gold in case.gold) and (reply.passages or reply.answer is None)
    judgment = _retrieval(case, refused, k) if by_passage else _by_answer(case, refused, k)
    if judgment.stage == "reading" or refused or reply.answer is None:
        return judgment
    invented = [] if decide_case(case).right else invented_figures(case)
    listed = ", ".join(invented[:3]) + (" …" if len(invented) > 3 else "")
    evidence = f"{listed}: in none of the passages. {judgment.evidence}"
    return Judgment("figures that no passage has", evidence) if invented else judgment


def _impossible(case: Case, refused: bool) -> Judgment:
    if case.reply.answer is None:
        return Judgment("cannot be judged", "The documents do not answer it, and no answer was asked for.")
    if refused:
        return Judgment("answered", "The documents do not answer it, and the system said so.")
    return Judgment("answered though impossible", "The documents do not answer it.")


def cited(case: Case) -> list[int]:
    """Return the numbers of the passages that an answer cites, each once, as far as there are such passages."""
    numbers = (number for citation in find_citations(case.reply.answer or "") for number in citation.numbers)
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= len(case.reply.passages)))


def _by_answer(case: Case, refused: bool, k: int) -> Judgment:
    """Return what can be told where no passage can be held against gold: by the file, then by the expected answer."""
    why = "the benchmark quotes no words of it"
    by_file = _by_file(gold_files(case), case.reply.read(k), "right document, passage unknown", why)
    known = bool(gold_files(case)) and bool(case.reply.passages)
    if known and by_file.verdict == "wrong document":
        return by_file
    answered = scoped(case, ("answer", "truth"), Options()) is not None
    said = decide_case(case).right
    if answered and said:
        return Judgment("expected answer given", "The reply says what is expected; which passage answers is not known.")
    number = holding_answer(case) if answered else None
    if number is not None and said is False:
        return Judgment("retrieved but not used", f"Passage {number} says what is expected, and the reply does not.")
    if case.gold and all(gold.absent for gold in case.gold):
        return Judgment("gold not located", "None of the passages that the benchmark quotes stands in its document.")
    if refused:
        return Judgment("refused though answerable", "It was refused; nothing tells which passage answers.")
    missing = "which passage answers" if not case.gold else "which passages the system read"
    return by_file if known else Judgment("cannot be judged", f"Nothing tells {missing}.")


def _by_file(files: Collection[str], read: Sequence[Passage], verdict: Verdict, why: str) -> Judgment:
    wrong = [is_wrong_file(passage, files) for passage in read]
    if False in wrong:
        first = wrong.index(False) + 1
        return Judgment(verdict, f"Passage {first} is the first from the right document; {why}.")
    if None in wrong:
        evidence = f"Which file {wrong.count(None)} of the {len(read)} passages read are from is not known."
        return Judgment("cannot be judged", evidence)
    return Judgment("wrong document", f"None of the {len(read)} passages read is from a document with gold.")


def _retrieval(case: Case, refused: bool, k: int) -> Judgment:
    passages = case.reply.passages
    read = case.reply.numbers_read(k)
    golds = [gold for gold in case.gold if gold.worded]
    looked_at = dict.fromkeys([*read, *range(1, min(k, len(passages)) + 1)])
    hits = [number for number in looked_at if any(_holds(passages[number - 1], gold) for gold in golds)]
    if not hits:
        version = next((n for n in read if right_version(passages[n - 1], case) is False), None)
        if version is not None:
            return Judgment("right text, wrong version", f"Passage {version} is that paragraph as of another day.")
        files = {gold.filename for gold in golds if gold.filename}
        why = f"none of {len(passages)} touches the gold"
        return _by_file(files, case.reply.read(k), "right document, wrong passage", why)
    used = [number for number in hits if number in read]
    where = f"Passage {min(used or hits)} is the first to touch the gold"
    if not used:
        return Judgment("retrieved but not used", f"{where}, but only {len(read)} were read.")
    if refused:
        return Judgment("refused though answerable", f"{where}.")
    named = cited(case)
    if not named or any(number in hits for number in named):
        return Judgment("answered", f"{where}.")
    return Judgment("retrieved but not used", f"{where}. The answer cites {', '.join(map(str, named))}.")


def _holds(passage: Passage, gold: GoldPassage) -> bool:
    """Return whether a passage has a character of located gold, or the words of other gold."""
    if gold.places and passage.span is not None:
        return passage.source == gold.filename and touches(passage.span, gold)
    return passage.filename in (None, gold.filename) and matches(passage.text, gold.text or "")
