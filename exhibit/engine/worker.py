"""A worker process, which applies a function to one item at a time, and is killed when an item exceeds its limits."""

import atexit
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from exhibit.engine.limits import Limits, end_programs, serve_within
from exhibit.engine.outcome import DIED, TRIES, Outcome, attempt_within, report_death
from exhibit.schemas.errors import ToolkitError

dump = pickle.dumps  # of what is sent to a worker and back; the engines of this machine pickle nowhere else


class MapWork(NamedTuple):
    """The data that a worker receives once, before the first of many items to which it applies a function."""

    function: bytes
    limits: Limits
    folder: str
    path: tuple[str, ...]
    environment: dict[str, str]

    @staticmethod
    def of(function: bytes, limits: Limits) -> "MapWork":
        """Return the work for a pickled function, with the working folder and environment of this process."""
        folder = os.getcwd()  # noqa: PTH109 - as bytes allow
        return MapWork(function, limits, folder, tuple(sys.path), dict(os.environ))


class _Bug(NamedTuple):
    """An error in the program, not in an item, with the traceback from the worker."""

    error: Exception
    trace: str


class _WorkerError(Exception):
    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def read_outcome(data: bytes) -> Outcome[Any]:
    """Return the outcome that a worker sent; raise an error if the worker reports a bug or the data is unreadable."""
    try:
        answer: Outcome[Any] | _Bug = pickle.loads(data)
    except Exception as error:
        answer = _Bug(error, "while its outcome was read")
    if isinstance(answer, _Bug):
        raise answer.error from _WorkerError(answer.trace)
    return answer


# ---------------------------------------------------------------- the parent's side


_starting = threading.Lock()  # threads start workers at the same time


@contextmanager
def _isolate_start(*, script: bool) -> Iterator[None]:
    """Prevent a new process from importing modules of the working folder and, without `script`, the user's script."""
    main = sys.modules["__main__"].__dict__
    hidden = {} if script or main.get("__spec__") else {key: main.pop(key) for key in ["__file__"] if key in main}
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        main.update(hidden)
        del os.environ["PYTHONSAFEPATH"]
        os.environ.update({"PYTHONSAFEPATH": before} if before is not None else {})


