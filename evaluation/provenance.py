"""What a run stood on besides its settings: when, at which commit, on which machine, over which version of the data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exhibit.engine.machine import commit_of, machine
from exhibit.evaluation.datasets import Dataset
from exhibit.schemas import __version__
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.run import Provenance

_INPUTS = "inputs"
"""The files besides the datasets that decide the replies, such as one of predictions."""


def describe_run(datasets: Iterable[Dataset], inputs: Mapping[str, str], *, started: str = "") -> dict[str, Any]:
    """Return what is written beside a run's settings; a run that is resumed began when it first did."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "started": started or now,
        "version": __version__,
        **commit_of(Path.cwd(), os.environ),
        "machine": machine(),
        "data": {dataset.name: dict(dataset.digests) for dataset in datasets},
        _INPUTS: dict(inputs),
    }


def changed_data(before: Provenance, datasets: Iterable[Dataset], inputs: Mapping[str, str]) -> list[str]:
    """Return which files of a run that is resumed are others than those it was started on."""
    now = {dataset.name: dict(dataset.digests) for dataset in datasets} | {_INPUTS: dict(inputs)}
    then = {**before.data, _INPUTS: before.inputs}
    return [
        f"{name}/{file}" if name != _INPUTS else file
        for name, files in then.items()
        for file in dict.fromkeys([*files, *now.get(name, {})])
        # runs of earlier versions did not keep the checksums of documents
        if files
        and files.get(file) != now.get(name, {}).get(file)
        and (file in files or f"{CORPUS}/" in "".join(files))
    ]
