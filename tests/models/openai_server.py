"""An OpenAI-compatible server on this machine for the tests, with every fault that real servers have shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-planted-4f9a1c77b2e64d50"
"""A key that must be in no output."""

Fault = int | str | dict[str, Any]
"""A status, `nonsense`, `blank`, `nothing`, `hang`, `drip`, `array`, `cut` (a stream), or the JSON to reply with."""


@dataclass
class OpenAIServer:
    """A running server: its requests, its replies, and its faults."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    reply: Callable[[str], str] = lambda prompt: f"echo: {prompt}"
    """From the user's message to the model's."""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """Part of a user's message -> what goes wrong, one fault a request, until none is left."""
    retry_after: str = ""
    usage: dict[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        """Return the users' messages, in order of arrival."""
        return [body["messages"][-1]["content"] for body in self.asked]

    def fault_for(self, prompt: str) -> Fault | None:
        """Remove and return the next fault for a prompt."""
        with self.lock:
            queue = next((faults for part, faults in self.faults.items() if part in prompt and faults), [])
            return queue.pop(0) if queue else None


def chat(content: str | None, **choice: object) -> dict[str, Any]:
    """Return the JSON of a chat completion."""
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop", **choice}]}


class _Handler(BaseHTTPRequestHandler):
    server_: OpenAIServer

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""

    def do_POST(self) -> None:
        server = self.server_
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append(body)
            named = {name.title(): value for name, value in self.headers.items()}  # the case of a name says nothing
            server.headers.append({**named, "path": self.path})
        prompt = body["messages"][-1]["content"]
        fault = server.fault_for(prompt)
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has given up
            if fault is not None and fault != "cut":
                self._fail(fault)
            elif body.get("stream"):
                self._stream(self._usual(prompt), whole=fault is None)
            else:
                self._give(self._usual(prompt))

    def _usual(self, prompt: str) -> dict[str, Any]:
        usage = {"usage": self.server_.usage} if self.server_.usage else {}
        return {**chat(self.server_.reply(prompt)), **usage}

    def _stream(self, reply: dict[str, Any], *, whole: bool) -> None:
        """Send a reply word by word, as server-sent events; an incomplete one ends after its first word."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        words = reply["choices"][0]["message"]["content"].split(" ")
        pieces = [words[0], *(f" {word}" for word in words[1:])]
        events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        events.append({"choices": [], "usage": reply.get("usage")})
        for event in events if whole else events[:1]:
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if whole:
            self.wfile.write(b"data: [DONE]\n\n")

    def _give(self, reply: object, status: int = 200) -> None:
        self._send(json.dumps(reply).encode(), status)

    def _send(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        if self.server_.retry_after and status != 200:
            self.send_header("Retry-After", self.server_.retry_after)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, fault: Fault) -> None:
        if isinstance(fault, int):  # the way services do: the key is quoted back
            told = f"something about {self.headers.get('Authorization')}, also known as {KEY[:7]}****{KEY[-4:]}"
            self._give({"error": {"message": told, "code": None}}, fault)
        elif isinstance(fault, dict):
            self._give(fault.get("body", fault), int(fault.get("status", 200)))
        elif fault == "array":
            self._give([])
        elif fault == "nonsense":
            self._send(b"<html>502 in disguise</html>")
        elif fault == "blank":
            self._send(b"")
        elif fault == "nothing":
            self.close_connection = True
            self.connection.close()
        elif fault == "hang":
            self.server_.closing.wait(30)
        else:
            self._drip()

    def _drip(self) -> None:
        """Send a few bytes now and then, without an end."""
        self.send_response(200)
        self.end_headers()
        while not self.server_.closing.wait(0.02):
            self.wfile.write(b" ")


@contextmanager
def serve_openai() -> Iterator[OpenAIServer]:
    """Run the server on a free port."""
    shared = OpenAIServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_": shared}))
    server.daemon_threads = True
    shared.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield shared
    finally:
        shared.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
