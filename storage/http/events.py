"""Streams as servers send them: server-sent events, or a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from exhibit.storage.http.errors import HttpError

STREAMED = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-lines")
"""Content types of streams."""

_MOST_PIECES = 1000
"""Lines of one event, each of which is read anew with all before it: a printed object has some dozens."""


class Event(NamedTuple):
    """What a server sends at one time."""

    name: str
    """What stands behind `event:`, empty where nothing does."""
    data: Any
    done: bool = False
    """Whether it only says that the stream is over (`[DONE]`)."""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the objects of a stream: a line of JSON each, `data:` in front or not; one may go over several `data:`."""
    name, held, pieces = "", "", 0
    for line in lines:
        text = line.strip()
        if text.startswith("data:"):
            text = text.removeprefix("data:").strip()
        elif text.startswith("event:"):
            name = text.removeprefix("event:").strip()
            # some events are a name alone
            if name == "end":
                yield Event(name, None, done=True)
            continue
        elif text.startswith((":", "id:", "retry:")):
            continue
        elif not text:
            if held:
                raise HttpError("a line of the stream is not JSON")
            name = ""
            continue
        if text == "[DONE]":
            yield Event(name, None, done=True)
            continue
        held, pieces = (f"{held}\n{text}", pieces + 1) if held else (text, 1)
        if pieces > _MOST_PIECES:
            raise HttpError(f"an event of the stream goes over more than {_MOST_PIECES} lines")
        try:
            data = json.loads(held)
        except (ValueError, RecursionError):
            if not line.lstrip().startswith("data:"):
                raise HttpError("a line of the stream is not JSON") from None
            continue
        if text:
            held = ""
            yield Event(name, data)
    if held:
        raise HttpError("a line of the stream is not JSON")


def read_texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the words of a stream whose events are plain text."""
    held: list[str] = []
    for line in lines:
        line = line.removesuffix("\r")
        if line.startswith("data:"):
            held.append(line.removeprefix("data:").removeprefix(" "))
        elif held and not line:
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)
