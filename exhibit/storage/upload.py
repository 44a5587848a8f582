"""Writes a bundle to an object store, which has no rename: bundle.json is sent last and marks it complete.

with opened_out(parse_location("s3://bucket/bundles/cuad"), force=False) as out:
    write(out.folder)        # files may be sent before the end: out.send("corpus/a.pdf")
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.schemas.bundle import INFO, PARTIAL
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import FileEntry
from exhibit.storage.atomic import check_free, lock_folder, replace_folder
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import cache_folder
from exhibit.storage.locations import (
    FileInfo,
    Location,
    Remote,
    StorageError,
    explain_store_errors,
    list_file,
    list_files,
    open_store,
)
from exhibit.storage.removal import remove_below

_AT_ONCE = 8  # parallel uploads: more would only wait for the network


class SentFile(NamedTuple):
    """A file in a store, with the store's tag for its content."""

    sha256: str
    bytes: int
    mark: str


Progress = Callable[..., Iterator[Any]]
"""Shows the progress of a loop, as `engine.track` does."""


def send(path: Path, to: Remote, known: SentFile | None = None) -> SentFile:
    """Upload a file, unless the store is known to have it already."""
    digest, size = sha256_of(path), path.stat().st_size
    if known is not None and (known.sha256, known.bytes) == (digest, size):
        return known
    with explain_store_errors(str(to)):
        open_store(to).put_file(str(path), to.key)
    listed = list_file(to)
    if listed is None or listed.bytes != size:
        raise StorageError(f"{to}: the upload is incomplete; run the same command again")
    return SentFile(digest, size, listed.mark)


class Out:
    """The place where a bundle is written: a local folder, whose files for a URL are moved to the store."""

    def __init__(self, folder: Path, remote: Remote | None = None) -> None:
        self.folder, self.remote = folder, remote
        self.sent: dict[str, SentFile] = {}
        """What is in the store and no longer here, by its name in the bundle."""
        self.known: dict[str, SentFile] = {}
        """What a run that was stopped has sent, and the store still has."""

    @property
    def entries(self) -> dict[str, FileEntry]:
        """The files that were sent, as bundle.json records them."""
        return {name: FileEntry(sha256=sent.sha256, bytes=sent.bytes) for name, sent in self.sent.items()}

    def file(self, name: str) -> Location:
        """Return the current location of a file of the bundle."""
        sent = self.sent.get(name)
        if sent is None or self.remote is None:
            return self.folder / name
        return Remote((self.remote / name).url, sent.sha256, sent.bytes)

    def send(self, path: Path) -> None:
        """Upload a finished file of the folder and remove it here; do nothing if the bundle stays local."""
        if self.remote is not None:
            name = path.relative_to(self.folder).as_posix()
            self.record(name, send(path, self.remote / name, self.known.get(name)))
            path.unlink()

    def record(self, name: str, sent: SentFile) -> None:
        """Record in the journal a file that a worker has sent, also for a run that continues this one."""
        self.sent[name] = sent
        with self._journal.open("a", encoding="utf-8") as out:
            out.write(json.dumps([name, *sent]) + "\n")

    def recall(self, there: dict[str, FileInfo]) -> None:
        """Read the journal of a stopped run; a file that changed in the store since then is sent again."""
        lines = self._journal.read_text(encoding="utf-8").split("\n") if self._journal.is_file() else []
        for line in lines:
            try:
                name, *values = json.loads(line)
                sent = SentFile(*values)
            except (ValueError, TypeError):
                continue  # a last line that the kill cut off
            if name in there and (sent.bytes, sent.mark) == there[name] and sent.mark:
                self.known[name] = sent

    @property
    def _journal(self) -> Path:
        return self.folder.with_name("sent.jsonl")


# ---------------------------------------------------------------- atomic upload


def check_out(out: Location, *, force: bool) -> None:
    """Refuse to overwrite a bundle without --force, and anything but a bundle always."""
    if isinstance(out, Path):
        check_free(out, force=force)
        return
    if out.scheme == "hf":
        raise BundleError(f"{out}: a bundle goes to the Hub with exhibit publish")
    _check_there(out, list_files(out), force=force)


def _check_there(out: Remote, there: dict[str, FileInfo], *, force: bool) -> None:
    if INFO in there and not force:
        raise BundleError(f"{out}: exists already; add --force to replace it, or choose another --out")
    if there and INFO not in there and PARTIAL not in there:
        raise BundleError(f"{out}: holds something else than a bundle and will not be replaced; choose another --out")


@contextmanager
def open_output(out: Location, *, force: bool, progress: Progress = lambda items, **_: items) -> Iterator[Out]:
    """Yield the place to write a bundle; when the block ends without error, the bundle is complete at `out`."""
    if isinstance(out, Path):
        with replace_folder(out, force=force) as folder:
            yield Out(folder)
        return
    digest = hashlib.sha256(out.url.rstrip("/").encode("utf-8", "surrogatepass")).hexdigest()[:16]
    work = cache_folder() / "outgoing" / digest
    work.mkdir(parents=True, exist_ok=True)
    with lock_folder(work, busy=f"{out}: another run is writing it now; wait for it to end"):
        folder = work / "bundle"
        remove_below(work, folder.name)  # from a run that was killed
        folder.mkdir()
        try:
            target = Out(folder, out)
            token = _begin(target, out, force=force)
            yield target
            _finish(target, out, token, progress)
        finally:
            remove_below(work, folder.name)
        remove_below(work.parent, work.name)


def _begin(out: Out, remote: Remote, *, force: bool) -> bytes:
    """Claim the place: from now on it holds no bundle, only one that is being written."""
    there = list_files(remote)
    _check_there(remote, there, force=force)
    out.recall(there)
    token = secrets.token_hex(16).encode()
    client = open_store(remote)
    with explain_store_errors(str(remote)):
        client.pipe_file((remote / PARTIAL).key, token)
        if INFO in there:
            client.rm_file((remote / INFO).key)
    return token


def _finish(out: Out, remote: Remote, token: bytes, progress: Progress) -> None:
    """Send the remaining files, remove an earlier bundle's, check that all arrived, and send bundle.json last."""

    def sent_now(path: Path) -> tuple[str, SentFile]:
        name = path.relative_to(out.folder).as_posix()
        return name, send(path, remote / name, out.known.get(name))

    left = sorted(path for path in out.folder.rglob("*") if path.is_file() and path != out.folder / INFO)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # one by one outside the pool, so that the journal has a single writer
        work = pool.map(sent_now, left)
        for name, sent in progress(work, total=len(left), label="upload", unit="file"):
            out.record(name, sent)
    client = open_store(remote)
    stale = [name for name in list_files(remote) if name not in out.sent and name != PARTIAL]
    with explain_store_errors(str(remote)):
        for name in progress(stale, total=len(stale), label="remove", unit="file"):
            client.rm_file((remote / name).key)
    _check_arrived(out, remote, token)
    send(out.folder / INFO, remote / INFO)
    with explain_store_errors(str(remote)):
        client.rm_file((remote / PARTIAL).key)


def _check_arrived(out: Out, remote: Remote, token: bytes) -> None:
    """Raise if another run wrote to the same place meanwhile."""
    there = list_files(remote)
    with explain_store_errors(str(remote)):
        alone = PARTIAL in there and open_store(remote).cat_file((remote / PARTIAL).key) == token
    changed = [name for name, sent in out.sent.items() if there.get(name) != (sent.bytes, sent.mark)]
    if changed or not alone:
        what = f": {changed[0]} is not what was sent" if changed else ""
        raise StorageError(f"{remote}: another run writes to the same place{what}; run again when it has ended")
