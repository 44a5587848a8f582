"""A system under test that is asked over HTTP: what all such targets have in common.

A target that knows its system is a subclass with `exchange`, which asks one question once, and, where the system has an
interface for documents, `library`. Address, key, headers, deadline, retries, the probe, conversations and concurrency
are as everywhere.
"""

from __future__ import annotations

import json
import logging
import re
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Asked, Ingestion, TargetOptions, count_only
from exhibit.evaluation.targets._asking import ask_all
from exhibit.evaluation.targets._certainty import read_confidence
from exhibit.evaluation.targets._ingestion import Library, bring_in, compare, remove
from exhibit.evaluation.targets._passages import Names, read_passages
from exhibit.evaluation.targets._probing import probe_server
from exhibit.evaluation.targets._secrets import secrets_in
from exhibit.evaluation.targets._server_settings import WAIT, ServerSettings, headers_of, parse_url
from exhibit.evaluation.targets._shapes import describe
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import (
    STREAMED,
    Deadline,
    Event,
    HttpClient,
    HttpError,
    Response,
    Secrets,
    UnreachableError,
    plain_address,
    read_events,
)

_log = logging.getLogger(__name__)


class NoAnswerError(HttpError):
    """A reply without an answer where one was looked for."""

    def __init__(self, message: str, reply: Any, *, blank: bool) -> None:
        super().__init__(message)
        self.reply = reply
        self.blank = blank
        """Whether there is a place for it, with no words in it."""


@dataclass
class Read:
    """What a server replied, as far as it was understood."""

    raw: Any = None
    answer: str | None = None
    passages: Any = None
    """As the server writes them; None where it has none."""
    shape: str = ""
    pages_from: int = 1
    usage: dict[str, float] = field(default_factory=dict)
    first_token: float | None = None
    selected: int | None = None
    """How many of the passages the answer was made from, where that is known."""
    seconds: float | None = None
    """What the answer took, where the exchange asked for more than that."""
    began: float = field(default_factory=time.monotonic)
    whole: bool = False
    """Whether it came at once, so that there were no first words."""

    def add(self, piece: Any) -> None:
        """Take the next words of a streamed answer."""
        if isinstance(piece, str) and piece:
            self.answer = (self.answer or "") + piece
            if self.first_token is None and piece.strip() and not self.whole:
                self.first_token = time.monotonic() - self.began


@dataclass(frozen=True)
class Known:
    """What the probe is told of a system whose replies need no paths."""

    request: Any = None
    response_answer_jmespath: str | None = None
    response_context_jmespath: str | None = None
    takes_paths: bool = False


