"""Folders for a while, in the system's place for such: gone when they are no longer used, even after a kill.

What a killed process leaves is removed by the next one that makes such a folder: each is locked while it is used.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from exhibit.schemas.errors import ToolkitError

_PREFIX = "exhibit-scratch-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder; raise a ToolkitError where there is no room for one."""
    try:
        place = Path(tempfile.gettempdir())
        place.stat()  # a lock would make the folder that is missing
        _sweep(place)
        folder = place / f"{_PREFIX}{secrets.token_hex(8)}"
        lock = _hold(folder)  # before it is there: else another process may take it for one that was left
        folder.mkdir(mode=0o700)
    except OSError as error:
        named = os.environ.get("TMPDIR") or "the folder for temporary files"
        raise ToolkitError(f"{named}: cannot be written: {error.strerror}; set TMPDIR to another folder") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _let_go(folder, lock)


def _hold(folder: Path) -> FileLock:
    # beside the folder: Windows removes no folder in which a file is open
    lock = FileLock(_lock_of(folder), timeout=0)
    lock.acquire()
    return lock


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _let_go(folder: Path, lock: FileLock) -> None:
    with suppress(OSError):
        _lock_of(folder).unlink()
    lock.release()


def _sweep(place: Path) -> None:
    """Remove the folders of this user that no process holds any more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError, Timeout):  # somebody holds it, or removes it now
            if folder.is_symlink() or (hasattr(os, "getuid") and folder.stat().st_uid != os.getuid()):
                continue
            lock = _hold(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                _let_go(folder, lock)
