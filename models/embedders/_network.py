"""MiniLM as every way of running it knows it: its shape, its weights, and the names of the vectors it gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders._lowrank import merge, read_lowrank, read_record
from exhibit.models.embedders._weights import MODEL, find_file, read_safetensors

VERSION = 3
"""Counts changes that change vectors: graphs and vectors of another version are not used."""
WIDTH, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12  # as the model's own config.json has them
MAX_TOKENS = 256
"""What the model was trained on; the rest of a longer text does not count."""
ADAPTER = Path(__file__).parent / "weights" / "legal.safetensors"
STRENGTH = 1.0
"""How much of the adapter is added: all of it, as the shares of the trainings that it was blended from are in it."""

Weights = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Network:
    """Weights that a graph is built from, and the names that keep them apart from others."""

    name: str
    """Of its vectors, before the variant."""
    graph: str
    """Of its graph in the cache, before the variant."""
    weights: Callable[[], Weights]


OFFICIAL = Network("all-MiniLM-L6-v2", "", lambda: read_safetensors(find_file(MODEL)))


def adapted(strength: float = STRENGTH) -> Weights:
    """Return the official weights with so much of the adapter for contracts and policies added."""
    return with_adapter(OFFICIAL.weights(), strength)


def with_adapter(weights: Weights, strength: float = STRENGTH) -> Weights:
    """Return weights with so much of the adapter added."""
    return merge(weights, read_lowrank(ADAPTER), strength=strength)


def legal(strength: float = STRENGTH) -> Network:
    """Return the network; another adapter or strength has another name, so that no vector is taken for another's."""
    name = f"legal-{read_record(ADAPTER)['sha256'][:8]}-{strength:g}"
    return Network(name, f"{name}-", lambda: adapted(strength))


def processors() -> int:
    """Return how many this process may use of the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
