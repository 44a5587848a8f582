"""safetensors, as little of it as is needed: named arrays in half or single precision, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.schemas.errors import SourceError

_KINDS = {"F16": "<f2", "F32": "<f4"}

Array = npt.NDArray[Any]


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the arrays of a file by name, in single precision; integers are passed over."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        entries = json.loads(data[8 : 8 + length])
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: not a safetensors file: {error}") from error
    arrays = {}
    for name, entry in entries.items():
        if entry.get("dtype") in _KINDS:
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[start:end], _KINDS[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = array.astype(np.float32)
    return arrays


def write_tensors(arrays: Mapping[str, Array], path: Path, *, about: Mapping[str, str]) -> None:
    """Write arrays in half precision."""
    header: dict[str, Any] = {"__metadata__": dict(about)}
    blobs, at = [], 0
    for name in sorted(arrays):
        blob = np.ascontiguousarray(arrays[name], "<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": list(arrays[name].shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))
