"""A process that works for this one: an item at a time, ended when that takes too long, used again by the next map.

Both sides of the pipe stand here. What travels is pickled, between processes of one program alone.
"""

import atexit
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from io import BytesIO
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from multiprocessing.spawn import _fixup_main_from_name  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from exhibit.engine.limits import Limits, end_programs, serve_within, spent_by
from exhibit.engine.outcome import TRIES, Outcome, attempt_within, worker_died, worker_failed
from exhibit.engine.processes import ScriptContext, WorkerContext, belongs_to_script, main_name
from exhibit.schemas.errors import ToolkitError


class MapWork(NamedTuple):
    """What a worker is told once for a whole map: the function, its limits, and where it would run here."""

    function: bytes
    limits: Limits
    folder: str
    path: tuple[str, ...]
    environment: dict[str, str]
    main: str = ""
    """The module that was started with `-m`, where one was."""

    @staticmethod
    def of(function: bytes, limits: Limits) -> "MapWork":
        """Return the work of this process, in its folder and with its environment."""
        folder = os.getcwd()  # noqa: PTH109 - as bytes allow
        return MapWork(function, limits, folder, tuple(sys.path), dict(os.environ), main_name())


class Bug(NamedTuple):
    """An error that is no item's fault, with the traceback of the worker that met it."""

    error: Exception
    trace: str

    def raised(self) -> Exception:
        """Return the error as it is raised here, its cause the worker's traceback."""
        self.error.__cause__ = _WorkerError(self.trace)
        return self.error


class _WorkerError(Exception):
    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def dump(value: object) -> bytes:
    """Return a value as it is sent to a worker, or by one."""
    return bytes(ForkingPickler.dumps(value))


def outcome_in(data: bytes) -> Outcome[Any]:
    """Return the outcome that a worker sent; raise where it was a bug, or cannot be read here."""
    try:
        answer: Outcome[Any] | Bug = pickle.loads(data)
    except Exception as error:
        answer = Bug(error, "while its outcome was read")
    if isinstance(answer, Bug):
        raise answer.raised()
    return answer


# ---------------------------------------------------------------- this side


class Worker:
    """One process, and the pipe to it."""

    def __init__(self, *, script: bool) -> None:
        """Start it; `script`: it runs the user's script first, for functions that are defined there."""
        context = ScriptContext() if script else WorkerContext()
        self.pipe, theirs = context.Pipe()
        # spawn: the same on every system, and no lock or browser is inherited half-way
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._keeps = not script

    def send(self, data: bytes) -> None:
        """Send work, or an item of it; what the worker makes of it is its next answer."""
        with suppress(OSError):  # it died: whoever waits for the answer learns it there
            self.pipe.send_bytes(data)

    def answer(self) -> bytes | None:
        """Return what the worker says, as it came: None where it died."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def await_answer(self, seconds: float | None) -> bool:
        """Return whether the worker says something, or dies, within so many seconds."""
        return bool(wait([self.pipe], seconds))

    def last_words(self, limits: Limits, name: str) -> Outcome[Any] | None:
        """Return the outcome of the item that a worker died of; None where another may do better with it."""
        self._process.join(1)
        code = self._process.exitcode
        if spent_by(code):
            return Outcome(None, limits.spent(name))
        if code == _NO_THREAD_DATA:
            return worker_failed(name, f"exit code {code}")
        if code is not None and -code in _FAULTS:
            return worker_failed(name, signal.Signals(-code).name)
        return None

    def stop(self) -> None:
        """End the process, whatever it is at, and the programs that it started."""
        pid = self._process.pid or 0
        end_programs(pid)
        if hasattr(os, "killpg"):
            with suppress(OSError):  # it has no group of its own yet, or no longer
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def rest(self) -> None:
        """Keep an idle process for the next map, or end it where enough are kept."""
        with _lock:
            if self._keeps and self._process.is_alive() and len(_resting) < _MOST_RESTING:
                _resting.append(self)
                return
        self.stop()


_FAULTS = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGTRAP", "SIGBUS", "SIGFPE")
    if hasattr(signal, name)
}
"""Signals by which a library ends its own process, as it will again over the same file: PDFium that gets no memory."""
_NO_THREAD_DATA = 127
"""The exit code with which the C library ends a process that has no memory left for a thread's own data."""
_resting: list[Worker] = []
_lock = threading.Lock()
_MOST_RESTING = os.cpu_count() or 1


def hire(*, script: bool) -> Worker:
    """Return a worker that rests, or a new one."""
    while not script:
        with _lock:
            worker = _resting.pop() if _resting else None
        if worker is None:
            break
        if not worker.await_answer(0):  # a pipe that can be read at rest is one that was closed
            return worker
        worker.stop()
    return Worker(script=script)


@atexit.register
def dismiss() -> None:
    """End the workers that rest; the next map starts new ones."""
    with _lock:
        workers, _resting[:] = list(_resting), []
    for worker in workers:
        worker.stop()


# ---------------------------------------------------------------- where a worker works


