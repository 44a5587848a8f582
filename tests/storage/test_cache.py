"""The cache is one SQLite file; processes that open it at the same time wait for each other."""

import sqlite3

import pytest

from exhibit.schemas.errors import ToolkitError
from exhibit.storage import cache
from exhibit.storage.cache import Cache


def lock_file(path) -> sqlite3.Connection:
    """Return a connection that holds the write lock on a new file."""
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_cache_raises_when_the_lock_is_held_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_LOCK_SECONDS", 0.05)
    other = lock_file(tmp_path / "kept.sqlite")
    with pytest.raises(ToolkitError, match=r"kept\.sqlite: the cache cannot be used: database is locked"):
        Cache(tmp_path / "kept.sqlite").put({b"key": b"value"})
    other.close()


def test_cache_opens_a_single_connection_per_process(tmp_path, monkeypatch):
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: opened.append(1) or connect(*given, **named))
    values = Cache(tmp_path / "a" / "b" / "kept.sqlite")
    values.put({b"a": b"1"})
    assert values.get([b"a"]) == {b"a": b"1"} and len(opened) == 1
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert values.get([b"a"]) == {b"a": b"1"} and len(opened) == 2, "a forked process opens a new connection"


def test_cache_error_names_a_damaged_file_or_missing_folder(tmp_path):
    (tmp_path / "broken.sqlite").write_bytes(b"no database" * 99)
    with pytest.raises(ToolkitError, match=r"broken.sqlite: the cache is damaged .* delete this file"):
        Cache(tmp_path / "broken.sqlite").get([b"k"])
    (tmp_path / "file").touch()
    with pytest.raises(ToolkitError, match="the cache cannot be used"):
        Cache(tmp_path / "file" / "kept.sqlite").put({b"k": b"v"})
