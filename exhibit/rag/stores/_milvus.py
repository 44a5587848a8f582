"""Connections to Milvus, shared by all layers of all indexes at one address; the last user closes them.

For a local file, milvus-lite runs a server, and no other process can open the file meanwhile. A remote
server needs the package pymilvus alone.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exhibit.rag.milvus_address import Address, find_named_servers, parse_origin
from exhibit.schemas.errors import ServiceError, ToolkitError

try:
    from grpc import RpcError, StatusCode
    from pymilvus import DataType, MilvusClient
    from pymilvus.exceptions import MilvusException
except ImportError as error:
    raise ToolkitError(
        "the store milvus needs an extra: pip install 'exhibit-rag[milvus]' (the default store, faiss, needs none)"
    ) from error

INTEGER, FLOATS = DataType.INT64, DataType.FLOAT_VECTOR
TOKEN, URI = "MILVUS_TOKEN", "MILVUS_URI"
_SECONDS = 10.0
"""Timeout in seconds of the first call to a server."""
PATIENCE = 90.0
"""The seconds to wait for a server that became unreachable. A server that its supervisor restarts replies after ten
seconds, and has its collections loaded after forty (measured with Milvus 2.3.5 on two cores).
"""
_PAUSE = 1.0  # seconds between two retries
_NOT_LOADED = 101  # Milvus's error code
_PASSING = frozenset({1, 2, _NOT_LOADED, 103, 503})
"""The error codes of a server that is starting: not ready, not reachable, collection not or partly loaded, no
channel.
"""
_STARTING = ("node not found", "node not match", "session not found")
"""The same errors in words, where the code is only "unexpected": parts of a server that cannot reach each other yet."""
_ATTEMPT = re.compile(r"attempt #\d+: ")
_connections: dict[tuple[str, str], Connection] = {}


class Connection:
    """A Milvus client that several stores share."""

    def __init__(self, address: Address) -> None:
        self.uri = address.uri
        self.users = 0
        self._key = _make_key(address)
        self._file = None if address.is_server else Path(address.uri)
        self._lite = None if self._file is None else _open_lite()
        with translate_errors(self.uri, first=True):
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            self.client: Any = MilvusClient(self.uri, token=find_token(address), timeout=_SECONDS)
        self._inode = self._file.stat().st_ino if self._file else 0

    @property
    def is_current(self) -> bool:
        """Whether the Milvus file of this connection still exists and has not been replaced by another process.

        For a connection to a server, the value is always True.
        """
        return self._file is None or (self._file.exists() and self._file.stat().st_ino == self._inode)

    def call(self, verb: str, collection: str, *arguments: Any, **options: Any) -> Any:
        """Call the client on a collection; retry while the server is unreachable or starting."""
        end = time.monotonic() + PATIENCE
        with translate_errors(self.uri):
            while True:
                try:
                    return getattr(self.client, verb)(collection, *arguments, **options)
                except (MilvusException, RpcError) as error:
                    if self._lite is not None or not _is_passing(error) or time.monotonic() > end:
                        raise
                    unloaded = getattr(error, "code", None) == _NOT_LOADED
                time.sleep(_PAUSE)
                if unloaded and verb != "load_collection":
                    self.call("load_collection", collection)

    def close(self) -> None:
        """Release the connection for one user.

        After the last user, the client is closed. For a local database file, its server process is also stopped.
        """
        self.users -= 1
        if self.users <= 0:
            self._end()

    def _end(self) -> None:
        if _connections.get(self._key) is not self:
            return
        del _connections[self._key]
        with _silence_logs():
            self.client.close()
            if self._lite is not None:
                self._lite.release_server(str(self._file))


def find_token(address: Address) -> str:
    """Return the token from MILVUS_TOKEN if the user named the server at this address, else "".

    A server that is named only in an index gets no token, since it may belong to a stranger.
    """
    token = os.environ.get(TOKEN, "")
    return token if token and is_named(address.uri) else ""


def is_named(uri: str) -> bool:
    """Return whether the user named this server: in MILVUS_URI, or with --store on the command line."""
    named = [os.environ.get(URI, ""), *find_named_servers(sys.argv[1:])]
    return parse_origin(uri) in {parse_origin(each) for each in named if each}


def _open_lite() -> Any:
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError as error:
        raise ToolkitError(
            "milvus:lite and milvus:FILE.db need the package milvus-lite: pip install 'exhibit-rag[milvus]'; "
            "a Milvus server (milvus:http://HOST:19530) does not need it"
        ) from error
    return server_manager_instance


def connect(address: Address) -> Connection:
    """Return the connection to an address: the shared one if it is open, else a new one.

    The connection counts its users; this call adds 1.
    """
    connection = _connections.get(_make_key(address))
    if connection is not None and not connection.is_current:
        connection._end()
        connection = None
    if connection is None:
        connection = _connections[_make_key(address)] = Connection(address)
    connection.users += 1
    return connection


def _make_key(address: Address) -> tuple[str, str]:
    """Return the key under which a connection is shared: the address and, for a server, the token."""
    return address.uri, find_token(address) if address.is_server else ""


def _is_passing(error: MilvusException | RpcError) -> bool:
    """Return whether an error is temporary: the server is unreachable or starting."""
    if isinstance(error, RpcError):
        return bool(error.code() == StatusCode.UNAVAILABLE)
    return error.code in _PASSING or any(words in error.message for words in _STARTING)


def _format_error(error: Exception) -> str:
    """Return the reason for an error, on one line."""
    if isinstance(error.__cause__, RpcError):
        error = error.__cause__  # only the cause mentions a wrong token
    words = error.details() if isinstance(error, RpcError) else str(getattr(error, "message", "") or error)
    return (
        _ATTEMPT.split(str(words))[-1].strip().partition("\n")[0]
    )  # the text after the stack traces of earlier retries


@contextmanager
def translate_errors(uri: str, *, first: bool = False) -> Iterator[None]:
    """Turn an error of Milvus in the block into a `ServiceError` whose message advises the user what to do.

    The message does not contain the access token. `first` means that the block opens the first connection: the
    advice is then to check the server and the token, and otherwise to run the command again.
    """
    try:
        with _silence_logs():
            yield
    except (MilvusException, RpcError, OSError) as error:
        words, token = _format_error(error), os.environ.get(TOKEN)
        words = words.replace(token, "***") if token else words
        raise ServiceError(f"milvus at {uri}: {words}; {_advise(uri, first)}") from None


def _advise(uri: str, first: bool) -> str:
    if uri.endswith(".db"):
        return "a milvus-lite file serves one process at a time: end the other process, or use a server"
    if os.environ.get(TOKEN) and not is_named(uri):
        return (
            "is the server running, and does the database exist? "
            f"{TOKEN} was not sent, since neither --store nor {URI} names this server: set {URI}={uri} if it is yours"
        )
    if first:
        return f"is the server running, does the database exist, and is {TOKEN} right?"
    return "run the command again: rows that are already stored are not stored twice"


@contextmanager
def _silence_logs() -> Iterator[None]:
    """Silence the logs of pymilvus, milvus-lite and grpc inside a `with` block.

    The errors in these logs are raised anyway, or milvus-lite ignores them.
    """
    loggers = [logging.getLogger(name) for name in ("milvus_lite", "pymilvus", "grpc")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
