"""Upload a corpus to a server as the server's TOML file describes, and compare it with the files that it lists."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import httpx

from exhibit.engine import track
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.replies import describe, search
from exhibit.evaluation.server_files import DocumentInterface, Step
from exhibit.evaluation.targets import TargetOptions, count_only
from exhibit.evaluation.templates import fill, fill_path
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Ingestion
from exhibit.storage.http import Deadline, HttpError, Retries, UnreachableError
from exhibit.storage.locations import fetch_file

_UPLOAD_SECONDS = 600.0  # seconds for one file: a system that parses a long file before it answers takes minutes
REFUSED = (401, 403, 407)  # HTTP: not authorised


class Collection:
    """A collection of documents in a server; a dataset's files are uploaded, listed and deleted in it."""

    def __init__(
        self, fetch: Callable[..., Any], interface: DocumentInterface, values: Mapping[str, Any], options: TargetOptions
    ) -> None:
        self._fetch, self._interface, self._values, self._options = fetch, interface, values, options

    def _call(self, step: Step | None, deadline: Deadline, *, file: Path | None = None, name: str = "") -> Any:
        """Send a request and return the reply's JSON; None if the server does not support this request."""
        if step is None:
            return None
        values = {**self._values, "name": name}
        path, body = fill_path(step.path, values), fill(step.body, values)
        if file is None:
            return self._fetch(path, body, deadline=deadline, method=step.method)
        fields = {key: v if isinstance(v, str) else json.dumps(v) for key, v in fill(step.form, values).items()}
        form = httpx.Request("POST", "http://form", files={step.file: (name, file.read_bytes())}, data=fields)
        headers = {"Content-Type": form.headers["content-type"]}
        return self._fetch(path, deadline=deadline, content=form.read(), headers=headers)

    def _retry(self, step: Callable[[Deadline], Any], seconds: float = 0.0) -> Any:
        deadline = Deadline(seconds or self._options.timeout, flag="" if seconds else "--timeout")
        return Retries(self._options.retries, self._options.backoff)(lambda: step(deadline), deadline=deadline)

    def _list_names(self, step: Step, deadline: Deadline) -> set[str]:
        items = search(step.items, self._call(step, deadline)) or []
        if not isinstance(items, list):
            raise HttpError(f"{step.items} in the reply is not a list: {describe(items)}")
        return {PurePosixPath(str(search(step.name, item))).name for item in items}

    def _list_files(self, deadline: Deadline) -> set[str] | None:
        """Return the files of the collection; None if there is no collection, or if the server cannot list files."""
        step, find = self._interface.list, self._interface.find
        if step is None or (find and self._values["collection"] not in self._list_names(find, deadline)):
            return None
        return self._list_names(step, deadline)

    def _delete(self, names: Iterable[str], deadline: Deadline) -> None:
        delete, delete_each = self._interface.delete, self._interface.delete_each
        if delete is None and delete_each is None:
            raise HttpError("the system cannot delete documents; remove --ingest fresh")
        if (files := self._list_files(deadline)) is not None:
            for name in names if delete_each else ():
                if name in files:
                    self._call(delete_each, deadline, name=name)
            self._call(delete, deadline)

    def bring_in(self, dataset: Dataset) -> Ingestion:
        """Upload the missing files, unless `--ingest never` is set, and return which files the server has."""
        names = {PurePosixPath(name).name: name for name in dataset.files}
        began, refused, missing = time.monotonic(), dict[str, str](), list[str]()
        if self._options.ingest == "fresh":
            self._retry(lambda deadline: self._delete(names, deadline))
        files = self._retry(self._list_files)
        if self._options.ingest != "never":
            if files is None:
                self._retry(lambda deadline: self._call(self._interface.create, deadline))
            missing = [name for name in names if name not in (files or ())]
            for name in track(missing, total=len(missing), label=f"{dataset.name}: upload", unit="file"):
                with fetch_file(dataset.files[names[name]]) as path:
                    if fault := self._upload(path, name):
                        refused[name] = fault
            if (files := self._retry(self._list_files)) is None:  # without a list, uploaded files count as ready
                files = set(names) - refused.keys()
        absent = "not among the system's documents"
        aside = [f"{name}: {refused.get(name, absent)}" for name in names if name not in (files or ())]
        if aside and len(aside) == len(names):
            raise ToolkitError(
                f"{dataset.name}: none of the {len(names)} files is ready in the system. The first file and "
                f"the reason: {aside[0]}"
            )
        seconds, pages = time.monotonic() - began if missing else None, count_only(dataset, self._options).pages
        speed = pages / seconds if pages and seconds and not aside else None
        count = len(names) - len(aside)
        return Ingestion(files=count, pages=pages, pages_per_second=speed, seconds=seconds, set_aside=aside)

    def _upload(self, path: Path, name: str) -> str:
        """Upload a file; return why the server refused it, or an empty text.

        Raise an error if the server is unreachable or refuses the API key, because then every upload would fail.
        """
        step = self._interface.add
        try:
            reply = self._retry(partial(self._call, step, file=path, name=name), _UPLOAD_SECONDS)
        except HttpError as error:
            if isinstance(error, UnreachableError) or error.status in REFUSED:
                raise
            return str(error)
        return str(search(step.error, reply) or "") if step.error else ""
