"""The questions, replies and documents of a review, and the reviewers' agreement by Cohen's kappa."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.evaluation.documents import Documents
from exhibit.evaluation.judgement import GOOD_MARK, MARK
from exhibit.evaluation.statistics import RESAMPLES, SEED, Interval
from exhibit.evaluation.verdicts import STAGES
from exhibit.evidence import Document, fold, locate
from exhibit.runtime.command import print_note
from exhibit.schemas.bundle import INFO, TRAIN, read_info
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.review import MarkedPassage, Review, ReviewedCase
from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import list_corpus_files, mirror_bundle, sha256_of
from exhibit.viewer.page_output import find_dataset_roots

Key = tuple[str, Id]
"""A dataset and the id of a question in it."""
Questions = Mapping[Key, RunQuestion]
Judged = list[tuple[str, ReviewedCase]]
"""The judgments of a question's gold, by reviewer."""
JOINT = " […] "
"""The separator of the passages of an answer that is made of several."""


def group_by_question(reviews: Iterable[Review]) -> dict[Key, Judged]:
    """Return the judgments on each question's gold, with the reviewers' names.

    A correction without a judgment counts as the judgment `wrong`.
    """
    said: dict[Key, Judged] = {}
    for review in reviews:
        for case in review.cases:
            if case.gold is None and case.better.says_something:  # a correction implies that the present gold is wrong
                case = case.model_copy(update={"gold": "wrong"})
            if case.gold is not None:
                said.setdefault((case.dataset, case.id), []).append((review.reviewer, case))
    return said


def place_passage(marked: MarkedPassage, document: Document | None) -> MarkedPassage | None:
    """Return a marked passage with the document's own text, located again if the document has changed.

    Return None if there is no document, or if it does not contain the passage.
    """
    if document is None:
        return None
    words = " ".join(document.text[start:end] for start, end in marked.spans)
    if not marked.spans or fold(words, loose=True) != fold(marked.text, loose=True):
        match = next(iter(locate(marked.text, document)), None)
        if match is None:
            return None
        spans = [(span.start, span.end) for span in match.spans]
        words = " ".join(document.text[start:end] for start, end in spans)
        marked = marked.model_copy(update={"spans": spans})
    return marked.model_copy(update={"text": words})


class KeyedRows(Mapping[Key, RunQuestion]):
    """The questions of a run by dataset and id; each is read from disk when it is needed."""

    def __init__(self, run: RunFolder) -> None:
        self._rows = run.rows
        self._places = {row.key: number for number, row in enumerate(run.rows)}

    def __getitem__(self, key: Key) -> RunQuestion:
        return self._rows[self._places[key]]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class ReviewedRun(RunFolder):
    """A finished run, with the bundles of its questions."""

    def __init__(self, folder: Path | str, *, paths: Iterable[str] = ()) -> None:
        """Find the bundle of each dataset: in `paths`, or else where the run recorded it.

        Raise an error if a bundle is missing; print a note if its questions differ from those of the run.
        """
        super().__init__(folder)
        gone: list[str] = []
        roots = find_dataset_roots([self], given=list(paths), say=gone.append)
        self.bundles = {name: Path(mirror_bundle(root)) for name, root in roots.items()}
        for name, entry in self.config.datasets.items():
            if name not in self.bundles or not (self.bundles[name] / TRAIN).is_file():
                raise BundleError(f"{name}: its bundle was not found; name its folder with --dataset-paths DIR")
            if entry.train_sha256 not in (None, sha256_of(self.bundles[name] / TRAIN)):
                print_note(
                    f"{self.bundles[name]}: its questions differ from those of the run {self.name}; name the "
                    "bundle of the run"
                )

    @cached_property
    def questions(self) -> Questions:
        """The questions by dataset and id."""
        return KeyedRows(self)

    def find_bundle_name(self, dataset: str) -> str:
        """Return the dataset's name to write into a patch (a file of corrected gold).

        It is the name in bundle.json or, if there is no such file, the dataset's name in the run.
        """
        path = self.bundles[dataset] / INFO
        return read_info(path).name if path.is_file() else dataset

    def document(self, dataset: str, filename: str) -> Document | None:
        """Return a document, read only once; None if it is missing or cannot be read."""
        documents = self._documents.get(dataset)
        return documents.get(filename) if documents else None

    @cached_property
    def _documents(self) -> dict[str, Documents]:
        return {name: Documents(list_corpus_files(root)) for name, root in self.bundles.items()}


