"""Local and remote files: a path of this machine, or a URL that fsspec opens (`s3://`, `gs://`, `hf://`)."""

import glob
import hashlib
import json
import re
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any

from exhibit.runtime.secrets import scrub
from exhibit.schemas.errors import DocumentError, ServiceError, ToolkitError
from exhibit.schemas.layout import ORIGIN
from exhibit.storage.atomic import check_free, make_scratch_folder

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<=://)[^/]*:[^/]*@")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_LOGIN = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_ENDPOINT_URL for a store of your own",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "hf": "set HF_TOKEN, or run hf auth login",
}
_UNLISTED = frozenset({"http", "https", "data", "ftp"})  # cannot list folders, or have passwords in URLs
_MAX_MESSAGE_CHARS = 300  # characters of a library's message that an error quotes: a longer message is a page of XML


@dataclass(frozen=True)
class Remote:
    url: str
    sha256: str | None = None
    bytes: int | None = None

    @property
    def name(self) -> str:
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    @property
    def key(self) -> str:
        return self.url.partition("://")[2].rstrip("/")

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def __str__(self) -> str:
        """Return the URL, always without a password."""
        return _PASSWORD.sub("", self.url)


Location = Path | Remote


def is_url(text: str) -> bool:
    return _SCHEME.match(text) is not None


def parse_location(text: str) -> Location:
    if not is_url(text):
        return Path(text)
    scheme, _, path = text.partition("://")
    return Path(path) if scheme.lower() in {"file", "local"} else Remote(text)


