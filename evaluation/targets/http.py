"""Any RAG server that takes JSON: `--target-url`, with JMESPath for where its answer and its passages are.

Without a request template it is asked as chat servers are: `{"messages": […], "stream": false, "context": parameters}`.
A reply is JSON, or, streamed, lines of JSON (`data: ` in front or not) whose answers are joined.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import Any

import httpx
import jmespath
from jmespath.exceptions import JMESPathError

from evaluation.cases import Case, Reply
from evaluation.datasets import Dataset
from evaluation.targets import Asked, Ingestion, TargetOptions, count_only
from evaluation.targets._passages import Names, PassagesError, read_passages
from schemas.errors import ToolkitError
from storage.waiting import LONGEST_WAIT, seconds_asked

CHAT: Mapping[str, Any] = {
    "messages": [{"content": "{question}", "role": "user"}],
    "stream": False,
    "context": "{parameters}",
}
ANSWERS = ("message.content", "choices[0].message.content", "answer")
PARTS = ("delta.content", "choices[0].delta.content", *ANSWERS)
CONTEXTS = ("context.data_points.text", "context.data_points", "contexts", "passages")
_LARGEST = 16 << 20
_STREAMED = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-lines")


_BUSY = (429, 503)
"""A server that says so is asked again; any other failure is its answer to the question."""


_PATIENCE = 3
"""Questions in a row that a busy server may cost all their tries; those after them are asked once."""


class _NoReplyError(Exception):
    """Why there is no reply, in words that hold no secret."""

    def __init__(self, message: str, *, busy: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.busy = busy
        self.wait = wait


def open(argument: str | None, options: TargetOptions) -> Http:
    """Return the server at `--target-url`, or at `http:URL`."""
    address = options.url or argument or ""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolkitError(f"--target-url {address!r} is not an address; it looks like http://localhost:50505/ask")
    missing = [variable for variable in options.headers.values() if variable not in os.environ]
    if missing:
        raise ToolkitError(f"--target-header: the environment has no {', '.join(sorted(missing))}")
    # named by their variables: the values are secrets
    odd = [variable for variable in options.headers.values() if not os.environ[variable].isprintable()]
    odd += [variable for variable in options.headers.values() if not os.environ[variable].isascii()]
    if odd:
        raise ToolkitError(f"--target-header: {', '.join(sorted(set(odd)))} cannot be sent: not printable ASCII")
    return Http(url, options)


class Http:
    """A server; every failure is a reply with an error, and nothing else stops."""

    exact = False

    def __init__(self, url: httpx.URL, options: TargetOptions) -> None:
        self._url = url
        # an address may carry a password or a key
        self.name = f"http:{url.copy_with(username=None, password=None, query=None)}"
        self._options = options
        self._stopped = threading.Event()
        self._in_vain = 0
        self._answers = _compile(options.answer_path, PARTS if options.stream else ANSWERS, "answer")
        self._parts = _compile(options.answer_path, PARTS, "answer")
        self._contexts = _compile(options.context_path, CONTEXTS, "context")

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Say what the corpus is; the server has its own copy."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield replies as they come, several questions being asked at once."""
        limits = httpx.Limits(max_connections=self._options.threads)
        headers = {name: os.environ[variable] for name, variable in self._options.headers.items()}
        client = httpx.Client(timeout=self._options.timeout, limits=limits, headers=headers, follow_redirects=False)
        with client, ThreadPoolExecutor(self._options.threads) as pool:
            waiting = {
                pool.submit(self._reply, client, case.question, dataset.documents.named): position
                for position, case in enumerate(cases)
            }
            try:
                for done in as_completed(waiting):
                    yield Asked(waiting[done], done.result())
            except (GeneratorExit, KeyboardInterrupt, CancelledError):
                self._stopped.set()  # whoever waits for a busy server gives up
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    # ---------------------------------------------------------------- one question

    def _reply(self, client: httpx.Client, question: str, names: Names) -> Reply:
        tries = 0
        while True:
            began = time.monotonic()
            try:
                reply = self._once(client, question, names, began)
                self._in_vain = 0
                return reply
            except PassagesError as error:
                return Reply(error=str(error), seconds=time.monotonic() - began)
            except _NoReplyError as error:
                hopeless = self._in_vain >= _PATIENCE  # it says so to everybody: waiting for each would take hours
                if not error.busy or error.wait > LONGEST_WAIT or tries >= self._options.retries or hopeless:
                    self._in_vain += error.busy
                    again = f" (asked {tries + 1} times)" if tries else ""
                    return Reply(error=f"{error}{again}", seconds=time.monotonic() - began)
                # the seconds of a reply are those of the try that gave it: waiting is not latency
                self._stopped.wait(error.wait or self._options.backoff * 2**tries)
                tries += 1

    def _once(self, client: httpx.Client, question: str, names: Names, began: float) -> Reply:
        content_type, data = self._exchange(client, self.body(question))
        streamed = self._options.stream or content_type in _STREAMED
        answer, found = self._read_stream(data) if streamed else self._read(data)
        passages = read_passages(found, names=names)
        return Reply(answer=answer, passages=passages, seconds=time.monotonic() - began)

    def body(self, question: str) -> Any:
        """Return the request for a question."""
        template = CHAT if self._options.request is None else self._options.request
        if self._options.stream and isinstance(template, Mapping) and "stream" in template:
            template = {**template, "stream": True}
        return _fill(template, question, dict(self._options.parameters))

    def _exchange(self, client: httpx.Client, body: Any) -> tuple[str, bytes]:
        deadline = time.monotonic() + self._options.timeout
        data = bytearray()
        content = json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json"}
        try:
            with client.stream("POST", self._url, content=content, headers=headers) as response:
                for part in response.iter_bytes():
                    data += part
                    # httpx limits the silence between two parts: a server can drip for ever
                    if time.monotonic() > deadline:
                        raise _NoReplyError(f"the reply did not end within {self._options.timeout:g} s")
                    if len(data) > _LARGEST:
                        raise _NoReplyError(f"the reply is larger than {_LARGEST >> 20} MB")
        except httpx.TimeoutException:
            raise _NoReplyError(f"no reply within {self._options.timeout:g} s") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            # its own words may hold the address with its key
            raise _NoReplyError(f"no reply ({type(error).__name__})") from None
        if not response.is_success:
            phrase = httpx.codes.get_reason_phrase(response.status_code)
            wait = seconds_asked(response.headers.get("Retry-After", ""))
            told = f"HTTP {response.status_code} {phrase}".rstrip()
            raise _NoReplyError(told, busy=response.status_code in _BUSY, wait=wait)
        return response.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(data)

    # ---------------------------------------------------------------- what came back

    def _read(self, data: bytes) -> tuple[str | None, Any]:
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            raise _NoReplyError("the reply is not JSON" if data.strip() else "the reply is empty") from None
        self._check(reply)
        answer = _first(self._answers, reply)
        found = _first(self._contexts, reply)
        if self._answers and not (isinstance(answer, str) and answer.strip()):
            raise _NoReplyError(f"no answer at {' or '.join(path for path, _ in self._answers)}")
        return answer, found

    def _read_stream(self, data: bytes) -> tuple[str | None, Any]:
        pieces: list[str] = []
        found = None
        for line in data.decode("utf-8", "replace").split("\n"):
            text = line.strip().removeprefix("data:").strip()
            if not text or text == "[DONE]" or text.startswith((":", "event:", "id:", "retry:")):
                continue
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                raise _NoReplyError("a line of the stream is not JSON") from None
            self._check(event)
            piece = _first(self._parts, event)
            pieces += [piece] if isinstance(piece, str) else []
            told = _first(self._contexts, event)
            found = found if told is None else told
        if self._parts and not "".join(pieces).strip():
            raise _NoReplyError(f"no answer at {' or '.join(path for path, _ in self._parts)} of the stream")
        return ("".join(pieces) if self._parts else None), found

    def _check(self, reply: Any) -> None:
        if isinstance(reply, dict) and reply.get("error"):
            raise _NoReplyError("the server reports an error")


def _compile(path: str | None, usual: Sequence[str], what: str) -> list[tuple[str, Any]]:
    """Return the expressions to try; none for an empty path, which says that there is nothing of the kind."""
    try:
        return [(one, jmespath.compile(one)) for one in (usual if path is None else [path]) if one]
    except JMESPathError as error:
        raise ToolkitError(f"--target-response-{what}-jmespath {path!r}: not JMESPath: {error}") from error


def _first(paths: Sequence[tuple[str, Any]], reply: Any) -> Any:
    for _, expression in paths:
        try:
            found = expression.search(reply)
        except JMESPathError:  # a function that does not take what it is given
            continue
        if found is not None:
            return found
    return None


def _fill(template: Any, question: str, parameters: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        return parameters if template == "{parameters}" else template.replace("{question}", question)
    if isinstance(template, Mapping):
        return {key: _fill(value, question, parameters) for key, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, question, parameters) for value in template]
    return template
