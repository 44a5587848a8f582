"""Starts processes that neither run the user's script again nor import modules from the working folder."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's own name
        with _hiding, _hide_working_folder(), _hide_script():
            return SpawnProcess._Popen(process_obj)


class _ScriptProcess(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's own name
        with _hiding, _hide_working_folder():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """A multiprocessing context whose processes import only the modules that their work needs."""

    Process = _Process


class ScriptContext(SpawnContext):
    """A multiprocessing context whose processes first run the user's script, for functions that the script defines."""

    Process = _ScriptProcess


_hiding = threading.Lock()  # threads start workers at the same time


@contextmanager
def _hide_working_folder() -> Iterator[None]:
    """Prevent a new process from importing modules of the working folder.

    multiprocessing starts `python -c`, which searches that folder before the standard library: a file `struct.py` in a
    folder from a stranger would be run.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def _hide_script() -> Iterator[None]:
    """Prevent a new worker process from running the user's script or `-m` module at its start.

    The worker imports the module later if the function that it has to run is defined there.
    """
    main = sys.modules["__main__"]
    path, spec = main.__dict__.get("__file__"), main.__spec__
    if path is None:
        yield
        return
    del main.__file__
    main.__spec__ = None
    try:
        yield
    finally:
        main.__file__, main.__spec__ = path, spec


def main_name() -> str:
    """Return the name of the module that was started with `-m`; empty for a script or a notebook."""
    return getattr(sys.modules["__main__"].__spec__, "name", "")


def belongs_to_script(function: Any) -> bool:
    """Return whether a function is defined in the user's script, so that a worker must run the script to get it."""
    return not main_name() and "__main__" in (getattr(function, "__module__", ""), type(function).__module__)
