"""A question or two before a run: is anybody there, is the key taken, are answer and passages where they are sought?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._asking import pause_before
from exhibit.evaluation.targets._shapes import describe, suggest
from exhibit.evaluation.targets._templates import uses_history
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError, UnreachableError

_ASKED = 3
"""Questions that may fail before a server is given up: one may be too hard for it, three in a row are no accident."""
_REFUSED = (401, 403, 407)  # HTTP: who asks may not
_NOT_THERE = (404, 405, 410)  # HTTP: nothing takes questions there


class Settings(Protocol):
    """Where a reply is read."""

    request: Any
    response_answer_jmespath: str | None
    response_context_jmespath: str | None


class Read(Protocol):
    """A reply as far as it was understood."""

    raw: Any
    answer: str | None
    passages: Any
    shape: str


def probe_server(
    name: str,
    cases: Sequence[Case],
    exchange: Callable[[Case, Deadline], Read],
    settings: Settings,
    options: TargetOptions,
) -> tuple[list[str], bool]:
    """Return notes on how a server replies, and whether it answers; raise one error that says what is wrong."""
    notes = _history_note(cases, settings)
    first: HttpError | None = None
    replies: list[Read] = []
    for case in cases[:_ASKED]:
        try:
            # a busy server is waited for once: one that stays busy for the first question is asked the others in vain
            read = _patiently(exchange, case, options if first is None else replace(options, retries=0))
        except HttpError as error:
            _judge(name, error, settings)
            first = first or error
            continue
        replies.append(read)
        if read.passages or settings.response_context_jmespath == "":
            break
        _check_path(name, read, settings)
    if not replies:
        asked = min(_ASKED, len(cases))
        raise ToolkitError(f"{name}: none of the first {asked} questions was answered. The first error: {first}")
    last = replies[-1]
    if not last.passages and settings.response_context_jmespath != "":
        notes.append(_without_passages(name, last, settings))
    if last.shape and settings.response_answer_jmespath is None:
        notes.append(f"{name}: the reply is read as that of {last.shape}")
    if last.answer is None and settings.response_answer_jmespath is None:
        notes.append(f"{name}: the reply has passages and no answer: only retrieval is measured")
    return notes, last.answer is not None


def _patiently(exchange: Callable[[Case, Deadline], Read], case: Case, options: TargetOptions) -> Read:
    """Return a reply, asked for again while that may help; nobody is waited for who is not there."""
    deadline = Deadline(options.timeout, flag="--timeout")
    tries = 0
    while True:
        try:
            return exchange(case, deadline)
        except UnreachableError:
            raise
        except HttpError as error:
            pause = pause_before(error, tries, options, deadline)
            if pause is None:
                raise
            time.sleep(pause)
            tries += 1


def _judge(name: str, error: HttpError, settings: Settings) -> None:
    """Raise what no other question would fare better with; else let the next one be tried."""
    if isinstance(error, UnreachableError):
        raise ToolkitError(f"{error}. Is the server running, and is --target-url right?") from error
    if error.status in _REFUSED:
        raise ToolkitError(
            f"{name}: the server refuses the key: {error}. "
            "Give one with --target-key VARIABLE, or --target-header Authorization=VARIABLE"
        ) from error
    if error.status in _NOT_THERE:
        raise ToolkitError(f"{name}: nothing takes questions at this address: {error}. Check --target-url") from error
    reply = getattr(error, "reply", None)
    if reply is not None and not getattr(error, "blank", False):
        told = _fitting(reply, str(error)) if _takes_paths(settings) else f"{error}. Is it the right kind of server?"
        raise ToolkitError(f"{name}: {told}") from error


def _takes_paths(settings: Settings) -> bool:
    """Return whether the paths to answer and passages can be given at all."""
    return getattr(settings, "takes_paths", True)


def _fitting(reply: Any, told: str) -> str:
    """Return what was not found, with the paths that would fit this reply."""
    answers, passages = suggest(reply)
    flags = [f"--target-response-answer-jmespath '{answers[0]}'"] if answers else []
    flags += [f"--target-response-context-jmespath '{passages[0]}'"] if passages else []
    fits = f". These would fit: {' '.join(flags)}" if flags else ". No text in it looks like an answer"
    others = answers[1:] + passages[1:]
    return f"{told}{fits}" + (f" (or {', '.join(others)})" if others else "")


def _check_path(name: str, read: Read, settings: Settings) -> None:
    """Raise where a path to passages was given and leads nowhere."""
    path = settings.response_context_jmespath
    if path and read.passages is None:
        told = f"no passages at {path} of the reply: {describe(read.raw)}"
        raise ToolkitError(f"{name}: {_fitting(read.raw, told)}")


def _without_passages(name: str, read: Read, settings: Settings) -> str:
    _, passages = suggest(read.raw) if _takes_paths(settings) else ([], [])
    fits = f"; is it --target-response-context-jmespath '{passages[0]}'?" if passages else ""
    return f"{name}: a reply without passages ({describe(read.raw)}): what needs them cannot be measured{fits}"


def _history_note(cases: Sequence[Case], settings: Settings) -> list[str]:
    told = sum(bool(case.history) or case.session is not None for case in cases)
    if not told or settings.request is None or uses_history(settings.request):
        return []
    return [
        f"{told} questions are part of a conversation, and --target-request has neither {{history}} nor {{session}}: "
        "they are asked alone"
    ]
