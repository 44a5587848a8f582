"""Texts that wait to be embedded, on disk: the words of a whole collection are indexed before its first vector."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from exhibit.rag.protocols import Keys

_HEAD = struct.Struct("<qI")
"""What stands before a text: its key and its length."""
_BUFFER = 1 << 20
"""Bytes that are written and read at once."""


class Waiting:
    """Texts under keys, in the order they came, in a file that the system removes when the process ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=_BUFFER)  # noqa: SIM115 - closed by `close`
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: Sequence[int] | Keys, texts: Iterable[str]) -> None:
        """Add texts, one for each key; a text may hold half a surrogate pair."""
        for key, text in zip(np.asarray(keys, np.int64).tolist(), texts, strict=True):
            data = text.encode("utf-8", "surrogatepass")
            self._file.write(_HEAD.pack(key, len(data)) + data)
        self._count += len(keys)

    def batches(self, size: int) -> Iterator[tuple[Keys, list[str]]]:
        """Yield keys and texts, so many at a time."""
        self._file.seek(0)
        for at in range(0, self._count, size):
            keys, texts = zip(*(self._read() for _ in range(min(size, self._count - at))), strict=True)
            yield np.array(keys, np.int64), list(texts)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self) -> tuple[int, str]:
        key, length = _HEAD.unpack(self._file.read(_HEAD.size))
        return key, self._file.read(length).decode("utf-8", "surrogatepass")
