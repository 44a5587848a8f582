"""Poll for a reply that is not ready at once.

The server first returns a task, which is then requested until it is done.
"""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote, urljoin, urlsplit

from exhibit.evaluation.servers.reading import NoAnswerError, Read, ReplyReader
from exhibit.evaluation.servers.shapes import NAMES, describe, first_of, search
from exhibit.evaluation.servers.system import PollRequest
from exhibit.storage.http import Response
from exhibit.storage.http_policy import Deadline, HttpError

_SECONDS = 0.5
"""Seconds between two polls where the system's file gives no interval."""


class Polled(Protocol):
    """The attributes and methods of a server that polling uses."""

    url: str
    reader: ReplyReader

    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **given: Any) -> Any: ...


def poll_reply(response: Response, poll: PollRequest, server: Polled, deadline: Deadline) -> Read:
    """Poll a task until it is done and return its reply; raise an error if the deadline passes first."""
    first = _parse_response(response)
    path, base = _find_address(first, poll, server)
    while True:
        reply = server.fetch(path, deadline=deadline, method="GET", url=base)
        if search(poll.done, reply) if poll.done else _is_ready(search(poll.result, reply), server.reader):
            return server.reader.read_whole(search(poll.result, reply))
        if deadline.left <= poll.seconds:
            raise deadline.make_error()
        time.sleep(poll.seconds)


def _parse_response(response: Response) -> Any:
    try:
        return json.loads(response.read())
    except (ValueError, RecursionError):
        raise HttpError("the reply must be JSON with the id of a task, but it is not JSON") from None


def _find_address(first: Any, poll: PollRequest, server: Polled) -> tuple[str, str]:
    """Return the path and the base address to poll, read from the first reply.

    Raise an error if the first reply has neither a task nor an address on the same host.
    """
    if poll.url:
        url = search(poll.url, first)
        if not isinstance(url, str) or urlsplit(urljoin(server.url, url)).netloc != urlsplit(server.url).netloc:
            raise HttpError(
                f"the reply has no address of the server's own host at {poll.url}; its form is {describe(first)}"
            )
        return "", urljoin(server.url, url)
    task = search(poll.task, first)
    if not isinstance(task, str | int) or isinstance(task, bool):
        raise HttpError(f"the reply has no id of a task at {poll.task}; its form is {describe(first)}")
    parts = urlsplit(server.url)
    base = server.url if poll.path.startswith("/{task}") else f"{parts.scheme}://{parts.netloc}"
    return poll.path.replace("{task}", quote(str(task), safe="")), base


def _is_ready(reply: Any, reader: ReplyReader) -> bool:
    """Return whether the reply to a poll contains an answer."""
    try:
        return reader.read_whole(reply).answer is not None
    except NoAnswerError:
        return False


def list_polls(reply: Any) -> Iterator[PollRequest]:
    """Yield the poll requests to try for a reply that has a task and no answer.

    The first requests use the address in the reply, if it has one. The next use the task's id at the usual
    paths.
    """
    if not isinstance(reply, Mapping):
        return
    for name in NAMES["task_url"]:
        if isinstance(reply.get(name), str):
            yield PollRequest(url=name, seconds=_SECONDS)
    task = next((name for name in NAMES["task"] if isinstance(reply.get(name), str | int)), None)
    if task is None and isinstance(reply.get("id"), str | int) and first_of(reply, "state", str):
        task = "id"
    if task is not None:
        for path in NAMES["task_path"]:
            yield PollRequest(task=task, path=path, seconds=_SECONDS)
