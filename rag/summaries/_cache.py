"""Summaries kept on disk, so that the same text is summarised once."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from exhibit.schemas.errors import ToolkitError

_MOST = 500
"""SQLite takes so many values in one question on every build."""


class SummaryCache:
    """Summaries by key in one file that several processes may share; without a path, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept: dict[str, str] = {}

    @staticmethod
    def key(**parts: object) -> str:
        """Return the hash of all that a summary depends on: content, style, model, length."""
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what is kept under these keys."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._kept]
        if missing and self._path is not None and self._path.is_file():
            with closing(self._connect()) as database:
                for at in range(0, len(missing), _MOST):
                    part = missing[at : at + _MOST]
                    marks = ",".join("?" * len(part))
                    rows = self._run(database, f"SELECT key, text FROM summaries WHERE key IN ({marks})", part)
                    self._kept.update((str(key), str(text)) for key, text in rows)
        return {key: self._kept[key] for key in keys if key in self._kept}

    def put(self, summaries: Mapping[str, str]) -> None:
        """Keep summaries, all of them or, when the machine stops, none."""
        self._kept.update(summaries)
        if not summaries or self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as database, database:
            for pair in summaries.items():
                self._run(database, "INSERT OR REPLACE INTO summaries VALUES (?, ?)", pair)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(str(self._path), timeout=30)
        self._run(database, "CREATE TABLE IF NOT EXISTS summaries (key TEXT PRIMARY KEY, text TEXT NOT NULL)")
        return database

    def _run(self, database: sqlite3.Connection, sql: str, values: Sequence[str] = ()) -> list[tuple[str, str]]:
        try:
            return database.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            database.close()
            raise ToolkitError(f"{self._path}: damaged ({error}); delete it, summaries will be made again") from error
