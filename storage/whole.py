"""The one way to write a file: aside, then renamed into place, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path beside the file; when the block ends without error what was written there becomes the file.

    Whoever else writes the file at the same time, one of the two is there afterwards, never a mixture.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name[:100]}.{uuid4().hex}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file; half a surrogate pair, which damaged PDFs hold, becomes a question mark."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with whole(path) as partial:
        partial.write_bytes(data)
