"""The client for a system under test that is an HTTP server; the system's TOML file describes its requests.

The client probes the server with a few questions, can upload the documents, and asks the questions. It
sends the key, and repeats failed requests.
"""

import json
import logging
import re
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx

from exhibit.evaluation.asking import ask_all
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers.ingestion import Collection
from exhibit.evaluation.servers.polling import poll_reply
from exhibit.evaluation.servers.probing import Probe
from exhibit.evaluation.servers.reading import Read, ReplyReader, make_json_error
from exhibit.evaluation.servers.shapes import (
    Names,
    PassagesError,
    find_named_sources,
    read_confidence,
    read_passages,
    read_stages,
    search,
)
from exhibit.evaluation.servers.system import PollRequest, ServerSettings, apply_settings, headers_of
from exhibit.evaluation.servers.templates import fill, fill_path
from exhibit.evaluation.target_protocol import NumberedReply, TargetOptions, count_only
from exhibit.runtime.secrets import HIDDEN, is_secret_name
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Ingestion
from exhibit.storage.http import HttpClient, Response
from exhibit.storage.http_policy import Deadline, HttpError, Secrets, UnreachableError, strip_address

_log = logging.getLogger(__name__)
_NOT_THERE = (404, 405)  # HTTP: another version of the system has another path


