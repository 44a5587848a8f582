"""A corpus given to a system as its file says: uploaded, waited for, checked against the system's own list."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import httpx

from exhibit.engine import track
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Ingestion, TargetOptions, count_only
from exhibit.evaluation.targets._fields import items_at, search
from exhibit.evaluation.targets._system import Ingest, Step, fill, fill_path
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.exchanges import Deadline, HttpError, Retries, UnreachableError
from exhibit.storage.locations import fetched

_UPLOAD = 600.0
"""Seconds for sending one file: systems that read it before they answer take minutes over a long one."""
_LONGEST_PAUSE = 5.0
"""Seconds between two looks at what is in."""
_REFUSED = (401, 403, 407)  # HTTP: who asks may not
_PAGE = 100
"""Items of a numbered page: the largest that the systems here give."""


class Held(NamedTuple):
    """A file as a system lists it."""

    ready: bool = True
    error: str = ""
    id: str = ""


class _Calls(Protocol):
    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **given: Any) -> Any: ...


class Library:
    """The documents of one collection."""

    def __init__(
        self, server: _Calls, ingest: Ingest, collection: str, settings: Mapping[str, Any], url: str = ""
    ) -> None:
        self._server, self._ingest, self._collection, self._url = server, ingest, collection, url
        self._settings = dict(settings)
        self._id = collection if ingest.id_prefix and collection.startswith(ingest.id_prefix) else ""
        self._sent: dict[str, str] = {}
        """Ids of what was sent, by name; where a system has tasks, of those that are not seen to have ended."""
        self._failed: dict[str, str] = {}

    @property
    def noun(self) -> str:
        """What the system calls a collection."""
        return self._ingest.noun

    def _call(self, step: Step, deadline: Deadline, *, path: Path | None = None, **more: Any) -> Any:
        """Return what a step's request gives."""
        told = {**self._settings, "collection": self._collection, "collection_id": self._id}
        values = {**told, "sent": list(self._sent.values()), **more}
        where, given = fill_path(step.path, values) + str(more.get("cursor") or ""), {"url": self._url}
        if path is None:
            return self._server.fetch(where, fill(step.body, values), deadline=deadline, method=step.method, **given)
        fields = {key: v if isinstance(v, str) else json.dumps(v) for key, v in fill(step.form, values).items()}
        form = httpx.Request("POST", "http://form", files={step.file: (more["name"], path.read_bytes())}, data=fields)
        content, kind = form.read(), form.headers["content-type"]
        return self._server.fetch(where, deadline=deadline, content=content, headers={"Content-Type": kind}, **given)

    def _pages(self, step: Step, deadline: Deadline) -> Iterator[Any]:
        cursor, page = "", 1
        while True:
            reply = self._call(step, deadline, page=page, cursor=cursor)
            items = items_at(step.items, reply)
            yield from items
            after = search(step.next, reply) if step.next else None
            more = f"&after={quote(str(after), safe='')}" if after else ""
            if "{page}" in step.path and len(items) >= _PAGE:
                page += 1
            elif not more or more == cursor:
                return
            cursor = more

    def find(self, deadline: Deadline) -> str | None:
        """Return the collection's id, None where there is none of this name."""
        step = self._ingest.find
        if not self._id and step is not None:
            named = (one for one in self._pages(step, deadline) if search(step.name, one) == self._collection)
            self._id = str(search(step.id, next(named, None)) or "")
        return self._id or None

    def listed(self, deadline: Deadline) -> Mapping[str, Held] | None:
        """Return its files by name; None where there is no such collection, or no list of it."""
        ingest = self._ingest
        if ingest.check is not None:
            self._call(ingest.check, deadline)
        if ingest.list is None or (ingest.find is not None and self.find(deadline) is None):
            return None
        self._look(deadline)
        held = {}
        for one in self._pages(ingest.list, deadline):
            id = str(search(ingest.list.id, one) or "") if ingest.list.id else ""
            name = search(ingest.list.name, one)
            if not name and ingest.name is not None:
                name = search(ingest.name.name, self._call(ingest.name, deadline, id=id))
            error = search(ingest.list.error, one) if ingest.list.error else None
            ready = bool(search(ingest.list.ready, one)) if ingest.list.ready else True
            held[PurePosixPath(str(name or id)).name] = Held(ready, str(error or ""), id)
        waiting = {name: Held(ready=False) for name in self._sent} if ingest.task else {}
        return {**held, **waiting, **{name: Held(error=why) for name, why in self._failed.items() if name not in held}}

    def _look(self, deadline: Deadline) -> None:
        """Learn which tasks have ended, and what they say of their files."""
        task = self._ingest.task
        for name, id in list(self._sent.items()) if task else ():
            assert task is not None
            reply = self._call(task, deadline, id=id)
            if search(task.ready, reply):
                del self._sent[name]
                if error := search(task.error, reply):
                    self._failed[name] = str(error)

    def create(self, deadline: Deadline) -> None:
        """Make the collection, in systems that have such."""
        if self._ingest.create is not None:
            reply = self._call(self._ingest.create, deadline)
            self._id = str(search(self._ingest.create.id or "id", reply) or self._collection)

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Send a file."""
        add = self._ingest.add
        reply = self._call(add, deadline, path=path, name=name)
        id = search(add.id, reply) if add.id else None
        if id:
            self._sent[name] = str(id)
        if self._ingest.attach is not None:
            self._call(self._ingest.attach, deadline, id=id, name=name)

    def start(self, deadline: Deadline) -> None:
        """Have the files that were sent read, in systems that wait to be told."""
        if self._ingest.start is not None and self._sent:
            self._call(self._ingest.start, deadline)

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete the collection and these of its files."""
        ingest = self._ingest
        if ingest.delete is None and ingest.delete_each is None:
            raise HttpError("it cannot delete documents; leave out --force-ingestion and --delete-collection")
        held = self.listed(deadline) if ingest.delete_each or ingest.find else {}
        if held is None:
            return
        for name in names if ingest.delete_each else ():
            if name in held:
                self._call(ingest.delete_each, deadline, name=name, id=held[name].id)  # type: ignore[arg-type]
        if ingest.delete is not None:
            self._call(ingest.delete, deadline)
            self._id = ""


