"""Writes folders and files completely or not at all, and removes only folders that this program made.

A new folder is written beside its final path and renamed at the end. Its identity is recorded in the user's cache, so
that the next run can find and remove the unfinished folder of a killed run. No folder is removed because of its name.
"""

import errno
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.layout import CORPUS, TRAIN, fit_name
from exhibit.storage.cache import find_cache_folder

FolderIdentity = tuple[int, int]  # the device and the inode number of a folder, which do not depend on its name


def identity_of(folder: Path) -> FolderIdentity | None:
    with suppress(OSError):
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode):
            return status.st_dev, status.st_ino
    return None


def name_beside(path: Path, ending: str) -> Path:
    """Return the path `.NAME` plus an ending, beside `path`; if NAME is too long, a digest replaces its end."""
    return path.with_name(fit_name(f".{path.name}", ending))


def remove_folder(folder: Path, made: FolderIdentity | None) -> None:
    if made is not None and identity_of(folder) == made:
        shutil.rmtree(folder)  # rmtree follows no link, and refuses to begin at one


def remove_below(root: Path, name: str) -> None:
    """Remove a file or a folder below `root`, if it exists and no folder above it is a link."""
    path = root / name
    if any((root / above).is_symlink() for above in Path(name).parents if above.name):
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def refuse_links(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BundleError(
                f"{path}: is a link, through which nothing is written; remove the link, or choose another folder"
            )


# ---------------------------------------------------------------- folders that are replaced


_PARTIAL, _OLD = ".partial", ".old"


class FolderKind(NamedTuple):
    name: str
    is_one: Callable[[Path], bool]
    let_go: Callable[[Path], None] = lambda _: None  # removes data outside the folder before it


BUNDLE = FolderKind("a bundle", lambda folder: (folder / CORPUS).is_dir() and (folder / TRAIN).is_file())


@contextmanager
def replace_folder(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> Iterator[Path]:
    """Yield an empty folder beside `out`; when the block ends without error, rename it to `out`."""
    try:
        check_free(out, force=force, kind=kind)
        if out.parent.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = out.with_name(out.name + _PARTIAL)
        with lock_folder(lock, busy=f"{out}: another run is writing to this folder now; wait until it ends"):
            digest = sha256(os.fsencode(out.absolute())).hexdigest()[:32]
            record = find_cache_folder() / "unfinished" / f"{digest}.json"
            _clear_unfinished(out, record, kind)
            check_free(out, force=force, kind=kind)  # check again: the old folder may have been restored
            partial = name_beside(out, f".{secrets.token_hex(8)}{_PARTIAL}")  # a name that cannot be guessed in advance
            partial.mkdir()  # mkdir fails if the name exists, even as a link
            old = partial.with_suffix(_OLD)
            before, new = identity_of(out), identity_of(partial)
            try:
                with suppress(OSError):  # without a cache, a killed run's folder stays until the user removes it
                    record.parent.mkdir(parents=True, exist_ok=True)
                    noted = {"name": partial.name, "identities": [before, new]}
                    record.write_text(json.dumps(noted), encoding="utf-8")
                yield partial
                _flush(partial)
                _rename_over(partial, out, old)
                _flush_one(out.parent)
                kind.let_go(old)
            except BaseException:
                with suppress(ToolkitError):
                    kind.let_go(partial)
                raise
            finally:
                with suppress(OSError):
                    _restore_or_remove(old, [before], out)
                    remove_folder(partial, new)
                    record.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BundleError(f"{out}: cannot be written: {reason}; the existing files are unchanged") from error


def _clear_unfinished(out: Path, record: Path, kind: FolderKind) -> None:
    """Remove the unfinished folder that a killed run left beside `out`, and restore the old folder if necessary."""
    try:
        noted = json.loads(record.read_bytes())
        partial = out.with_name(Path(str(noted["name"])).name)
        known = [tuple(identity) for identity in noted["identities"] if identity]
    except (OSError, ValueError, LookupError, TypeError):
        return
    _restore_or_remove(partial.with_suffix(_OLD), known, out)
    if (left := identity_of(partial)) in known:
        with suppress(ToolkitError):
            kind.let_go(partial)
        remove_folder(partial, left)


def _restore_or_remove(old: Path, known: Collection[FolderIdentity | None], out: Path) -> None:
    made = identity_of(old)
    if made is None or made not in known:
        return
    if os.path.lexists(out):
        remove_folder(old, made)
    else:
        old.replace(out)


def check_free(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> None:
    """Raise if `out` is an existing file, or a folder that must not be replaced."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise BundleError(f"{out}: is not a folder; choose another --out")
    if not out.exists() or not any(out.iterdir()):
        return
    if not force:
        advice = "add --force (in Python: force=True) to replace it, or choose another folder"
        raise BundleError(f"{out}: exists already; {advice}")
    if not kind.is_one(out):
        raise BundleError(f"{out}: does not contain {kind.name}, so it is not replaced; choose another --out")


@contextmanager
def lock_folder(folder: Path, *, busy: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
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
        with suppress(OSError):  # a file system without fsync gives no guarantee
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_over(partial: Path, out: Path, old: Path) -> None:
    if out.exists() and any(out.iterdir()):
        out.replace(old)
    elif sys.platform == "win32" and out.exists():
        out.rmdir()  # elsewhere a rename replaces an empty folder
    partial.replace(out)


# ---------------------------------------------------------------- files


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without error, rename the temporary file to `path`."""
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
    with ExitStack() as stack:
        try:
            place = Path(tempfile.gettempdir())
            place.stat()  # raise if the folder is missing: a lock would create it
            _sweep(place)
            folder = place / f"{_PREFIX}{secrets.token_hex(8)}"
            # lock before the folder exists, or another process may consider the folder abandoned
            stack.enter_context(lock_folder(folder, busy=""))
            folder.mkdir(mode=0o700)
        except OSError as error:
            named = os.environ.get("TMPDIR") or "the folder for temporary files"
            raise ToolkitError(f"{named}: cannot be written: {error.strerror}; set TMPDIR to another folder") from error
        made = identity_of(folder)
        try:
            yield folder
        finally:
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
NOWHERE = "link to a missing file"
NO_FILE = "pipe, socket or device, not a file"
CLOSED = "folder that this user may not read"


def list_files(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without links that lead out of it."""
    home = _find_home(folder)
    return [path for path in sorted(folder.rglob("*")) if _find_fault(path, home) is None and path.is_file()]


def list_left_out(folder: Path) -> list[tuple[Path, str]]:
    home = _find_home(folder)
    return [(path, why) for path in sorted(folder.rglob("*")) if (why := _find_fault(path, home)) is not None]


def _find_fault(path: Path, home: Path) -> str | None:
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
    """Return the folder that must contain the targets of all symbolic links below `folder`."""
    for parent in (folder, *folder.parents):
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            return parent.parent.resolve()
    return folder.resolve()
