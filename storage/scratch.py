"""Folders for a while, in the system's place for such: gone when they are no longer used, even after a kill.

What a killed process leaves is removed by the next one that makes such a folder: each is locked while it is used.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from schemas.errors import ToolkitError

_PREFIX = "exhibit-scratch-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder; raise a ToolkitError where there is no room for one."""
    try:
        _sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        handle = _lock(folder)
    except OSError as error:
        place = os.environ.get("TMPDIR") or "the folder for temporary files"
        raise ToolkitError(f"{place}: cannot be written: {error.strerror}; set TMPDIR to another folder") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _lock(folder: Path) -> int:
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _sweep(place: Path) -> None:
    """Remove the folders of this user that no process holds any more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody holds it, or removes it now
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = _lock(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