# ---------------------------------------------------------------- a dataset's documents


def _patiently(options: TargetOptions, seconds: float = 0.0) -> Callable[[Callable[[Deadline], Any]], Any]:
    """Return what does a step with a deadline, again where that may help."""
    retries = Retries(options.retries, options.backoff)

    def do(step: Callable[[Deadline], Any]) -> Any:
        deadline = Deadline(seconds or options.timeout, flag="" if seconds else "--timeout")
        return retries(lambda: step(deadline), deadline=deadline)

    return do


def bring_in(
    library: Library, dataset: Dataset, options: TargetOptions, *, timeout: float, notes: Callable[[], list[str]]
) -> Ingestion:
    """Return what became of the files: those that are missing are sent, and waited for until the list has them."""
    patiently = _patiently(options)
    names = {PurePosixPath(name).name: name for name in dataset.files}
    began = time.monotonic()
    with _explained(dataset):
        if options.force_ingestion:
            patiently(lambda deadline: library.delete(list(names), deadline))
        held = patiently(library.listed)
        if held is None:
            patiently(library.create)
            held = {}
        missing = {name: file for name, file in names.items() if name not in held or held[name].error}
        refused = _send(library, dataset, missing, _patiently(options, _UPLOAD))
        if missing:
            patiently(library.start)
        held = _wait(library, [name for name in names if name not in refused], patiently, timeout)
    seconds = time.monotonic() - began if missing else None
    return replace(_outcome(dataset, options, held, refused, seconds), notes=tuple(notes()))


def compare(library: Library, dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return which of the files a system has, without sending any."""
    with _explained(dataset):
        held = _patiently(options)(library.listed)
    return _outcome(dataset, options, held or {}, {}, None)


def remove(library: Library, dataset: Dataset, options: TargetOptions) -> None:
    """Delete a dataset's documents."""
    names = [PurePosixPath(name).name for name in dataset.files]
    with _explained(dataset):
        _patiently(options)(lambda deadline: library.delete(names, deadline))


def _send(library: Library, dataset: Dataset, names: Mapping[str, str], patiently: Any) -> dict[str, str]:
    """Send files and return why some were not taken; raise what would befall all of them."""
    refused: dict[str, str] = {}
    for name in track(list(names), total=len(names), label=f"{dataset.name}: upload", unit="file"):
        with fetched(dataset.files[names[name]]) as path:
            try:
                patiently(partial(library.add, name, path))
            except HttpError as error:
                if isinstance(error, UnreachableError) or error.status in _REFUSED:
                    raise
                refused[name] = str(error)
    return refused


def _wait(library: Library, names: list[str], patiently: Any, timeout: float) -> Mapping[str, Held]:
    """Return the list once it has every file, or says of each why not, or the time is up."""
    deadline, pause = Deadline(timeout), 0.1
    while True:
        held: Mapping[str, Held] | None = patiently(library.listed)
        if held is None:  # a system without a list: what was sent is taken to be in
            return {name: Held() for name in names}
        waiting = [name for name in names if name not in held or not (held[name].ready or held[name].error)]
        if not waiting or pause > deadline.left:
            return held
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, 2 * pause)


def _outcome(
    dataset: Dataset,
    options: TargetOptions,
    held: Mapping[str, Held],
    refused: Mapping[str, str],
    seconds: float | None,
) -> Ingestion:
    names = [PurePosixPath(name).name for name in dataset.files]
    bad = dict(refused)
    for name in names:
        if name not in held:
            bad.setdefault(name, "not among the system's documents")
        elif held[name].error or not held[name].ready:
            bad[name] = held[name].error or "sent, and not ready in time (--target-ingest-timeout)"
    aside = tuple(f"{name}: {bad[name]}" for name in names if name in bad)
    if len(aside) == len(names):
        raise ToolkitError(f"{dataset.name}: the system has none of the {len(names)} files. The first: {aside[0]}")
    pages = count_only(dataset, options).pages
    speed = pages / seconds if pages and seconds and not aside else None
    return Ingestion(len(names) - len(aside), pages, speed, seconds=seconds, set_aside=aside)


@contextmanager
def _explained(dataset: Dataset) -> Iterator[None]:
    """Say which dataset an error is about."""
    try:
        yield
    except HttpError as error:
        raise ToolkitError(f"{dataset.name}: its documents cannot be given to the system: {error}") from error
