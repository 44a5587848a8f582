"""Reads and writes safetensors: named arrays in 8 bits, half or single precision, with metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.schemas.errors import SourceError

_KINDS = {"I8": "<i1", "F16": "<f2", "F32": "<f4"}
_SCALE = ".scale"
"""The suffix of the array of scales, one for each row, by which an array of 8-bit numbers is multiplied."""

Array = npt.NDArray[Any]


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the arrays of a file by name, in single precision; integer arrays other than 8-bit ones are skipped."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        entries = json.loads(data[8 : 8 + length])
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: not a safetensors file: {error}; give another file") from error
    arrays = {}
    for name, entry in entries.items():
        if entry.get("dtype") in _KINDS:
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[start:end], _KINDS[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = array.astype(np.float32)
    scales = {name.removesuffix(_SCALE): arrays.pop(name) for name in list(arrays) if name.endswith(_SCALE)}
    return {name: array * scales[name] if name in scales else array for name, array in arrays.items()}


def write_tensors(arrays: Mapping[str, Array], path: Path, *, about: Mapping[str, str], eight: bool = False) -> None:
    """Write arrays in half precision as a safetensors file.

    If `eight` is true, low-rank arrays are written in 8 bits instead, each row with its own scale.
    """
    kept: dict[str, Array] = {}
    for name, array in arrays.items():
        if eight and name.endswith((".up", ".down")):
            scale = np.maximum(np.abs(array).max(axis=1, keepdims=True) / 127, 1e-12).astype("<f4")
            kept |= {name: np.rint(array / scale).astype("<i1"), name + _SCALE: scale}
        else:
            kept[name] = np.ascontiguousarray(array, "<f2")
    header: dict[str, Any] = {"__metadata__": dict(about)}
    kinds = {np.dtype(dtype): kind for kind, dtype in _KINDS.items()}
    blobs, at = [], 0
    for name, array in sorted(kept.items()):
        blob = array.tobytes()
        header[name] = {"dtype": kinds[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))
