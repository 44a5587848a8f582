"""Ask questions in several threads, each with a deadline, retries and the earlier turns of its conversation."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from exhibit.evaluation.cases import Case, Reply, Turn
from exhibit.evaluation.servers.shapes import PassagesError
from exhibit.evaluation.target_protocol import NumberedReply, TargetOptions
from exhibit.storage.http_policy import Deadline, HttpError, Retries

AskOne = Callable[[Case, Deadline], Reply]
"""Ask one question once; raise HttpError or PassagesError when there is no reply."""

_IN_VAIN = 3
"""After this many questions in a row have failed with all their retries, later questions are asked only once."""


def _ask_with_retries(case: Case, ask: AskOne, retries: Retries, options: TargetOptions) -> Reply:
    """Ask a question, with retries, and return the reply; if every attempt fails, return a reply with an error.

    The reply's latency is the time of the last attempt, without the earlier attempts and waits.
    """
    deadline = Deadline(options.timeout, flag="--timeout")
    began = 0.0

    def ask_once() -> Reply:
        nonlocal began
        began = time.monotonic()
        return ask(case, deadline)

    try:
        reply = retries(ask_once, deadline=deadline)
    except (PassagesError, HttpError) as error:
        tries = getattr(error, "tries", 1)
        reply = Reply(error=f"{error} (asked {tries} times)" if tries > 1 else str(error))
    return reply if reply.seconds is not None else replace(reply, seconds=time.monotonic() - began)


def ask_all(cases: Sequence[Case], ask: AskOne, options: TargetOptions) -> Iterator[NumberedReply]:
    """Yield a reply for each case as the replies arrive; `options.threads` questions are asked at the same time.

    The turns of a conversation (`labels.session`) are asked one after another, each with the turns before it.
    """
    stopped = threading.Event()
    retries = Retries(options.retries, options.backoff, in_vain=_IN_VAIN, stopped=stopped)
    conversations, taking = iter(_group_conversations(cases)), threading.Lock()
    # the queue is bounded, so that unread replies do not fill the memory
    replies: queue.Queue[NumberedReply | BaseException | None] = queue.Queue(maxsize=4 * options.threads)

    def ask_next() -> None:
        try:
            while not stopped.is_set():
                with taking:
                    turns = next(conversations, ())
                said: tuple[Turn, ...] = ()
                for position in turns:
                    case = replace(cases[position], history=cases[position].history or said)
                    reply = _ask_with_retries(case, ask, retries, options)
                    replies.put(NumberedReply(position, reply))
                    said = (*said, Turn("user", case.question), Turn("assistant", reply.answer or ""))
                if not turns:
                    break
        except BaseException as error:  # a bug must not look like a run without questions
            replies.put(error)
        replies.put(None)

    running = max(1, min(options.threads, len(cases)))
    for _ in range(running):
        threading.Thread(target=ask_next, daemon=True).start()
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
        stopped.set()  # threads stop waiting for a busy server; the loop makes room in the queue
        while not replies.empty():
            replies.get()


def _group_conversations(cases: Sequence[Case]) -> Iterable[Sequence[int]]:
    """Return the indexes of the cases, grouped by conversation; a case without a session is a group of its own."""
    if all(case.session is None for case in cases):
        return ((position,) for position in range(len(cases)))
    sessions: dict[str, list[int]] = defaultdict(list)
    for position, case in enumerate(cases):
        sessions[f"\0{position}" if case.session is None else case.session].append(position)
    return list(sessions.values())
