"""Upload a corpus to a system as the system's TOML file describes.

The upload waits until the system is ready, and compares the files with the list that the system reports.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from exhibit.engine import track
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers.shapes import read_items, search
from exhibit.evaluation.servers.system import DocumentInterface, Step
from exhibit.evaluation.servers.templates import fill, fill_path
from exhibit.evaluation.target_protocol import TargetOptions, count_only
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Ingestion
from exhibit.storage.http_policy import Deadline, HttpError, Retries, UnreachableError
from exhibit.storage.locations import fetch_file

_UPLOAD = 600.0
"""Seconds for the upload of one file: systems that parse it before they answer take minutes for a long one."""
_LONGEST_PAUSE = 5.0
"""The longest pause between two requests for the list of documents, in seconds."""
_REFUSED = (401, 403, 407)  # HTTP: not authorised
_PAGE = 100
"""Items of a numbered page: the largest page size that the supported systems allow."""


class ListedFile(NamedTuple):
    """A file in the list of documents that a system reports."""

    ready: bool = True
    error: str = ""
    id: str = ""


Listed = Mapping[str, ListedFile]


class Collection:
    """A named collection of documents in a system; a dataset's files are uploaded, listed and deleted in it."""

    def __init__(
        self,
        fetch: Callable[..., Any],
        ingest: DocumentInterface,
        name: str,
        options: TargetOptions,
        settings: Mapping[str, Any],
        url: str,
    ) -> None:
        """Store the function that sends requests and returns JSON, and the system's interface for documents."""
        self._fetch, self._ingest, self._name, self._options, self._url = fetch, ingest, name, options, url
        self.noun, self._settings = ingest.noun, dict(settings)
        self._id = name if ingest.id_prefix and name.startswith(ingest.id_prefix) else ""
        self._sent: dict[str, str] = {}
        """Ids of the uploaded files by name; for a system with tasks, only of files whose task has not ended."""
        self._failed: dict[str, str] = {}

    # ---------------------------------------------------------------- requests

    def _call(self, step: Step | None, deadline: Deadline, *, path: Path | None = None, **more: Any) -> Any:
        """Send one request to the system's interface for documents, such as an upload; return the reply's JSON.

        Return None if `step` is None, which means that the system has no such request.
        """
        if step is None:
            return None
        own = {**self._settings, "collection": self._name, "collection_id": self._id}
        values = {**own, "sent": list(self._sent.values()), **more}
        where, given = fill_path(step.path, values) + str(more.get("cursor") or ""), {"url": self._url}
        if path is None:
            return self._fetch(where, fill(step.body, values), deadline=deadline, method=step.method, **given)
        fields = {key: v if isinstance(v, str) else json.dumps(v) for key, v in fill(step.form, values).items()}
        form = httpx.Request("POST", "http://form", files={step.file: (more["name"], path.read_bytes())}, data=fields)
        content, kind = form.read(), form.headers["content-type"]
        return self._fetch(where, deadline=deadline, content=content, headers={"Content-Type": kind}, **given)

    def _do_with_retries(self, step: Callable[[Deadline], Any], seconds: float = 0.0) -> Any:
        """Run a step with a deadline, and repeat it if the error may be temporary.

        The deadline is `seconds` from now or, if `seconds` is 0, the time that `--timeout` sets.
        """
        deadline = Deadline(seconds or self._options.timeout, flag="" if seconds else "--timeout")
        return Retries(self._options.retries, self._options.backoff)(lambda: step(deadline), deadline=deadline)

    def _list_items(self, step: Step, deadline: Deadline) -> Iterator[Any]:
        cursor, page = "", 1
        while True:
            reply = self._call(step, deadline, page=page, cursor=cursor)
            items = read_items(step.items, reply)
            yield from items
            after = search(step.next, reply) if step.next else None
            more = f"&after={quote(str(after), safe='')}" if after else ""
            if "{page}" in step.path and len(items) >= _PAGE:
                page += 1
            elif not more or more == cursor:
                return
            cursor = more

    def find(self, deadline: Deadline) -> str | None:
        """Return the collection's id; None where the system has no collection of this name."""
        step = self._ingest.find
        if not self._id and step is not None:
            named = (one for one in self._list_items(step, deadline) if search(step.name, one) == self._name)
            self._id = str(search(step.id, next(named, None)) or "")
        return self._id or None

    def listed(self, deadline: Deadline) -> Listed | None:
        """Return the files of the collection by name; None if it does not exist, or if the system cannot list files."""
        ingest, step = self._ingest, self._ingest.list
        self._call(ingest.check, deadline)
        if step is None or (ingest.find is not None and self.find(deadline) is None):
            return None
        self._look_at_tasks(deadline)
        held = {}
        for one in self._list_items(step, deadline):
            id = str(search(step.id, one) or "") if step.id else ""
            name = search(step.name, one)
            if not name and ingest.name is not None:
                name = search(ingest.name.name, self._call(ingest.name, deadline, id=id))
            error = search(step.error, one) if step.error else None
            ready = bool(search(step.ready, one)) if step.ready else True
            held[PurePosixPath(str(name or id)).name] = ListedFile(ready, str(error or ""), id)
        waiting = {name: ListedFile(ready=False) for name in self._sent} if ingest.task else {}
        failed = {name: ListedFile(error=why) for name, why in self._failed.items() if name not in held}
        return held | waiting | failed

    def _look_at_tasks(self, deadline: Deadline) -> None:
        """Ask which upload tasks have ended, and store the errors of those that failed."""
        task = self._ingest.task
        for name, id in list(self._sent.items()) if task else ():
            reply = self._call(task, deadline, id=id)
            if task and search(task.ready, reply):
                del self._sent[name]
                if error := search(task.error, reply):
                    self._failed[name] = str(error)

    def _create(self, deadline: Deadline) -> None:
        if step := self._ingest.create:
            self._id = str(search(step.id or "id", self._call(step, deadline)) or self._name)

    def _add(self, name: str, path: Path, deadline: Deadline) -> None:
        add = self._ingest.add
        reply = self._call(add, deadline, path=path, name=name)
        id = search(add.id, reply) if add.id else None
        if id:
            self._sent[name] = str(id)
        self._call(self._ingest.attach, deadline, id=id, name=name)

    def _delete(self, names: list[str], deadline: Deadline) -> None:
        ingest = self._ingest
        if ingest.delete is None and ingest.delete_each is None:
            raise HttpError("the system cannot delete documents; remove --ingest fresh and delete_collection")
        held = self.listed(deadline) if ingest.delete_each or ingest.find else {}
        if held is None:
            return
        for name in names:
            if name in held:
                self._call(ingest.delete_each, deadline, name=name, id=held[name].id)
        if ingest.delete is not None:
            self._call(ingest.delete, deadline)
            self._id = ""

    # ---------------------------------------------------------------- a dataset's documents

    def bring_in(self, dataset: Dataset, *, timeout: float) -> Ingestion:
        """Upload the missing files, wait until the system lists them as ready, and return the ingestion record."""
        names = {PurePosixPath(name).name: name for name in dataset.files}
        began = time.monotonic()
        with _name_dataset(dataset):
            if self._options.ingest == "fresh":
                self._do_with_retries(lambda deadline: self._delete(list(names), deadline))
            held = self._do_with_retries(self.listed)
            if held is None:
                self._do_with_retries(self._create)
                held = {}
            missing = {name: file for name, file in names.items() if name not in held or held[name].error}
            refused = self._send(dataset, missing)
            if missing and self._sent:  # some systems need a separate request to start
                self._do_with_retries(lambda deadline: self._call(self._ingest.start, deadline))
            held = self._wait([name for name in names if name not in refused], timeout)
        seconds = time.monotonic() - began if missing else None
        return self._make_outcome(dataset, held, refused, seconds)

    def compare(self, dataset: Dataset) -> Ingestion:
        """Return a record of which of a dataset's files the system has, without uploading any."""
        with _name_dataset(dataset):
            held = self._do_with_retries(self.listed)
        return self._make_outcome(dataset, held or {}, {}, None)

    def remove(self, dataset: Dataset) -> None:
        """Delete a dataset's documents from the system's collection."""
        names = [PurePosixPath(name).name for name in dataset.files]
        with _name_dataset(dataset):
            self._do_with_retries(lambda deadline: self._delete(names, deadline))

    def _send(self, dataset: Dataset, names: Mapping[str, str]) -> dict[str, str]:
        """Upload files; return the files that the server refused, as a mapping from name to reason.

        `names` maps the name that a file gets on the server to its name in the dataset. Raise an error if the
        server is unreachable or refuses the API key, because then every upload would fail.
        """
        refused: dict[str, str] = {}
        for name in track(list(names), total=len(names), label=f"{dataset.name}: upload", unit="file"):
            with fetch_file(dataset.files[names[name]]) as path:
                try:
                    self._do_with_retries(partial(self._add, name, path), _UPLOAD)
                except HttpError as error:
                    if isinstance(error, UnreachableError) or error.status in _REFUSED:
                        raise
                    refused[name] = str(error)
        return refused

    def _wait(self, names: list[str], timeout: float) -> Listed:
        """Poll the system's file list until every file is ready or has an error, or the time is up; return the list."""
        deadline, pause = Deadline(timeout), 0.1
        while True:
            held: Listed | None = self._do_with_retries(self.listed)
            if held is None:  # the system has no list: uploaded files count as ready
                return {name: ListedFile() for name in names}
            waiting = [name for name in names if name not in held or not (held[name].ready or held[name].error)]
            if not waiting or pause > deadline.left:
                return held
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    def _make_outcome(
        self, dataset: Dataset, held: Listed, refused: Mapping[str, str], seconds: float | None
    ) -> Ingestion:
        names, bad = [PurePosixPath(name).name for name in dataset.files], dict(refused)
        for name in names:
            if name not in held:
                bad.setdefault(name, "not among the system's documents")
            elif held[name].error or not held[name].ready:
                bad[name] = held[name].error or "uploaded, but not ready in time (target_ingest_timeout)"
        aside = [f"{name}: {bad[name]}" for name in names if name in bad]
        if aside and len(aside) == len(names):
            raise ToolkitError(
                f"{dataset.name}: none of the {len(names)} files is ready in the system. The first file and "
                f"the reason: {aside[0]}"
            )
        pages = count_only(dataset, self._options).pages
        speed = pages / seconds if pages and seconds and not aside else None
        files = len(names) - len(aside)
        return Ingestion(files=files, pages=pages, pages_per_second=speed, seconds=seconds, set_aside=aside)


@contextmanager
def _name_dataset(dataset: Dataset) -> Iterator[None]:
    """Turn an HTTP error inside the block into an error that names the dataset."""
    try:
        yield
    except HttpError as error:
        raise ToolkitError(f"{dataset.name}: its documents cannot be uploaded to the system: {error}") from error