class Server:
    """A server under test; every failure becomes a reply with an error, and the run continues."""

    exact = False

    def __init__(self, wanted: str, argument: str | None, options: TargetOptions, settings: ServerSettings) -> None:
        self._options = options
        self.values, self._given = settings.model_dump(), settings.model_fields_set
        ingesting = bool(options.ingest) or options.delete_collection
        self.system = system = apply_settings(wanted, {**self.values, "ingesting": ingesting})
        name = Path(wanted).stem
        for key, given in system.settings.items():
            if given.required and not self.values[key]:
                raise ToolkitError(f"--target {name} needs --set target_{key}=VALUE: {given.help}")
        url = parse_url(settings.url or argument or system.url, system.example or system.url)
        plain = str(url.copy_with(username=None, password=None))
        for ending in system.strip:
            plain = plain.rstrip("/").removesuffix(ending)
        self.url = plain
        # an address may contain a password or a key
        self.name = f"{name}:{strip_address(plain)}"
        headers = headers_of(settings.header)
        key_variable = settings.key or system.key
        if key_variable:
            header, _, form = system.key_header.partition(":")
            headers = {header: form.strip().format(key=headers_of({header: key_variable})[header]), **headers}
        secrets = [
            *headers.values(),
            *find_secrets(str(url), settings.model_dump(mode="json", exclude={"header", "key"})),
        ]
        if url.userinfo:
            headers = {"Authorization": f"Basic {b64encode(url.userinfo).decode('ascii')}", **headers}
        self.client = HttpClient(headers, connections=options.threads, secrets=Secrets(secrets))
        self.reader = ReplyReader(system, self.client.secrets, stream=bool(self.values.get("stream")))
        # the collection's name depends on the dataset
        self.template = fill(system.ask.body, {k: v for k, v in self.values.items() if k != "collection"})
        self._path = 0
        self._ids: dict[str, str] = {}
        """The ids of collections by name."""
        self._probed = False
        self.poll: PollRequest | None = None
        """The poll request, where the probe found that the server returns tasks."""

    # ---------------------------------------------------------------- one question

    def exchange(self, case: Case, deadline: Deadline, collection: str = "") -> Read:
        """Ask a question once and return the content of the reply; raise HttpError where there is no valid reply."""
        ask, values = self.system.ask, self._make_values(case, deadline, collection)
        began = time.monotonic()
        retrieved = self._retrieve(values, deadline)
        paths = [ask.path] if isinstance(ask.path, str) else list(ask.path)
        at = self._path  # several threads ask, and another one may move it on meanwhile
        while True:
            path = fill_path(paths[at], values)
            if ask.query:
                path += "?" + urlencode(fill(ask.query, values))
            try:
                body = None if ask.method == "GET" else fill(self.template, values)
                with self.send(path, body, deadline=deadline, method=ask.method) as response:
                    read = self._read_ready(response, deadline)
                break
            except HttpError as error:
                if error.status not in _NOT_THERE or at + 1 == len(paths):
                    raise
                at = self._path = at + 1
        read.passages = read.passages or retrieved
        if self.system.ranking is not None:
            read.seconds = time.monotonic() - began
            read.passages = self._add_ranking(read.passages, values, deadline)
        return read

    def _read_ready(self, response: Response, deadline: Deadline) -> Read:
        """Return the immediate reply or, if the server returns a task, the reply of the finished task."""
        poll = self.poll or self.system.poll
        if poll is None:
            return self.reader.read(response)
        return poll_reply(response, poll, self, deadline)

    def _retrieve(self, values: dict[str, Any], deadline: Deadline) -> Any:
        """Request passages before the answer, if the system needs this step, and return them.

        The passages and their ids are added to `values`, for the request for the answer.
        """
        retrieve = self.system.retrieve
        if retrieve is None:
            return None
        reply = self.fetch(retrieve.path, fill(retrieve.body, values), deadline=deadline)
        passages = self.reader.passages([retrieve.passages], reply) or []
        ids = search(retrieve.ids, reply) if retrieve.ids else [one.get("id") for one in passages]
        values |= {"ids": ids, "passages": passages}
        return passages

    def _make_values(self, case: Case, deadline: Deadline, collection: str) -> dict[str, Any]:
        """Return the values for the placeholders of a request."""
        forms = self.system.ask.history
        turns = [
            fill(forms.get(turn.role, {"role": "{role}", "content": "{content}"}), turn._asdict())
            for turn in case.history
        ]
        session = case.session or str(case.id)
        return {
            **self.values,
            "question": case.question,
            "history": turns,
            "session": session,
            "conversation": case.session,
            "thread": re.sub(r"[^a-zA-Z0-9_-]", "_", f"{collection}-{session}"),
            "as_of": case.labels.get("as_of"),
            "collection": collection,
            "collection_id": lambda: self._find_collection_id(collection, deadline),
        }

    def _find_collection_id(self, collection: str, deadline: Deadline) -> str:
        documents = self.documents(collection)
        if collection not in self._ids and documents is not None:
            self._ids[collection] = documents.find(deadline) or ""
        if not self._ids.get(collection):
            noun = documents.noun if documents else "collection"
            raise HttpError(f"no {noun} is named {collection!r}; name one with --set target_collection=NAME")
        return self._ids[collection]

    def _add_ranking(self, cited: Any, values: Mapping[str, Any], deadline: Deadline) -> list[Any]:
        """Send the system's separate search request, and return the cited passages followed by those found.

        Passages that are found but already cited are left out.
        """
        ranking = self.system.ranking
        assert ranking is not None
        shared = {name: value for name, value in self.values["parameters"].items() if name in ranking.parameters}
        reply = self.fetch(ranking.path, {**fill(ranking.body, values), **shared}, deadline=deadline)
        found = self.reader.passages([ranking.passages], reply) or []
        known = [_place(one) for one in cited or ()]
        return [*(cited or ()), *(one for one in found if _place(one) not in known)]

    # ---------------------------------------------------------------- a target

    @property
    def _brings(self) -> bool:
        return self._options.ingest in ("auto", "fresh")

    def documents(self, collection: str) -> Collection | None:
        """Return the interface by which documents are uploaded to the server; None if the system has none.

        `collection` is the name of the collection that holds the documents.
        """
        ingest = self.system.ingest
        if not ingest:
            return None
        setting = ingest.url[1:-1] if ingest.url.startswith("{") else ""
        url = str(self.values[setting]) if setting else ingest.url
        if not url:
            # the key for one host must not be sent to another host that the user has not named
            url = str(httpx.URL(self.url).copy_with(port=ingest.port, path="/")) if ingest.port else self.url
        elif setting not in self._given and parse_url(url, self.url).host != httpx.URL(self.url).host:
            other = f"add --set target_{setting}={strip_address(url)}" if setting else "make its address a setting"
            raise ToolkitError(f"{self.name}: its file sends documents to another server; to allow this, {other}")
        address = str(parse_url(url, "http://localhost:8082"))
        return Collection(self.fetch, ingest, collection, self._options, self.values, address)

    def collection(self, dataset: Dataset) -> str:
        """Return the name of the collection that holds a dataset's documents in the system."""
        own = str(self.values.get("collection") or "")
        return own or (re.sub(r"\W", "_", dataset.name) if self.system.plain_collection else dataset.name)

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a few questions, once per run, and return notes on the replies.

        If documents are still to be uploaded, only check that the server can list its documents.
        """
        if self._probed:
            return []
        self._probed = True
        collection = self.collection(dataset)
        wanted = self._brings or self._options.delete_collection
        documents = self.documents(collection) if wanted else None
        if documents is None and wanted:
            flags = "--ingest and delete_collection"
            raise ToolkitError(f"{self.name}: it has no interface for documents; remove {flags}")
        if documents is None or not self._brings:
            return Probe(self, dataset, collection, self._options).run(cases)
        try:
            documents.listed(Deadline(self._options.timeout, flag="--timeout"))
        except UnreachableError as error:
            raise ToolkitError(f"{error}. Is the server running, and is its address right?") from error
        except HttpError as error:
            raise ToolkitError(f"{self.name}: its documents cannot be listed: {error}") from error
        return []

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Upload the documents if requested, and return the ingestion record.

        If no upload is requested, the record says which files the server has. If the system has no interface for
        documents, or ingestion is turned off, the record has only the size of the corpus.
        """
        collection = self.collection(dataset)
        documents = self.documents(collection) if self._options.ingest else None
        if documents is None:
            return count_only(dataset, self._options)
        if not self._brings:
            return documents.compare(dataset)
        done = documents.bring_in(dataset, timeout=float(self.values.get("ingest_timeout") or 3600.0))
        notes = Probe(self, dataset, collection, self._options).run(dataset.cases)
        return done.model_copy(update={"notes": notes})

    def forget(self, dataset: Dataset) -> None:
        """Delete the dataset's documents from the server."""
        documents = self.documents(self.collection(dataset))
        if documents is not None:
            documents.remove(dataset)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield replies as they arrive; several questions are asked at the same time."""
        names, collection = dataset.documents.named, self.collection(dataset)

        def ask_one(case: Case, deadline: Deadline) -> Reply:
            return self.reply(case, deadline, collection, names)

        try:
            yield from ask_all(cases, ask_one, self._options)
        finally:
            self.client.close()

    def reply(self, case: Case, deadline: Deadline, collection: str, names: Names) -> Reply:
        """Ask a question once, and return the reply.

        Raise an HttpError if the reply cannot be read, so that only this question fails and the run continues.
        """
        began = time.monotonic()
        try:
            read = self.exchange(case, deadline, collection)
            passages = read_passages(read.passages, names=names, pages_from=read.pages_from)
            passages = passages or find_named_sources(read.answer or "", names)
            stages = read_stages(read.stages, passages, names=names, pages_from=read.pages_from)
        except (ToolkitError, PassagesError):
            raise
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            _log.debug("a reply that cannot be read", exc_info=error)
            why = self.client.secrets.strip(" ".join(f"{type(error).__name__}: {error}".split()))
            raise HttpError(f"the reply cannot be read ({why[:200]})") from error
        return Reply(
            read.answer,
            passages,
            selected=read.selected,
            seconds=read.seconds if read.seconds is not None else time.monotonic() - began,
            usage=read.usage,
            first_token=read.first_token,
            confidence=read_confidence(read.raw),
            **stages,
        )

    # ---------------------------------------------------------------- requests

    @contextmanager
    def send(
        self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", url: str = "", **given: Any
    ) -> Iterator[Response]:
        """Send a request and yield a successful response; an HTTP error is raised with the path that failed."""
        base = (url or self.url).rstrip("/") if path else url or self.url
        version = re.match(r"/v\d+(?=/)", path)  # not repeated: …/v1 and /v1/x
        rest = path[version.end() :] if version and base.endswith(version[0]) else path
        try:
            with self.client.send(method, base + rest, body, deadline=deadline, **given) as response:
                response.check()
                yield response
        except UnreachableError:
            raise
        except HttpError as error:
            if path and error.status is not None and not str(error).startswith(path.partition("?")[0]):
                error.args = (f"{path.partition('?')[0]}: {error}",)
            raise

    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **given: Any) -> Any:
        """Send a request and return the reply's JSON; None if the reply is empty and the method is not POST."""
        with self.send(path, body, deadline=deadline, method=method, **given) as response:
            data = response.read()
        if not data.strip() and method != "POST":
            return None
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            raise make_json_error(data, self.client.secrets) from None
        self.reader.check(reply)
        return reply


