"""Removes folders and files: never through a link, and a folder only if it is the intended one.

A folder from a stranger may contain a link under any name that we might use. A folder is therefore recognised by its
identity in the file system, not by its name, and is emptied through a descriptor that was opened without following
a link.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import fit_name
from exhibit.storage.cache import find_cache_folder

_BY_DESCRIPTOR = {os.open, os.stat, os.unlink, os.rmdir} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether folders can be opened as descriptors. Windows cannot: there every part of a path is checked before its use.
"""


class FolderIdentity(NamedTuple):
    """The identity of a folder, independent of its name: its device and inode number."""

    device: int
    inode: int


def identity_of(folder: Path) -> FolderIdentity | None:
    """Return the device and inode numbers of a folder; None if the path is missing, or is a link or a file."""
    with suppress(OSError):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode):
            return FolderIdentity(found.st_dev, found.st_ino)
    return None


def name_beside(path: Path, ending: str) -> Path:
    """Return the path `.NAME` plus an ending, beside `path`; a name that is too long is cut and gets a digest."""
    return path.with_name(fit_name(f".{path.name}", ending))


def make_folder_beside(path: Path, ending: str) -> Path:
    """Make an empty folder beside a path, with a random name that nobody else can guess and create in advance."""
    folder = name_beside(path, f".{secrets.token_hex(8)}{ending}")
    folder.mkdir()  # mkdir fails if the name exists, even as a link
    return folder


def remove_folder(folder: Path, made: FolderIdentity | None, *, kept: frozenset[str] = frozenset()) -> bool:
    """Remove a folder if it has the identity `made`; with `kept`, keep the folder and these names in it.

    Return False, and remove nothing, if the path is another folder, a link or missing.
    """
    if made is None or identity_of(folder) != made:
        return False
    if not _BY_DESCRIPTOR:
        for path in folder.iterdir():
            if path.name not in kept:
                _remove_entry(path)
        if not kept:
            folder.rmdir()
        return True
    with _open_descriptor(folder) as opened:
        found = os.fstat(opened)
        if (found.st_dev, found.st_ino) != made:
            return False
        _empty_folder(opened, kept)
    if not kept:
        folder.rmdir()  # rmdir removes only an empty folder: files that were put there meanwhile are not lost
    return True


def remove_below(root: Path, name: str) -> None:
    """Remove a file or a folder below `root`, if it exists.

    If `name` is a link, only the link is removed. If a folder above it is a link, nothing is removed.
    """
    *above, last = Path(name).parts
    try:
        if not _BY_DESCRIPTOR:
            if not any((root / Path(*above[:depth])).is_symlink() for depth in range(1, len(above) + 1)):
                _remove_entry(root / name)
            return
        with _open_descriptor(root, *above) as opened:
            _remove_in(opened, last)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # missing, or behind a link
            raise


def refuse_links(folder: Path) -> None:
    """Raise if a folder contains a link: writing through it would change the link's target."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BundleError(
                f"{path}: is a link, and nothing is written through a link; remove it, or choose another folder"
            )


@contextmanager
def _open_descriptor(root: Path, *parts: str) -> Iterator[int]:
    """Yield a descriptor of the folder `root`, or of one below it; raise OSError if a part below `root` is a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    opened = os.open(root, flags)
    try:
        for part in parts:
            deeper = os.open(part, flags | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = deeper
        yield opened
    finally:
        os.close(opened)


def _empty_folder(opened: int, kept: frozenset[str]) -> None:
    with os.scandir(opened) as entries:
        names = [entry.name for entry in entries if entry.name not in kept]
    for name in names:
        _remove_in(opened, name)


def _remove_in(opened: int, name: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=opened)  # rmtree uses descriptors and never follows a link
    else:
        os.unlink(name, dir_fd=opened)


def _remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# ---------------------------------------------------------------- the record of an unfinished folder


class UnfinishedRecord:
    """A record, in the user's cache, of the unfinished folder of a run that writes to the folder `out`.

    If the run is killed, the next run with the same `out` finds the unfinished folder by this record.
    """

    def __init__(self, out: Path) -> None:
        digest = sha256(os.fsencode(out.absolute())).hexdigest()[:32]
        self._path = find_cache_folder() / "unfinished" / f"{digest}.json"

    def write(self, folder: Path, *identities: FolderIdentity | None) -> None:
        """Record the name of the unfinished folder, and the device and inode numbers by which it can be recognised.

        There may be two identities, because a replacement swaps two folders: before the swap the name belongs to
        the new folder, and after the swap it belongs to the old folder.
        """
        record = {"name": folder.name, "identities": [list(one) for one in identities if one]}
        with suppress(OSError):  # without a cache, a killed run's folder stays until the user removes it
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(record), encoding="utf-8")

    def read(self, parent: Path) -> Path | None:
        """Return the folder that a killed run left below `parent`; None if no recorded folder exists there."""
        try:
            record = json.loads(self._path.read_bytes())
            folder = parent / Path(str(record["name"])).name
            known = [FolderIdentity(*one) for one in record["identities"]]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return folder if identity_of(folder) in known else None

    def forget(self) -> None:
        """Delete the record, after the unfinished folder has been completed or removed."""
        with suppress(OSError):
            self._path.unlink()
