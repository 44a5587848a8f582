"""What a run stood on besides its settings: when, at which commit, on which machine, over which version of the data."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation.datasets import Dataset
from evaluation.records import read_json
from schemas import __version__
from schemas.bundle import GOLD, INFO, TRAIN
from storage.bundle import sha256_of

PROVENANCE = "provenance.json"
_COMMITS = ("EXHIBIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")
"""Where a CI says which commit it tests; the first is for whoever tests a server that is built elsewhere."""
_PATIENCE = 10.0
"""Seconds that git may take: it answers in milliseconds, unless its disk is away."""


def describe_run(datasets: Iterable[Dataset], *, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is written beside a run's settings; a run that is resumed began when it first did."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "started": (before or {}).get("started") or now,
        "version": __version__,
        **commit_of(Path.cwd(), os.environ),
        "machine": machine(),
        "data": {dataset.name: digests(dataset.root) for dataset in datasets},
    }


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return what is known of a run; nothing of one that was made before this was written."""
    path = folder / PROVENANCE
    return read_json(path) if path.is_file() else {}


def commit_of(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the commit that CI names or that is checked out, and whether files differ from it."""
    told = next((environment[name] for name in _COMMITS if environment.get(name)), None)
    if told:
        return {"commit": told, "changed_files": None}
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "changed_files": None}
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed_files": None if changed is None else len(changed.splitlines())}


def machine() -> dict[str, Any]:
    """Return what figures of time depend on; not the machine's name, as results are passed on."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def digests(root: Path) -> dict[str, str]:
    """Return the sha256 of a bundle's small files: bundle.json has those of all its documents."""
    return {name: sha256_of(root / name) for name in (INFO, TRAIN, GOLD) if (root / name).is_file()}


def _git(folder: Path, *words: str) -> str | None:
    """Return what git says; None where there is no git, or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, encoding="utf-8", timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
