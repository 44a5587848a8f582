"""The questions, replies and documents of a review, and the sample that a reviewer sees."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from exhibit.evaluation.placement import Documents
from exhibit.evidence import Document, fold, locate
from exhibit.runtime.command import print_note
from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.errors import BundleError
from exhibit.schemas.review import MarkedPassage, Review, ReviewedCase
from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import list_corpus_files, mirror_bundle, sha256_of
from exhibit.viewer.report import find_dataset_roots

Key = tuple[str, Id]  # a dataset and the id of a question in it
Questions = Mapping[Key, RunQuestion]
Judged = list[tuple[str, ReviewedCase]]  # the judgments of a question's gold, by reviewer
JOINT = " […] "  # the separator of the passages of an answer that is made of several
BY = ("confidence", "outcome", "dataset")


def group_by_question(reviews: Iterable[Review]) -> dict[Key, Judged]:
    """Return the judgments on each question's gold; a correction without a judgment counts as `wrong`."""
    judgments: dict[Key, Judged] = {}
    for review in reviews:
        for case in review.cases:
            if case.gold is None and case.better.says_something:
                case = case.model_copy(update={"gold": "wrong"})
            if case.gold is not None:
                judgments.setdefault((case.dataset, case.id), []).append((review.reviewer, case))
    return judgments


def place_passage(marked: MarkedPassage, document: Document | None) -> MarkedPassage | None:
    """Return a passage with the document's own text, located again if that has changed; None if it is not in it."""
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


def join_words(passages: Iterable[MarkedPassage]) -> str:
    return JOINT.join(" ".join(passage.text.split()) for passage in passages)


class KeyedRows(Mapping[Key, RunQuestion]):
    """The questions of a run by dataset and id; each is read from disk when it is needed."""

    def __init__(self, run: RunFolder) -> None:
        self._rows = run.rows
        self._numbers = {row.key: number for number, row in enumerate(run.rows)}

    def __getitem__(self, key: Key) -> RunQuestion:
        return self._rows[self._numbers[key]]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class ReviewedRun(RunFolder):
    """A finished run, with the bundles of its questions."""

    def __init__(self, folder: Path | str, *, paths: Iterable[str] = ()) -> None:
        """Find the bundle of each dataset, in `paths` or where the run recorded it; raise an error if it is missing."""
        super().__init__(folder)
        roots = find_dataset_roots([self], given=list(paths), say=lambda _: None)
        self.bundles = {name: Path(mirror_bundle(root)) for name, root in roots.items()}
        for name, entry in self.config.datasets.items():
            if name not in self.bundles or not (self.bundles[name] / TRAIN).is_file():
                raise BundleError(f"{name}: its bundle was not found; name its folder with --dataset-paths DIR")
            if entry.train_sha256 not in (None, sha256_of(self.bundles[name] / TRAIN)):
                bundle = self.bundles[name]
                print_note(f"{bundle}: its questions differ from those of the run {self.name}; name the run's bundle")

    @cached_property
    def questions(self) -> Questions:
        return KeyedRows(self)

    def document(self, dataset: str, filename: str) -> Document | None:
        """Return a document, read only once; None if it is missing or cannot be read."""
        documents = self._documents.get(dataset)
        return documents.get(filename) if documents else None

    @cached_property
    def _documents(self) -> dict[str, Documents]:
        return {name: Documents(list_corpus_files(root)) for name, root in self.bundles.items()}


def draw_sample(rows: Questions, *, size: int, seed: int) -> list[Key]:
    """Return a random sample of questions that takes from each confidence, outcome and dataset in turn."""
    strata: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key, row in rows.items():
        confidence = row.reply.confidence
        third = "none" if confidence is None else str(min(2, int(3 * confidence)))
        strata[third, row.outcome, row.dataset].append(key)
    chance, drawn = random.Random(seed), list[Key]()
    waiting = [keys for _, keys in sorted(strata.items())]
    for keys in waiting:
        chance.shuffle(keys)
    while len(drawn) < size and any(waiting):
        drawn += [keys.pop() for keys in waiting if keys][: size - len(drawn)]
    chance.shuffle(drawn)  # with the kinds in turn, the reviewer would know the kind of the next question
    return drawn
