"""A store in this process's memory, empty at the start, for tests that need no network at all."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from exhibit.storage.locations import Remote


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """A folder in the memory store; the cache and temporary files are in the test's own folder."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    client = fsspec.filesystem("memory")
    _forget(client)
    yield Remote("memory://bucket/folder")
    _forget(client)


def _forget(client: fsspec.AbstractFileSystem) -> None:
    client.store.clear()
    client.pseudo_dirs[:] = [""]


def put(remote: Remote, content: bytes = b"words") -> Remote:
    """Write a file into a store."""
    fsspec.filesystem(remote.scheme).pipe_file(remote.key, content)
    return remote


def get(remote: Remote) -> bytes:
    """Read a file of a store."""
    content: bytes = fsspec.filesystem(remote.scheme).cat_file(remote.key)
    return content


def upload(folder: Path, remote: Remote) -> Remote:
    """Copy a folder into a store."""
    for path in folder.rglob("*"):
        if path.is_file():
            put(remote / path.relative_to(folder).as_posix(), path.read_bytes())
    return remote
