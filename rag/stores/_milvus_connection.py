"""Connections to Milvus: one for all layers of all indexes at one address, closed with the last of them.

A local file is served inside this process by milvus-lite, which lets no other process open it meanwhile.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag.stores._milvus_address import Address
from schemas.errors import ServiceError, ToolkitError

try:
    from grpc import RpcError
    from milvus_lite.server_manager import server_manager_instance as servers
    from pymilvus import DataType, MilvusClient
    from pymilvus.exceptions import MilvusException
except ImportError as error:
    raise ToolkitError(
        "the store milvus needs an extra: pip install 'exhibit-rag[milvus]' (the default store, faiss, needs none)"
    ) from error

INTEGER, FLOATS = DataType.INT64, DataType.FLOAT_VECTOR
TOKEN = "MILVUS_TOKEN"
_SECONDS = 10.0
"""How long a server may take to answer the first call."""
_connections: dict[str, Connection] = {}


class Connection:
    """A client that several stores use."""

    def __init__(self, address: Address) -> None:
        self.uri = address.uri
        self.users = 0
        self._file = None if address.is_server else Path(address.uri)
        with told(self.uri, first=True):
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            token = os.environ.get(TOKEN, "") if address.is_server else ""
            self.client: Any = MilvusClient(self.uri, token=token, timeout=_SECONDS)
        self._inode = self._file.stat().st_ino if self._file else 0

    @property
    def is_current(self) -> bool:
        """False when the file was replaced by another: what is served then is no longer there."""
        return self._file is None or (self._file.exists() and self._file.stat().st_ino == self._inode)

    def close(self) -> None:
        """Let go of it; the last user stops what serves the file."""
        self.users -= 1
        if self.users <= 0:
            self._end()

    def _end(self) -> None:
        if _connections.get(self.uri) is not self:
            return
        del _connections[self.uri]
        with _silenced():
            self.client.close()
            if self._file is not None:
                servers.release_server(str(self._file))


def connect(address: Address) -> Connection:
    """Return the connection to an address, a new one where there is none."""
    found = _connections.get(address.uri)
    if found is not None and not found.is_current:
        found._end()
        found = None
    if found is None:
        found = _connections[address.uri] = Connection(address)
    found.users += 1
    return found


@contextmanager
def told(uri: str, *, first: bool = False) -> Iterator[None]:
    """Turn what Milvus says into one error that says what to do, and never tells the token."""
    try:
        with _silenced():
            yield
    except (MilvusException, RpcError, OSError) as error:
        words = str(getattr(error, "message", "") or error).strip().partition("\n")[0]
        token = os.environ.get(TOKEN)
        words = words.replace(token, "***") if token else words
        raise ServiceError(f"milvus at {uri}: {words}; {_advice(uri, first)}") from None


def _advice(uri: str, first: bool) -> str:
    if uri.endswith(".db"):
        return "a milvus-lite file serves one process at a time: end the other, or use a server"
    if first:
        return f"is the server up, does the database exist, and is {TOKEN} right?"
    return "run it again: what is stored already is not stored twice"


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep the libraries from logging what is raised anyway, or what milvus-lite does without."""
    loggers = [logging.getLogger(name) for name in ("milvus_lite", "pymilvus", "grpc")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
