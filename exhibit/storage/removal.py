"""Removes folders and files: never through a link, and a folder only when it is the one that was meant.

A folder from elsewhere may hold a link under any name that we might use. A name therefore proves nothing: a folder is
known by its identity in the file system, and is emptied through a descriptor that was opened without following a link.
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
from exhibit.storage.cache import cache_folder

_BY_DESCRIPTOR = {os.open, os.stat, os.unlink, os.rmdir} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Windows has no descriptors of folders: there every part of a path is looked at before it is used."""


class FolderIdentity(NamedTuple):
    """What a folder is, whatever its name: the device and the number that the file system gives it."""

    device: int
    inode: int


def identity_of(folder: Path) -> FolderIdentity | None:
    """Return the identity of a folder; None where there is none, and for a link to one."""
    with suppress(OSError):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode):
            return FolderIdentity(found.st_dev, found.st_ino)
    return None


def name_beside(path: Path, ending: str) -> Path:
    """Return `.NAME` with an ending, beside a path; a name that is too long is cut, and told apart by a digest."""
    return path.with_name(fit_name(f".{path.name}", ending))


def make_folder_beside(path: Path, ending: str) -> Path:
    """Make an empty folder beside a path, under a name that nobody can have prepared."""
    folder = name_beside(path, f".{secrets.token_hex(8)}{ending}")
    folder.mkdir()  # which fails where something has the name, also a link
    return folder


def remove_folder(folder: Path, made: FolderIdentity | None, *, kept: frozenset[str] = frozenset()) -> bool:
    """Remove a folder if it is the one that was made; with names to keep, empty it of all others.

    Return False where another folder, a link or nothing has its name: then nothing is removed.
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
    with _descriptor(folder) as opened:
        found = os.fstat(opened)
        if (found.st_dev, found.st_ino) != made:
            return False
        _empty(opened, kept)
    if not kept:
        folder.rmdir()  # a folder that is empty: nothing that somebody put into its place meanwhile is lost
    return True


def remove_below(root: Path, name: str) -> None:
    """Remove a file or a folder below a folder, if it is there; a link is removed itself, and none is followed."""
    *above, last = Path(name).parts
    try:
        if not _BY_DESCRIPTOR:
            if not any((root / Path(*above[:depth])).is_symlink() for depth in range(1, len(above) + 1)):
                _remove_entry(root / name)
            return
        with _descriptor(root, *above) as opened:
            _remove_in(opened, last)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # not there, or behind a link
            raise


def refuse_links(folder: Path) -> None:
    """Raise where a folder holds a link: what is written into the folder would be written where the link leads."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BundleError(f"{path}: is a link, and nothing is written through one; remove it, or write elsewhere")


@contextmanager
def _descriptor(root: Path, *parts: str) -> Iterator[int]:
    """Open a folder below another one; a link among the parts is an OSError."""
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


def _empty(opened: int, kept: frozenset[str]) -> None:
    with os.scandir(opened) as entries:
        names = [entry.name for entry in entries if entry.name not in kept]
    for name in names:
        _remove_in(opened, name)


def _remove_in(opened: int, name: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=opened)  # by descriptors, and through no link
    else:
        os.unlink(name, dir_fd=opened)


def _remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# ---------------------------------------------------------------- what a killed run left: known by a record of ours


class UnfinishedRecord:
    """Remembers, in the user's own cache, which folder a run makes for `out`, so that the next run knows it again."""

    def __init__(self, out: Path) -> None:
        digest = sha256(os.fsencode(out.absolute())).hexdigest()[:32]
        self._path = cache_folder() / "unfinished" / f"{digest}.json"

    def write(self, folder: Path, *identities: FolderIdentity | None) -> None:
        """Record a folder's name, and what may stand there: the new folder, or after the exchange the old one."""
        record = {"name": folder.name, "identities": [list(one) for one in identities if one]}
        with suppress(OSError):  # without a cache, what a killed run leaves stays until its owner removes it
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(record), encoding="utf-8")

    def read(self, parent: Path) -> Path | None:
        """Return the folder that a killed run left below `parent`; None where none of ours stands there."""
        try:
            record = json.loads(self._path.read_bytes())
            folder = parent / Path(str(record["name"])).name
            known = [FolderIdentity(*one) for one in record["identities"]]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return folder if identity_of(folder) in known else None

    def forget(self) -> None:
        """Remove the record."""
        with suppress(OSError):
            self._path.unlink()
