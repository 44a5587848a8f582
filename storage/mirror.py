"""A remote bundle's small files in the cache: questions and gold are here, the documents stay where they are."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path

from exhibit.schemas.bundle import GOLD, INFO, ORIGIN, TRAIN, read_info
from exhibit.schemas.errors import BundleError, DocumentError
from exhibit.schemas.models import BundleInfo
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import cache_folder
from exhibit.storage.locations import Location, Remote, fetch


def mirrored(root: Location) -> Path:
    """Return a folder that `open_bundle` reads: the path itself, or a folder of the cache for a remote bundle.

    Its name changes with the URL and with bundle.json, which records every checksum: it never changes in itself.
    """
    if isinstance(root, Path):
        return root
    cache = cache_folder() / "bundles"
    cache.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=cache))
    try:
        digest = _fetch_info(root, partial / INFO)
        identity = hashlib.sha256(f"{root}\n{digest}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = re.sub(r"[^\w.-]", "_", root.name)
        folder = cache / f"{name}-{identity}"
        info = read_info(partial / INFO)
        if not _is_whole(folder, info):
            _fetch_rest(root, partial, info)
            shutil.rmtree(folder, ignore_errors=True)  # damaged
            _put(partial, folder)
        return folder
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch_info(root: Remote, path: Path) -> str:
    try:
        return fetch(root / INFO, path)
    except DocumentError as error:
        raise BundleError(
            f"{root}: no {INFO} there, which is written last: this is no bundle, or one that is not finished"
        ) from error


def _fetch_rest(root: Remote, folder: Path, info: BundleInfo) -> None:
    for name in (TRAIN, GOLD):
        entry = info.files.get(name)
        if entry is None:
            raise BundleError(f"{root}: {INFO} records no {name}; write the bundle anew")
        try:
            fetch(Remote((root / name).url, entry.sha256, entry.bytes), folder / name)
        except DocumentError as error:
            raise BundleError(str(error)) from error
    (folder / ORIGIN).write_text(json.dumps({"url": root.url.rstrip("/")}), encoding="utf-8")


def _is_whole(folder: Path, info: BundleInfo) -> bool:
    """Return whether an earlier run left everything."""
    return (folder / ORIGIN).is_file() and all(
        (folder / name).is_file() and name in info.files and sha256_of(folder / name) == info.files[name].sha256
        for name in (TRAIN, GOLD)
    )


def _put(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError:
        if not (folder / ORIGIN).is_file():  # else another run put the same there first
            raise
