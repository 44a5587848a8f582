"""A corpus given to a system: uploaded, waited for, checked against the system's own list; what is missing is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from exhibit.engine import track
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Ingestion, TargetOptions, count_only
from exhibit.evaluation.targets._asking import pause_before
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError, UnreachableError
from exhibit.storage.locations import fetched

_UPLOAD = 600.0
"""Seconds for sending one file: systems that read it before they answer take minutes over a long one."""
_LONGEST_PAUSE = 5.0
"""Seconds between two looks at what is in."""
_REFUSED = (401, 403, 407)  # HTTP: who asks may not

Result = TypeVar("Result")


@dataclass(frozen=True)
class Held:
    """A file as a system lists it."""

    ready: bool = True
    error: str = ""


class Library(Protocol):
    """The documents of one collection, as a system lets them be listed and changed."""

    def listed(self, deadline: Deadline) -> Mapping[str, Held] | None:
        """Return its files by name; None where there is no such collection, or no list of it."""

    def create(self, deadline: Deadline) -> None:
        """Make the collection."""

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Send a file."""

    def start(self, deadline: Deadline) -> None:
        """Have the files that were sent read, in systems that wait to be told."""

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete the collection, or, where the system has none, these files."""


class _Patience:
    """Does a step, again where that may help, as questions are asked."""

    def __init__(self, options: TargetOptions) -> None:
        self._options = options

    def __call__(self, step: Callable[[Deadline], Result], *, seconds: float | None = None) -> Result:
        deadline = Deadline(seconds or self._options.timeout)
        tries = 0
        while True:
            try:
                return step(deadline)
            except HttpError as error:
                pause = pause_before(error, tries, self._options, deadline)
                if pause is None:
                    raise
                time.sleep(pause)
                tries += 1


def bring_in(library: Library, dataset: Dataset, options: TargetOptions, *, timeout: float) -> Ingestion:
    """Return what became of the files: those that are missing are sent, and waited for until the list has them."""
    patiently = _Patience(options)
    names = {PurePosixPath(name).name: name for name in dataset.files}
    began = time.monotonic()
    with _said(dataset):
        if options.force_ingestion:
            patiently(lambda deadline: library.delete(list(names), deadline))
        held = patiently(library.listed)
        if held is None:
            patiently(library.create)
            held = {}
        missing = [name for name in names if name not in held or held[name].error]
        refused = _send(library, dataset, {name: names[name] for name in missing}, patiently)
        if missing:
            patiently(library.start)
        held = _wait(library, [name for name in names if name not in refused], patiently, timeout)
    seconds = time.monotonic() - began if missing else None
    return _told(dataset, options, list(names), held, refused, seconds)


def compare(library: Library, dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return which of the files a system has, without sending any."""
    with _said(dataset):
        held = _Patience(options)(library.listed)
    names = [PurePosixPath(name).name for name in dataset.files]
    return _told(dataset, options, names, {} if held is None else held, {}, None)


def remove(library: Library, dataset: Dataset, options: TargetOptions) -> None:
    """Delete a dataset's documents."""
    names = [PurePosixPath(name).name for name in dataset.files]
    with _said(dataset):
        _Patience(options)(lambda deadline: library.delete(names, deadline))


def _send(library: Library, dataset: Dataset, names: Mapping[str, str], patiently: _Patience) -> dict[str, str]:
    """Send files and return why some were not taken; raise what would befall all of them."""
    refused: dict[str, str] = {}
    for name in track(list(names), total=len(names), label=f"{dataset.name}: upload", unit="file"):
        with fetched(dataset.files[names[name]]) as path:
            try:
                patiently(partial(library.add, name, path), seconds=_UPLOAD)
            except HttpError as error:
                if isinstance(error, UnreachableError) or error.status in _REFUSED:
                    raise
                refused[name] = str(error)
    return refused


def _wait(library: Library, names: list[str], patiently: _Patience, timeout: float) -> Mapping[str, Held]:
    """Return the list once it has every file, or says of each why not, or the time is up."""
    deadline, pause = Deadline(timeout), 0.1
    while True:
        held = patiently(library.listed)
        if held is None:  # a system without a list: what was sent is taken to be in
            return {name: Held() for name in names}
        waiting = [name for name in names if name not in held or not (held[name].ready or held[name].error)]
        if not waiting or pause > deadline.left:
            return held
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, 2 * pause)


def _told(
    dataset: Dataset,
    options: TargetOptions,
    names: list[str],
    held: Mapping[str, Held],
    refused: Mapping[str, str],
    seconds: float | None,
) -> Ingestion:
    whole = count_only(dataset, options)
    bad = dict(refused)
    for name in names:
        if name not in held:
            bad.setdefault(name, "not among the system's documents")
        elif held[name].error or not held[name].ready:
            bad[name] = held[name].error or "sent, and not ready in time (--target-ingest-timeout)"
    aside = tuple(f"{name}: {bad[name]}" for name in names if name in bad)
    if len(aside) == len(names):
        raise ToolkitError(f"{dataset.name}: the system has none of the {len(names)} files. The first: {aside[0]}")
    speed = whole.pages / seconds if whole.pages and seconds and not aside else None
    return Ingestion(len(names) - len(aside), whole.pages, speed, seconds=seconds, set_aside=aside)


@contextmanager
def _said(dataset: Dataset) -> Iterator[None]:
    """Turn what a system reports into an error of this project."""
    try:
        yield
    except HttpError as error:
        raise ToolkitError(f"{dataset.name}: its documents cannot be given to the system: {error}") from error
