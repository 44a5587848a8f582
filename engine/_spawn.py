"""Worker processes that do not run the user's script again: a script need not guard itself against its own workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
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
    """Hide the path of the script that runs, which a new process would otherwise run from its top.

    A module that was started with `-m` is left: its name is enough, and functions in it may be what is sent.
    """
    main = sys.modules["__main__"]
    path = main.__dict__.get("__file__")
    if path is None or main.__spec__ is not None:
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


def belongs_to_script(function: Any) -> bool:
    """Return whether a function is defined in the script itself, so that a worker must run it to have the function."""
    return "__main__" in (getattr(function, "__module__", ""), type(function).__module__)
