"""Worker processes that do not run the user's script again: a script need not guard itself against its own workers."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.spawn import _fixup_main_from_name  # type: ignore[attr-defined]
from typing import Any


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's own name
        with _script_hidden():
            return SpawnProcess._Popen(process_obj)


class Context(SpawnContext):
    """Spawned processes that import what they are sent, and nothing else."""

    Process = _Process


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Hide the script or the module that runs, which a new process would otherwise run from its top.

    Of a module that was started with `-m` a worker needs little or nothing: it imports that when it is sent something
    of it (`unpack`).
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


def unpack(data: bytes, *, main: str = "") -> Any:
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


def belongs_to_script(function: Any) -> bool:
    """Return whether a function is defined in the script itself, so that a worker must run it to have the function."""
    return not main_name() and "__main__" in (getattr(function, "__module__", ""), type(function).__module__)
