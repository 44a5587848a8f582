"""The origin of a run: the commit of the code, the machine, and the checksums of the data."""

import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exhibit.evaluation.datasets import Dataset
from exhibit.schemas import __version__
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Provenance
from exhibit.storage.bundle import sha256_of
from exhibit.storage.programs import count_changes, is_git_repository, open_repository

_COMMITS = ("EXHIBIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")
"""The variables in which a CI names the tested commit; set the first to test a server that is built elsewhere."""
_GIT_SECONDS = 10.0  # git answers in milliseconds, unless its disk is unavailable


def describe_run(datasets: Iterable[Dataset], inputs: Mapping[str, str], *, started: str = "") -> dict[str, Any]:
    """Return the provenance of a run; `started` is the original start time of a run that is resumed."""
    return {
        "started": started or datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        **commit_of(Path.cwd(), os.environ),
        "machine": {  # without its name, because results are shared
            "system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "data": {dataset.name: dict(dataset.digests) for dataset in datasets},
        "inputs": dict(inputs),
    }  # fmt: skip


def hash_inputs(target: str) -> dict[str, str]:
    """Return the sha256 of the file that a target names, if any: predictions or a server's description."""
    named = {target, target.partition(":")[2]}
    return {path.name: sha256_of(path) for path in map(Path, filter(None, named)) if path.is_file()}


def find_changed_data(before: Provenance, datasets: Iterable[Dataset], inputs: Mapping[str, str]) -> list[str]:
    """Return the input files that have changed since a resumed run was started."""
    now = {dataset.name: dict(dataset.digests) for dataset in datasets}
    pairs = [(f"{name}/", then, now.get(name, {})) for name, then in before.data.items() if then]
    pairs += [("", before.inputs, dict(inputs))] if before.inputs else []
    return [
        f"{folder}{file}"
        for folder, then, files in pairs
        for file in dict.fromkeys([*then, *files])
        if then.get(file) != files.get(file)
    ]


def commit_of(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return `commit`, the commit of the code, and `changed_files`, the number of files that differ from it."""
    if named := next((environment[name] for name in _COMMITS if environment.get(name)), None):
        return {"commit": named, "changed_files": None}
    clone = next((parent for parent in (folder, *folder.parents) if is_git_repository(parent)), None)
    commit, changed = None, None
    with suppress(ToolkitError, OSError):
        if clone is not None:
            # a second working tree has its commits outside its folder, so only a count is shown
            with open_repository(clone, confined=False) as repository:
                commit = repository.head
                changed = count_changes(repository, clone, seconds=_GIT_SECONDS)
    return {"commit": commit, "changed_files": changed}
