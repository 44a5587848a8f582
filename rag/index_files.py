"""The files of an index: the manifest, what it seals, and what it knows of a document."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exhibit.law.profile import Profile
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.plugins import load_plugin, plugin_names
from exhibit.schemas.validate import sha256_of
from exhibit.storage.cache import Cache, cache_folder, key_of
from exhibit.storage.place import Kind

FORMAT = "exhibit-index/5"
MANIFEST = "manifest.json"
RECORD = "building.json"
_STORE = "store"
_LARGE = 16 << 20
"""Bytes from which a file's checksum is remembered: less is read in a tenth of a second."""
_SETTLED = 2.0
"""Seconds since the last change after which a file's times tell one state from the next on every file system."""

Place = tuple[str, int, int]
"""The path of headings of a section, its start and its end."""


def let_go(folder: Path, store: str, *, but: str = "") -> None:
    """Drop what stores keep elsewhere for the index in a folder, but for one store; `store` is the user's own."""
    named, _, argument = store.partition(":")
    for name in plugin_names("exhibit.rag.stores"):
        if name != but and (folder / _STORE / f"{name}.json").is_file():
            load_plugin("exhibit.rag.stores", name)[0].drop(folder, argument if name == named else None)


def index_kind(store: str) -> Kind:
    """Return what an index is, for who puts one into its place; its vectors are where the user's own setting says."""
    return Kind(
        "an index",
        lambda folder: (folder / MANIFEST).is_file(),
        let_go=lambda folder: let_go(folder, store),
        kept=frozenset({_STORE}),
    )


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


def entry_of(record: dict[str, Any]) -> Entry:
    """Return a document from its record."""
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


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of an index but those that say so themselves, and of a store's own database."""
    return {path.relative_to(folder).as_posix(): digest(path) for path in _files(folder)}


def check_files(folder: Path, sealed: Mapping[str, str], *, is_whole: bool) -> None:
    """Raise where a file is not what was sealed, or was not sealed; an unfinished index has some that are not yet."""
    names = {path.relative_to(folder).as_posix() for path in _files(folder)}
    for name in sorted({*sealed, *names} if is_whole else sealed):
        if name not in names or digest(folder / name) != sealed.get(name):
            raise BundleError(f"{folder}: {name} is missing or damaged; build the index again (--force-ingestion)")


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files that are sealed; refuse links, which could lead to any file of this machine."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BundleError(f"{path}: a link or no file; an index has none of these: build it again")
        own = path.relative_to(folder).parts[0]
        if path.is_file() and own not in (MANIFEST, RECORD, _STORE) and not path.name.startswith("."):
            yield path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; a large one that was read before and has not changed is not read again.

    What was read is remembered by the file's identity on disk, in the user's cache; where that cannot be used, not.
    """
    stat = path.stat()
    key = key_of(*map(str, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)))
    cache = Cache(cache_folder() / "checksums.sqlite") if stat.st_size >= _LARGE else None
    with suppress(ToolkitError):
        if cache is not None and (known := cache.get([key]).get(key)):
            return known.decode()
    result = sha256_of(path)
    with suppress(ToolkitError):
        # a file written just now may change within one tick
        if cache is not None and time.time() - stat.st_ctime > _SETTLED:
            cache.put({key: result.encode()})
    return result
