"""Replies kept on disk, so that the same prompt is paid for once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from exhibit.models.llms import Completion
from exhibit.storage.whole import write_whole


def key_of(parts: Mapping[str, object]) -> str:
    """Return the hash of all that a reply depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class ReplyCache:
    """A folder of replies by key; many threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Completion | None:
        """Return a kept reply; None when there is none, or when its file is damaged."""
        try:
            kept = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Completion(
                str(kept["text"]), tokens_in=int(kept["tokens_in"]), tokens_out=int(kept["tokens_out"]), cached=True
            )
        except (OSError, RecursionError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, reply: Completion) -> None:
        """Keep a reply, whole or not at all; errors are not kept."""
        if reply.error:
            return
        path = self._path(key)
        data = {"text": reply.text, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out}
        write_whole(path, json.dumps(data))

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