Stratum = tuple[str, ...]

BY = ("confidence", "verdict", "dataset")


def _bin_confidence(row: RunQuestion) -> str:
    confidence = row.reply.confidence
    if confidence is None:
        return "no confidence"
    return "unsure" if confidence < 1 / 3 else "middling" if confidence < 2 / 3 else "sure"


_KINDS: dict[str, Callable[[RunQuestion], str]] = {
    "confidence": _bin_confidence,
    "verdict": lambda row: row.verdict,
    "dataset": lambda row: row.dataset,
    "document": lambda row: row.filename or "",
    "impossible": lambda row: "impossible" if row.is_impossible else "answerable",
}


def stratify(rows: Questions, by: Sequence[str]) -> dict[Stratum, list[Key]]:
    """Group the questions into strata by their values for the names in `by`.

    A name is a property of every question, such as `verdict`, or a label. Raise an error if no question has the
    label.
    """
    labels: set[str] = set()
    strata: dict[Stratum, list[Key]] = defaultdict(list)
    for key, row in rows.items():
        labels |= row.labels.keys()
        strata[tuple(_find_kind(name, row) for name in by)].append(key)
    unknown = [name for name in by if name not in _KINDS and name not in labels]
    if unknown:
        there = ", ".join([*_KINDS, *sorted(labels)])
        raise ToolkitError(f"--by {', '.join(unknown)}: no question has such a label; the labels are {there}")
    return dict(sorted(strata.items()))


def draw_sample(rows: Questions, *, by: Sequence[str], size: int, seed: int) -> list[Key]:
    """Return a random sample of questions, drawn from each stratum in turn, so that rare strata are included."""
    chance = random.Random(seed)
    waiting = []
    for keys in stratify(rows, by).values():
        shuffled = list(keys)
        chance.shuffle(shuffled)
        waiting.append(shuffled)
    drawn: list[Key] = []
    while len(drawn) < size and any(waiting):
        for keys in waiting:
            if keys and len(drawn) < size:
                drawn.append(keys.pop())
    chance.shuffle(drawn)  # with the kinds in turn, the reviewer would know the kind of the next question
    return drawn


def compute_weights(rows: Questions, sample: Sequence[Key], by: Sequence[str]) -> dict[Key, float]:
    """Return how many questions of the run each question of the sample represents."""
    chosen = set(sample)
    by_key: dict[Key, float] = {}
    for keys in stratify(rows, by).values():
        mine = [key for key in keys if key in chosen]
        by_key |= {key: len(keys) / len(mine) for key in mine}
    return by_key


def _find_kind(name: str, row: RunQuestion) -> str:
    if name in _KINDS:
        return _KINDS[name](row)
    value = row.labels.get(name)
    return "" if value is None else str(value)


ASPECTS = ("gold", "answer")


@dataclass(frozen=True)
class Agreement:
    """The agreement of two raters: the counts, and Cohen's kappa, which corrects for chance, with its interval."""

    first: str
    second: str
    aspect: str
    n: int
    """The number of questions that both judged."""
    same: int
    kappa: float | None
    """None where chance alone would always make them agree, because each gives one judgment throughout."""
    ci95: Interval | None


@dataclass(frozen=True)
class JudgedShare:
    """A reviewer's share of `right` judgments: the counts in the sample, and an estimate for the whole run."""

    reviewer: str
    aspect: str
    right: int
    judged: int
    unclear: int
    estimate: float | None
    """The estimate for the whole run: each question is weighted by the questions that it represents."""
    ci95: Interval | None


Judgments = dict[Key, str]


def collect_judgments(review: Review, aspect: str) -> Judgments:
    """Return a reviewer's judgments by question: on the gold if `aspect` is `gold`, otherwise on the answers."""
    given = {(case.dataset, case.id): case.gold if aspect == "gold" else case.answer for case in review.cases}
    return {key: value for key, value in given.items() if value}


