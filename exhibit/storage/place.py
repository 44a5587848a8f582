"""Puts a finished folder or file into place: by rename, whole or not at all."""

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

_AT_FDCWD = -100  # of Linux: paths count from the working folder
_SWAP = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS


class FolderKind(NamedTuple):
    """What a folder is, for messages; and how one is known that may be replaced."""

    name: str
    is_one: Callable[[Path], bool]
    let_go: Callable[[Path], None] = lambda _: None
    """Called before a folder is removed: what belongs to it but is not in it goes, too."""
    kept: frozenset[str] = frozenset()
    """Names that a killed run leaves and the next one goes on with; everything else begins anew."""


BUNDLE = FolderKind("a bundle", lambda folder: (folder / CORPUS).is_dir() and (folder / TRAIN).is_file())


_PARTIAL = ".partial"
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.partial")


def unfinished_folder(out: Path) -> Path | None:
    """Return the folder in which `out` is being made, to read in it; None where there is none.

    Its name has a part that nobody can know before. Whoever writes or removes knows it by its identity, not by this.
    """
    start = name_beside(out, "." + 16 * "0" + _PARTIAL).name[: -len(_PARTIAL) - 17]
    try:
        beside = [path for path in out.parent.iterdir() if path.name.startswith(start)]
    except OSError:
        return None
    folders = [path for path in beside if _UNFINISHED.fullmatch(path.name[len(start) :]) and identity_of(path)]
    return max(folders, key=lambda path: path.lstat().st_mtime_ns, default=None)


@contextmanager
def placed(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> Iterator[Path]:
    """Yield an empty folder beside `out`; when the block ends without error it becomes `out`.

    Killed at any point, or with the power gone, `out` is what it was or what it should be: its files are on the disk
    before it has its name. A folder left by a killed run is emptied by the next one, but for what its kind keeps; two
    runs at once on one `out` are refused. Nothing but what this function made, or replaced with `force`, is removed.
    """
    try:
        check_free(out, force=force, kind=kind)
        if out.parent.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = out.with_name(out.name + _PARTIAL)
        with locked(lock, busy=f"{out}: another run is writing it now; wait for it to end"):
            record = UnfinishedRecord(out)
            partial = _begin(out, record, kind.kept)
            old, new = identity_of(out), identity_of(partial)
            record.write(partial, new, old)
            try:
                yield partial
                _flush(partial)
                _swap_in(partial, out)
                _flush_one(out.parent)
                kind.let_go(partial)  # the old one, if there was one
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
        raise BundleError(f"{out}: cannot be written: {reason}; nothing there was changed") from error


def _begin(out: Path, record: UnfinishedRecord, kept: frozenset[str]) -> Path:
    """Return an empty folder beside `out`: a new one, or the one of a killed run with what its kind keeps."""
    left = record.read(out.parent)
    if left is not None:
        remove_folder(left, identity_of(left), kept=kept)
    return left if left is not None and kept else make_folder_beside(out, _PARTIAL)


def check_free(out: Path, *, force: bool, kind: FolderKind = BUNDLE) -> None:
    """Refuse to overwrite, and refuse even with --force what is of another kind."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise BundleError(f"{out}: is not a folder; choose another --out")
    if not out.exists() or not any(out.iterdir()):
        return
    if not force:
        raise BundleError(f"{out}: exists already; add --force to replace it, or choose another --out")
    if not kind.is_one(out):
        raise BundleError(
            f"{out}: holds something else than {kind.name} and will not be replaced; choose another --out"
        )


@contextmanager
def locked(folder: Path, *, busy: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold a folder for one process; when another has it raise with the words of `busy`, or `say` them and wait."""
    # beside the folder: Windows renames no folder in which a file is open
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
        with suppress(OSError):  # Windows removes no open file; filelock does it there when it lets go
            path.unlink()  # while it is held: one who waits for it sees that its file is gone, and begins anew
        lock.release()


def _flush(folder: Path) -> None:
    """Wait until a folder's files, and their names, are on the disk: the system may write a rename before them."""
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _flush_one(path)


def _flush_one(path: Path) -> None:
    if sys.platform == "win32":
        return  # which flushes only what is open for writing
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system that cannot: then it promises nothing either
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap_in(partial: Path, out: Path) -> None:
    if not out.exists() or not any(out.iterdir()):
        if sys.platform == "win32" and out.exists():
            out.rmdir()  # elsewhere a rename replaces an empty folder
        partial.replace(out)
        return
    if _exchange(partial, out):
        return  # the old bundle is now the partial folder, and goes with it
    # A file system that cannot exchange: the old bundle stays beside until the new one is in place.
    old = make_folder_beside(out, ".old")
    old.rmdir()  # Windows renames to no name that is taken
    out.replace(old)
    try:
        partial.replace(out)
    except OSError:
        old.replace(out)
        raise
    old.replace(partial)  # which goes when this is done


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step of the file system; return False where it cannot."""
    if sys.platform == "win32":
        return False  # it has no such step
    library = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(first.absolute()), os.fsencode(second.absolute())
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        return swap is not None and swap(one, two, _SWAP) == 0
    swap = getattr(library, "renameat2", None)
    return swap is not None and swap(_AT_FDCWD, one, _AT_FDCWD, two, _SWAP) == 0


# ---------------------------------------------------------------- a file


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path beside the file; when the block ends without error what was written there becomes the file.

    Whoever else writes the file at the same time, one of the two is there afterwards, never a mixture.
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
    """Write a file; half a surrogate pair, which damaged PDFs hold, becomes a question mark."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with whole(path) as partial:
        partial.write_bytes(data)


# ---------------------------------------------------------------- folders for a while, in the system's place for such


_PREFIX = "exhibit-scratch-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder; raise a ToolkitError where there is no room for one."""
    with ExitStack() as stack:
        try:
            place = Path(tempfile.gettempdir())
            place.stat()  # a lock would make the folder that is missing
            _sweep(place)
            folder = place / f"{_PREFIX}{secrets.token_hex(8)}"
            # before it is there: else another process may take it for one that was left
            stack.enter_context(locked(folder, busy=""))
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
    """Remove the folders of this user that no process holds any more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError, BundleError):  # somebody holds it, or removes it now
            if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
                continue
            with locked(folder, busy=""):
                remove_folder(folder, identity_of(folder))


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
