"""Summaries kept on disk, so that the same text is summarised once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from exhibit.storage.cache import Cache, key_of


class SummaryCache:
    """Summaries by key in one file that several processes may share; without a path, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._disk = Cache(path) if path else None
        self._kept: dict[str, str] = {}

    @staticmethod
    def key(**parts: object) -> str:
        """Return the hash of all that a summary depends on: content, style, model, length."""
        return key_of(json.dumps(parts, sort_keys=True, default=str)).hex()

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what is kept under these keys."""
        missing = [key.encode() for key in keys if key not in self._kept]
        if missing and self._disk is not None:
            self._kept |= {key.decode(): words.decode() for key, words in self._disk.get(missing).items()}
        return {key: self._kept[key] for key in keys if key in self._kept}

    def put(self, summaries: Mapping[str, str]) -> None:
        """Keep summaries, all of them or, when the machine stops, none."""
        self._kept.update(summaries)
        if summaries and self._disk is not None:
            self._disk.put({key.encode(): words.encode() for key, words in summaries.items()})
