"""The Croissant format: one `croissant.json` with MLCommons' metadata, with which other tools load the bundle."""

import json
import re
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export
from exhibit.schemas.bundle import GOLD, TRAIN
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo
from exhibit.storage.bundle import sha256_of

FILE = "croissant.json"
_TEMPLATE = Path(__file__).parent.parent / FILE
"""The template with the constant parts: the vocabulary of Croissant 1.0, the files, and the fields of their records."""


def write(export: Export, folder: Path) -> None:
    """Write `croissant.json` and the two files that it describes: the questions and the gold."""
    info = export.bundle.info
    if info is None:
        raise BundleError(f"{export.bundle.root}: no bundle.json; this format needs its licence and checksums")
    for name in (TRAIN, GOLD):
        (folder / name).write_bytes((export.bundle.root / name).read_bytes())
    write_description(info, folder)


def write_description(info: BundleInfo, folder: Path) -> None:
    """Write a bundle's `croissant.json` into a folder that contains its questions and gold."""
    text = json.dumps(describe(info, folder), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def describe(info: BundleInfo, folder: Path) -> dict[str, Any]:
    """Return a bundle's description in the vocabulary of Croissant 1.0."""
    metadata: dict[str, Any] = json.loads(_TEMPLATE.read_text(encoding="utf-8"))
    metadata |= {
        "name": re.sub(r"\W+", "-", info.name).strip("-"),
        "description": info.summary or info.title,
        "license": info.licence.url or info.licence.id,
        "url": info.source.url,
        "citeAs": info.citation or info.title,
    }
    for file in metadata["distribution"]:
        path = folder / file["name"]
        file |= {"contentSize": f"{path.stat().st_size} B", "sha256": sha256_of(path)}
    return {name: value for name, value in metadata.items() if value}