def compute_agreements(reviews: Sequence[Review], rows: Questions) -> list[Agreement]:
    """Return the agreement of each pair of reviewers, and of each reviewer with the run's verdicts and the judge."""
    documents = {key: f"{key[0]}/{row.document}" for key, row in rows.items()}
    pairs = [
        agree(
            one.reviewer,
            collect_judgments(one, aspect),
            other.reviewer,
            collect_judgments(other, aspect),
            aspect,
            documents,
        )
        for aspect in ASPECTS
        for one, other in combinations(reviews, 2)
    ]
    machines = {"the run's verdict": collect_verdicts(rows), "the judge": collect_marks(rows)}
    for review in reviews:
        clear = {key: said for key, said in collect_judgments(review, "answer").items() if said != "unclear"}
        for name, said in machines.items():
            pairs.append(agree(review.reviewer, clear, name, said, "answer", documents))
    return [one for one in pairs if one.n]


def collect_verdicts(rows: Questions) -> Judgments:
    """Return the run's verdicts on answers as `right` or `wrong`, by question.

    Verdicts that mean neither, for example because the answer could not be judged, are left out.
    """
    judged = {}
    for key, row in rows.items():
        if row.verdict in ("answered", "expected answer given"):
            judged[key] = "right"
        elif row.verdict == "failed" or row.verdict in STAGES:
            judged[key] = "wrong"
    return judged


def collect_marks(rows: Questions) -> Judgments:
    """Return the judge's marks of correctness as `right` or `wrong`; questions without a mark are left out."""
    marked = {key: row.scores.get(MARK) for key, row in rows.items()}
    return {key: "right" if mark >= GOOD_MARK else "wrong" for key, mark in marked.items() if mark is not None}


def agree(
    first: str, one: Judgments, second: str, other: Judgments, aspect: str, documents: Mapping[Key, str]
) -> Agreement:
    """Return how far two raters agree on the questions that both judged: Cohen's kappa with its 95% interval.

    `one` has the judgments of the rater named `first`, and `other` has those of the rater named `second`.
    """
    keys = sorted((key for key in one if key in other), key=str)
    pairs = [(one[key], other[key]) for key in keys]
    owners = [documents.get(key, str(key)) for key in keys]
    return Agreement(
        first,
        second,
        aspect,
        len(pairs),
        sum(a == b for a, b in pairs),
        compute_kappa(pairs),
        _compute_interval(owners, lambda drawn: compute_kappa([pairs[at] for at in drawn])),
    )


def compute_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa; None without pairs, or if both raters give one and the same judgment throughout."""
    n = len(pairs)
    if not n:
        return None
    seen = sum(a == b for a, b in pairs) / n
    firsts, seconds = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / n**2
    return None if chance == 1 else (seen - chance) / (1 - chance)


def compute_shares(reviews: Sequence[Review], rows: Questions) -> list[JudgedShare]:
    """Return, for each reviewer, the share of judged gold and of judged answers that the reviewer calls right.

    Each share is also estimated for the whole run, with weights that correct for the stratified sample.
    """
    parts = []
    for review in reviews:
        for aspect in ASPECTS:
            given = {key: said for key, said in collect_judgments(review, aspect).items() if key in rows}
            clear = {key: said for key, said in given.items() if said != "unclear"}
            if not given:
                continue
            weight = compute_weights(rows, list(clear), review.sample.by)
            keys = sorted(clear, key=str)
            heavy = np.array([weight[key] for key in keys])
            right = np.array([clear[key] == "right" for key in keys], dtype=float)
            owners = [f"{key[0]}/{rows[key].document}" for key in keys]
            parts.append(
                JudgedShare(
                    review.reviewer,
                    aspect,
                    int(right.sum()),
                    len(keys),
                    len(given) - len(clear),
                    float((heavy * right).sum() / heavy.sum()) if keys else None,
                    _compute_interval(
                        owners, lambda drawn, h=heavy, r=right: float((h * r)[drawn].sum() / h[drawn].sum())
                    ),
                )
            )
    return parts


def _compute_interval(owners: Sequence[str], measure: Any) -> Interval | None:
    """Return the 95% interval of a figure by a bootstrap over documents; None with a single document."""
    names = sorted(set(owners))
    if len(names) < 2:
        return None
    places = {name: [at for at, owner in enumerate(owners) if owner == name] for name in names}
    chance = np.random.default_rng(SEED)
    drawn = (chance.integers(len(names), size=len(names)) for _ in range(RESAMPLES))
    values = [measure([at for number in numbers for at in places[names[number]]]) for numbers in drawn]
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
