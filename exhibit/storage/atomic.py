"""Atomic writes: rename a finished folder or file into place, so that it is complete or does not exist."""

import ctypes
import errno
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.layout import CORPUS, TRAIN
from exhibit.storage.removal import (
    FolderIdentity,
    UnfinishedRecord,
    identity_of,
    make_folder_beside,
    name_beside,
    remove_folder,
)

_AT_FDCWD = -100  # Linux: the paths are relative to the working folder
_SWAP = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS


class FolderKind(NamedTuple):
    """A kind of output folder, such as a bundle.

    It has a name for messages, and a function that tells whether an existing folder is of this kind.
    """

    name: str
    is_one: Callable[[Path], bool]
    let_go: Callable[[Path], None] = lambda _: None
    """Called before a folder is removed, to remove related data outside it."""
    kept: frozenset[str] = frozenset()
    """The names in a killed run's folder that the next run reuses; all other names are removed."""


BUNDLE = FolderKind("a bundle", lambda folder: (folder / CORPUS).is_dir() and (folder / TRAIN).is_file())


_PARTIAL = ".partial"
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.partial")


def find_unfinished_folder(out: Path) -> Path | None:
    """Return the temporary folder of an unfinished run that writes to `out`; None if there is none.

    The folder is found by its name, which is partly random. The result is therefore safe only for reading: code
    that writes to the folder or removes it must check its identity.
    """
    start = name_beside(out, "." + 16 * "0" + _PARTIAL).name[: -len(_PARTIAL) - 17]
    try:
        beside = [path for path in out.parent.iterdir() if path.name.startswith(start)]
    except OSError:
        return None
    folders = [path for path in beside if _UNFINISHED.fullmatch(path.name[len(start) :]) and identity_of(path)]
    return max(folders, key=lambda path: path.lstat().st_mtime_ns, default=None)


