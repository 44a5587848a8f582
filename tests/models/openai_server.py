"""A local OpenAI-compatible server for the tests, with every fault that real servers have shown."""

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
"""A status, `nonsense`, `blank`, `nothing`, `drip`, `array`, or the JSON to reply with."""


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
            if fault is not None:
                self._fail(fault)
            else:
                usage = {"prompt_tokens": 100, "completion_tokens": 10}
                self._send(json.dumps({**chat(server.reply(prompt)), "usage": usage}).encode())

    def _send(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, fault: Fault) -> None:
        if isinstance(fault, int):  # the way services do: the key is quoted back
            told = f"something about {self.headers.get('Authorization')}, also known as {KEY[:7]}****{KEY[-4:]}"
            self._send(json.dumps({"error": {"message": told, "code": None}}).encode(), fault)
        elif isinstance(fault, dict):
            self._send(json.dumps(fault.get("body", fault)).encode(), int(fault.get("status", 200)))
        elif fault == "nothing":
            self.close_connection = True
            self.connection.close()
        elif fault == "drip":
            self.send_response(200)
            self.end_headers()
            while not self.server_.closing.wait(0.02):
                self.wfile.write(b" ")
        else:
            self._send({"array": b"[]", "nonsense": b"<html>502 in disguise</html>", "blank": b""}[fault])


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
