"""Where something was run: the machine, and the commit that was checked out there."""

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COMMITS = ("EXHIBIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")
"""Where a CI says which commit it tests; the first is for whoever tests a server that is built elsewhere."""
_PATIENCE = 10.0
"""Seconds that git may take: it answers in milliseconds, unless its disk is away."""


def commit_of(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the commit that CI names or that is checked out, and how many files differ from it."""
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


def _git(folder: Path, *words: str) -> str | None:
    """Return what git says; None where there is no git, or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, encoding="utf-8", timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