def _place(passage: Any) -> tuple[Any, Any]:
    fields = passage if isinstance(passage, Mapping) else {}
    return fields.get("document_name", fields.get("filename")), fields.get("text", fields.get("content", str(passage)))


def parse_url(address: str, example: str) -> httpx.URL:
    """Return the parsed address of a server.

    Raise ToolkitError for an invalid address; the message gives `example` as a valid one.
    """
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolkitError(f"--target-url {address!r} is not an address; an example is {example}")
    return url


# ---------------------------------------------------------------- secrets in settings


def find_secrets(url: str, settings: Any = None) -> list[str]:
    """Return the secret values in an address and in settings.

    They are the user name, password and query of the address, and the values of settings whose names mark a
    secret.
    """
    parts = urlsplit(url)
    values = [value for _, value in parse_qsl(parts.query)]
    return [part for part in (parts.username, parts.password) if part] + values + _find_hidden_values(settings)


def _find_hidden_values(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        own = [v for k, v in value.items() if is_secret_name(str(k)) and isinstance(v, str)]
        return own + [secret for v in value.values() for secret in _find_hidden_values(v)]
    return [secret for one in value for secret in _find_hidden_values(one)] if isinstance(value, list) else []


def hide(value: Any) -> Any:
    """Return settings with their secrets hidden, and addresses without password and query."""
    if isinstance(value, Mapping):
        # a header is given by the name of the variable that holds its value
        named = {"header": value["header"]} if "header" in value else {}
        hidden = {k: HIDDEN if is_secret_name(str(k)) and isinstance(v, str) else hide(v) for k, v in value.items()}
        return {**hidden, **named}
    if isinstance(value, list | tuple):
        return [hide(one) for one in value]
    return strip_address(value) if isinstance(value, str) and re.match(r"https?://", value) else value