class _Worker:
    """A worker process and the pipe to it."""

    def __init__(self, *, script: bool) -> None:
        # spawn works on every system, and the process inherits no lock or browser in an undefined state
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _starting, _isolate_start(script=script):
            self._process.start()
        theirs.close()
        self._reusable = not script

    def send(self, data: bytes) -> None:
        with suppress(OSError):  # if the worker died, `answer` notices it
            self.pipe.send_bytes(data)

    def answer(self) -> bytes | None:
        """Return the worker's answer, or None if the worker died."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def await_answer(self, seconds: float | None) -> bool:
        """Return whether the worker answers or dies within `seconds`."""
        return bool(wait([self.pipe], seconds))

    def explain_death(self, limits: Limits, name: str) -> Outcome[Any] | None:
        """Return the failed outcome of an item that killed this worker; None if another worker may succeed with it."""
        self._process.join(1)
        code = self._process.exitcode
        if code is None or code not in (*_FAULTS, _NO_THREAD_DATA, _TIME_SPENT):
            return None
        if code == _TIME_SPENT:
            return Outcome(None, limits.spent(name))
        return report_death(name, f"ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")

    def stop(self) -> None:
        """Kill the process, whatever it is doing, and the programs that it started."""
        pid = self._process.pid or 0
        end_programs(pid)
        if hasattr(os, "killpg"):
            with suppress(OSError):  # the process does not have its own group yet, or is already gone
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def rest(self) -> None:
        """Keep the idle process for the next call of `map`; stop it if enough other processes are idle."""
        with _lock:
            if self._reusable and self._process.is_alive() and len(_idle) < _MAX_IDLE:
                _idle.append(self)
                return
        self.stop()


_FAULTS = [
    -getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGTRAP", "SIGBUS", "SIGFPE")
    if hasattr(signal, name)
]
"""Exit codes of a process that a library aborts, and would abort again for the same file: PDFium without memory."""
_TIME_SPENT = -getattr(signal, "SIGPROF", 0) or None
"""The exit code of a process that spent too much processor time on a file."""
_NO_THREAD_DATA = 127
"""The exit code of a process that the C library ends because there is no memory for thread-local data."""
_idle: list[_Worker] = []
_lock = threading.Lock()
_MAX_IDLE = os.cpu_count() or 1


def _acquire_worker(*, script: bool) -> _Worker:
    while not script:
        with _lock:
            worker = _idle.pop() if _idle else None
        if worker is None:
            break
        if not worker.await_answer(0):  # an idle worker sends nothing: a readable pipe means that it was closed
            return worker
        worker.stop()
    return _Worker(script=script)


@atexit.register
def shutdown_idle() -> None:
    """Stop the worker processes that are idle; new ones are started when work is distributed again."""
    with _lock:
        workers, _idle[:] = list(_idle), []
    for worker in workers:
        worker.stop()


_START_SECONDS = 300.0  # for a worker's imports, on a machine that is busy with other work
_CHECK_SECONDS = 0.25  # between two checks of the clock: an item exceeds its time limit by no more than this


class Workplace:
    """Holds one worker at a time and replaces it when it dies; the first item starts the worker."""

    def __init__(self, work: bytes, limits: Limits, script: bool = False) -> None:
        self._work, self._limits, self._script = work, limits, script
        self.worker: _Worker | None = None
        self.open = True
        """Set to False to release a thread that waits for an answer."""

    @classmethod
    def of(cls, function: Callable[[Any], Any], limits: Limits) -> "Workplace":
        """Return a place for a function; one of the user's script is sent with the script, which the worker runs."""
        modules = getattr(function, "__module__", ""), type(function).__module__
        script = sys.modules["__main__"].__spec__ is None and "__main__" in modules
        return cls(dump(MapWork.of(dump(function), limits)), limits, script)

    def answer(self, item: bytes, name: str) -> bytes:
        """Return an item's outcome as bytes; retry if its worker dies, and return an error after the last attempt."""
        try:
            for _ in range(TRIES):
                worker, began = self._prepare_worker(), time.monotonic()
                worker.send(item)
                if not self._await_answer(worker, self._limits.seconds, began):
                    self.leave()
                    return dump(Outcome(None, self._limits.late(name)))
                data = worker.answer()
                if data is not None:
                    return data
                reason = worker.explain_death(self._limits, name)
                self.leave()
                if reason is not None:
                    return dump(reason)
            return dump(report_death(name, DIED))
        except BaseException:
            self.leave()
            raise

    def leave(self, *, keep: bool = False) -> None:
        """Release the worker process: stop it and all programs that it started."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.rest() if keep else worker.stop()

    def _prepare_worker(self) -> _Worker:
        """Return a worker that has received its work; raise an error if several workers in a row fail to start."""
        for _ in range(TRIES):
            if self.worker is not None:
                return self.worker
            began = time.monotonic()  # the time limit starts with the request, not when the worker is ready
            worker = self.worker = _acquire_worker(script=self._script)
            worker.send(self._work)
            in_time = self._await_answer(worker, _START_SECONDS, began)
            what = "ended before they began" if in_time else f"were not ready after {_START_SECONDS:g} s"
            data = worker.answer() if in_time else None
            if data is not None:
                read_outcome(data)
                return worker
            self.leave()
        raise ToolkitError(
            f"{TRIES} worker processes {what}: this machine is too busy, or has no memory left; run the command "
            "again later, or with fewer --jobs"
        )

    def _await_answer(self, worker: _Worker, seconds: float | None, began: float) -> bool:
        """Return whether a worker answers or dies within `seconds` of `began`."""
        while not worker.await_answer(_CHECK_SECONDS):
            if not self.open:
                raise CancelledError
            if seconds is not None and time.monotonic() >= began + seconds:
                return False
        return True


# ---------------------------------------------------------------- the worker's side


def _serve(pipe: Connection) -> None:
    """Serve requests until the pipe is closed: first the work (function and limits), then its items."""
    if hasattr(os, "setpgrp"):
        # a process group of its own: Ctrl-C reaches only the parent, and the worker's programs end with the worker
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function: Callable[[Any], Any] = abs
    limits = Limits()
    while True:
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            sent = pickle.loads(data)
            if isinstance(sent, MapWork):
                _move(sent)
                function, limits = pickle.loads(sent.function), sent.limits
                serve_within(limits)
                answer: Outcome[Any] | _Bug = Outcome(None)
            else:
                answer = attempt_within(limits, function, sent)
        except Exception as error:
            answer = _Bug(error, traceback.format_exc())
        pipe.send_bytes(_pickle_answer(answer))


def _move(work: MapWork) -> None:
    """Apply the parent's working folder, module path and environment to this process."""
    with suppress(OSError):  # if this machine does not have the folder, only absolute paths work
        os.chdir(work.folder)
    sys.path[:] = work.path
    for name in os.environ.keys() - work.environment.keys():
        del os.environ[name]
    os.environ.update(work.environment)
    # Arrow's own memory pool reserves 128 MiB at once, the whole limit of a small file: no thread could start
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _pickle_answer(answer: Outcome[Any] | _Bug) -> bytes:
    try:
        data = dump(answer)
        if isinstance(answer, _Bug):
            pickle.loads(data)
        return data
    except Exception as error:
        trace = answer.trace if isinstance(answer, _Bug) else traceback.format_exc()
        return dump(_Bug(RuntimeError(f"the result of a worker cannot be sent: {error}"), trace))


def _end_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)
