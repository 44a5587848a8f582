"""What a run stood on besides its settings: when, at which commit, on which machine, over which version of the data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exhibit.engine.machine import commit_of, machine
from exhibit.evaluation.datasets import Dataset
from exhibit.schemas import __version__
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.storage.bundle import sha256_of


def describe_run(datasets: Iterable[Dataset], *, started: str = "") -> dict[str, Any]:
    """Return what is written beside a run's settings; a run that is resumed began when it first did."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "started": started or now,
        "version": __version__,
        **commit_of(Path.cwd(), os.environ),
        "machine": machine(),
        "data": {dataset.name: digests(dataset.root) for dataset in datasets},
    }


def digests(root: Path) -> dict[str, str]:
    """Return the sha256 of a bundle's small files: bundle.json has those of all its documents."""
    return {name: sha256_of(root / name) for name in (INFO, TRAIN, GOLD) if (root / name).is_file()}
