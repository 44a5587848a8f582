"""The cache in one SQLite file: those who open it at once wait for each other."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from exhibit.schemas.errors import ToolkitError
from exhibit.storage import cache
from exhibit.storage.cache import Cache


def locked(path) -> sqlite3.Connection:
    """Return a connection that holds the write lock on a new file."""
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_who_opens_a_new_file_while_another_writes_into_it_waits(tmp_path):
    other = locked(tmp_path / "kept.sqlite")
    timer = threading.Timer(0.2, other.rollback)
    timer.start()
    Cache(tmp_path / "kept.sqlite").put({b"key": b"value"})
    timer.join()
    other.close()
    assert Cache(tmp_path / "kept.sqlite").get([b"key"]) == {b"key": b"value"}


def test_who_waits_gives_up_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_PATIENCE", 0.05)
    other = locked(tmp_path / "kept.sqlite")
    with pytest.raises(ToolkitError, match=r"kept\.sqlite: the cache cannot be used: database is locked"):
        Cache(tmp_path / "kept.sqlite").put({b"key": b"value"})
    other.close()


def test_values_are_written_to_a_log_so_that_others_can_read_meanwhile(tmp_path):
    values = Cache(tmp_path / "kept.sqlite")
    values.put({b"a": b"1"})
    with sqlite3.connect(tmp_path / "kept.sqlite") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(values) == 1 and values.get([b"a", b"b"]) == {b"a": b"1"}


def test_a_process_has_a_connection_of_its_own_and_keeps_it(tmp_path, monkeypatch):
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: opened.append(1) or connect(*given, **named))
    values = Cache(tmp_path / "a" / "b" / "kept.sqlite")
    values.put({b"a": b"1"})
    assert values.get([b"a"]) == {b"a": b"1"} and len(opened) == 1
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert values.get([b"a"]) == {b"a": b"1"} and len(opened) == 2, "after a fork SQLite's files are not shared"
    assert len(values) == 1 and len(opened) == 2


def test_a_value_that_was_damaged_on_disk_is_not_given(tmp_path):
    values = Cache(tmp_path / "kept.sqlite")
    values.put({b"a": b"1", b"b": b"2"})
    with sqlite3.connect(tmp_path / "kept.sqlite") as database:
        database.execute("UPDATE kept SET value = 'one' WHERE key = ?", (b"a",))
        database.execute("UPDATE kept SET value = ? WHERE key = ?", (b"3", b"b"))
    assert Cache(tmp_path / "kept.sqlite").get([b"a", b"b"]) == {}
