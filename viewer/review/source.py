"""What a review is about: a run's questions with their replies, and the documents they are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from exhibit.evaluation.documents import Documents
from exhibit.evidence import Document
from exhibit.schemas.bundle import INFO, TRAIN, read_info
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import corpus_files, sha256_of
from exhibit.storage.mirror import mirrored
from exhibit.viewer.bundles import dataset_roots

Key = tuple[str, Id]
"""A dataset and the id of a question in it."""
Questions = Mapping[Key, RunQuestion]


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
