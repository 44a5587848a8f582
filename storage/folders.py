"""The files of a folder that are really in it: a link that leads out of it is not followed, a pipe is not opened."""

from __future__ import annotations

import os
from pathlib import Path

LINK = "link that leads out of the folder; not followed"
NOWHERE = "link that leads nowhere"
NO_FILE = "pipe, socket or device, not a file"
CLOSED = "place that this user may not look into"


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, in order, but for links to what is elsewhere."""
    home = _home(folder)
    return [path for path in sorted(folder.rglob("*")) if _fault(path, home) is None and path.is_file()]


def left_out(folder: Path) -> list[tuple[Path, str]]:
    """Return what lies below a folder and is not read, each with its reason."""
    home = _home(folder)
    return [(path, why) for path in sorted(folder.rglob("*")) if (why := _fault(path, home)) is not None]


def _fault(path: Path, home: Path) -> str | None:
    """Return why an entry of a folder is neither read nor walked through."""
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(home):
            return LINK
        if path.is_dir():
            # `rglob` passes over a folder that it cannot list, without a word
            return None if os.access(path, os.R_OK | os.X_OK) else CLOSED
        return None if path.is_file() else NO_FILE
    except PermissionError:
        return CLOSED
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        return NOWHERE


def _home(folder: Path) -> Path:
    """Return what a link may lead to: the folder, or in the Hub's cache the repository, whose files are links."""
    for parent in (folder, *folder.parents):
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            return parent.parent.resolve()
    return folder.resolve()
