"""A worker process, which applies a function to single items, and is killed when an item exceeds its limits."""

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
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, NamedTuple

from exhibit.engine.limits import Limits, end_programs, serve_within
from exhibit.engine.outcome import DIED, TRIES, In, Out, Outcome, attempt_within, name_item, report_death
from exhibit.schemas.errors import ToolkitError

dump = pickle.dumps  # every message to a worker and back is pickled here


class MapWork(NamedTuple):
    function: bytes
    limits: Limits
    folder: str
    path: tuple[str, ...]
    environment: dict[str, str]

    @staticmethod
    def of(function: bytes, limits: Limits) -> "MapWork":
        folder = os.getcwd()  # noqa: PTH109 - as bytes allow
        return MapWork(function, limits, folder, tuple(sys.path), dict(os.environ))


class _Bug(NamedTuple):
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
        answer = _Bug(error, "while a worker's outcome was read")
    if isinstance(answer, _Bug):
        raise answer.error from _WorkerError(answer.trace)
    return answer


# ---------------------------------------------------------------- the parent's side


_starting = threading.Lock()  # threads start workers at the same time


@contextmanager
def _isolate_start(*, script: bool) -> Iterator[None]:
    """Prevent a process that starts in the block from importing modules of the working folder.

    Unless `script` is true, prevent it from importing the user's script, too.
    """
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


_FAULTS = [
    -getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGTRAP", "SIGBUS", "SIGFPE")
    if hasattr(signal, name)
]  # exit codes after a library aborts, such as PDFium without memory; a second attempt would abort, too
_TIME_SPENT = -getattr(signal, "SIGPROF", 0) or None  # too much processor time was spent on a file
_NO_THREAD_DATA = 127  # the C library ended the process: no memory for thread-local data
_START_SECONDS = 300.0  # seconds for a worker's imports on a busy machine
_CHECK_SECONDS = 0.25  # seconds between two checks of the clock: an item exceeds its time limit by no more than this
_MAX_IDLE = os.cpu_count() or 1
_idle: list[tuple[SpawnProcess, Connection]] = []
_lock = threading.Lock()


class Worker(Generic[In, Out]):
    """A worker process that applies a function to one item at a time; if it dies, a new process replaces it."""

    def __init__(self, work: MapWork, *, script: bool = False) -> None:
        self._work, self._limits, self._script = dump(work), work.limits, script
        self.process: SpawnProcess | None = None
        self._pipe: Connection
        self.open = True  # set to False to release a thread that waits for an answer

    @classmethod
    def of(cls, function: Callable[[In], Out], *, limits: Limits) -> "Worker[In, Out]":
        modules = getattr(function, "__module__", ""), type(function).__module__
        script = sys.modules["__main__"].__spec__ is None and "__main__" in modules
        return cls(MapWork.of(dump(function), limits), script=script)

    def run(self, item: In) -> Out:
        result: Out = read_outcome(self.answer(dump(item), name_item(item))).unwrap()
        return result

    def answer(self, item: bytes, name: str) -> bytes:
        """Return an item's outcome as bytes; if the process dies, try again; after the last try, return an error."""
        try:
            for _ in range(TRIES):
                self._prepare()
                answered, data = self._exchange(item, self._limits.seconds)
                if data is not None:
                    return data
                failure = self._explain_death(name) if answered else Outcome[Any](None, self._limits.late(name))
                self.close()
                if failure is not None:
                    return dump(failure)
            return dump(report_death(name, DIED))
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Unless a process is running, start one and send it the function; raise if several in a row fail to start."""
        for _ in range(TRIES):
            if self.process is not None:
                return
            self.process, self._pipe = (None if self._script else _take_idle()) or _start_process(script=self._script)
            answered, data = self._exchange(self._work, _START_SECONDS)
            if data is not None:
                read_outcome(data)
                return
            what = "ended before they started to work" if answered else f"were not ready after {_START_SECONDS:g} s"
            self.close()
        raise ToolkitError(
            f"{TRIES} worker processes {what}: this machine is too busy, or has no memory left; run the command "
            "again later, or with fewer --jobs"
        )

    def _exchange(self, data: bytes, seconds: float | None) -> tuple[bool, bytes | None]:
        """Send data; return whether the process replied or died within `seconds`, and its reply (None if it died)."""
        began = time.monotonic()
        with suppress(OSError):  # the process has died: `recv_bytes` below fails, too
            self._pipe.send_bytes(data)
        while not wait([self._pipe], _CHECK_SECONDS):
            if not self.open:
                raise CancelledError
            if seconds is not None and time.monotonic() >= began + seconds:
                return False, None
        try:
            return True, self._pipe.recv_bytes()
        except (EOFError, OSError):
            return True, None

    def _explain_death(self, name: str) -> Outcome[Any] | None:
        if self.process is None:
            return None
        self.process.join(1)
        code = self.process.exitcode
        if code is None or code not in (*_FAULTS, _NO_THREAD_DATA, _TIME_SPENT):
            return None
        if code == _TIME_SPENT:
            return Outcome(None, self._limits.spent(name))
        return report_death(name, f"ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            _stop_process(process, self._pipe)

    def rest(self) -> None:
        """Keep the idle process for another function; stop it if enough other processes are idle."""
        with _lock:
            process, reusable = self.process, not self._script and len(_idle) < _MAX_IDLE
            if process is not None and reusable and process.is_alive():
                _idle.append((process, self._pipe))
                self.process = None
        self.close()


def _start_process(*, script: bool) -> tuple[SpawnProcess, Connection]:
    # spawn works on every system, and the process inherits no lock or browser in an undefined state
    context = get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _starting, _isolate_start(script=script):
        process.start()
    theirs.close()
    return process, pipe


def _stop_process(process: SpawnProcess, pipe: Connection) -> None:
    pid = process.pid or 0
    end_programs(pid)
    if hasattr(os, "killpg"):
        with suppress(OSError):  # the process does not have its own group yet, or is already gone
            os.killpg(pid, signal.SIGKILL)
    process.kill()
    process.join()
    pipe.close()


def _take_idle() -> tuple[SpawnProcess, Connection] | None:
    while True:
        with _lock:
            if not _idle:
                return None
            process, pipe = _idle.pop()
        if not wait([pipe], 0):  # an idle process sends nothing: a readable pipe means that it was closed
            return process, pipe
        _stop_process(process, pipe)


@atexit.register
def shutdown_idle() -> None:
    """Stop the idle worker processes; new processes start when work is distributed again."""
    while idle := _take_idle():
        _stop_process(*idle)


# ---------------------------------------------------------------- the worker's side


def _serve(pipe: Connection) -> None:
    if hasattr(os, "setpgrp"):
        # a separate process group: Ctrl-C reaches only the parent, and the worker's programs end with the worker
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
    with suppress(OSError):  # if this machine lacks the folder, only absolute paths work
        os.chdir(work.folder)
    sys.path[:] = work.path
    for name in os.environ.keys() - work.environment.keys():
        del os.environ[name]
    os.environ.update(work.environment)
    # Arrow's memory pool reserves 128 MiB at once, the whole limit of a small file, so no thread could start
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
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)
