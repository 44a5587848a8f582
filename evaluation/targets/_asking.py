"""Many questions at once: each asked again while that may help, conversations in order, replies as they come."""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from exhibit.evaluation.cases import Case, Reply, Turn
from exhibit.evaluation.targets import Asked, TargetOptions
from exhibit.evaluation.targets._fields import PassagesError
from exhibit.storage.exchanges import Deadline, HttpError, Retries

AskOne = Callable[[Case, Deadline], Reply]
"""Asks one question once; raises HttpError or PassagesError when there is no reply."""

_IN_VAIN = 3
"""Questions in a row that a failing server may cost all their tries; those after them are asked once."""


def _patiently(case: Case, ask: AskOne, retries: Retries, options: TargetOptions) -> Reply:
    """Return a reply; whatever goes wrong is one with an error.

    Its seconds are those of the try that gave it: waiting for a busy server is not latency.
    """
    deadline = Deadline(options.timeout, flag="--timeout")
    began = 0.0

    def once() -> Reply:
        nonlocal began
        began = time.monotonic()
        return ask(case, deadline)

    try:
        reply = retries(once, deadline=deadline)
    except PassagesError as error:
        return Reply(error=str(error), seconds=time.monotonic() - began)
    except HttpError as error:
        again = f" (asked {error.tries} times)" if error.tries > 1 else ""
        return Reply(error=f"{error}{again}", seconds=time.monotonic() - began)
    return reply if reply.seconds is not None else replace(reply, seconds=time.monotonic() - began)


def ask_all(cases: Sequence[Case], ask: AskOne, options: TargetOptions) -> Iterator[Asked]:
    """Yield a reply a case as they come, `options.threads` questions being asked at once.

    The turns of a conversation (`labels.session`) are asked one after another, each with those before it.
    """
    stopped = threading.Event()
    retries = Retries(options.retries, options.backoff, in_vain=_IN_VAIN, stopped=stopped)
    conversations = iter(_conversations(cases))
    taking = threading.Lock()
    # bounded: replies that nobody has taken yet must not pile up
    replies: queue.Queue[Asked | BaseException | None] = queue.Queue(maxsize=4 * options.threads)

    def put(item: Asked | BaseException | None) -> None:
        while not stopped.is_set():  # else nobody takes them any more
            try:
                replies.put(item, timeout=0.5)
                break
            except queue.Full:
                continue

    def work() -> None:
        try:
            while not stopped.is_set():
                with taking:
                    turns = next(conversations, None)
                if turns is None:
                    break
                said: tuple[Turn, ...] = ()
                for position in turns:
                    case = replace(cases[position], history=cases[position].history or said)
                    reply = _patiently(case, ask, retries, options)
                    put(Asked(position, reply))
                    said = (*said, Turn("user", case.question), Turn("assistant", reply.answer or ""))
        except BaseException as error:  # a bug must not look like a run without questions
            put(error)
        put(None)

    running = max(1, min(options.threads, len(cases)))
    for _ in range(running):
        threading.Thread(target=work, daemon=True).start()
    try:
        while running:
            item = replies.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                running -= 1
            else:
                yield item
    finally:
        stopped.set()  # whoever waits for a busy server gives up


def _conversations(cases: Sequence[Case]) -> Iterable[Sequence[int]]:
    """Return the positions of the cases, those of one session together and in order."""
    if all(case.session is None for case in cases):
        return ((position,) for position in range(len(cases)))
    sessions: dict[str, list[int]] = defaultdict(list)
    for position, case in enumerate(cases):
        sessions[f"\0{position}" if case.session is None else case.session].append(position)
    return list(sessions.values())
