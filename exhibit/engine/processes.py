"""Processes that do not run the user's script again, and import nothing from the working folder."""

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
        with _hiding, _working_folder_hidden(), _script_hidden():
            return SpawnProcess._Popen(process_obj)


class _ScriptProcess(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's own name
        with _hiding, _working_folder_hidden():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """Spawned processes that import what they are sent, and nothing else."""

    Process = _Process


class ScriptContext(SpawnContext):
    """Spawned processes that run the user's script first, for functions that are defined there."""

    Process = _ScriptProcess


_hiding = threading.Lock()  # threads start workers at the same time


@contextmanager
def _working_folder_hidden() -> Iterator[None]:
    """Let a new process import nothing from the working folder.

    multiprocessing starts `python -c`, which looks there before the standard library: a `struct.py` in a folder from
    elsewhere would be run.
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
def _script_hidden() -> Iterator[None]:
    """Hide the script or the module that runs, which a new process would otherwise run from its top.

    Of a module that was started with `-m` a worker needs little or nothing: it imports that when it is sent something
    of it.
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
    """Return the name of the module that was started with `-m`, empty where a script or a notebook runs."""
    return getattr(sys.modules["__main__"].__spec__, "name", "")


def belongs_to_script(function: Any) -> bool:
    """Return whether a function is defined in the script itself, so that a worker must run it to have the function."""
    return not main_name() and "__main__" in (getattr(function, "__module__", ""), type(function).__module__)