@contextmanager
def replace_folder(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> Iterator[Path]:
    """Yield an empty folder beside `out`; when the block ends without error, rename it to `out`.

    After a kill or a power cut at any point, `out` is either the old folder or the complete new one: files are flushed
    to the disk before the rename. The next run empties the folder that a killed run left, except for the names in
    `kind.kept`. A second run on the same `out` at the same time is refused. This function removes only folders that it
    made, or that it replaced because of `force`.
    """
    try:
        check_free(out, force=force, kind=kind)
        if out.parent.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = out.with_name(out.name + _PARTIAL)
        with lock_folder(lock, busy=f"{out}: another run is writing to this folder now; wait until it ends"):
            record = UnfinishedRecord(out)
            partial = _begin(out, record, kind.kept)
            old, new = identity_of(out), identity_of(partial)
            record.write(partial, new, old)
            try:
                yield partial
                _flush(partial)
                _swap_in(partial, out)
                _flush_one(out.parent)
                kind.let_go(partial)  # `partial` is now the old folder, if there was one
            except BaseException:
                with suppress(ToolkitError):
                    kind.let_go(partial)
                raise
            finally:
                with suppress(OSError):
                    if not remove_folder(partial, new):
                        remove_folder(partial, old)
                    record.forget()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BundleError(f"{out}: cannot be written: {reason}; the existing files are unchanged") from error


def _begin(out: Path, record: UnfinishedRecord, kept: frozenset[str]) -> Path:
    """Return a folder beside `out` to write into: a new one, or a killed run's folder, emptied except for `kept`."""
    left = record.read(out.parent)
    if left is not None:
        remove_folder(left, identity_of(left), kept=kept)
    return left if left is not None and kept else make_folder_beside(out, _PARTIAL)


def check_free(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> None:
    """Raise if `out` exists and is not a folder, or is a folder that must not be replaced.

    An empty folder may always be replaced. Any other folder may be replaced only with `force`, and only if it
    is of this kind.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise BundleError(f"{out}: is not a folder; choose another --out")
    if not out.exists() or not any(out.iterdir()):
        return
    if not force:
        raise BundleError(f"{out}: exists already; add --force to replace it, or choose another --out")
    if not kind.is_one(out):
        raise BundleError(f"{out}: does not contain {kind.name}, so it is not replaced; choose another --out")


@contextmanager
def lock_folder(folder: Path, *, busy: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold a lock on a folder while the `with` block runs.

    If the lock is taken, raise an error with the message `busy`; if `say` is given, call `say(busy)` and wait.
    """
    # the lock file is beside the folder: Windows cannot rename a folder that contains an open file
    path = name_beside(folder, ".lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        if say is None:
            raise BundleError(busy) from error
        say(busy)
        lock.acquire()
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file; there filelock removes the file on release
            # remove it while the lock is held: a waiting process sees that the file is gone, and tries again
            path.unlink()
        lock.release()


def _flush(folder: Path) -> None:
    """Flush a folder's files and subfolders to the disk, so that a later rename is not written before them."""
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _flush_one(path)


def _flush_one(path: Path) -> None:
    if sys.platform == "win32":
        return  # Windows: fsync works only on files that are open for writing
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without fsync gives no guarantee anyway
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap_in(partial: Path, out: Path) -> None:
    if not out.exists() or not any(out.iterdir()):
        if sys.platform == "win32" and out.exists():
            out.rmdir()  # Windows only: elsewhere a rename replaces an empty folder
        partial.replace(out)
        return
    if _exchange(partial, out):
        return  # the old folder now has the partial folder's name, and is removed under that name
    # This file system cannot exchange two folders: the old folder waits beside `out` until the new one is in place.
    old = make_folder_beside(out, ".old")
    old.rmdir()  # Windows cannot rename onto an existing name
    out.replace(old)
    try:
        partial.replace(out)
    except OSError:
        old.replace(out)
        raise
    old.replace(partial)  # the caller removes it


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one system call; return False if the system cannot."""
    if sys.platform == "win32":
        return False  # this system has no such function
    library = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(first.absolute()), os.fsencode(second.absolute())
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        return swap is not None and swap(one, two, _SWAP) == 0
    swap = getattr(library, "renameat2", None)
    return swap is not None and swap(_AT_FDCWD, one, _AT_FDCWD, two, _SWAP) == 0


# ---------------------------------------------------------------- files


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without error, rename the temporary file to `path`.

    If two processes write the file at the same time, one complete version remains, never a mixture.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = name_beside(path, f".{secrets.token_hex(16)}{_PARTIAL}")
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically; a lone surrogate, which damaged PDFs contain, becomes a question mark."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with replace_file(path) as partial:
        partial.write_bytes(data)


# ---------------------------------------------------------------- temporary folders


_PREFIX = "exhibit-scratch-"


@contextmanager
def make_scratch_folder() -> Iterator[Path]:
    """Yield an empty temporary folder; raise a ToolkitError if it cannot be created."""
    with ExitStack() as stack:
        try:
            place = Path(tempfile.gettempdir())
            place.stat()  # raise if the folder is missing: a lock would create it
            _sweep(place)
            folder = place / f"{_PREFIX}{secrets.token_hex(8)}"
            # lock before the folder exists: otherwise another process may take it for an abandoned folder
            stack.enter_context(lock_folder(folder, busy=""))
            folder.mkdir(mode=0o700)
        except OSError as error:
            named = os.environ.get("TMPDIR") or "the folder for temporary files"
            raise ToolkitError(f"{named}: cannot be written: {error.strerror}; set TMPDIR to another folder") from error
        stack.callback(_remove_quietly, folder, identity_of(folder))
        yield folder


def _remove_quietly(folder: Path, made: FolderIdentity | None) -> None:
    with suppress(OSError):
        remove_folder(folder, made)


def _sweep(place: Path) -> None:
    """Remove this user's temporary folders that no process locks any more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError, BundleError):  # another process locks the folder, or removes it now
            if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
                continue
            with lock_folder(folder, busy=""):
                remove_folder(folder, identity_of(folder))


LINK = "link that leads out of the folder; not followed"
NOWHERE = "link that leads nowhere"
NO_FILE = "pipe, socket or device, not a file"
CLOSED = "place that this user may not look into"


def list_files(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without links that lead out of it."""
    home = _find_home(folder)
    return [path for path in sorted(folder.rglob("*")) if _find_fault(path, home) is None and path.is_file()]


def list_left_out(folder: Path) -> list[tuple[Path, str]]:
    """Return the entries below a folder that are not read, each with the reason.

    Such an entry is, for example, a link that leads out of the folder, or a folder without read permission.
    """
    home = _find_home(folder)
    return [(path, why) for path in sorted(folder.rglob("*")) if (why := _find_fault(path, home)) is not None]


def _find_fault(path: Path, home: Path) -> str | None:
    """Return the reason why a listing of a folder leaves out a file or subfolder; None if it is not left out.

    It is left out if it is a link that leads out of the folder `home` or leads nowhere, if it is neither a
    file nor a folder, or if this user may not open it.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(home):
            return LINK
        if path.is_dir():
            # check it here: `rglob` silently skips a folder that it cannot list
            return None if os.access(path, os.R_OK | os.X_OK) else CLOSED
        return None if path.is_file() else NO_FILE
    except PermissionError:
        return CLOSED
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        return NOWHERE


def _find_home(folder: Path) -> Path:
    """Return the folder that must contain the targets of all symbolic links below `folder`.

    It is `folder` itself. In the cache of the Hugging Face Hub it is the folder of the whole repository.
    """
    for parent in (folder, *folder.parents):
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            return parent.parent.resolve()
    return folder.resolve()
