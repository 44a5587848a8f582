"""The files of an index: the manifest and what it seals, a line for each document, texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from exhibit.law.structure.profile import Profile
from exhibit.schemas.errors import BundleError
from exhibit.schemas.plugins import load_plugin, plugin_names
from exhibit.storage.place import Kind

FORMAT = "exhibit-index/2"
MANIFEST = "manifest.json"
DOCUMENTS = "documents.jsonl"
_STORE = "store"

Place = tuple[str, int, int]
"""The path of headings of a section, its start and its end."""


def let_go(folder: Path, *, but: str = "") -> None:
    """Drop what stores keep elsewhere for the index in a folder, but for one store."""
    for name in plugin_names("exhibit.rag.stores"):
        if name != but and (folder / _STORE / f"{name}.json").is_file():
            load_plugin("exhibit.rag.stores", name)[0].drop(folder)


INDEX = Kind("an index", lambda folder: (folder / MANIFEST).is_file(), let_go=let_go, kept=frozenset({_STORE}))


@dataclass(frozen=True)
class Entry:
    """One document of an index."""

    number: int
    filename: str
    sha256: str
    characters: int
    pages: int | None
    profile: Profile
    summary: str
    sections: Sequence[Place] = ()
    """Path of headings, start and end: what a chunk's section number points to."""
    labels: dict[str, Any] = field(default_factory=dict)


def read_entries(folder: Path) -> Iterator[Entry]:
    """Yield the documents that were written."""
    # JSON keeps U+2028 and other marks inside strings: a line ends at a line feed, and nowhere else
    with (folder / DOCUMENTS).open(encoding="utf-8", newline="\n") as file:
        yield from map(entry_of, map(json.loads, file))


def entry_of(record: dict[str, Any]) -> Entry:
    """Return a document as its line tells of it."""
    profile = Profile(**{**record["profile"], "parties": tuple(record["profile"]["parties"])})
    sections = tuple((path, start, end) for path, start, end in record["sections"])
    return Entry(**{**record, "profile": profile, "sections": sections})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what an index says of itself; one that is not there, or is damaged, is refused with what to do."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BundleError(f"{folder}: no index there (no {MANIFEST}); build one first")
    return parse_manifest(path)


def parse_manifest(path: Path) -> dict[str, Any]:
    """Return what a manifest says, or the record of an index that is being built."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged; build the index again (--force-ingestion)") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{path}: not an index of this version ({FORMAT}); build it again (--force-ingestion)")
    return manifest


def text_path(folder: Path, number: int) -> Path:
    """Return where a document's text is."""
    return folder / "texts" / f"{number:06}.txt"


@lru_cache(maxsize=64)
def read_text(path: Path) -> str:
    """Return a text as it was written; a few are held."""
    return path.read_bytes().decode("utf-8", "surrogatepass")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, which is read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
