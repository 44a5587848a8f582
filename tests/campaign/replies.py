"""Replies of every supported kind of system under test in which some values are replaced by random ones."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from exhibit.evaluation.cases import Case
from exhibit.evaluation.servers.shapes import read_passages
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.storage.http import Response
from exhibit.storage.http_policy import Deadline
from tests.evaluation.imitations import FILES, SERVERS

CASE = Case(id=1, question="When is the rent due?", truth="On the first day of the month.", filename="lease.pdf")
TARGETS: list[tuple[str, dict[str, Any]]] = [
    ("http", {}),
    ("http", {"stream": True}),
    ("http", {"response_answer_jmespath": "answer", "response_context_jmespath": "passages[].text"}),
    ("azure", {}),
    ("azure", {"stream": True}),
    ("azure", {"index": "leases"}),
    ("haystack", {"pipeline": "answer"}),
    ("haystack", {"pipeline": "answer", "stream": True}),
    ("langserve", {}),
    ("llamaindex", {}),
    ("nvidia", {}),
    ("openai", {"model": "tiny"}),
    ("ragflow", {"assistant": "a", "collection": "leases"}),
    ("ragflow", {"collection": "leases"}),
]
_CHAT = {
    "id": "1",
    "choices": [{"index": 0, "message": {"content": "On the first [1]."}, "delta": {"content": "x"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    "context": {"data_points": {"text": ["lease.pdf#page=1: The rent is due."]}, "followup_questions": None},
    "citations": [{"url": "https://a.example/lease.pdf", "title": "lease.pdf"}],
}
_FLOW = {
    "code": 0,
    "data": {
        "answer": "On the first.",
        "chunks": [{"content": "The rent is due.", "document_keyword": "lease.pdf", "positions": [[1, 2, 3, 4, 5]]}],
        "reference": {"chunks": [{"content": "x", "document_name": "lease.pdf", "similarity": 0.5}], "doc_aggs": []},
        "docs": [{"id": "1", "name": "lease.pdf"}],
        "id": "1",
    },
}
_SEARCH = {"value": [{"content": "The rent is due.", "sourcepage": "lease.pdf", "@search.score": 1.0, "id": "1"}]}


def _good() -> list[Any]:
    shaped = [make(CASE) for make in (*FILES.values(), *SERVERS.values())]
    return [*(one for one in shaped if not isinstance(one, bytes)), _CHAT, _FLOW, _SEARCH, {"data": [_FLOW["data"]]}]


def odd(chance: random.Random, value: Callable[[random.Random], Any]) -> Any:
    """Return a valid reply of a random kind of system in which one to three values, at any depth, are replaced."""
    reply = copy.deepcopy(chance.choice(_good()))
    for _ in range(chance.randrange(1, 4)):
        inside = reply
        while isinstance(inside, dict | list) and inside:
            key = chance.choice(list(inside)) if isinstance(inside, dict) else chance.randrange(len(inside))
            if chance.random() < 0.3 or not isinstance(inside[key], dict | list):
                inside[key] = value(chance)
                break
            inside = inside[key]
    return reply


class _Wire:
    """A client that answers each request with odd replies, as one JSON document or as server-sent events."""

    def __init__(self, given: Any, chance: random.Random, value: Callable[[random.Random], Any]) -> None:
        self.secrets = given.secrets
        self._chance, self._value = chance, value

    @contextmanager
    def send(self, *_: Any, deadline: Deadline, **__: Any) -> Iterator[Response]:
        replies = [json.dumps(odd(self._chance, self._value)) for _ in range(self._chance.randrange(1, 4))]
        if self._chance.random() < 0.4:
            kind, body = "text/event-stream", "".join(f"data: {one}\n\n" for one in replies) + "data: [DONE]\n\n"
        else:
            kind, body = "application/json", replies[0]

        class Given:
            status = 200
            headers = ((b"Content-Type", kind.encode()),)

            @staticmethod
            def iter_stream() -> Iterator[bytes]:
                yield body.encode("utf-8", "surrogatepass")

        yield Response(Given(), deadline, self.secrets)  # type: ignore[arg-type]

    def close(self) -> None:
        """Do nothing: there are no connections."""


def ask(chance: random.Random, value: Callable[[random.Random], Any]) -> None:
    """Send a question to a random target and read a reply with replaced values."""
    name, settings = chance.choice(TARGETS)
    target: Any = open_target(name, TargetOptions(threads=1), {"url": "http://127.0.0.1:9", **settings})
    target.client = _Wire(target.client, chance, value)
    read = target.exchange(CASE, Deadline(600), "leases")  # without the net under `reply`
    read_passages(read.passages, names=lambda name: name)
    target.reply(CASE, Deadline(600), "leases", lambda name: name)