class Server(ABC):
    """A server; every failure is a reply with an error, and nothing else stops."""

    exact = False
    system = "http"
    """Its name on the command line."""
    example = "http://localhost:50505/ask"
    key_header = ("Authorization", "Bearer {}")
    """How the system wants its key."""

    def __init__(self, address: str, options: TargetOptions, settings: ServerSettings) -> None:
        url = parse_url(address, self.example)
        self._url = str(url.copy_with(username=None, password=None))
        # an address may carry a password or a key
        self.name = f"{self.system}:{plain_address(str(url))}"
        self._options = options
        headers = headers_of(settings.header)
        if settings.key:
            name, form = self.key_header
            headers = {name: form.format(*headers_of({name: settings.key}).values()), **headers}
        told = [*headers.values(), *secrets_in(str(url), settings.model_dump(mode="json", exclude={"header", "key"}))]
        if url.userinfo:
            headers = {"Authorization": f"Basic {b64encode(url.userinfo).decode('ascii')}", **headers}
        self._wire = HttpClient(headers, connections=options.threads, secrets=Secrets(told))
        self._settings = settings
        self._probed = False
        self._ends = False
        """Whether it has been seen to mark the end of a stream: one without the mark is then half a reply."""

    # ---------------------------------------------------------------- what a system says of itself

    @abstractmethod
    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask a question once and return what came back; raise HttpError where that is no reply."""

    def _exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask once; what reading a reply raises is that reply's fault, and fails its question alone."""
        try:
            return self.exchange(case, deadline, collection)
        except (HttpError, ToolkitError):
            raise
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            _log.debug("a reply that cannot be read", exc_info=error)
            why = self._wire.secrets.strip(" ".join(f"{type(error).__name__}: {error}".split()))
            raise HttpError(f"the reply cannot be read ({why[:200]})") from error

    def library(self, collection: str) -> Library | None:
        """Return the interface for documents, None where there is none."""
        return None

    def collection(self, dataset: Dataset) -> str:
        """Return what the system calls a dataset's documents."""
        return getattr(self._settings, "collection", "") or dataset.name

    @property
    def known(self) -> Any:
        """What the probe is told."""
        return Known()

    # ---------------------------------------------------------------- a target

    @property
    def _brings(self) -> bool:
        return self._options.ingest or self._options.force_ingestion

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a question or two, once for the whole run; of a system that has no documents yet, only what it has."""
        if self._probed:
            return []
        self._probed = True
        collection = self.collection(dataset)
        library = self.library(collection) if self._brings or self._options.delete_collection else None
        if library is None and (self._brings or self._options.delete_collection):
            flags = "--ingest, --force-ingestion and --delete-collection"
            raise ToolkitError(f"{self.name}: it has no interface for documents; leave out {flags}")
        if library is None or not self._brings:
            return self._ask_first(cases, collection)
        try:
            library.listed(Deadline(self._options.timeout, flag="--timeout"))
        except UnreachableError as error:
            raise ToolkitError(f"{error}. Is the server running, and is its address right?") from error
        except HttpError as error:
            raise ToolkitError(f"{self.name}: its documents cannot be listed: {error}") from error
        return []

    def _ask_first(self, cases: Sequence[Case], collection: str) -> list[str]:
        def once(case: Case, deadline: Deadline) -> Read:
            return self._exchange(case, deadline, collection)

        notes, answers = probe_server(self.name, cases, once, self.known, self._options)
        self.saw(answers)
        return notes

    def saw(self, answers: bool) -> None:  # noqa: B027 - most systems need not know
        """Learn from the probe whether the system answers, or only retrieves."""

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Give the system the documents where that is asked for; else say what the corpus is."""
        collection = self.collection(dataset)
        library = self.library(collection) if self._brings or self._options.skip_ingestion else None
        if library is None:
            return count_only(dataset, self._options)
        if not self._brings:
            return compare(library, dataset, self._options)
        timeout = getattr(self._settings, "ingest_timeout", WAIT)
        told = bring_in(library, dataset, self._options, timeout=timeout)
        return replace(told, notes=tuple(self._ask_first(dataset.cases, collection)))

    def forget(self, dataset: Dataset) -> None:
        """Delete what `ingest` gave the system."""
        library = self.library(self.collection(dataset))
        if library is not None:
            remove(library, dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield replies as they come, several questions being asked at once."""
        names, collection = dataset.documents.named, self.collection(dataset)

        def ask_one(case: Case, deadline: Deadline) -> Reply:
            return self._reply(case, deadline, collection, names)

        try:
            yield from ask_all(cases, ask_one, self._options)
        finally:
            self._wire.close()

    def _reply(self, case: Case, deadline: Deadline, collection: str, names: Names) -> Reply:
        began = time.monotonic()
        read = self._exchange(case, deadline, collection)
        seconds = read.seconds if read.seconds is not None else time.monotonic() - began
        passages = read_passages(read.passages, names=names, pages_from=read.pages_from)
        return Reply(
            read.answer,
            passages,
            selected=read.selected,
            seconds=seconds,
            usage=read.usage,
            first_token=read.first_token,
            confidence=read_confidence(read.raw),
        )

    # ---------------------------------------------------------------- requests

    def address(self, path: str, url: str = "") -> str:
        """Return the address of one of the server's interfaces; a version is not said twice (`…/v1` and `/v1/x`)."""
        base = (url or self._url).rstrip("/")
        version = re.match(r"/v\d+(?=/)", path)
        return base + (path[version.end() :] if version and base.endswith(version[0]) else path)

    @contextmanager
    def send(
        self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **told: Any
    ) -> Iterator[Response]:
        """Send a request and yield a response that is a success; an error says which interface gave it."""
        try:
            with self._wire.send(
                method, self.address(path, told.pop("url", "")), body, deadline=deadline, **told
            ) as got:
                got.check()
                yield got
        except UnreachableError:
            raise
        except HttpError as error:
            if error.status is not None and not str(error).startswith(path):
                error.args = (f"{path.partition('?')[0]}: {error}",)
            raise

    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **told: Any) -> Any:
        """Return the JSON of a reply, None where a success has no words."""
        with self.send(path, body, deadline=deadline, method=method, **told) as response:
            return self.parse(response.read(), empty=method != "POST")

    def upload(self, path: str, files: Any, data: Any = None, *, deadline: Deadline, url: str = "") -> Any:
        """Send files as a form does, and return the JSON that comes back."""
        form = httpx.Request("POST", "http://form", files=files, data=data)
        content, kind = form.read(), form.headers["content-type"]
        return self.fetch(path, deadline=deadline, content=content, headers={"Content-Type": kind}, url=url)

    def parse(self, data: bytes, *, empty: bool = False) -> Any:
        """Return the JSON of a body; raise in words what is none."""
        if not data.strip():
            if empty:
                return None
            raise HttpError("the reply is empty")
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            raise HttpError(f"the reply is not JSON: {self._wire.secrets.words(data)}") from None
        self.check(reply)
        return reply

    def check(self, reply: Any) -> None:
        """Raise the error that a reply reports."""
        if isinstance(reply, dict) and reply.get("error"):
            words = self._wire.secrets.words(json.dumps(reply["error"]))
            raise HttpError(f"the server reports an error: {words}")

    def events(self, response: Response) -> Iterator[Event]:
        """Yield the events of a stream, its end included; raise where one is an error."""
        for event in read_events(response.lines()):
            self.check(event.data)
            yield event

    def streamed(self, response: Response) -> bool:
        """Return whether a reply comes in events."""
        return response.kind in STREAMED

    def replies(self, response: Response) -> Iterator[Any]:
        """Yield a whole reply, or the events of a stream; None is the mark of its end."""
        if self.streamed(response):
            yield from (event.data for event in self.events(response))
        else:
            yield self.parse(response.read())

    def finish(self, read: Read, *, ended: bool | None, silent: bool = False) -> Read:
        """Return a reply that is whole; raise where there is no answer, or the stream stopped before its end.

        `ended` is None for what is no stream, or one whose end the system does not mark.
        """
        if ended:
            self._ends = True
        elif ended is False and self._ends:
            raise HttpError("the stream stopped before its end", transient=True)
        if read.answer is not None and read.answer.strip():
            return read
        if silent and read.answer is None:
            return read
        where = read.raw[0] if isinstance(read.raw, list) and read.raw else read.raw
        raise NoAnswerError(f"no answer in the reply: {describe(where)}", where, blank=read.answer is not None)