_STARTING = 300.0
"""Seconds that a worker may take to import what it is sent, on a machine that is busy with other things."""
_LOOK = 0.25
"""Seconds between two looks at the clock: a limit is passed by no more than this."""


class Workplace:
    """Where one worker works at a time; it begins with the first item."""

    def __init__(self, work: bytes, limits: Limits, script: bool = False) -> None:
        self._work, self._limits, self._script = work, limits, script
        self.worker: Worker | None = None
        self.open = True
        """False: whoever waits for an answer here waits no longer."""

    def answer(self, item: bytes, name: str) -> bytes:
        """Return an item's outcome as it travels; one whose worker died is tried again, and then set aside."""
        try:
            for _ in range(TRIES):
                worker, began = self._ready(), time.monotonic()
                worker.send(item)
                if not self._answers(worker, self._limits.seconds, began):
                    self.leave()
                    return dump(Outcome(None, self._limits.late(name)))
                data = worker.answer()
                if data is not None:
                    return data
                reason = worker.last_words(self._limits, name)
                self.leave()
                if reason is not None:
                    return dump(reason)
            return dump(worker_died(name))
        except BaseException:
            self.leave()
            raise

    def leave(self, *, keep: bool = False) -> None:
        """Let the worker go: it ends, with the programs that it started, or rests until the next map."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.rest() if keep else worker.stop()

    def _ready(self) -> Worker:
        """Return a worker that has its work; after so many false starts the machine is at fault, and no item."""
        for _ in range(TRIES):
            if self.worker is not None:
                return self.worker
            began = time.monotonic()  # its time runs from when it is asked, however soon it begins
            worker = self.worker = hire(script=self._script)
            worker.send(self._work)
            in_time = self._answers(worker, _STARTING, began)
            what = "ended before they began" if in_time else f"were not ready after {_STARTING:g} s"
            data = worker.answer() if in_time else None
            if data is not None:
                outcome_in(data)
                return worker
            self.leave()
        raise ToolkitError(
            f"{TRIES} worker processes {what}: this machine is too busy, or has no memory left; "
            "run the command again when it has, or with fewer --jobs"
        )

    def _answers(self, worker: Worker, seconds: float | None, began: float) -> bool:
        """Return whether a worker says something, or dies, in time."""
        while not worker.await_answer(_LOOK):
            if not self.open:
                raise CancelledError
            if seconds is not None and time.monotonic() >= began + seconds:
                return False
        return True


def work_for(function: Callable[[Any], Any], limits: Limits) -> tuple[bytes, Limits, bool]:
    """Return what a place is made of: the work as it is sent, its limits, and whether the script goes with it."""
    return dump(MapWork.of(dump(function), limits)), limits, belongs_to_script(function)


# ---------------------------------------------------------------- the worker's side


def _serve(pipe: Connection) -> None:
    """Do what is sent until the pipe is closed: work first, then its items."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # a group of its own: Ctrl-C is the parent's alone, and what the worker starts ends with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function: Callable[[Any], Any] = abs
    limits, main = Limits(), ""
    while True:
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        sent: Any = None
        try:
            sent = _unpacked(data, main=main)
            if isinstance(sent, MapWork):
                _move(sent)
                main = sent.main
                function, limits = _unpacked(sent.function, main=main), sent.limits
                serve_within(limits)
                answer: Outcome[Any] | Bug = Outcome(None)
            else:
                answer = attempt_within(limits, function, sent)
        except Exception as error:
            answer = Bug(error, traceback.format_exc())
        pipe.send_bytes(_packed(answer))


def _unpacked(data: bytes, *, main: str = "") -> Any:
    """Return what was sent from a process whose program is the module `main`, imported where it is needed."""
    return _Unpickler(BytesIO(data), main).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, main: str) -> None:
        super().__init__(file)
        self._main = main

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__" and self._main:
            _fixup_main_from_name(self._main)  # as multiprocessing itself does it; a second call does nothing
        return super().find_class(module, name)


def _move(work: MapWork) -> None:
    """Go where the parent is: relative paths, settings and modules mean the same here."""
    with suppress(OSError):  # not on this machine: then paths had better be absolute
        os.chdir(work.folder)
    sys.path[:] = work.path
    for name in os.environ.keys() - work.environment.keys():
        del os.environ[name]
    os.environ.update(work.environment)
    # Arrow's own pool takes 128 MiB at once, all that reading a small file may take: none is left for a thread's stack
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _packed(answer: Outcome[Any] | Bug) -> bytes:
    """Return an answer as bytes; an error that cannot travel is told in its own words."""
    try:
        data = dump(answer)
        if isinstance(answer, Bug):
            pickle.loads(data)
        return data
    except Exception as error:
        trace = answer.trace if isinstance(answer, Bug) else traceback.format_exc()
        return dump(Bug(RuntimeError(f"what a worker found cannot be sent: {error}"), trace))


def _end_with_parent() -> None:
    """Never outlive the parent, even when it is killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)
