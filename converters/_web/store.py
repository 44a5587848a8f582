"""Fetched PDFs kept on this disk by URL, so that a run that was killed or repeated asks for nothing twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from exhibit.storage.bundle import sha256_of
from exhibit.storage.place import write_whole

_RECIPE = 3
"""Raise it when pages come to be printed otherwise: what was kept then no longer counts."""

Outcome = Literal["pdf", "printed", "refused", "disallowed", "unusable", "failed"]
"""pdf: the publisher's file. printed: by us. refused: an address that may not be reached. disallowed: by
robots.txt. unusable: no page and no PDF, or too large. failed: the server or the network did not give it."""


@dataclass(frozen=True)
class Fetched:
    """What became of one URL; a line of the manifest."""

    url: str
    filename: str
    """Its name in the corpus, by the URL-stem rule."""
    outcome: Outcome
    path: Path | None = None
    """The PDF on this disk, or None."""
    reason: str = ""
    """Why there is none: a few words that are the same for all URLs with this fate."""
    detail: str = ""
    final_url: str = ""
    status: int | None = None
    bytes: int = 0
    sha256: str = ""
    note: str = ""
    """What a reader of the PDF should know."""
    printer: str = ""
    """What printed it."""


@dataclass(frozen=True)
class Store:
    """Fetched PDFs by URL, each with a record beside it; a file counts only with its record, written last."""

    folder: Path

    def load(self, url: str, filename: str) -> Fetched | None:
        """Return what an earlier run fetched, if it is still whole."""
        path, record = self._places(url)
        try:
            kept = Fetched(**json.loads(record.read_bytes()))
            whole = sha256_of(path) == kept.sha256
        except (OSError, ValueError, TypeError):
            return None  # never fetched, or the run was killed between the two files
        return replace(kept, path=path, filename=filename) if whole else None

    def save(self, fetched: Fetched, data: bytes) -> Fetched:
        """Keep a PDF and its record."""
        path, record = self._places(fetched.url)
        fetched = replace(fetched, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        write_whole(path, data)
        write_whole(record, _line(fetched))
        return replace(fetched, path=path)

    def write_manifest(self, fetched: Iterable[Fetched]) -> Path:
        """Write one line per URL; each list of URLs has its own manifest."""
        lines = list(fetched)
        key = hashlib.sha256("\n".join(one.url for one in lines).encode()).hexdigest()[:16]
        path = self.folder / f"manifest-{key}.jsonl"
        write_whole(path, b"".join(map(_line, lines)))
        return path

    def _places(self, url: str) -> tuple[Path, Path]:
        key = hashlib.sha256(f"{_RECIPE} {url}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{key}.pdf", self.folder / f"{key}.json"


def _line(fetched: Fetched) -> bytes:
    record = asdict(fetched)
    del record["path"]
    return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
