"""What a review is about: a run's questions with their replies, and the documents they are asked of."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from exhibit.evaluation.documents import Documents
from exhibit.evidence import Document, fold, locate
from exhibit.schemas.bundle import INFO, TRAIN, read_info
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.review import MarkedPassage, Review, ReviewedCase
from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import corpus_files, mirrored, sha256_of
from exhibit.viewer.view import dataset_roots

Key = tuple[str, Id]
"""A dataset and the id of a question in it."""
Questions = Mapping[Key, RunQuestion]
Judged = list[tuple[str, ReviewedCase]]
"""What each reviewer who judged its gold said of a question."""
JOINT = " […] "
"""Between the passages of an answer that is made of several."""


def by_question(reviews: Iterable[Review]) -> dict[Key, Judged]:
    """Return what was said of each question's gold, with the reviewers' names."""
    said: dict[Key, Judged] = {}
    for review in reviews:
        for case in review.cases:
            if case.gold is not None:
                said.setdefault((case.dataset, case.id), []).append((review.reviewer, case))
    return said


def placed_passage(marked: MarkedPassage, document: Document | None) -> MarkedPassage | None:
    """Return a passage with the document's own words, found anew where the document was changed; None without them."""
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
    """The questions of a run by dataset and id; each is read from disk when it is asked for."""

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
    """A run that ended, with the bundles that its questions come from."""

    def __init__(self, folder: Path | str, *, paths: Iterable[str] = ()) -> None:
        """Find the bundles: `paths` where they are no longer where the run had them."""
        super().__init__(folder)
        gone: list[str] = []
        roots = dataset_roots([self], given=list(paths), say=gone.append)
        self.bundles = {name: Path(mirrored(root)) for name, root in roots.items()}
        for name, entry in self.config.datasets.items():
            if name not in self.bundles or not (self.bundles[name] / TRAIN).is_file():
                raise BundleError(f"{name}: its bundle is not there; give it with --dataset-paths DIR")
            if entry.train_sha256 not in (None, sha256_of(self.bundles[name] / TRAIN)):
                print_note(f"{self.bundles[name]}: its questions are no longer those of the run {self.name}")

    @cached_property
    def questions(self) -> Questions:
        """The questions by dataset and id."""
        return KeyedRows(self)

    def bundle_name(self, dataset: str) -> str:
        """Return what a patch calls a dataset: its name in bundle.json, or that of its folder."""
        path = self.bundles[dataset] / INFO
        return read_info(path).name if path.is_file() else dataset

    def document(self, dataset: str, filename: str) -> Document | None:
        """Return a document, read once; None where there is none, or it cannot be read."""
        documents = self._documents.get(dataset)
        return documents.get(filename) if documents else None

    @cached_property
    def _documents(self) -> dict[str, Documents]:
        return {name: Documents(corpus_files(root)) for name, root in self.bundles.items()}


Stratum = tuple[str, ...]

BY = ("confidence", "verdict", "dataset")


def _confidence(row: RunQuestion) -> str:
    told = row.reply.confidence
    if told is None:
        return "no confidence"
    return "unsure" if told < 1 / 3 else "middling" if told < 2 / 3 else "sure"


_KINDS: dict[str, Callable[[RunQuestion], str]] = {
    "confidence": _confidence,
    "verdict": lambda row: row.verdict,
    "dataset": lambda row: row.dataset,
    "document": lambda row: row.filename or "",
    "impossible": lambda row: "impossible" if row.is_impossible else "answerable",
}


def stratify(rows: Questions, by: Sequence[str]) -> dict[Stratum, list[Key]]:
    """Return the questions by kind; what is no property of every question is the name of a label."""
    labels: set[str] = set()
    strata: dict[Stratum, list[Key]] = defaultdict(list)
    for key, row in rows.items():
        labels |= row.labels.keys()
        strata[tuple(_kind(name, row) for name in by)].append(key)
    unknown = [name for name in by if name not in _KINDS and name not in labels]
    if unknown:
        there = ", ".join([*_KINDS, *sorted(labels)])
        raise ToolkitError(f"--by {', '.join(unknown)}: no question has that; there are {there}")
    return dict(sorted(strata.items()))


def draw_sample(rows: Questions, *, by: Sequence[str], size: int, seed: int) -> list[Key]:
    """Return so many questions: the kinds take turns, so that rare ones are seen too."""
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
    chance.shuffle(drawn)  # kinds in turn would tell the reviewer what the next one is
    return drawn


def weights(rows: Questions, sample: Sequence[Key], by: Sequence[str]) -> dict[Key, float]:
    """Return how many questions of the run each of the sample stands for."""
    chosen = set(sample)
    by_key: dict[Key, float] = {}
    for keys in stratify(rows, by).values():
        mine = [key for key in keys if key in chosen]
        by_key |= {key: len(keys) / len(mine) for key in mine}
    return by_key


def _kind(name: str, row: RunQuestion) -> str:
    if name in _KINDS:
        return _KINDS[name](row)
    value = row.labels.get(name)
    return "" if value is None else str(value)
