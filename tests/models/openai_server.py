"""A local OpenAI-compatible server for the tests, with every fault that real servers have shown."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Reply, Request, serve

KEY = "sk-planted-4f9a1c77b2e64d50"
"""A key that must be in no output."""

Fault = int | str | dict[str, Any]
"""A status, `nonsense`, `blank`, `nothing`, `drip`, `array`, or the JSON to reply with."""


@dataclass
class OpenAIServer:
    """A running server: its requests, its replies, and its faults."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    reply: Callable[[str], str] = lambda prompt: f"echo: {prompt}"
    """Returns the model's reply to the user's message."""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """The faults for each part of a user's message; each request with this part gets the next fault."""
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault_for(self, prompt: str) -> Fault | None:
        """Remove and return the next fault for a prompt."""
        with self.lock:
            queue = next((faults for part, faults in self.faults.items() if part in prompt and faults), [])
            return queue.pop(0) if queue else None


def chat(content: str | None, **choice: object) -> dict[str, Any]:
    """Return the JSON of a chat completion."""
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop", **choice}]}


@contextmanager
def serve_openai() -> Iterator[OpenAIServer]:
    """Run the server on a free port."""
    server = OpenAIServer()

    def answer(request: Request) -> Reply | None:
        body = request.body
        with server.lock:
            server.asked.append(body)
            named = {name.title(): value for name, value in request.headers.items()}
            server.headers.append({**named, "path": request.target})
        prompt = body["messages"][-1]["content"]
        fault = server.fault_for(prompt)
        if fault is not None:
            return _fail(server, fault, request)
        return Reply({**chat(server.reply(prompt)), "usage": {"prompt_tokens": 100, "completion_tokens": 10}})

    with serve(answer) as url:
        server.url = f"{url}/v1"
        try:
            yield server
        finally:
            server.closing.set()


def _fail(server: OpenAIServer, fault: Fault, request: Request) -> Reply | None:
    if isinstance(fault, int):  # services quote the key
        words = f"something about {request.headers.get('Authorization')}, also known as {KEY[:7]}****{KEY[-4:]}"
        return Reply({"error": {"message": words, "code": None}}, fault)
    if isinstance(fault, dict):
        return Reply(fault.get("body", fault), int(fault.get("status", 200)))
    if fault == "no reply":
        return None
    if fault == "drip":
        return Reply(b" " for _ in iter(lambda: server.closing.wait(0.02), True))
    return Reply({"JSON array": b"[]", "HTML": b"<html>502 in disguise</html>", "empty body": b""}[fault])
