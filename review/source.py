"""What a review is about: a run's questions with their replies, and the documents they are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from exhibit.evaluation.documents import Documents
from exhibit.evaluation.records import CONFIG, RESULTS, read_json
from exhibit.evidence import Document
from exhibit.hub.pull import fetch, is_repository, parse_address
from exhibit.schemas.bundle import INFO, TRAIN, read_info, read_lines
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import BundleError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.bundle import corpus_files, sha256_of
from exhibit.storage.locations import is_url, parse_location
from exhibit.storage.mirror import mirrored

Record = dict[str, Any]
Key = tuple[str, int | str]
"""A dataset and the id of a question in it."""


@dataclass
class ReviewedRun:
    """A run, its rows by dataset and id, and the bundles they come from."""

    folder: Path
    config: Record
    rows: dict[Key, Record]
    bundles: dict[str, Path]

    @property
    def name(self) -> str:
        """The run's folder."""
        return self.folder.resolve().name

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


def open_run(folder: Path, *, paths: Iterable[str] = ()) -> ReviewedRun:
    """Return a run that ended; `paths` are its bundles where they are no longer where it found them."""
    config = read_json(folder / CONFIG)
    given = {Path(path).resolve().name: path for path in paths}
    rows: dict[Key, Record] = {}
    bundles: dict[str, Path] = {}
    for name, told in config.get("datasets", {}).items():
        if not (folder / name / RESULTS).is_file():
            raise BundleError(f"{folder}: no results of {name}; go on with --resume --run-name {folder.name}")
        bundles[name] = _bundle(given[name]) if name in given else _local_bundle(told, name)
        if told.get("train_sha256") not in (None, sha256_of(bundles[name] / TRAIN)):
            print_note(f"{bundles[name]}: its questions are no longer those of the run {folder.name}")
        path = folder / name / RESULTS
        for line in read_lines(path):
            row = parse_json(line, where=path)
            rows[name, row["id"]] = row
    return ReviewedRun(folder, config, rows, bundles)


def _local_bundle(told: Mapping[str, Any], name: str) -> Path:
    """Return a bundle where the run says it was; a run may come from elsewhere, so it names no server to ask."""
    address = str(told.get("origin") or told.get("path") or "")
    if is_url(address):
        raise BundleError(f"{name}: it was at {address}, where a run sends nobody; add --dataset-paths {address}")
    return _bundle(address or name)


def _bundle(address: str) -> Path:
    if is_repository(address):
        repo_id, revision = parse_address(address)
        return fetch(repo_id, revision=revision, say=print_note).folder
    root = mirrored(parse_location(address))
    if not (root / TRAIN).is_file():
        raise BundleError(f"{address}: no bundle there; give it with --dataset-paths DIR")
    return root


def document_name(row: Mapping[str, Any]) -> str:
    """Return the document that a question is about; one of its own where none is known."""
    named = [row.get("filename"), *(gold.get("filename") for gold in row.get("gold") or ())]
    return next((name for name in named if name), f"\0{row['id']}")
