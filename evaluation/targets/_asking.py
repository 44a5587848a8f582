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
from exhibit.evaluation.targets._passages import PassagesError
from exhibit.storage.http import Deadline, HttpError

AskOne = Callable[[Case, Deadline], Reply]
"""Asks one question once; raises HttpError or PassagesError when there is no reply."""

_PATIENCE = 3
"""Questions in a row that a failing server may cost all their tries; those after them are asked once."""
_LONGEST_PAUSE = 30.0
"""Seconds that the growing pause between two tries stops growing at."""


def pause_before(error: HttpError, tries: int, options: TargetOptions, deadline: Deadline) -> float | None:
    """Return the seconds to wait before a question is asked again, None where that would not help or comes too late."""
    pause = error.wait or min(_LONGEST_PAUSE, options.backoff * 2**tries)
    return pause if error.transient and tries < options.retries and pause < deadline.left else None


class Patience:
    """Asks one question, again where that may help, and stops waiting for a server that fails for everybody."""

    def __init__(self, ask: AskOne, options: TargetOptions) -> None:
        """Ask with the options' deadline, retries and pauses."""
        self._ask = ask
        self._options = options
        self._in_vain = 0
        self.stopped = threading.Event()

    def reply(self, case: Case) -> Reply:
        """Return a reply; whatever goes wrong is one with an error.

        Its seconds are those of the try that gave it: waiting for a busy server is not latency.
        """
        deadline = Deadline(self._options.timeout, flag="--timeout")
        tries = 0
        while True:
            began = time.monotonic()
            try:
                reply = self._ask(case, deadline)
            except PassagesError as error:
                return Reply(error=str(error), seconds=time.monotonic() - began)
            except HttpError as error:
                pause = pause_before(error, tries, self._options, deadline)
                if pause is None or self._hopeless:
                    self._in_vain += error.transient
                    again = f" (asked {tries + 1} times)" if tries else ""
                    return Reply(error=f"{error}{again}", seconds=time.monotonic() - began)
                self.stopped.wait(pause)
                tries += 1
            else:
                self._in_vain = 0
                return reply if reply.seconds is not None else replace(reply, seconds=time.monotonic() - began)

    @property
    def _hopeless(self) -> bool:
        """Whether the server fails for everybody, so that waiting for each takes hours, or nobody waits any more."""
        return self._in_vain >= _PATIENCE or self.stopped.is_set()


def ask_all(cases: Sequence[Case], ask: AskOne, options: TargetOptions) -> Iterator[Asked]:
    """Yield a reply a case as they come, `options.threads` questions being asked at once.

    The turns of a conversation (`labels.session`) are asked one after another, each with those before it.
    """
    patience = Patience(ask, options)
    conversations = iter(_conversations(cases))
    taking = threading.Lock()
    # bounded: replies that nobody has taken yet must not pile up
    replies: queue.Queue[Asked | BaseException | None] = queue.Queue(maxsize=4 * options.threads)

    def work() -> None:
        try:
            while not patience.stopped.is_set():
                with taking:
                    turns = next(conversations, None)
                if turns is None:
                    break
                said: tuple[Turn, ...] = ()
                for position in turns:
                    case = replace(cases[position], history=cases[position].history or said)
                    reply = patience.reply(case)
                    _put(replies, Asked(position, reply), patience.stopped)
                    said = (*said, Turn("user", case.question), Turn("assistant", reply.answer or ""))
        except BaseException as error:  # a bug must not look like a run without questions
            _put(replies, error, patience.stopped)
        _put(replies, None, patience.stopped)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(options.threads, len(cases))))]
    for worker in workers:
        worker.start()
    running = len(workers)
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
        patience.stopped.set()  # whoever waits for a busy server gives up


def _put(
    replies: queue.Queue[Asked | BaseException | None], item: Asked | BaseException | None, stopped: threading.Event
) -> None:
    while True:
        try:
            replies.put(item, timeout=0.5)
            return
        except queue.Full:
            if stopped.is_set():  # nobody takes them any more
                return


def _conversations(cases: Sequence[Case]) -> Iterable[Sequence[int]]:
    """Return the positions of the cases, those of one session together and in order."""
    if all(case.session is None for case in cases):
        return ((position,) for position in range(len(cases)))
    sessions: dict[str, list[int]] = defaultdict(list)
    for position, case in enumerate(cases):
        sessions[f"\0{position}" if case.session is None else case.session].append(position)
    return list(sessions.values())
