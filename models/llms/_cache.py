"""Replies kept on disk, so that the same prompt is paid for once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from exhibit.models.llms import Completion
from exhibit.storage.cache import Cache
from exhibit.storage.cache import key_of as digest_of


def key_of(parts: Mapping[str, object]) -> str:
    """Return the hash of all that a reply depends on."""
    return digest_of(json.dumps(parts, sort_keys=True, ensure_ascii=True)).hex()


class ReplyCache:
    """Replies by key in one file; many threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._kept = Cache(folder / "replies.sqlite")

    def get(self, key: str) -> Completion | None:
        """Return a kept reply; None when there is none."""
        kept = self._kept.get([key.encode()]).get(key.encode())
        if kept is None:
            return None
        text, tokens_in, tokens_out = json.loads(kept)
        return Completion(text, tokens_in=tokens_in, tokens_out=tokens_out, cached=True)

    def put(self, key: str, reply: Completion) -> None:
        """Keep a reply, whole or not at all; errors are not kept."""
        if not reply.error:
            value = json.dumps([reply.text, reply.tokens_in, reply.tokens_out]).encode()
            self._kept.put({key.encode(): value})
