"""The clients of object stores, by the scheme of a URL; and what they raise, in one line without a credential."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.schemas.secrets import scrubbed

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_LOGIN = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_ENDPOINT_URL for a store of your own",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "hf": "set HF_TOKEN, or run hf auth login",
}
_UNLISTED = frozenset({"http", "https", "data", "ftp"})
"""Schemes whose servers cannot say what is in a folder, or that carry passwords."""
_SHORTEST = 8
"""Characters of a variable's value that is worth hiding: a shorter one may be any word."""
_LONGEST = 300  # characters of a library's message: more is a page of XML


class StorageError(ServiceError):
    """A store did not give or take a file: a network, a permission, a package that is missing."""


def filesystem(scheme: str) -> Any:
    """Return the client of a scheme; raise with the name of the extra where its package is missing."""
    if scheme in _UNLISTED:
        raise StorageError(f"{scheme}:// cannot list a folder; use s3://, gs://, hf:// or a path")
    import fsspec  # a third of a second, which a run on local folders need not wait

    try:
        return fsspec.filesystem(scheme)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        if extra is None:
            raise StorageError(f"{scheme}:// needs a package that is not installed: {_line(error)}") from error
        raise StorageError(f"{scheme}:// needs an extra: pip install 'exhibit-rag[{extra}]'") from error
    except ValueError as error:
        raise StorageError(f"{scheme}:// is not known; use s3://, gs://, hf:// or a path") from error


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn what a store's client raises into a line that says what to do next."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:  # each client has errors of its own, and none can be named without its package
        if type(error).__module__ == "builtins" and not isinstance(error, OSError):
            raise  # a bug keeps its traceback
        raise StorageError(f"{url}: {_reason(error, url.partition('://')[0])}") from error


def _reason(error: Exception, scheme: str) -> str:
    login = _LOGIN.get(_EXTRAS.get(scheme, scheme), "see the store's own documentation")
    if isinstance(error, FileNotFoundError):
        return "not there; is the bucket's name right?"
    if "Credential" in type(error).__name__:
        return f"no credentials; {login}"
    if isinstance(error, PermissionError):
        return f"access denied ({_line(error)}); do these credentials allow it? Else {login}"
    return f"{_line(error)}; check the address and the network, then run the same command again"


def _line(error: Exception) -> str:
    """Return an error's words in one line: no address with its signature, no value of a secret variable."""
    words = " ".join(str(error).split()) or type(error).__name__
    words = re.sub(r"\?\S+", "?…", words)
    words = scrubbed(words)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
