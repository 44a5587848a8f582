"""Croissant: the bundle described as MLCommons' metadata, one `croissant.json` that other tools load it by."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Export
from exhibit.schemas.bundle import GOLD, TRAIN
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo

FILE = "croissant.json"
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "includes": "cr:includes",
    "jsonPath": "cr:jsonPath",
    "md5": "cr:md5",
    "recordSet": "cr:recordSet",
    "sc": "https://schema.org/",
    "source": "cr:source",
}
_QUESTION = {"id": "Integer", "question": "Text", "answer": "Text", "is_impossible": "Boolean"}
_PASSAGE = {"id": "Integer", "filename": "Text", "how": "Text"}
_TABLES = {
    TRAIN: ("questions", "application/json", "$[*].", _QUESTION),
    GOLD: ("gold", "application/jsonlines", "", _PASSAGE),
}
"""Of a file: the name of its records, its type, where a field is, and the fields that a table holds."""


def write(export: Export, folder: Path) -> None:
    """Write the description, and beside it the two files that it describes."""
    info = export.bundle.info
    if info is None:
        raise BundleError(f"{export.bundle.root}: no bundle.json; its licence and its files' checksums are needed")
    for name in _TABLES:
        (folder / name).write_bytes((export.bundle.root / name).read_bytes())
    text = json.dumps(describe(info), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def describe(info: BundleInfo) -> dict[str, Any]:
    """Return a bundle in the vocabulary of Croissant 1.0."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": re.sub(r"\W+", "-", info.name).strip("-"),
        "description": info.summary or info.title,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": info.licence.url or info.licence.id,
        **({"url": info.source.url} if info.source.url else {}),
        "version": "1.0.0",
        "citeAs": info.citation or info.title,
        "distribution": [_file(info, name) for name in _TABLES],
        "recordSet": [_records(name) for name in _TABLES],
    }


def _file(info: BundleInfo, name: str) -> dict[str, Any]:
    entry = info.files[name]
    kind = _TABLES[name][1]
    told = {"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name, "encodingFormat": kind}
    return {**told, "contentSize": f"{entry.bytes} B", "sha256": entry.sha256}


def _records(name: str) -> dict[str, Any]:
    title, _, path, fields = _TABLES[name]
    listed = []
    for field, kind in fields.items():
        extract = {"jsonPath": f"{path}{field}"} if path else {"column": field}
        source = {"fileObject": {"@id": name}, "extract": extract}
        told = {"@type": "cr:Field", "@id": f"{title}/{field}", "name": field}
        listed.append({**told, "dataType": f"sc:{kind}", "source": source})
    return {"@type": "cr:RecordSet", "@id": title, "name": title, "field": listed}
