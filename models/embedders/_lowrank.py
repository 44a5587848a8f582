"""Low-rank weights beside a network's own: read, checked against their record, and added to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders._weights import read_safetensors
from exhibit.schemas.errors import SourceError

_SINGLE = npt.NDArray[np.float32]


def read_record(weights: Path) -> dict[str, Any]:
    """Return what stands beside weights: their sha256, the recipe, what they were trained on."""
    record: dict[str, Any] = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    return record


def read_lowrank(weights: Path) -> dict[str, _SINGLE]:
    """Return the low-rank weights of a file; raise where they are not the ones that its record describes."""
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != read_record(weights)["sha256"]:
        raise SourceError(f"{weights}: sha256 is {digest}, not that of its record; install the package again")
    return read_safetensors(weights)


def merge(network: Mapping[str, _SINGLE], low: Mapping[str, _SINGLE], *, strength: float) -> dict[str, _SINGLE]:
    """Return the network with `strength` times `up @ down` added to each weight that has the two."""
    merged = dict(network)
    for name in (key.removesuffix(".down") for key in low if key.endswith(".down")):
        added = low[f"{name}.up"] @ low[f"{name}.down"]
        merged[f"{name}.weight"] = network[f"{name}.weight"] + np.float32(strength) * added
    return merged