def origin_of(folder: Path) -> Remote | None:
    try:
        return Remote(json.loads((folder / ORIGIN).read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _open_store(remote: Remote, *, afresh: bool = False) -> Iterator[Any]:
    """Yield the fsspec client for a URL; `afresh` forgets the listings that the client has cached."""
    if _PASSWORD.search(remote.url):
        raise StorageError(f"{remote}: a password in a URL ends up in logs; set it in the environment instead")
    client = open_filesystem(remote.scheme)
    with explain_store_errors(str(remote)):
        if afresh:
            client.invalidate_cache()
        yield client


def list_files(folder: Remote) -> dict[str, int]:
    with _open_store(folder, afresh=True) as client:
        try:
            objects = client.find(folder.key, detail=True)
        except FileNotFoundError:
            return {}
    base = client._strip_protocol(folder.key).rstrip("/") + "/"
    named = {path.removeprefix(base): details for path, details in objects.items() if path.startswith(base)}
    # a web console creates "folders" as empty objects whose names end in a slash
    return {name: _read_size(details) for name, details in sorted(named.items()) if name and not name.endswith("/")}


def list_file(file: Remote) -> int | None:
    with _open_store(file, afresh=True) as client:
        try:
            details = client.info(file.key)
        except FileNotFoundError:
            return None
    return _read_size(details) if details.get("type") == "file" else None


def _read_size(details: dict[str, Any]) -> int:
    return int(details.get("size") or 0)


def expand(pattern: Remote) -> list[Remote]:
    """Return the folders that match a URL with `*`, sorted; a URL without `*` is returned unchanged."""
    if not glob.has_magic(pattern.key):
        return [pattern]
    with _open_store(pattern, afresh=True) as client:
        matches = client.glob(pattern.key, detail=True)
    folders = sorted(path.strip("/") for path, details in matches.items() if details.get("type") == "directory")
    return [Remote(f"{pattern.scheme}://{path}") for path in folders if not path.rpartition("/")[2].startswith(".")]


def fetch(file: Remote, path: Path) -> str:
    """Download a remote file to a path and return its sha256; raise if the file is missing or the sha256 is wrong."""
    with _open_store(file) as client:
        try:
            client.get_file(file.key, str(path))
        except FileNotFoundError:
            raise DocumentError(f"{file}: no such file, or no such bucket; check the address") from None
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if file.sha256 not in (None, digest):
        raise DocumentError(
            f"{file}: the content differs from the sha256 in bundle.json; download or publish the bundle again"
        )
    return digest


def read_start(file: Location, size: int) -> bytes:
    if isinstance(file, Path):
        with file.open("rb") as content:
            return content.read(size)
    with _open_store(file) as client:
        start: bytes = client.cat_file(file.key, start=0, end=size) if file.bytes != 0 else b""
    return start


def check_out(out: Location, *, force: bool) -> Path:
    if isinstance(out, Remote):
        if out.scheme == "hf":
            raise StorageError(
                f"{out}: a bundle cannot be written to the Hub directly; write it to a folder, then run exhibit publish"
            )
        raise StorageError(f"{out}: a bundle cannot be written to a URL; give a path, then copy the folder")
    check_free(out, force=force)
    return out


@contextmanager
def fetch_file(file: Location) -> Iterator[Path]:
    if isinstance(file, Path):
        yield file
        return
    with _lock:
        held = _downloaded.get(file) or _downloaded.setdefault(file, _Held(file))
        if held in _kept:
            _kept.remove(held)
        _kept.append(held)  # the file at the end of the list was used last
    try:
        yield held.path
    except DocumentError as error:
        # show the URL instead of the temporary path; keep the cause, which determines whether the step is retried
        raise DocumentError(str(error).replace(str(held.path), str(file))) from error.__cause__
    finally:
        del held


@contextmanager
def keep_recent_files(*, files: int = 8) -> Iterator[None]:
    """Keep the last `files` downloaded files on disk until the `with` block ends."""
    global _kept
    before, _kept = _kept, deque(maxlen=files)
    try:
        yield
    finally:
        _kept = before


class _Held:
    def __init__(self, file: Remote) -> None:
        with ExitStack() as stack:
            # keep the name: readers are chosen by suffix, and messages show the name
            self.path = stack.enter_context(make_scratch_folder()) / file.name
            fetch(file, self.path)
            weakref.finalize(self, stack.pop_all().close)


_lock = RLock()
_downloaded: weakref.WeakValueDictionary[Remote, _Held] = weakref.WeakValueDictionary()
_kept: deque[_Held] = deque(maxlen=0)


class StorageError(ServiceError):
    """A store could not send a file: a network error, a missing permission or a missing package."""


def open_filesystem(scheme: str) -> Any:
    if scheme in _UNLISTED:
        raise StorageError(f"{scheme}:// cannot list a folder; use s3://, gs://, hf:// or a path")
    import fsspec  # import here: the import takes 0.3 s, and local folders do not need it

    try:
        return fsspec.filesystem(scheme)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        if extra is None:
            raise StorageError(f"{scheme}:// needs a package that is not installed: {_format_line(error)}") from error
        raise StorageError(f"{scheme}:// needs an extra: pip install 'exhibit-rag[{extra}]'") from error
    except ValueError as error:
        raise StorageError(f"{scheme}:// is not supported; use s3://, gs://, hf:// or a path") from error


@contextmanager
def explain_store_errors(url: str) -> Iterator[None]:
    """Turn an error of a store's client within the block into a StorageError that names the cause and the remedy."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:  # each client has its own error classes, which cannot be imported without its package
        if type(error).__module__ == "builtins" and not isinstance(error, OSError):
            raise  # a bug keeps its traceback
        raise StorageError(f"{url}: {_find_reason(error, url.partition('://')[0])}") from error


def _find_reason(error: Exception, scheme: str) -> str:
    login = _LOGIN.get(_EXTRAS.get(scheme, scheme), "see the store's own documentation")
    if isinstance(error, FileNotFoundError):
        return "not found; is the bucket's name right?"
    if "Credential" in type(error).__name__:
        return f"no credentials; {login}"
    if isinstance(error, PermissionError):
        return f"access denied ({_format_line(error)}); use credentials that allow it: {login}"
    return f"{_format_line(error)}; check the address and the network, then run the same command again"


def _format_line(error: Exception) -> str:
    """Return an error's message as one line, without signed URLs and secrets."""
    words = " ".join(str(error).split()) or type(error).__name__
    words = scrub(re.sub(r"\?\S+", "?…", words))
    return words if len(words) <= _MAX_MESSAGE_CHARS else f"{words[:_MAX_MESSAGE_CHARS]}…"
