"""Opens an index from disk: checks its files, its settings and the number of its vectors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exhibit.rag.config import Config
from exhibit.rag.database import MANIFEST, check_files, read_manifest
from exhibit.rag.index import Index
from exhibit.schemas.errors import BundleError


def open_index(folder: Path, config: Config | None = None, *, own: Mapping[str, Any] | None = None) -> Index:
    """Open an index; raise an error with advice if it is damaged or was built with other settings.

    Without a config the settings stored in the index apply, except those that the user gives in `own`.
    """
    try:
        return _open(folder, config, own or {})
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        # checksums detect damage, not manipulation: a forged index has valid checksums
        raise BundleError(f"{folder}: damaged ({error}); build the index again (--ingest fresh)") from error


def _open(folder: Path, config: Config | None, own: Mapping[str, Any]) -> Index:
    manifest = read_manifest(folder)
    check_files(folder, manifest["sha256"], is_whole=True)
    index = load_index(folder, manifest, config, own)
    index.seal()
    for layer in index.layers:
        index.settle(layer)
        held, counted = len(index.store(layer)), manifest["counts"][f"{layer} vectors"]
        if held != counted:
            raise BundleError(f"{folder}: {held} {layer} vectors, but {counted} in the manifest; build the index again")
    return index


def load_index(folder: Path, manifest: dict[str, Any], config: Config | None, own: Mapping[str, Any]) -> Index:
    """Return an index whose vectors are not opened yet.

    Raise an error if `config` has other ingestion settings than those that the index was built with.
    """
    # only the hash of the ingestion settings is compared, so that an index stays usable when another setting is removed
    known = {name: value for name, value in manifest["config"].items() if name in Config.model_fields}
    made_with = Config.parse(known, where=str(folder / MANIFEST))
    if config is not None and config.ingest_hash != manifest["config_hash"]:
        settings = ", ".join(name for name, value in config.ingest.items() if value != made_with.ingest[name])
        raise BundleError(f"{folder}: built with other settings ({settings}); build the index again (--ingest fresh)")
    config = config or made_with.with_own(own, where=str(folder))
    index = Index(folder, config, embedder=manifest["embedder"], dimensions=manifest["dimensions"])
    index.table  # noqa: B018 - opening an index must report damage
    return index
