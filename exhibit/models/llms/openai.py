"""Any server with OpenAI's chat completions API: `openai:MODEL`, at `OPENAI_BASE_URL`, with `OPENAI_API_KEY`.

`OPENAI_TIMEOUT` is the timeout for one reply in seconds, by default 60.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from exhibit.engine import track
from exhibit.models.endpoint import Budget, CapError, Endpoint, Prices, find_refused_parameter
from exhibit.models.llms import Completion, Prompt, choose_counter
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http_policy import LONGEST_WAIT, Deadline, HttpError, Retries

_THOUGHTS = ("<think>", "</think>")
"""The tags around the reasoning that some models put before their reply."""
_RENAMED = {"max_tokens": "max_completion_tokens", "temperature": "", "response_format": "", "stream_options": ""}
"""Parameters that some models or servers reject, and the alternatives that they accept."""


@dataclass(frozen=True)
class ServerOptions:
    """Options for a server: timeouts, retries, caches and caps."""

    cache: Path | None = None
    """The folder of cached replies; None sends every request."""
    concurrency: int = 8
    timeout: float = 60.0
    """The seconds for one reply, from the first byte sent to the last received."""
    total: float | None = None
    """The seconds for one prompt, retries included; None = no limit."""
    retries: int = 4
    backoff: float = 1.0
    """The seconds before the first retry; each further retry waits twice as long."""
    top_p: float | None = None
    """Nucleus sampling: the probability mass of the tokens to sample from; None = the server's default."""
    max_requests: int | None = None
    """The cap on requests, retries included; cached replies do not count."""
    max_cost: float | None = None
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The price of a million input tokens and of a million output tokens, by model."""
    heard: Callable[[str], object] | None = None
    """Called with the text of a reply as it arrives; replies are then read as streams."""


def open(argument: str | None, options: Mapping[str, object]) -> "OpenAI":
    """Return a client for the model that the argument names; without an argument, for the one in OPENAI_MODEL."""
    model = argument or os.environ.get("OPENAI_MODEL")
    if not model:
        raise ToolkitError("openai: no model is named; give openai:MODEL, or set OPENAI_MODEL")
    return OpenAI(model, options_of(options))


def options_of(options: Mapping[str, object]) -> ServerOptions:
    """Return the server options with these names and values; a value of None means the option's default.

    Raise ToolkitError for an unknown name.
    """
    known = {item.name for item in fields(ServerOptions)}
    if unknown := sorted(set(options) - known):
        raise ToolkitError(f"openai: no option {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return ServerOptions(**(_read_timeout() | given))


def _read_timeout() -> dict[str, float]:
    """Return `{"timeout": seconds}` from the environment variable OPENAI_TIMEOUT; `{}` if it is not set."""
    seconds = os.environ.get("OPENAI_TIMEOUT", "").strip()
    try:
        return {"timeout": float(seconds)} if seconds else {}
    except ValueError:
        raise ToolkitError(
            f"OPENAI_TIMEOUT: {seconds!r} is not a number of seconds; set it to one, such as 60"
        ) from None


class OpenAI:
    """A client for a model on a server: it sends prompts from several threads, which share a budget and a cache."""

    def __init__(
        self, model: str, options: ServerOptions, *, azure: bool = False, wait: Callable[[float], object] | None = None
    ) -> None:
        _check(model, options)
        self.name = f"{'azure' if azure else 'openai'}:{model}"
        self._model = model
        self._options = options
        self._wait = wait
        self._endpoint = Endpoint(
            timeout=min(options.timeout, options.total or options.timeout), connections=options.concurrency, azure=azure
        )
        prices = Prices(*options.prices.get(model, (0.0, 0.0)))
        self.budget = Budget(max_requests=options.max_requests, max_cost=options.max_cost, prices=prices)
        self._cache = Cache(Path(options.cache) / "replies.sqlite") if options.cache else None
        self._count = choose_counter(model)
        self._not_taken: set[str] = set()

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        """Return one completion per prompt, in order; a failure is a Completion with an error."""
        stop = threading.Event()
        retries = Retries(self._options.retries, self._options.backoff, stopped=stop, sleep=self._wait)
        pool = ThreadPoolExecutor(self._options.concurrency, thread_name_prefix="llm")
        asked: dict[str, Future[Completion]] = {}
        futures = []
        try:
            for prompt in prompts:
                call = _Call(
                    prompt, max_tokens, temperature, self._make_key(prompt, max_tokens, temperature), stop, retries
                )
                if self._cache is None or call.key not in asked:  # with a cache, identical prompts are sent once
                    asked[call.key] = pool.submit(self._answer, call)
                futures.append(asked[call.key])
            return [future.result() for future in track(futures, total=len(futures), label=self.name, unit="prompt")]
        finally:
            stop.set()  # after Ctrl-C: threads that wait for a retry give up
            pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _sampling(self) -> dict[str, float]:
        return {} if self._options.top_p is None else {"top_p": self._options.top_p}

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _make_key(self, prompt: Prompt, max_tokens: int, temperature: float) -> str:
        """Return the hash of everything that a reply depends on."""
        parts = {
            "address": self._endpoint.address,
            "model": self._model,
            **self._sampling,
            "system": prompt.system,
            "user": prompt.user,
            "max_tokens": max_tokens,
            "temperature": temperature,
            **({"schema": prompt.schema} if prompt.schema else {}),
        }
        return key_of(json.dumps(parts, sort_keys=True, ensure_ascii=True)).hex()

    def _answer(self, call: "_Call") -> Completion:
        """Return the cached reply, or send the request with retries; errors are never cached."""
        key = call.key.encode()
        kept = self._cache.get([key]).get(key) if self._cache is not None else None
        if kept is not None:
            text, tokens_in, tokens_out = json.loads(kept)
            if self._options.heard:
                self._options.heard(text)
            return Completion(text, tokens_in=tokens_in, tokens_out=tokens_out, cached=True)
        started = time.monotonic()
        # jitter from the prompt's hash: threads that failed together do not retry together
        spread = 0.75 + int(call.key[:4], 16) / 0xFFFF / 2
        try:
            deadline = Deadline(self._options.total) if self._options.total else None
            reply = call.retries(lambda: self._send_adapted(call), deadline=deadline, spread=spread)
        except CapError as cap:
            reply = Completion(error=f"{self.name}: {cap}")
        except HttpError as fault:
            reply = Completion(error=_describe(fault))
        if self._cache is not None and not reply.error:
            self._cache.put({key: json.dumps([reply.text, reply.tokens_in, reply.tokens_out]).encode()})
        return replace(reply, seconds=time.monotonic() - started)

    def _send_adapted(self, call: "_Call") -> Completion:
        """Send the request; if the server rejects a parameter, remove it and send the request again at once."""
        while True:
            if call.stop.is_set():
                return Completion(error=f"{self.name}: stopped")
            body = self._make_body(call)
            try:
                return self._send_once(call, body)
            except HttpError as fault:
                parameter = find_refused_parameter(fault)
                # another thread may have added it to `_not_taken` while this request was in flight
                if parameter not in _RENAMED or parameter not in body:
                    raise
                self._not_taken.add(parameter)

    def _send_once(self, call: "_Call", body: dict[str, object]) -> Completion:
        prompt = call.prompt
        tokens_in = self._count(prompt.system) + self._count(prompt.user)
        with self.budget.reserve_request(tokens_in=tokens_in, tokens_out=call.max_tokens) as receipt:
            try:
                heard = self._options.heard
                data = self._endpoint.stream(body, heard) if heard else self._endpoint.post("chat/completions", body)
            except HttpError as fault:
                if fault.status:  # a rejected request costs nothing; the cost of a lost reply is unknown
                    receipt.cost = 0.0
                raise
            usage = data.get("usage")
            text = self._endpoint.scrub(text_of(data))
            used = (
                _read_usage(usage, "prompt_tokens", tokens_in),
                _read_usage(usage, "completion_tokens", self._count(text)),
            )
            receipt.cost = self.budget.prices.compute_cost(*used)
        if not text:
            why = " ".join(self._endpoint.scrub(_explain_empty(data)).split())  # one line, whatever the server wrote
            return Completion(error=f"{self.name}: {why}", tokens_in=used[0])
        return Completion(text, tokens_in=used[0], tokens_out=used[1])

    def _make_body(self, call: "_Call") -> dict[str, object]:
        prompt = call.prompt
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": prompt.user})
        wanted: dict[str, object] = {"max_tokens": call.max_tokens, "temperature": call.temperature}
        if prompt.schema:
            shape = {"name": "reply", "schema": json.loads(prompt.schema), "strict": True}
            wanted["response_format"] = {"type": "json_schema", "json_schema": shape}
        if self._options.heard:
            wanted["stream_options"] = {"include_usage": True}
        body: dict[str, object] = {"model": self._model, "messages": messages, **self._sampling}
        for name, value in wanted.items():
            known = _RENAMED[name] if name in self._not_taken else name
            if known:
                body[known] = value
        return body


@dataclass(frozen=True)
class _Call:
    """One prompt with its parameters, its cache key, the event that cancels its request, and the retry policy."""

    prompt: Prompt
    max_tokens: int
    temperature: float
    key: str
    stop: threading.Event
    retries: Retries


def _check(model: str, options: ServerOptions) -> None:
    low = [name for name in ("retries", "backoff", "max_requests", "max_cost") if (getattr(options, name) or 0) < 0]
    low += [name for name in ("concurrency", "timeout") if getattr(options, name) <= 0]
    if low:
        raise ToolkitError(
            f"openai: the value of {', '.join(low)} is too low; give 0 or more (concurrency and timeout: more than 0)"
        )
    if options.max_cost is not None and model not in options.prices:
        raise ToolkitError(
            f"openai: max_cost needs the prices of {model} for a million tokens; "
            f"set prices={{{model!r}: (INPUT, OUTPUT)}}"
        )


def _describe(fault: HttpError) -> str:
    asks = f"; the server asks to wait {fault.wait:.0f} s" if fault.wait > LONGEST_WAIT else ""
    return str(fault) + asks + (f" (tried {fault.tries} times)" if fault.tries > 1 else "")


def _message_of(data: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the message of the first choice (an empty dict if there is none) and its finish reason."""
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return {}, "no choices"
    message = choice.get("message")
    return message if isinstance(message, dict) else {}, str(choice.get("finish_reason") or "no content")[:200]


def text_of(data: Mapping[str, Any]) -> str:
    """Return the model's answer without its reasoning; empty if there is none."""
    content = _message_of(data)[0].get("content")
    if isinstance(content, list):  # some servers reply in parts
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return _without_thoughts(content).strip() if isinstance(content, str) else ""


def _without_thoughts(content: str) -> str:
    start = content.find(_THOUGHTS[0])
    end = content.find(_THOUGHTS[1], start) if start >= 0 else -1
    return content[:start].rstrip() + content[end + len(_THOUGHTS[1]) :] if end >= 0 else content


def _explain_empty(data: Mapping[str, Any]) -> str:
    message, reason = _message_of(data)
    if data.get("error"):
        return f"the server reports an error: {str(data['error'])[:200]}"
    if message.get("refusal"):
        return f"the model declined: {str(message['refusal'])[:200]}"
    if reason == "length":
        return "an empty reply: max_tokens was reached before the first word; raise max_tokens"
    return f"an empty reply ({reason})"


def _read_usage(usage: object, name: str, estimate: int) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and value >= 0 else estimate
